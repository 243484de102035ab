/* SPDX-License-Identifier: Apache-2.0 */
/* test_fetch - steps that are read ahead hold exactly the tokens that were planned, in order,
 * whichever way they come; and nothing is left behind by whoever closes. */
#include "support/check.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <time.h>

#include "loader/fetch_case.h"
#include "support/joined.h"
#include "support/must.h"
#include "system/platform_uring.h"

static const uint32_t N_TOKENS = 70001;

static void add_all(fetch_case *c)
{
    ahead_add(c, N_TOKENS, 2);
    ahead_add(c, 20011, 4);
    ahead_add_adopted(c, 9001, 130);
    ahead_add(c, 300, 2);
    ahead_add_joined(c, 30011, 60);
    c->max_tokens = 1100;
}

/* ---- Direct reads are there where the system has them ---- */

static bool reads_past_the_cache(const char *path)
{
    void *place = aligned_alloc(4096, 4096);
    const int fd = open(path, O_RDONLY | O_DIRECT);
    const bool works = place && fd >= 0 && pread(fd, place, 4096, 0) == 4096;
    if (fd >= 0)
        close(fd);
    free(place);
    return works;
}

TEST(direct_opens_where_io_uring_and_direct_reads_work)
{
    fetch_case c = {.seed = 1};
    add_all(&c);
    const tokmap_i_fetch_options o = ahead_options(&c, TOKMAP_IO_DIRECT);
    tokmap_i_uring uring;
    const bool has_uring = tokmap_i_uring_open(&uring, 4) == 0;
    if (has_uring)
        tokmap_i_uring_close(&uring);
    if (!has_uring || !reads_past_the_cache(ahead_path(0, ".bin"))) {
        ahead_close(&c);
        SKIP("this system lacks one of them");
    }
    tokmap_i_fetch *f = NULL;
    tokmap_error err;
    CHECK_OK(tokmap_i_fetch_open(&f, &o, &err), err);
    tokmap_i_fetch_close(f, false);
    ahead_close(&c);
}

/* ---- The right tokens ---- */

typedef struct run {
    uint64_t first, stride, step;
    uint32_t n_rows;
} run;

static run begin_run(tokmap_i_fetch *f, uint64_t random)
{
    const run r = {.first = random % 100000,
                   .stride = 1 + (random >> 20) % 50,
                   .n_rows = 1 + (uint32_t)((random >> 40) % 9)};
    tokmap_i_fetch_restart(f, r.first, r.stride, r.n_rows);
    return r;
}

static void holds_the_planned_tokens(tokmap_io kind)
{
    fetch_case c = {.seed = 5};
    add_all(&c);
    const uint32_t n_rounds = check_long() ? 200 : 30;
    for (uint32_t round = 0; round < n_rounds; round++) {
        tokmap_i_fetch_options o = ahead_options(&c, kind);
        o.n_steps = 1 + round % 8;
        o.drop_behind = round % 3 == 2;
        tokmap_i_fetch *f = ahead_fetch(&o);
        run r = begin_run(f, check_mix(round, 99));
        for (uint64_t i = 0; i < 60; i++) {
            const uint64_t random = check_mix(round, i);
            if (random % 12 == 0)
                r = begin_run(f, random >> 8);
            ahead_expect(&c, f, r.n_rows, r.first + r.step++ * r.stride);
        }
        tokmap_i_fetch_close(f, false);
    }
    ahead_close(&c);
}
EACH_KIND(holds_the_planned_tokens)

/* Rows longer than a read of the system's, and than what is asked for at a time. */
static void holds_long_rows(tokmap_io kind)
{
    fetch_case c = {.seed = 8};
    ahead_add(&c, 900001, 4);
    ahead_add(&c, 500001, 2);
    ahead_add_joined(&c, 600001, 9);
    c.max_tokens = 400003;
    tokmap_i_fetch_options o = ahead_options(&c, kind);
    o.n_steps = 3;
    o.max_rows = 3;
    tokmap_i_fetch *f = ahead_fetch(&o);
    tokmap_i_fetch_restart(f, 0, 3, 3);
    for (uint64_t i = 0; i < 12; i++)
        ahead_expect(&c, f, 3, i * 3);
    ahead_end(&c, f);
}
EACH_KIND(holds_long_rows)

