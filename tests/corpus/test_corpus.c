/* SPDX-License-Identifier: Apache-2.0 */
/* test_corpus.c - the documents of inputs of every format, compression and chunk size against a
 * naive model; messages about errors. test_corpus_parts.c resumes. */
#include "corpus/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include <xxhash.h>

#include "support/check.h"
#include "support/must.h"
#include "oracles/corpus_model.h"
#include "support/part_reading.h"
#include "support/stored.h"

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
    return random_input_below(&random_state, n);
}

static void report(void *context, const char *text)
{
    (void)context, (void)text;
}

static void ended(void *context, const corpus_counts *counts)
{
    (void)context, (void)counts;
}

static part_reading read_corpus(const char *const *names, size_t n_names, corpus_options options,
                                const corpus_place *from)
{
    part_reading r;
    CHECK_NO_PROBLEM(part_reading_read(&r, names, n_names, &options, from));
    return r;
}

static void check_stored(const part_reading *r, size_t i, const stored *s)
{
    const corpus_end *inputs = (const corpus_end *)(const void *)r->inputs.bytes;
    CHECK((i + 1) * sizeof *inputs <= r->inputs.n_bytes);
    CHECK_EQ(inputs[i].stored_bytes, s->n_bytes);
    CHECK_EQ(inputs[i].checksum, XXH3_64bits(s->bytes, s->n_bytes));
}

/* ---- Random inputs ---- */

static corpus_options random_options(void)
{
    static const char *const separators[] = {"--|", "--|", "\n", NULL};
    corpus_options o = random_corpus_options(&random_state);
    o.reader.format = (corpus_format)random_below(MODEL_N_FORMATS);
    o.reader.columns = random_below(4) ? NULL : "id,text";
    o.reader.separator = separators[random_below(4)];
    o.reader.separator_bytes = o.reader.separator ? strlen(o.reader.separator) : 0;
    o.reader.utf8_given = random_below(4) > 0;
    o.reader.report = report;
    o.ended = random_below(2) ? ended : NULL;
    return o;
}

typedef struct tally {
    uint64_t inputs, documents, bad, batches, refused;
} tally;

static void check_random_input(tally *t)
{
    char path[64];
    const char *name = path;
    corpus_options o = random_options();
    input_bytes plain = random_input(&random_state, o.reader.format);
    stored_form form = (stored_form)random_below(STORED_FORMS);
    stored s = stored_make(form, plain.bytes, plain.n_bytes, 1 + random_below(3));
    if (!s.bytes) {
        form = STORED_PLAIN;
        s = stored_make(form, plain.bytes, plain.n_bytes, 1);
    }
    int fd = input_file(path, s.bytes, s.n_bytes);
    model m = corpus_model_read(&o, plain.bytes, plain.n_bytes, form != STORED_PLAIN);
    part_reading r = read_corpus(&name, 1, o, NULL);
    CHECK_NO_PROBLEM(corpus_model_compare(&m, &r, name));
    if (r.result == 0) {
        CHECK_EQ(r.inputs.n_bytes, sizeof(corpus_end));
        check_stored(&r, 0, &s);
        CHECK_EQ(r.counts.stored_bytes, s.n_bytes);
    }
    if (m.format == CORPUS_AUTO && o.reader.format < CORPUS_CSV)
        CHECK(strstr(r.err.text, "or --format to name the format") ||
              strstr(r.err.text, "to pack it"));
    t->inputs++;
    t->documents += part_reading_n_documents(&r);
    t->bad += corpus_model_n_bad(&m);
    t->batches += part_reading_n_places(&r);
    t->refused += r.result < 0;
    close(fd);
    part_reading_free(&r);
    corpus_model_free(&m);
    free(plain.bytes);
    free(s.bytes);
}

TEST(documents_are_those_of_the_model_whatever_the_format_the_storage_and_the_sizes)
{
    tally t = {0};
    int n = check_sanitized() ? 800 : check_long() ? 8000 : 3000;
    random_state = 3;
    for (int i = 0; i < n; i++)
        check_random_input(&t);
    printf("note %" PRIu64 " inputs, %" PRIu64 " documents, %" PRIu64 " bad ones, %" PRIu64
           " batches, %" PRIu64 " inputs refused\n",
           t.inputs, t.documents, t.bad, t.batches, t.refused);
    CHECK(t.bad > 100 && t.refused > 100);
}

/* ---- Pipes ---- */

