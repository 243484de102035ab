/* SPDX-License-Identifier: Apache-2.0 */
/* test_corpus_parts.c - inputs that are cut and read in parts: the parts together give what the
 * whole gives. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "corpus/cutter.h"
#include "formats/parquet/parquet_file.h"
#include "support/check.h"
#include "support/must.h"
#include "support/part_reading.h"
#include "support/stored.h"
#include "system/files.h"

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
    return random_input_below(&random_state, n);
}

/* ---- Random inputs ---- */

static void add_fields(corpus_options *o)
{
    static field_list fields;
    static where *kept;
    failure err;
    if (!kept) {
        CHECK(field_list_parse(&fields, "id,a.text", &err));
        kept = where_compile("not id == 2", &fields, &err);
        CHECK(kept != NULL);
    }
    o->reader.fields = &fields;
    o->reader.n_kept = 2;
    o->reader.where = random_below(2) ? kept : NULL;
}

static corpus_options random_options(void)
{
    static const corpus_format formats[] = {CORPUS_AUTO,       CORPUS_LINES,      CORPUS_LINES,
                                            CORPUS_JSON_LINES, CORPUS_JSON_LINES, CORPUS_TEXT,
                                            CORPUS_CSV,        CORPUS_TSV};
    corpus_options o = random_corpus_options(&random_state);
    o.reader.format = formats[random_below(sizeof formats / sizeof *formats)];
    const bool has_fields = o.reader.format >= CORPUS_JSON_LINES;
    if (has_fields && random_below(4) == 0)
        add_fields(&o);
    return o;
}

typedef struct tally {
    uint64_t corpora, parts, cut, resumed, failed;
} tally;

static void check_random_corpus(tally *t)
{
    char paths[4][64];
    const char *names[4];
    input_bytes plain[4];
    int fds[4];
    part_reading all;
    const corpus_options o = random_options();
    const size_t n = 1 + random_below(random_below(2) ? 4 : 1);
    for (size_t i = 0; i < n; i++) {
        plain[i] = random_input(&random_state, o.reader.format);
        const bool packed = n > 1 && random_below(3) == 0;
        const stored_form form = packed ? (stored_form)random_below(STORED_FORMS) : STORED_PLAIN;
        stored s = stored_make(form, plain[i].bytes, plain[i].n_bytes, 1 + random_below(3));
        if (!s.bytes)
            s = stored_make(STORED_PLAIN, plain[i].bytes, plain[i].n_bytes, 1);
        fds[i] = input_file(paths[i], s.bytes, s.n_bytes);
        names[i] = paths[i];
        free(s.bytes);
    }
    const char *why = part_reading_compare(&all, names, n, &o, &random_state);
    if (why)
        CHECK_FAIL("corpus %" PRIu64 ": %s", t->corpora, why);
    t->corpora++;
    t->parts += all.n_parts;
    t->cut += all.n_cut;
    t->resumed += all.n_resumed;
    t->failed += all.result < 0;
    part_reading_free(&all);
    for (size_t i = 0; i < n; i++) {
        close(fds[i]);
        free(plain[i].bytes);
    }
}

TEST(the_parts_of_random_corpora_give_what_the_whole_gives)
{
    tally t = {0};
    const int n = check_sanitized() ? 1000 : check_long() ? 6000 : 3000;
    for (int i = 0; i < n; i++)
        check_random_corpus(&t);
    printf("note %" PRIu64 " corpora in %" PRIu64 " parts, %" PRIu64
           " of which begin in an input, %" PRIu64 " resumed, %" PRIu64 " failed\n",
           t.corpora, t.parts, t.cut, t.resumed, t.failed);
    CHECK(t.cut > t.corpora / 2 && t.failed > 50);
}

/* ---- Places ---- */