/* More reads than may be under way at a time. */
static void holds_many_rows(tokmap_io kind)
{
    fetch_case c = {.seed = 9};
    add_all(&c);
    c.max_tokens = 64;
    tokmap_i_fetch_options o = ahead_options(&c, kind);
    o.n_steps = 5;
    o.max_rows = 300;
    tokmap_i_fetch *f = ahead_fetch(&o);
    tokmap_i_fetch_restart(f, 7, 1000, 300);
    for (uint64_t i = 0; i < 20; i++)
        ahead_expect(&c, f, 300, 7 + i * 1000);
    ahead_end(&c, f);
}
EACH_KIND(holds_many_rows)

/* The look-ahead grows, and goes back for good when that did not help; no step is lost by it. */
static void holds_the_tokens_while_it_adapts(tokmap_io kind)
{
    fetch_case c = {.seed = 11};
    add_all(&c);
    tokmap_i_fetch_options o = ahead_options(&c, kind);
    tokmap_loader_info info;
    uint32_t most = 0;
    o.n_steps = 2;
    o.most_steps = kind == TOKMAP_IO_DIRECT ? 0 : 32;
    tokmap_i_fetch *f = ahead_fetch(&o);
    tokmap_i_fetch_restart(f, 3, 9, 9);
    for (uint64_t i = 0; i < 600; i++) {
        ahead_expect(&c, f, 9, 3 + i * 9);
        tokmap_i_fetch_adapt(f);
        tokmap_i_fetch_describe(f, &info);
        CHECK(info.look_ahead >= 2 && info.look_ahead <= 32);
        most = MAX(most, info.look_ahead);
    }
    CHECK_EQ(most > 2, kind != TOKMAP_IO_DIRECT);
    ahead_end(&c, f);
}
EACH_KIND(holds_the_tokens_while_it_adapts)

/* A lent step does not change while the steps after it are read. */
static void leaves_what_is_lent(tokmap_io kind)
{
    fetch_case c = {.seed = 6};
    add_all(&c);
    tokmap_i_fetch *f = ahead_begin(&c, kind);
    for (uint64_t i = 0; i < 20; i++) {
        const tokmap_i_fetch_row *rows;
        CHECK_INT(tokmap_i_fetch_next(f, &rows, NULL), TOKMAP_OK);
        usleep(3000);
        ahead_compare(&c, rows, 9, i * 9);
    }
    ahead_end(&c, f);
}
EACH_KIND(leaves_what_is_lent)

/* Restarts follow each other while reads are under way; what comes is always of the last one. */
static void restarts_while_it_reads(tokmap_io kind)
{
    fetch_case c = {.seed = 7};
    add_all(&c);
    tokmap_i_fetch_options o = ahead_options(&c, kind);
    o.n_steps = 8;
    o.drop_behind = true;
    tokmap_i_fetch *f = ahead_fetch(&o);
    const uint32_t n_rounds = check_long() ? 5000 : 400;
    for (uint64_t i = 0; i < n_rounds; i++) {
        const uint64_t random = check_mix(i, 3);
        run r = {0};
        for (uint64_t k = 0; k <= random % 3; k++)
            r = begin_run(f, check_mix(random, k));
        for (uint64_t k = 0; k < (random >> 8) % 4; k++)
            ahead_expect(&c, f, r.n_rows, r.first + k * r.stride);
    }
    ahead_end(&c, f);
}
EACH_KIND(restarts_while_it_reads)

/* ---- Ends and refusals ---- */

static void ends_where_the_plan_does(tokmap_io kind)
{
    fetch_case c = {.seed = 1, .end = 50};
    add_all(&c);
    tokmap_i_fetch_options o = ahead_options(&c, kind);
    o.drop_behind = true;
    tokmap_i_fetch *f = ahead_fetch(&o);
    for (uint32_t round = 0; round < 3; round++) {
        const tokmap_i_fetch_row *rows;
        tokmap_i_fetch_restart(f, round, 9, 9);
        for (uint64_t i = 0; i < 5; i++)
            ahead_expect(&c, f, 9, round + i * 9);
        for (uint32_t k = 0; k < 3; k++) {
            CHECK_INT(tokmap_i_fetch_next(f, &rows, NULL), TOKMAP_END);
            CHECK(rows == NULL);
        }
    }
    ahead_end(&c, f);
}
EACH_KIND(ends_where_the_plan_does)