/* A pipe into which a child writes all bytes; returns its reading end. */
static int make_pipe(char name[64], const void *data, size_t n_bytes, pid_t *writer)
{
    int ends[2];
    CHECK(pipe(ends) == 0 && (*writer = fork()) >= 0);
    if (*writer == 0) {
        close(ends[0]);
        _exit(write(ends[1], data, n_bytes) != (ssize_t)n_bytes);
    }
    close(ends[1]);
    snprintf(name, 64, "/proc/self/fd/%d", ends[0]);
    return ends[0];
}

static void check_random_pipe(void)
{
    char path[64];
    const char *name = path;
    corpus_options o = random_options();
    input_bytes plain = random_input(&random_state, o.reader.format);
    model m = corpus_model_read(&o, plain.bytes, plain.n_bytes, false);
    pid_t writer;
    int fd = make_pipe(path, plain.bytes, plain.n_bytes, &writer);
    part_reading r = read_corpus(&name, 1, o, NULL);
    CHECK_NO_PROBLEM(corpus_model_compare(&m, &r, name));
    close(fd);
    CHECK_INT(waitpid(writer, NULL, 0), writer);
    part_reading_free(&r);
    corpus_model_free(&m);
    free(plain.bytes);
}

TEST(pipes_give_the_same)
{
    int n = check_sanitized() ? 500 : check_long() ? 8000 : 2000;
    random_state = 4;
    for (int i = 0; i < n; i++)
        check_random_pipe();
}

/* ---- Several inputs ---- */

static corpus_options plain_options(void)
{
    return (corpus_options){.reader.report = report};
}

TEST(inputs_follow_one_another_each_with_its_own_format_and_end)
{
    static const char two_lines[] = "\xef\xbb\xbf\n{\"text\":\"one\"}\n{\"text\":\"\"}";
    static const char *const plains[] = {"just text\n", two_lines, "", "{\"text\":\"three\"}\r\n",
                                         "\n [text too"};
    const char *names[5];
    stored s[5];
    for (size_t i = 0; i < 5; i++) {
        s[i] = stored_make(i == 1   ? STORED_GZIP
                           : i == 3 ? STORED_ZSTD
                                    : STORED_PLAIN,
                           (const uint8_t *)plains[i], strlen(plains[i]), 1);
        if (!s[i].bytes)
            SKIP("this build has no zlib or no zstd");
        names[i] = must_write_file(s[i].bytes, s[i].n_bytes);
    }
    corpus_options o = plain_options();
    o.batch_bytes = 4;
    part_reading r = read_corpus(names, 5, o, NULL);
    CHECK_STR(part_reading_text(&r), "just text\n|one||three|\n [text too|");
    CHECK_EQ(r.inputs.n_bytes, 5 * sizeof(corpus_end));
    for (size_t i = 0; i < 5; i++)
        check_stored(&r, i, &s[i]);
    CHECK_EQ(r.counts.empty_documents, 1);
    part_reading_free(&r);
    part_reading all;
    CHECK_NO_PROBLEM(part_reading_compare(&all, names, 5, &o, &random_state));
    part_reading_free(&all);
    for (size_t i = 0; i < 5; i++)
        free(s[i].bytes);
}

TEST(progress_counts_stored_bytes_while_an_input_is_read)
{
    static uint8_t text[1 << 20];
    memset(text, '\n', sizeof text);
    const char *name = must_write_file(text, sizeof text);
    corpus_options o = plain_options();
    corpus_batch b = {0};
    failure err;
    o.reader.format = CORPUS_LINES;
    o.batch_bytes = 1000;
    corpus *c = corpus_open(&name, 1, &o, NULL, &err);
    CHECK(c != NULL);
    CHECK_INT(corpus_read(c, &b, &err), 1);
    CHECK(b.after.stored.n_bytes > 0 && b.after.stored.n_bytes < sizeof text);
    CHECK_EQ(b.after.counts.stored_bytes, 0);
    while (corpus_read(c, &b, &err) > 0)
        CHECK(b.after.counts.stored_bytes + b.after.stored.n_bytes <= sizeof text);
    CHECK_EQ(b.after.counts.stored_bytes, sizeof text);
    corpus_close(c);
    corpus_batch_free(&b);
}

/* ---- What is said ---- */

typedef struct saying {
    corpus_format format;
    const char *plain, *said; /* after the name of the input */
} saying;