/* A cutter that is asked for all places gives those that a loop over the bytes finds. */
static void check_places(const char *name, const uint8_t *bytes, size_t n, uint64_t distance)
{
    const corpus_options o = {.reader.format = CORPUS_LINES};
    failure err;
    corpus_cut cut = {0};
    corpus_cutter *c = corpus_cutter_open(name, NULL, &o.reader, &err);
    CHECK(c != NULL && corpus_cutter_describe(c).can_be_cut);
    for (uint64_t before = 0;;) {
        uint64_t want = before + (distance ? distance : 1);
        while (want < n && bytes[want - 1] != '\n')
            want++;
        const int result = corpus_cutter_next(c, before + distance, &cut, &err);
        CHECK_INT(result, want < n);
        if (result == 0)
            break;
        CHECK_EQ(cut.offset, want);
        CHECK_EQ(cut.row, 0);
        before = cut.offset;
    }
    corpus_cutter_close(c);
}

TEST(files_of_lines_are_cut_where_lines_begin)
{
    static uint8_t bytes[300000];
    for (int i = 0; i < 40; i++) {
        const uint32_t rare = 1 + random_below(i % 4 ? 100 : 100000);
        const size_t n = random_below(sizeof bytes);
        for (size_t k = 0; k < n; k++)
            bytes[k] = random_below(rare) ? 'x' : '\n';
        /* Newlines at the borders of the blocks that are read. */
        for (size_t k = 65535; k < n; k += 65536)
            bytes[k - random_below(2)] = '\n';
        const char *name = must_write_file(bytes, n);
        check_places(name, bytes, n, 0);
        check_places(name, bytes, n, 1 + random_below(70000));
    }
}

TEST(what_cannot_be_cut_says_so)
{
    static const char lines[] = "{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"text\":\"c\"}\n";
    static field_list row;
    failure why;
    CHECK(field_list_parse(&row, "@row", &why));
    const struct {
        corpus_options options;
        stored_form form;
        corpus_format format;
        const char *codec;
        bool can_be_cut;
    } rows[] = {
        {{.reader.format = CORPUS_AUTO}, STORED_PLAIN, CORPUS_JSON_LINES, "", true},
        {{.reader.format = CORPUS_LINES}, STORED_PLAIN, CORPUS_LINES, "", true},
        {{.reader.format = CORPUS_AUTO, .reader.fields = &row},
         STORED_PLAIN,
         CORPUS_JSON_LINES,
         "",
         false},
        {{.reader.format = CORPUS_TEXT}, STORED_PLAIN, CORPUS_TEXT, "", false},
        {{.reader.format = CORPUS_TEXT, .reader.separator = "\n", .reader.separator_bytes = 1},
         STORED_PLAIN,
         CORPUS_TEXT,
         "",
         false},
        {{.reader.format = CORPUS_AUTO}, STORED_GZIP, CORPUS_JSON_LINES, "gzip", false},
        {{.reader.format = CORPUS_LINES}, STORED_ZSTD, CORPUS_LINES, "zstd", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        failure err;
        corpus_cut cut;
        stored s = stored_make(rows[i].form, (const uint8_t *)lines, sizeof lines - 1, 1);
        if (!s.bytes)
            continue;
        const char *name = must_write_file(s.bytes, s.n_bytes);
        corpus_cutter *c = corpus_cutter_open(name, NULL, &rows[i].options.reader, &err);
        CHECK(c != NULL);
        const corpus_cutter_info info = corpus_cutter_describe(c);
        CHECK_INT(info.format, rows[i].format);
        CHECK_STR(info.codec, rows[i].codec);
        CHECK_INT(info.can_be_cut, rows[i].can_be_cut);
        CHECK_INT(corpus_cutter_next(c, 1, &cut, &err), rows[i].can_be_cut);
        corpus_cutter_close(c);
        free(s.bytes);
    }
}

/* A tar archive with one member. */
static input_bytes tar_bytes(void)
{
    static uint8_t tar[2048];
    input_bytes b = {0};
    memset(tar, 0, sizeof tar);
    memcpy(tar, "a.jsonl", 7);
    memcpy(tar + 100, "0000644\0000000000\0000000000\00000000000015\00000000000000\0        0", 57);
    memcpy(tar + 257, "ustar\00000", 8);
    uint32_t sum = 0;
    for (size_t i = 0; i < 512; i++)
        sum += tar[i];
    snprintf((char *)tar + 148, 8, "%06o", sum);
    memcpy(tar + 512, "{\"text\":\"a\"}\n", 13);
    input_bytes_add(&b, tar, sizeof tar);
    return b;
}

static const char *make_tar(void)
{
    input_bytes b = tar_bytes();
    const char *name = must_write_file(b.bytes, b.n_bytes);
    free(b.bytes);
    return name;
}

TEST(archives_and_pipes_are_not_cut)
{
    corpus_options o = {.reader.format = CORPUS_LINES};
    failure err;
    corpus_cut cut;
    char name[64];
    corpus_cutter *c = corpus_cutter_open(make_tar(), NULL, &o.reader, &err);
    CHECK(c && corpus_cutter_describe(c).is_archive && !corpus_cutter_describe(c).can_be_cut);
    CHECK_INT(corpus_cutter_next(c, 1, &cut, &err), 0);
    corpus_cutter_close(c);
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], "a\nb\n", 4) == 4);
    close(ends[1]);
    snprintf(name, sizeof name, "/proc/self/fd/%d", ends[0]);
    c = corpus_cutter_open(name, NULL, &o.reader, &err);
    CHECK(c && !corpus_cutter_describe(c).can_be_cut);
    corpus_cutter_close(c);
    close(ends[0]);
    const char *missing = check_path("missing");
    CHECK(!corpus_cutter_open(missing, NULL, &o.reader, &err) && err.status == ENOENT);
    o.reader.format = CORPUS_AUTO;
    CHECK(!corpus_cutter_open(must_write_file("{\"id\":1}\n", 9), NULL, &o.reader, &err));
    CHECK_SAYS(err.text, "name the field");
}

