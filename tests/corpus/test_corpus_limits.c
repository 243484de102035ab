/* SPDX-License-Identifier: Apache-2.0 */
/* test_corpus_limits.c - inputs larger than the memory, documents that are too long, inputs that
 * wait. */
#include "corpus/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "config.h"
#if HAVE_ZSTD
#include <zstd.h>
#endif

#include "support/check.h"
#include "support/random_input.h"
#include "support/stored.h"
#include "support/must.h"

#define MIB ((uint64_t)1 << 20)

/* A multiple of the memory allowed for reading. */
static uint64_t much(void)
{
    return check_long() ? 256 * MIB : 96 * MIB;
}

static corpus_options small_options(corpus_format format)
{
    return (corpus_options){
        .reader.format = format, .batch_bytes = 256 * 1024, .reader.max_document = 2 * MIB};
}

/* ---- More than the memory ---- */

typedef struct flood {
    const char *head, *body, *tail; /* the body, repeated up to n_bytes */
    uint64_t n_bytes;
} flood;

static void write_all(int fd, const char *bytes, size_t n_bytes)
{
    while (n_bytes > 0) {
        ssize_t n = write(fd, bytes, n_bytes);
        if (n < 0)
            _exit(3);
        bytes += n;
        n_bytes -= (size_t)n;
    }
}

static void write_flood(int fd, const flood *f)
{
    static char block[1 << 16];
    size_t n_body = strlen(f->body), n_block = sizeof block / n_body * n_body;
    for (size_t i = 0; i < n_block; i++)
        block[i] = f->body[i % n_body];
    write_all(fd, f->head, strlen(f->head));
    for (uint64_t n = f->n_bytes / n_body * n_body; n > 0;) {
        size_t n_now = n < n_block ? (size_t)n : n_block;
        write_all(fd, block, n_now);
        n -= n_now;
    }
    write_all(fd, f->tail, strlen(f->tail));
}

static uint64_t address_space(void)
{
    unsigned long n_pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f && fscanf(f, "%lu", &n_pages) == 1);
    fclose(f);
    return (uint64_t)n_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Reads in a child with 48 MiB of memory; returns its counts through a pipe. */
static void read_within_limits(const char *name, const corpus_options *options,
                               corpus_counts *counts)
{
    int result[2];
    CHECK(pipe(result) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct rlimit limit = {address_space() + 48 * MIB, RLIM_INFINITY};
        corpus_batch b = {0};
        failure err;
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
        corpus *c = corpus_open(&name, 1, options, NULL, &err);
        CHECK(c != NULL);
        int status;
        while ((status = corpus_read(c, &b, &err)) > 0)
            *counts = b.after.counts;
        if (status < 0)
            CHECK_FAIL("%s", err.text);
        corpus_close(c);
        corpus_batch_free(&b);
        write_all(result[1], (const char *)counts, sizeof *counts);
        _exit(0);
    }
    must_end(child);
    CHECK(read(result[0], counts, sizeof *counts) == (ssize_t)sizeof *counts);
    close(result[0]);
    close(result[1]);
}

static corpus_counts read_flood(const flood *f, const corpus_options *options)
{
    int ends[2];
    char name[64];
    corpus_counts counts = {0};
    if (check_sanitized())
        SKIP("sanitizers need address space");
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    pid_t writer = fork();
    CHECK(writer >= 0);
    if (writer == 0) {
        close(ends[0]);
        write_flood(ends[1], f);
        _exit(0);
    }
    close(ends[1]);
    snprintf(name, sizeof name, "/proc/self/fd/%d", ends[0]);
    read_within_limits(name, options, &counts);
    close(ends[0]);
    must_end(writer);
    return counts;
}

TEST(empty_lines_and_blanks_take_no_memory)
{
    const flood newlines = {"", "\n", "", much() / 4},
                blanks = {"", " \t\r", "{\"text\":\"x\"}", much()};
    corpus_options o = small_options(CORPUS_LINES);
    corpus_counts c = read_flood(&newlines, &o);
    CHECK_EQ(c.documents, much() / 4);
    CHECK_EQ(c.empty_documents, much() / 4);
    o.reader.format = CORPUS_JSON_LINES;
    c = read_flood(&blanks, &o);
    CHECK_EQ(c.documents, 1);
    CHECK_EQ(c.text_bytes, 1);
}