/* Read ahead it fails once, asked for it fails once more; a third time is not refused. */
static void refuses_a_step_and_tries_it_again(tokmap_io kind)
{
    fetch_case c = {.seed = 2, .refused_sample = 31, .n_refusals = 2};
    add_all(&c);
    tokmap_i_fetch *f = ahead_begin(&c, kind);
    const tokmap_i_fetch_row *rows;
    tokmap_error err;
    uint32_t n_refused = 0;
    for (uint64_t i = 0; i < 12; i++) {
        if (i == 3 && tokmap_i_fetch_next(f, &rows, &err)) {
            CHECK_INT(err.status, TOKMAP_ERR_CORRUPT);
            CHECK_STR(err.text, "refused");
            n_refused++;
            while (tokmap_i_fetch_next(f, &rows, &err))
                CHECK(n_refused++ < 2);
            ahead_compare(&c, rows, 9, i * 9);
            continue;
        }
        if (i == 3)
            ahead_compare(&c, rows, 9, i * 9);
        else
            ahead_expect(&c, f, 9, i * 9);
    }
    CHECK(n_refused <= 2 && c.n_refusals == 0);
    c.n_refusals = INT32_MAX; /* permanent: restart does not reset it */
    tokmap_i_fetch_restart(f, 27, 9, 9);
    for (uint32_t k = 0; k < 5; k++)
        CHECK_INT(tokmap_i_fetch_next(f, &rows, NULL), TOKMAP_ERR_CORRUPT);
    tokmap_i_fetch_restart(f, 36, 9, 9);
    ahead_expect(&c, f, 9, 36);
    ahead_end(&c, f);
}
EACH_KIND(refuses_a_step_and_tries_it_again)

TEST(options_that_make_no_sense_are_refused)
{
    fetch_case c = {.max_tokens = 10};
    ahead_add(&c, 300, 2);
    tokmap_i_fetch_options o = ahead_options(&c, TOKMAP_IO_READ);
    tokmap_i_fetch *f = (tokmap_i_fetch *)&c;
    o.max_rows = UINT32_MAX;
    CHECK_INT(tokmap_i_fetch_open(&f, &o, NULL), TOKMAP_ERR_ARGUMENT);
    CHECK(f == NULL);
    tokmap_i_fetch_close(NULL, false);
    ahead_close(&c);
}

/* ---- Nothing is left ---- */

typedef struct footprint {
    uint64_t n_descriptors, n_threads, n_maps, n_mapped_kib, heap_bytes;
} footprint;

/* A thread that was joined may be listed for a moment yet. */
static uint64_t count_threads(uint64_t expected)
{
    uint64_t n = n_entries("/proc/self/task");
    for (int k = 0; n > expected && k < 2000; k++) {
        usleep(1000);
        n = n_entries("/proc/self/task");
    }
    return n;
}

static footprint take_footprint(uint64_t n_threads)
{
    footprint p = {.n_descriptors = n_open_files(), .n_threads = count_threads(n_threads)};
    p.n_maps = n_mapped_files("");
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK(statm != NULL && fscanf(statm, "%" SCNu64, &p.n_mapped_kib) == 1);
    fclose(statm);
    p.n_mapped_kib *= (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
    p.heap_bytes = mallinfo2().uordblks;
    return p;
}

static void close_somewhere(fetch_case *c, const tokmap_i_fetch_options *o, uint32_t i)
{
    tokmap_i_fetch *f = ahead_fetch(o);
    const tokmap_i_fetch_row *rows;
    if (i % 5 > 0)
        tokmap_i_fetch_restart(f, i, 9, 9);
    if (i % 5 == 2)
        usleep(i % 300);
    if (i % 5 == 3)
        ahead_expect(c, f, 9, i);
    if (i % 5 == 4) {
        CHECK_INT(tokmap_i_fetch_next(f, &rows, NULL), TOKMAP_OK);
        tokmap_i_fetch_restart(f, 0, 1, 1);
    }
    tokmap_i_fetch_close(f, false);
}

static void leaves_nothing_behind(tokmap_io kind)
{
    fetch_case c = {.seed = 4};
    add_all(&c);
    tokmap_i_fetch_options o = ahead_options(&c, kind);
    o.drop_behind = true;
    ahead_open_files(&c);
    const uint64_t n_threads = n_entries("/proc/self/task");
    for (uint32_t i = 0; i < 20; i++)
        close_somewhere(&c, &o, i);
    const footprint before = take_footprint(n_threads);
    const uint32_t n = check_long() && !check_sanitized() ? 10000 : 300;
    for (uint32_t i = 0; i < n; i++)
        close_somewhere(&c, &o, i);
    const footprint after = take_footprint(n_threads);
    CHECK_EQ(after.n_descriptors, before.n_descriptors);
    CHECK(after.n_threads <= n_threads);
    if (!check_sanitized()) {                     /* which keep maps and memory for themselves */
        CHECK(after.n_maps <= before.n_maps + 3); /* stacks and heaps that libc keeps */
        CHECK(after.n_mapped_kib <= before.n_mapped_kib + 80 * 1024);
        CHECK(after.heap_bytes <= before.heap_bytes + 4096);
    }
    ahead_close(&c);
}
EACH_KIND(leaves_nothing_behind)

TEST(the_thread_takes_no_signal)
{
    fetch_case c = {.seed = 4};
    add_all(&c);
    const tokmap_i_fetch_options o = ahead_options(&c, TOKMAP_IO_READ);
    sigset_t set, before, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    tokmap_i_fetch *f = ahead_fetch(&o);
    CHECK_INT(sigprocmask(SIG_BLOCK, &set, &before), 0);
    CHECK_INT(kill(getpid(), SIGUSR1), 0); /* would end the process in any thread that takes it */
    tokmap_i_fetch_restart(f, 0, 9, 9);
    ahead_expect(&c, f, 9, 0);
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGUSR1));
    int taken;
    sigwait(&set, &taken);
    sigprocmask(SIG_SETMASK, &before, NULL);
    ahead_end(&c, f);
}