/* ---- One part ---- */

/* Reads a part of a file of lines to "document|document|", or the error. */
static const char *read_lines(const char *name, corpus_options o, uint64_t begin, uint64_t end)
{
    static char said[5000];
    const corpus_format formats[] = {o.reader.format};
    part_reading r;
    o.formats = formats;
    o.begin.offset = begin;
    o.has_end = end != UINT64_MAX;
    o.end.offset = o.has_end ? end : 0;
    CHECK_NO_PROBLEM(part_reading_read(&r, &name, 1, &o, NULL));
    const char *text = part_reading_text(&r);
    snprintf(said, sizeof said, "%s%s",
             r.result < 0 && r.err.status == FAILURE_CHANGED ? "changed: " : "",
             text + (r.result < 0 && strncmp(text, name, strlen(name)) == 0 ? strlen(name) : 0));
    part_reading_free(&r);
    return said;
}

TEST(the_ends_of_parts_are_ends_of_lines)
{
    static const char bytes[] = "\xef\xbb\xbf"
                                "a\r\n\n \t\nb\n\n\nlast";
    static const char json[] = "\xef\xbb\xbf{\"text\":\"a\"}\r\n\n \t\n{\"text\":\"b\"}\n  \n";
    const corpus_options lines = {.reader.format = CORPUS_LINES};
    const corpus_options records = {.reader.format = CORPUS_JSON_LINES};
    const char *name = must_write_file(bytes, sizeof bytes - 1);
    CHECK_STR(read_lines(name, lines, 0, UINT64_MAX), "\xef\xbb\xbf"
                                                      "a\r|| \t|b|||last|");
    CHECK_STR(read_lines(name, lines, 0, 6), "\xef\xbb\xbf"
                                             "a\r|");
    CHECK_STR(read_lines(name, lines, 6, 7), "|");
    CHECK_STR(read_lines(name, lines, 7, 10), " \t|");
    CHECK_STR(read_lines(name, lines, 10, 14), "b|||");
    CHECK_STR(read_lines(name, lines, 14, UINT64_MAX), "last|");
    CHECK_STR(read_lines(name, lines, 14, 18), "last|");
    CHECK_STR(read_lines(name, lines, 7, 7), "");
    CHECK_STR(read_lines(name, lines, 18, 18), "");
    CHECK_STR(read_lines(name, lines, 18, UINT64_MAX), "");
    CHECK_STR(read_lines(name, lines, 0, 0), "");
    name = must_write_file(json, sizeof json - 1);
    CHECK_STR(read_lines(name, records, 0, UINT64_MAX), "a|b|");
    CHECK_STR(read_lines(name, records, 0, 17), "a|");
    CHECK_STR(read_lines(name, records, 17, 18), "");
    CHECK_STR(read_lines(name, records, 18, 21), "");
    CHECK_STR(read_lines(name, records, 21, 34), "b|");
    CHECK_STR(read_lines(name, records, 34, UINT64_MAX), "");
    /* A byte order mark is white space only at the start of the input. */
    name = must_write_file("\n\xef\xbb\xbf{\"text\":\"a\"}\n", 17);
    CHECK_SAYS(read_lines(name, records, 1, UINT64_MAX), "byte 1: not JSON: expected a value");
}