TEST(a_record_that_is_too_long_takes_no_memory)
{
    static const corpus_format formats[] = {CORPUS_LINES, CORPUS_JSON_LINES, CORPUS_TEXT};
    static const char *const texts[] = {"first", "{\"text\":\"x\"}", "one"};
    for (size_t i = 0; i < 3; i++) {
        char head[32], tail[32];
        snprintf(head, sizeof head, "%s\n\n", texts[i]);
        snprintf(tail, sizeof tail, "\n\n%s\n\n", texts[i]);
        const flood f = {head, "word", tail, much()};
        corpus_options o = small_options(formats[i]);
        o.reader.separator = "\n\n";
        o.reader.separator_bytes = 2;
        o.reader.on_error = ON_ERROR_SKIP;
        o.reader.window.read_ahead = i == 1;
        corpus_counts c = read_flood(&f, &o);
        CHECK_EQ(c.documents - c.empty_documents, 2);
        CHECK_EQ(c.bad_documents, 1);
        CHECK_EQ(c.long_documents, 1);
        CHECK_EQ(c.bad_bytes, much());
    }
}

TEST(a_row_of_csv_that_is_too_long_takes_no_memory)
{
    static const char *const ends[][2] = {{"", ""}, {"\"", "\""}, {"\"", "\"\"\""}, {"\"", "\"x"}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char head[32], tail[32];
        snprintf(head, sizeof head, "text\nfirst\n%s", ends[i][0]);
        snprintf(tail, sizeof tail, "%s\r\nlast\r\n", ends[i][1]);
        const flood f = {head, "word", tail, much()};
        corpus_options o = small_options(CORPUS_CSV);
        o.reader.on_error = ON_ERROR_SKIP;
        const corpus_counts c = read_flood(&f, &o);
        CHECK_EQ(c.documents, 2);
        CHECK_EQ(c.text_bytes, strlen("first") + strlen("last"));
        CHECK_EQ(c.long_documents, 1);
        CHECK_EQ(c.bad_bytes, much() + strlen(ends[i][0]) + strlen(ends[i][1]));
    }
}

TEST(a_bomb_takes_no_memory)
{
#if HAVE_ZSTD
    static uint8_t in[1 << 17], out[1 << 17];
    char name[64];
    corpus_counts c = {0};
    if (check_sanitized())
        SKIP("sanitizers need address space");
    int fd = memfd_create("bomb", MFD_CLOEXEC);
    ZSTD_CCtx *z = ZSTD_createCCtx();
    memset(in, ' ', sizeof in);
    for (uint64_t n = 0; n < much(); n += sizeof in) {
        ZSTD_inBuffer i = {in, sizeof in, 0};
        ZSTD_outBuffer o = {out, sizeof out, 0};
        ZSTD_EndDirective end = n + sizeof in < much() ? ZSTD_e_continue : ZSTD_e_end;
        CHECK(!ZSTD_isError(ZSTD_compressStream2(z, &o, &i, end)) && i.pos == i.size);
        write_all(fd, (const char *)out, o.pos);
    }
    ZSTD_freeCCtx(z);
    CHECK((uint64_t)lseek(fd, 0, SEEK_CUR) < much() / 1000);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    corpus_options o = small_options(CORPUS_TEXT);
    o.reader.on_error = ON_ERROR_SKIP;
    read_within_limits(name, &o, &c);
    CHECK_EQ(c.bad_bytes, much());
    close(fd);
#else
    SKIP("this build has no zstd");
#endif
}