/* ---- fork ---- */

/* A child that looks at what is lent, when the pipe ends. */
static pid_t fork_with_rows(fetch_case *c, tokmap_i_fetch *f, const tokmap_i_fetch_row *rows,
                            uint64_t sample, const int pipe_ends[2])
{
    const pid_t child = fork();
    char byte;
    if (child != 0)
        return child;
    close(pipe_ends[1]);
    while (read(pipe_ends[0], &byte, 1) > 0)
        continue;
    ahead_compare(c, rows, 9, sample);
    tokmap_i_fetch_close(f, true);
    ahead_close(c);
    _exit(0);
}

/* Children that end soon, and some that live on, keep what was lent, and share the memory that is
 * read into. */
static void is_left_alone_by_a_child(tokmap_io kind)
{
    fetch_case c = {.seed = 11};
    add_all(&c);
    tokmap_i_fetch_options o = ahead_options(&c, kind);
    o.n_steps = 8;
    tokmap_i_fetch *f = ahead_fetch(&o);
    pid_t children[5];
    int pipe_ends[2];
    tokmap_i_fetch_restart(f, 0, 9, 9);
    for (uint64_t i = 0; i < 50; i++) {
        const tokmap_i_fetch_row *rows;
        if (i % 10 == 0)
            CHECK_INT(pipe(pipe_ends), 0);
        CHECK_INT(tokmap_i_fetch_next(f, &rows, NULL), TOKMAP_OK);
        if (i % 10 < 5)
            children[i % 10] = fork_with_rows(&c, f, rows, i * 9, pipe_ends);
        ahead_compare(&c, rows, 9, i * 9);
        if (i % 10 == 9) {
            close(pipe_ends[0]);
            close(pipe_ends[1]);
        }
        for (int k = 0; k < 5 && i % 10 == 9; k++)
            must_end(children[k]);
    }
    ahead_end(&c, f);
}
EACH_KIND(is_left_alone_by_a_child)

/* ---- Waits and counts ---- */

static void counts_what_it_waits_for(tokmap_io kind)
{
    fetch_case c = {.seed = 12, .plan_us = 3000}; /* no step is ready at once */
    add_all(&c);
    tokmap_i_fetch_options o = ahead_options(&c, kind);
    o.n_steps = 8;
    tokmap_i_fetch *f = ahead_fetch(&o);
    bool ready = false;
    tokmap_loader_info info = {0};
    CHECK(tokmap_i_fetch_bytes(f) > 9 * 9 * sizeof(tokmap_i_fetch_row));
    for (uint32_t round = 0; round < 50 && !ready; round++) { /* a slow machine gets some more */
        tokmap_i_fetch_restart(f, 0, 9, 9);
        usleep(2000 * (round + 1));
        tokmap_i_fetch_describe(f, &info);
        const uint64_t n_before = info.n_waits;
        ahead_expect(&c, f, 9, 0);
        tokmap_i_fetch_describe(f, &info);
        ready = info.n_waits == n_before;
    }
    CHECK(ready);
    for (uint32_t i = 0; i < 20; i++) {
        tokmap_i_fetch_restart(f, 0, 9, 9);
        ahead_expect(&c, f, 9, 0);
    }
    tokmap_i_fetch_describe(f, &info);
    CHECK(info.n_waits > 0 && info.waited_ns > 0);
    CHECK(info.wait_max_ns >= info.wait_p999_ns && info.wait_p999_ns > 0);
    CHECK((info.bytes_read > 0) == (kind != TOKMAP_IO_POPULATE));
    ahead_end(&c, f);
}
EACH_KIND(counts_what_it_waits_for)