TEST(what_looks_like_another_format_in_the_middle_is_lines)
{
    static const char bytes[] = "a\n\x1f\x8b\x08\x08 b\nc\n\x28\xb5\x2f\xfd d\nPAR1\x15\nARROW1\n";
    const corpus_options o = {.reader.format = CORPUS_LINES, .reader.utf8 = UTF8_RAW};
    const char *name = must_write_file(bytes, sizeof bytes - 1);
    CHECK_STR(read_lines(name, o, 11, 18), "\x28\xb5\x2f\xfd d|");
    CHECK_STR(read_lines(name, o, 18, 24), "PAR1\x15|");
    CHECK_STR(read_lines(name, o, 24, UINT64_MAX), "ARROW1|");
    CHECK_STR(read_lines(name, o, 2, 9), "\x1f\x8b\x08\x08 b|");
    input_bytes b = tar_bytes();
    b.bytes[0] = '\n'; /* not any more */
    b.bytes[b.n_bytes - 1] = '\n';
    input_bytes tar = tar_bytes();
    input_bytes_add(&b, tar.bytes, tar.n_bytes);
    name = must_write_file(b.bytes, b.n_bytes);
    const corpus_options json = {.reader.format = CORPUS_JSON_LINES, .reader.utf8 = UTF8_RAW};
    CHECK_SAYS(read_lines(name, json, tar.n_bytes, UINT64_MAX), ": byte 2048: not JSON");
    free(b.bytes);
    free(tar.bytes);
}

TEST(messages_of_a_part_name_the_byte_and_no_line)
{
    static const char bytes[] = "{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"text\":7}\n";
    const corpus_options o = {.reader.format = CORPUS_JSON_LINES};
    const char *name = must_write_file(bytes, sizeof bytes - 1);
    static const char why[] = "the field is not a string: \"text\" (use --on-error skip to leave "
                              "out such documents)";
    char said[200];
    snprintf(said, sizeof said, ": byte 34: %s", why);
    CHECK_STR(read_lines(name, o, 13, UINT64_MAX), said);
    CHECK_STR(read_lines(name, o, 26, UINT64_MAX), said);
    snprintf(said, sizeof said, ":3: byte 34: %s", why);
    CHECK_STR(read_lines(name, o, 0, 37), said);
}

TEST(parts_of_a_file_that_has_changed_are_refused)
{
    const char *name = must_write_file("one\ntwo\nthree\n", 14);
    corpus_options o = {.reader.format = CORPUS_LINES};
    static const char has[] = "changed: : byte 0: has changed: it has 14 bytes, and not the part "
                              "that is to be read";
    CHECK_STR(read_lines(name, o, 15, UINT64_MAX), has);
    CHECK_STR(read_lines(name, o, 4, 15), has);
    static const char shifted[] = "changed: : byte 0: has changed: no line begins at byte 5, where "
                                  "it was cut";
    CHECK_STR(read_lines(name, o, 5, UINT64_MAX), shifted);
    CHECK_STR(read_lines(name, o, 4, 5), shifted);
    file_facts facts;
    CHECK_INT(file_describe(name, &facts), 0);
    input_version version = input_version_of(&facts);
    o.versions = &version;
    CHECK_STR(read_lines(name, o, 4, 8), "two|");
    version.n_bytes++;
    CHECK_SAYS(read_lines(name, o, 4, 8), "has changed: it had 15 bytes and now has 14");
}