TEST(bad_documents_are_refused_with_their_place_and_reason)
{
    static const saying sayings[] = {
        {CORPUS_JSON_LINES, "{\"text\":\"a\"}\n{\"text\":\"b\",}\n",
         ":2: byte 25: not JSON: expected a key in quotes (use --on-error skip to leave out "
         "such documents)"},
        {CORPUS_JSON_LINES, "\n\n {\"id\":1}",
         ":3: byte 3: the field is missing: \"text\" (use --on-error skip to leave out such "
         "documents)"},
        {CORPUS_JSON_LINES, "{\"text\":7}",
         ":1: byte 8: the field is not a string: \"text\" (use --on-error skip to leave out such "
         "documents)"},
        {CORPUS_JSON_LINES, "[1]",
         ":1: byte 0: a JSON array, which is read only from a .json file of its own (use "
         "--on-error skip to leave out such documents)"},
        {CORPUS_JSON_LINES, "5",
         ":1: byte 0: not an object (use --on-error skip to leave out such documents)"},
        {CORPUS_JSON_LINES, "{\"text\":\"\xc3\"}",
         ":1: byte 0: the document is not valid UTF-8 at its byte 0 (use --on-error skip to leave "
         "out such "
         "documents)"},
        {CORPUS_JSON_LINES, "{\"text\":\"\\ud800\"}",
         ":1: byte 0: a lone surrogate in the text (use --on-error skip to leave out such "
         "documents)"},
        {CORPUS_LINES, "fine\nnot \xff fine\n",
         ":2: byte 9: the document is not valid UTF-8 at its byte 4 (use --on-error skip to leave "
         "out such "
         "documents)"},
        {CORPUS_TEXT, "more than 32 bytes without anything",
         ":1: byte 0: longer than --max-document allows; raise it (at most 2G; the run may need "
         "8 times as much memory), or use --separator or --lines if the file has many documents "
         "(use --on-error skip to leave out such documents)"},
        {CORPUS_JSON_LINES, "{\"text\":\"more than 32 bytes\", \"x\":1}",
         ":1: byte 0: longer than --max-document allows; raise it (at most 2G; the run may need "
         "8 times as much memory) (use --on-error skip to leave out such documents)"},
        {CORPUS_AUTO, "{\"text\": 1}",
         ": byte 9: the first line begins with { but has no text in the expected field (the field "
         "is not a string: \"text\"): use --field to name the field, or --format to name the "
         "format"},
        {CORPUS_AUTO, "{\"a\":\"\",\"b\":1,\"c\":{\"d\":\"\"}}",
         ": byte 0: the first line begins with { but has no text in the expected field (the field "
         "is missing: \"text\"): use --field with one of a, c.d, or --format to name the format"},
        {CORPUS_AUTO, " \n{\n \"text\": \"x\"\n}\n",
         ": byte 3: the first line begins with { but has no text in the expected field (not JSON: "
         "the line ends too early): use --field to name the field, or --format to name the "
         "format"},
    };
    for (size_t i = 0; i < sizeof sayings / sizeof *sayings; i++) {
        char said[700];
        const char *name = must_write_file(sayings[i].plain, strlen(sayings[i].plain));
        corpus_options o = plain_options();
        o.reader.format = sayings[i].format;
        o.reader.utf8 = UTF8_ERROR;
        o.batch_bytes = 8;
        o.reader.max_document = 32;
        part_reading r = read_corpus(&name, 1, o, NULL);
        snprintf(said, sizeof said, "%s%s", name, sayings[i].said);
        CHECK_INT(r.result, -1);
        CHECK_STR(r.err.text, said);
        part_reading_free(&r);
    }
}

static void take_bad(void *context, const corpus_bad *bad)
{
    char text[200];
    snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", bad->at.line,
             bad->at.offset, bad->at.n_bytes, bad->reason);
    input_bytes_add_text(context, text);
}