/* ---- The page cache ---- */

enum {
    N_COLD_FILES = 20 /* of a joined dataset; rows that cross them may leave pages behind */
};

static void add_cold(fetch_case *c, uint32_t n_tokens, bool joined)
{
    if (joined)
        ahead_add_joined(c, n_tokens, N_COLD_FILES);
    else
        ahead_add(c, n_tokens, 2);
}

/* Which pages of a file are in memory, without a map of the dataset. */
static unsigned char *pages_of(const tokmap_dataset *ds, const tokmap_i_token_file *file, size_t *n)
{
    const size_t n_bytes = (size_t)tokmap_i_token_file_bytes(ds, file);
    const int fd = open(file->path, O_RDONLY);
    void *map = mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, fd, 0);
    *n = (size_t)div_up(n_bytes, (uint64_t)sysconf(_SC_PAGESIZE));
    unsigned char *pages = malloc(*n);
    CHECK(fd >= 0 && map != MAP_FAILED && pages);
    CHECK_INT(mincore(map, n_bytes, pages), 0);
    munmap(map, n_bytes);
    close(fd);
    return pages;
}

static uint64_t n_cached(const tokmap_dataset *ds)
{
    uint64_t n = 0;
    for (uint64_t k = 0; k < ds->n_files; k++) {
        size_t n_pages;
        unsigned char *pages = pages_of(ds, &ds->files[k], &n_pages);
        for (size_t i = 0; i < n_pages; i++)
            n += pages[i] & 1;
        free(pages);
    }
    return n;
}

/* An empty page cache to begin with, or the test cannot tell. */
static void make_cold(fetch_case *c)
{
    const tokmap_dataset *ds = c->datasets[0];
    for (uint64_t k = 0; k < ds->n_files; k++) {
        const tokmap_i_token_file *file = &ds->files[k];
        const size_t n_bytes = (size_t)tokmap_i_token_file_bytes(ds, file);
        const int fd = open(file->path, O_RDONLY);
        if (file->map)
            tokmap_i_map_forget(file->map, n_bytes);
        fsync(fd);
        tokmap_i_file_forget(fd, 0, n_bytes);
        close(fd);
    }
    if (n_cached(ds) > 0) {
        ahead_close(c);
        SKIP("this file system keeps files in memory");
    }
}

static void read_all(fetch_case *c, tokmap_io kind, bool drop_behind)
{
    tokmap_i_fetch_options o = ahead_options(c, kind);
    o.drop_behind = drop_behind;
    tokmap_i_fetch *f = ahead_fetch(&o);
    tokmap_i_fetch_restart(f, 0, 9, 9);
    for (uint64_t i = 0; i < 100; i++)
        ahead_expect(c, f, 9, i * 9);
    tokmap_i_fetch_close(f, false);
}

static void let_pages_go(tokmap_io kind, bool joined)
{
    fetch_case c = {.seed = 13, .max_tokens = 3000, .from = 1, .to = 399999, .end = 900};
    const uint64_t n_more = joined ? 2 * N_COLD_FILES : 0;
    add_cold(&c, 400000, joined);
    make_cold(&c);
    read_all(&c, kind, true);
    CHECK(n_cached(c.datasets[0]) <= n_more + (kind == TOKMAP_IO_DIRECT ? 0 : 8));
    read_all(&c, kind, false);
    const uint64_t n_pages = div_up(800000, (uint64_t)sysconf(_SC_PAGESIZE));
    if (kind == TOKMAP_IO_DIRECT)
        CHECK(n_cached(c.datasets[0]) <= n_more);
    else
        CHECK(n_cached(c.datasets[0]) > n_pages / 2);
    ahead_close(&c);
}

static void lets_pages_go(tokmap_io kind)
{
    if (kind == TOKMAP_IO_POPULATE && check_emulated())
        SKIP("qemu ignores MADV_DONTNEED for files");
    let_pages_go(kind, false);
    let_pages_go(kind, true);
}
EACH_KIND(lets_pages_go)