/* It becomes shorter after it was opened. */
TEST(a_part_that_ends_too_early_has_changed)
{
    static char bytes[600000];
    memset(bytes, 'x', sizeof bytes);
    for (size_t i = 99; i < sizeof bytes; i += 100)
        bytes[i] = '\n';
    const char *name = must_write_file(bytes, sizeof bytes);
    const corpus_format format = CORPUS_LINES;
    const corpus_options o = {.reader.format = format,
                              .formats = &format,
                              .begin = {.offset = 100},
                              .end = {.offset = 500000},
                              .has_end = true,
                              .batch_bytes = 1000};
    corpus_batch b = {0};
    failure err;
    int result;
    corpus *c = corpus_open(&name, 1, &o, NULL, &err);
    CHECK(c && corpus_read(c, &b, &err) > 0);
    CHECK_INT(truncate(name, 400000), 0);
    while ((result = corpus_read(c, &b, &err)) > 0) {
    }
    CHECK(result < 0 && err.status == FAILURE_CHANGED);
    CHECK_SAYS(err.text, "byte 400000: has changed: it now ends here, and was to be read up to "
                         "byte 500000");
    corpus_close(c);
    corpus_batch_free(&b);
}

TEST(parts_that_make_no_sense_are_refused)
{
    static field_list row;
    failure why;
    CHECK(field_list_parse(&row, "id,@row", &why));
    static const corpus_format lines[2] = {CORPUS_LINES, CORPUS_JSON_LINES};
    static const corpus_format text[2] = {CORPUS_TEXT, CORPUS_AUTO};
    static const char *const names[2] = {"a", "b"};
    const corpus_options wrong[] = {
        {.begin = {.offset = 7}},
        {.begin = {.offset = 7}, .formats = text},
        {.end = {.offset = 7}, .has_end = true, .formats = text},
        {.begin = {.offset = 7}, .formats = lines, .reader.fields = &row},
        {.end = {.offset = 7}, .has_end = true, .formats = lines, .reader.fields = &row},
    };
    failure err;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!corpus_open(names, 2, &wrong[i], NULL, &err));
        CHECK_INT(err.status, FAILURE_CONTENT);
    }
    corpus_options o = {
        .begin = {.offset = 7}, .end = {.offset = 6}, .has_end = true, .formats = lines};
    CHECK(!corpus_open(names, 1, &o, NULL, &err) && err.status == FAILURE_CONTENT);
    corpus *c = corpus_open(names, 2, &o, NULL, &err); /* the end is in the other input */
    CHECK(c != NULL);
    corpus_close(c);
}

/* ---- How much is read ---- */

TEST(what_lies_before_and_behind_a_part_is_not_read)
{
    enum {
        LINE = 4096,
        N = 1 << 12
    };
    const char *name = check_path("many.txt");
    FILE *f = fopen(name, "wb");
    for (int i = 0; f && i < N; i++)
        fprintf(f, "%0*d\n", LINE - 1, i);
    CHECK(f && fclose(f) == 0);
    const corpus_options o = {.reader.format = CORPUS_LINES};
    const uint64_t middle = (uint64_t)LINE * (N / 2);
    const uint64_t before = bytes_read_so_far();
    if (before == 0)
        SKIP("/proc/self/io cannot be read");
    char want[LINE + 2];
    snprintf(want, sizeof want, "%0*d|", LINE - 1, N / 2);
    CHECK_STR(read_lines(name, o, middle, middle + LINE), want);
    CHECK(bytes_read_so_far() - before < 2 * LINE);
    failure err;
    corpus_cut cut;
    corpus_cutter *c = corpus_cutter_open(name, NULL, &o.reader, &err);
    CHECK(c && corpus_cutter_next(c, middle + 1, &cut, &err) > 0);
    CHECK_EQ(cut.offset, middle + LINE);
    corpus_cutter_close(c);
    CHECK(bytes_read_so_far() - before < 1 << 20);
}