TEST(an_input_is_read_once)
{
    enum {
        N_LINES = 200,
        LINE_BYTES = 20000
    };
    char name[64];
    int fd = memfd_create("lines", MFD_CLOEXEC);
    uint64_t n_file = 0;
    for (int i = 0; i < N_LINES; i++) {
        const flood f = {"{\"text\":\"", "word ", i % 3 ? "\"}\n" : "\"]\n", LINE_BYTES};
        write_flood(fd, &f);
        n_file += LINE_BYTES + 12;
    }
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const char *names = name;
    corpus_options o = small_options(CORPUS_JSON_LINES);
    corpus_batch b = {0};
    failure err;
    corpus_counts counts = {0};
    o.reader.on_error = ON_ERROR_SKIP;
    o.batch_bytes = 1000;
    o.reader.window.read_bytes = 1000;
    uint64_t n_before = bytes_read_so_far();
    if (n_before == 0)
        SKIP("/proc/self/io cannot be read");
    corpus *c = corpus_open(&names, 1, &o, NULL, &err);
    while (corpus_read(c, &b, &err) > 0) {
        counts = b.after.counts;
        CHECK(b.n_ends <= 2); /* a document that is larger than a batch is alone in one */
    }
    uint64_t n_read = bytes_read_so_far() - n_before;
    CHECK_EQ(counts.documents + counts.bad_documents, N_LINES);
    CHECK_EQ(counts.text_bytes, counts.documents * LINE_BYTES);
    CHECK(counts.bad_documents == 67 && n_read < n_file + 4096);
    corpus_close(c);
    corpus_batch_free(&b);
    close(fd);
}

/* ---- Waiting ---- */

static void *interrupt_soon(void *c)
{
    nanosleep(&(struct timespec){.tv_nsec = 30 * 1000 * 1000}, NULL);
    corpus_interrupt(c);
    return NULL;
}

static void check_interrupt(bool read_ahead, bool compressed)
{
    int ends[2];
    char name[64];
    const char *names = name;
    corpus_options o = small_options(CORPUS_LINES);
    corpus_batch b = {0};
    failure err;
    pthread_t thread;
    stored s =
        stored_make(compressed ? STORED_GZIP : STORED_PLAIN, (const uint8_t *)"one\ntwo", 7, 1);
    CHECK(s.bytes && pipe(ends) == 0 && write(ends[1], s.bytes, s.n_bytes) > 0);
    snprintf(name, sizeof name, "/proc/self/fd/%d", ends[0]);
    o.reader.window.read_ahead = read_ahead;
    o.batch_bytes = 4;
    corpus *c = corpus_open(&names, 1, &o, NULL, &err);
    CHECK(pthread_create(&thread, NULL, interrupt_soon, c) == 0);
    int n_batches = 0, status;
    while ((status = corpus_read(c, &b, &err)) > 0)
        n_batches++;
    CHECK_INT(status, -1);
    CHECK_INT(err.status, ECANCELED);
    pthread_join(thread, NULL);
    corpus_close(c);
    corpus_batch_free(&b);
    close(ends[0]);
    close(ends[1]);
    free(s.bytes);
}

TEST(reading_that_waits_can_be_interrupted)
{
    check_interrupt(false, false);
    check_interrupt(true, false);
#if HAVE_ZLIB
    check_interrupt(false, true);
    check_interrupt(true, true);
#endif
}

TEST(closing_does_not_wait_for_an_input_that_waits)
{
    int ends[2];
    char name[64], text[2000];
    const char *names = name;
    corpus_options o = small_options(CORPUS_LINES);
    corpus_batch b = {0};
    failure err;
    memset(text, '\n', sizeof text);
    CHECK(pipe(ends) == 0 && write(ends[1], text, sizeof text) == sizeof text);
    snprintf(name, sizeof name, "/proc/self/fd/%d", ends[0]);
    o.reader.window.read_ahead = true;
    o.reader.window.read_bytes = 100;
    o.batch_bytes = 1000;
    corpus *c = corpus_open(&names, 1, &o, NULL, &err);
    CHECK_INT(corpus_read(c, &b, &err), 1);
    corpus_close(c);
    corpus_batch_free(&b);
    close(ends[0]);
    close(ends[1]);
}

TEST(closing_in_the_middle_ends_the_thread_that_reads_ahead)
{
    char name[64];
    const char *names = name;
    int fd = memfd_create("text", MFD_CLOEXEC);
    const flood f = {"", "words and lines\n", "", 4 * MIB};
    write_flood(fd, &f);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    for (int n = 0; n < 30; n++) {
        corpus_options o = small_options(CORPUS_LINES);
        corpus_batch b = {0};
        failure err;
        o.reader.window.read_ahead = true;
        o.reader.window.read_bytes = 4096;
        corpus *c = corpus_open(&names, 1, &o, NULL, &err);
        for (int i = 0; i < n % 7; i++)
            CHECK_INT(corpus_read(c, &b, &err), 1);
        corpus_close(c);
        corpus_batch_free(&b);
    }
    close(fd);
}