/* The page of its first token. */
static bool is_cached(const tokmap_dataset *ds, tokmap_i_fetch_row row)
{
    const tokmap_i_token_piece p = tokmap_i_first_piece(ds, row.at.first_token, 1);
    size_t n_pages;
    unsigned char *pages = pages_of(ds, p.file, &n_pages);
    const bool there = pages[p.first_byte / (uint64_t)sysconf(_SC_PAGESIZE)] & 1;
    free(pages);
    return there;
}

/* With a step lent, exactly n_steps after it are planned, and their rows are being read. */
static void look_ahead(tokmap_io kind, bool joined)
{
    fetch_case c = {.seed = 16, .max_tokens = 1000, .from = 1, .to = 399999};
    add_cold(&c, 400000, joined);
    for (uint32_t n_steps = 1; n_steps < 20; n_steps += 6) {
        tokmap_i_fetch_options o = ahead_options(&c, kind);
        const uint64_t n_samples = (n_steps + 1) * 9;
        uint64_t n_there = 0;
        make_cold(&c);
        c.n_planned = 0;
        o.n_steps = n_steps;
        tokmap_i_fetch *f = ahead_fetch(&o);
        tokmap_i_fetch_restart(f, 0, 9, 9);
        ahead_expect(&c, f, 9, 0);
        const time_t end = time(NULL) + 60;
        while ((c.n_planned < n_samples || n_there < n_samples) && time(NULL) < end) {
            usleep(1000);
            n_there = kind == TOKMAP_IO_DIRECT ? n_samples : 0;
            for (uint64_t i = 0; i < n_samples && kind != TOKMAP_IO_DIRECT; i++)
                n_there += is_cached(c.datasets[0], ahead_row(&c, i));
        }
        CHECK_EQ(n_there, n_samples);
        CHECK_EQ(c.n_planned, n_samples);
        tokmap_i_fetch_close(f, false);
    }
    ahead_close(&c);
}

static void looks_as_far_ahead_as_it_may(tokmap_io kind)
{
    look_ahead(kind, false);
    look_ahead(kind, true);
}
EACH_KIND(looks_as_far_ahead_as_it_may)

/* What is asked for comes, and not the megabytes around it. */
static void read_rows_alone(tokmap_io kind, bool joined)
{
    fetch_case c = {.seed = 14, .max_tokens = 1000, .from = 1, .to = 3999999};
    const uint64_t n_more = joined ? 2 * N_COLD_FILES : 0;
    add_cold(&c, 4000000, joined);
    make_cold(&c);
    tokmap_i_fetch *f = ahead_begin(&c, kind);
    for (uint64_t i = 0; i < 4; i++)
        ahead_expect(&c, f, 9, i * 9);
    tokmap_i_fetch_close(f, false);
    const uint64_t n_rows = 9 * 8; /* and those ahead */
    CHECK(n_cached(c.datasets[0]) <= n_more + (kind == TOKMAP_IO_DIRECT ? 0 : 2 * n_rows));
    ahead_close(&c);
}

static void reads_no_more_than_its_rows(tokmap_io kind)
{
    read_rows_alone(kind, false);
    read_rows_alone(kind, true);
}
EACH_KIND(reads_no_more_than_its_rows)

TEST(a_page_is_said_to_be_cached_when_it_is)
{
    fetch_case c = {.seed = 15, .max_tokens = 10};
    ahead_add(&c, 4000000, 2);
    const int fd = tokmap_i_token_file_fd(c.datasets[0]->files);
    uint8_t byte;
    uint64_t offsets[16];
    for (uint64_t i = 0; i < 16; i++)
        offsets[i] = 500000 * i;
    /* a page may arrive while it is asked for: not 16 of 16, and not each time */
    int n_cold = 0;
    for (int i = 0; i < 50 && n_cold == 0; i++) {
        make_cold(&c);
        n_cold = tokmap_i_file_count_cold(fd, offsets, 16);
    }
    CHECK(n_cold > 0);
    usleep(20000);
    CHECK(n_cached(c.datasets[0]) <= 16); /* asking brings in one page each, at the most */
    CHECK_INT(pread(fd, &byte, 1, 100000), 1);
    offsets[0] = 100000;
    CHECK_INT(tokmap_i_file_count_cold(fd, offsets, 1), 0);
    ahead_close(&c);
}