TEST(a_long_line_is_passed_in_blocks_and_offsets_have_64_bits)
{
    const char *name = check_path("sparse.txt");
    const uint64_t newline = ((uint64_t)5 << 30) + 12345;
    FILE *f = fopen(name, "wb");
    CHECK(f && fseeko(f, (off_t)newline, SEEK_SET) == 0 && fputs("\nlast\n", f) > 0);
    CHECK_INT(fclose(f), 0);
    const corpus_options o = {.reader.format = CORPUS_LINES};
    failure err;
    corpus_cut cut;
    struct rusage before, after;
    CHECK_INT(getrusage(RUSAGE_SELF, &before), 0);
    corpus_cutter *c = corpus_cutter_open(name, NULL, &o.reader, &err);
    CHECK(c && corpus_cutter_next(c, newline - ((uint64_t)1 << 26), &cut, &err) > 0);
    CHECK_EQ(cut.offset, newline + 1);
    CHECK_INT(corpus_cutter_next(c, 0, &cut, &err), 0);
    corpus_cutter_close(c);
    CHECK_STR(read_lines(name, o, newline + 1, UINT64_MAX), "last|");
    CHECK_INT(getrusage(RUSAGE_SELF, &after), 0);
    CHECK(after.ru_maxrss - before.ru_maxrss < 8 * 1024 || check_sanitized()); /* KiB */
}

/* ---- Parquet ---- */

#define FOLDER "tests/formats/parquet/"

static const char *const parquet_names[] = {
    FOLDER "text_delta_bytes.parquet",
    FOLDER "text_dictionary_gzip.parquet",
    FOLDER "text_mixed_v2.parquet",
    FOLDER "text_delta_length_zstd.parquet",
    FOLDER "text_plain_snappy.parquet",
    FOLDER "polars.parquet",
    FOLDER "duckdb.parquet",
};
#define N_PARQUET (sizeof parquet_names / sizeof *parquet_names)

static void check_readable(const char *name)
{
    failure err;
    const corpus_options o = {0};
    corpus_cutter *c = corpus_cutter_open(name, NULL, &o.reader, &err);
    if (!c && err.status == ENOENT)
        SKIP("%s cannot be opened from this folder", name);
    if (!c && strstr(err.text, "this build has no"))
        SKIP("%s", err.text);
    CHECK(c && corpus_cutter_describe(c).can_be_cut);
    CHECK_INT(corpus_cutter_describe(c).format, CORPUS_PARQUET);
    corpus_cutter_close(c);
}

TEST(the_parts_of_parquet_and_other_files_give_what_the_whole_gives)
{
    static field_list row;
    failure field_why;
    static const char lines[] = "{\"text\":\"one\"}\n{}\n{\"text\":\"two words\"}\n";
    uint64_t n_cut = 0;
    CHECK(field_list_parse(&row, "@row", &field_why));
    for (size_t i = 0; i < N_PARQUET; i++)
        check_readable(parquet_names[i]);
    const char *const others[] = {make_tar(), must_write_file(lines, sizeof lines - 1)};
    for (int i = 0; i < 1000; i++) {
        part_reading all;
        const char *names[4];
        const size_t n = 1 + random_below(4);
        for (size_t k = 0; k < n; k++)
            names[k] =
                random_below(4) ? parquet_names[random_below(N_PARQUET)] : others[k > 0 ? 0 : 1];
        const corpus_options o = {
            .batch_bytes = random_below(2) ? 4 : 1000,
            .reader.max_document = random_below(2) ? 16 : 1000,
            .reader.on_error = (corpus_on_error)random_below(2),
            .reader.fields = random_below(2) ? &row : NULL,
        };
        corpus_options with_row = o;
        with_row.reader.n_kept = o.reader.fields ? 1 : 0;
        const char *why = part_reading_compare(&all, names, n, &with_row, &random_state);
        if (why)
            CHECK_FAIL("%s and %zu more: %s", names[0], n - 1, why);
        n_cut += all.n_cut;
        part_reading_free(&all);
    }
    printf("note %" PRIu64 " parts begin in an input\n", n_cut);
    CHECK(n_cut > 500);
}