TEST(bad_documents_are_told_with_their_records)
{
    static const char text[] = "{\"text\":\"a\"}\n \n  {\"text\":}\n7";
    const char *name = must_write_file(text, sizeof text - 1);
    input_bytes told = {0};
    corpus_options o = {.reader.format = CORPUS_JSON_LINES,
                        .reader.on_error = ON_ERROR_SKIP,
                        .bad = take_bad,
                        .reader.context = &told};
    corpus_batch b = {0};
    failure err;
    corpus *c = corpus_open(&name, 1, &o, NULL, &err);
    CHECK(c != NULL && corpus_read(c, &b, &err) == 1);
    CHECK_EQ(b.after.counts.bad_documents, 2);
    CHECK_EQ(b.after.counts.bad_bytes, 10);
    input_bytes_add(&told, "", 1);
    CHECK_STR((const char *)told.bytes,
              "2 17 9 not JSON: expected a value\n3 27 1 not an object\n");
    CHECK_EQ(b.ends[0].record.n_bytes, 12);
    corpus_close(c);
    corpus_batch_free(&b);
    free(told.bytes);
}

TEST(broken_inputs_are_errors_after_the_documents_before_them)
{
    input_bytes b = {0};
    for (int i = 0; i < 3000; i++) {
        char line[64];
        snprintf(line, sizeof line, "{\"text\":\"%d %u\"}\n", i, random_below(1u << 30));
        input_bytes_add_text(&b, line);
    }
    for (int form = STORED_GZIP; form <= STORED_ZSTD; form++) {
        for (int what = 0; what < 2; what++) {
            stored s = stored_make((stored_form)form, b.bytes, b.n_bytes, 1);
            if (!s.bytes)
                SKIP("this build has no zlib or no zstd");
            if (what)
                stored_add(&s, STORED_PLAIN, (const uint8_t *)"and more", 8);
            const char *name =
                must_write_file(s.bytes, what ? s.n_bytes : s.n_bytes - s.n_bytes / 3);
            corpus_options o = plain_options();
            o.reader.on_error = ON_ERROR_SKIP;
            o.batch_bytes = 100;
            part_reading r = read_corpus(&name, 1, o, NULL);
            CHECK_INT(r.result, -1);
            CHECK_INT(r.err.status, 0);
            CHECK(strncmp(r.err.text, name, strlen(name)) == 0);
            CHECK_SAYS(r.err.text, what ? "trailing data that is not" : "truncated");
            const uint64_t n = r.counts.documents;
            CHECK_EQ(part_reading_n_documents(&r), n);
            CHECK(what == 0 ? n < 3000 : n == 3000);
            for (size_t i = 0, n_bytes; i < n; i++)
                CHECK_INT(atoi((const char *)part_reading_document(&r, i, &n_bytes)), (int)i);
            part_reading_free(&r);
            free(s.bytes);
        }
    }
    free(b.bytes);
}

TEST(missing_files_and_folders_are_system_errors)
{
    const char *missing = check_path("missing"), *folder = check_dir();
    corpus_options o = plain_options();
    part_reading r = read_corpus(&missing, 1, o, NULL);
    CHECK(r.result == -1 && r.err.status == ENOENT && strstr(r.err.text, missing));
    part_reading_free(&r);
    r = read_corpus(&folder, 1, o, NULL);
    CHECK(r.result == -1 && r.err.status == EISDIR && strstr(r.err.text, folder));
    part_reading_free(&r);
}

static void expect_changed(const char *name, const corpus_options *o, const corpus_place *from)
{
    part_reading r = read_corpus(&name, 1, *o, from);
    CHECK(r.result == -1 && r.err.status == FAILURE_CHANGED);
    CHECK_SAYS(r.err.text, "has changed");
    part_reading_free(&r);
}

TEST(an_input_that_became_shorter_cannot_be_gone_on_with)
{
    const char *name = must_write_file("one\ntwo\nthree\nfour\n", 19);
    corpus_options o = plain_options();
    o.reader.format = CORPUS_LINES;
    o.batch_bytes = 4;
    part_reading r = read_corpus(&name, 1, o, NULL);
    CHECK(part_reading_n_places(&r) >= 4);
    const corpus_place whole = part_reading_place(&r, 1)->place;
    part_reading_free(&r);
    CHECK_EQ(whole.plain_offset, 8);
    CHECK_INT(truncate(name, 6), 0);
    expect_changed(name, &o, &whole);
}

TEST(options_that_make_no_sense_are_refused)
{
    const char *name = "-";
    failure err;
    corpus_options o = plain_options();
    o.reader.separator = "";
    CHECK(corpus_open(&name, 1, &o, NULL, &err) == NULL);
    CHECK_INT(err.status, FAILURE_CONTENT);
    o = (corpus_options){.reader.field = "a.b"};
    corpus *c = corpus_open(&name, 1, &o, NULL, &err);
    CHECK(c != NULL);
    corpus_close(c);
}