/* Finds the first place at or behind some bytes, with a cutter of its own. */
static int place_after(const char *name, uint64_t at_least, corpus_cut *cut)
{
    const corpus_options o = {0};
    failure err;
    corpus_cutter *c = corpus_cutter_open(name, NULL, &o.reader, &err);
    CHECK(c != NULL);
    const int result = corpus_cutter_next(c, at_least, cut, &err);
    corpus_cutter_close(c);
    return result;
}

/* The data pages of the text but the first one, by a scan of all headers. */
static size_t list_pages(const char *name, corpus_cut pages[32])
{
    parquet_file f;
    parquet_scan scan = {0};
    parquet_page_place page;
    failure why;
    failure err;
    size_t n = 0;
    const int fd = input_open_file(&(input_source){.path = name}, &err);
    CHECK(fd >= 0 && parquet_file_open(&f, name, fd, &err));
    const parquet_rows rows = {.end = f.footer.n_rows};
    parquet_scan_begin(&scan, &f, parquet_text_column(&f.footer, "text", &why), rows);
    while (parquet_scan_next(&scan, &page, &err) > 0) {
        if (!parquet_page_is_dictionary(&page) && page.first_row > 0 && n < 32)
            pages[n++] = (corpus_cut){.offset = page.offset, .row = page.first_row};
    }
    parquet_scan_free(&scan);
    parquet_file_close(&f);
    close(fd);
    return n;
}

TEST(a_parquet_file_is_cut_at_the_first_page_that_begins_there)
{
    uint64_t n_places = 0;
    for (size_t i = 0; i < N_PARQUET; i++) {
        corpus_cut pages[32], cut;
        check_readable(parquet_names[i]);
        const size_t n = list_pages(parquet_names[i], pages);
        size_t next = 0;
        for (uint64_t at = 0; at < 1000; at++) {
            while (next < n && pages[next].offset < at)
                next++;
            CHECK_INT(place_after(parquet_names[i], at, &cut), next < n);
            CHECK(next == n || memcmp(&cut, &pages[next], sizeof cut) == 0);
        }
        n_places += n;
    }
    printf("note %" PRIu64 " places\n", n_places);
    CHECK(n_places > N_PARQUET);
}

static const char *read_rows(const char *name, corpus_cut begin, corpus_cut end, uint64_t *n_rows)
{
    const corpus_place before = {0}; /* of a run that ended before it opened the input */
    static failure err;
    const corpus_format format = CORPUS_PARQUET;
    const corpus_options o = {.formats = &format, .begin = begin, .end = end, .has_end = true};
    corpus_batch b = {0};
    corpus *c = corpus_open(&name, 1, &o, &before, &err);
    int result = c ? 1 : -1;
    while (result > 0)
        result = corpus_read(c, &b, &err);
    *n_rows = b.after.counts.records;
    corpus_close(c);
    corpus_batch_free(&b);
    return result < 0 ? err.text : "";
}

TEST(a_part_of_other_pages_or_rows_is_refused)
{
    const char *name = parquet_names[0];
    const corpus_options o = {0};
    failure err;
    corpus_cut first, second;
    uint64_t n;
    check_readable(name);
    corpus_cutter *c = corpus_cutter_open(name, NULL, &o.reader, &err);
    CHECK(c && corpus_cutter_next(c, 1, &first, &err) > 0 &&
          corpus_cutter_next(c, first.offset + 1, &second, &err) > 0);
    corpus_cutter_close(c);
    CHECK(first.row > 0 && second.row > first.row + 1);
    CHECK_STR(read_rows(name, first, second, &n), "");
    CHECK_EQ(n, second.row - first.row);
    CHECK_STR(read_rows(name, second, second, &n), "");
    CHECK_EQ(n, 0);
    corpus_cut wrong = first;
    wrong.offset--;
    CHECK_SAYS(read_rows(name, wrong, second, &n), "the page of its first row is at another place");
    wrong = second;
    wrong.row = 21;
    CHECK_SAYS(read_rows(name, first, wrong, &n), "the rows to be read are missing");
    wrong.row = second.row - 1;
    CHECK_SAYS(read_rows(name, first, wrong, &n), "no page begins where the part ends");
}
