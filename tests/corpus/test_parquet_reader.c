/* SPDX-License-Identifier: Apache-2.0 */
/* test_parquet_reader.c - the rows of Parquet files as documents of a corpus: from any place on
 * they are the same, with any number of threads. */
#include "corpus/corpus.h"
#include "corpus/input.h"
#include "fields/where.h"
#include "support/check.h"
#include "support/random_input.h"
#include "system/files.h"
#include "system/platform.h"
#include "system/input_file.h"

#define FOLDER "tests/corpus/parquet/"

typedef struct reading {
    char text[4096]; /* documents, each with its values, and a line break */
    size_t n_bytes;
    corpus_place places[400];
    size_t text_at[400]; /* of the places */
    size_t n_places;
    corpus_end end; /* of the input */
    corpus_counts counts;
    failure err;
    int result;
} reading;

static void add(reading *r, const void *bytes, size_t n_bytes)
{
    CHECK(r->n_bytes + n_bytes < sizeof r->text);
    memcpy(r->text + r->n_bytes, bytes, n_bytes);
    r->n_bytes += n_bytes;
}

static void take_batch(reading *r, const corpus_batch *b)
{
    size_t at = 0;
    for (size_t i = 0; i < b->n_ends; i++) {
        add(r, b->text + at, b->ends[i].at - at);
        at = b->ends[i].at;
        if (b->ends[i].input)
            r->end = b->ends[i];
        else
            add(r, "\n", 1);
    }
    add(r, b->text + at, b->n_bytes - at);
    r->counts = b->after.counts;
    if (r->n_places < 400) {
        r->text_at[r->n_places] = r->n_bytes;
        r->places[r->n_places++] = b->after;
    }
}

static void read_all(reading *r, const char *name, const corpus_options *options,
                     const corpus_place *from)
{
    corpus_batch batch = {0};
    memset(r, 0, sizeof *r);
    corpus *c = corpus_open(&name, 1, options, from, &r->err);
    CHECK(c != NULL);
    while ((r->result = corpus_read(c, &batch, &r->err)) > 0)
        take_batch(r, &batch);
    corpus_batch_free(&batch);
    corpus_close(c);
}

static const char *const names[] = {
    FOLDER "text_delta_bytes.parquet", FOLDER "text_dictionary_gzip.parquet",
    FOLDER "text_mixed_v2.parquet",    FOLDER "text_delta_length_zstd.parquet",
    FOLDER "polars.parquet",           FOLDER "duckdb.parquet",
};
enum {
    N_NAMES = sizeof names / sizeof *names
};

static bool readable(const char *name, const corpus_options *o, reading *r)
{
    FILE *f = fopen(name, "rb");
    if (!f)
        SKIP("%s cannot be opened from this folder", name);
    fclose(f);
    read_all(r, name, o, NULL);
    if (r->result < 0)
        CHECK(strstr(r->err.text, "this build has no"));
    return r->result == 0;
}

TEST(documents_are_the_rows_that_are_not_null)
{
    static reading r;
    const corpus_options o = {.n_decoders = 2};
    for (size_t i = 0; i < N_NAMES; i++) {
        if (!readable(names[i], &o, &r))
            continue;
        static const char half[] = "one\n\ntwo words\nStra\xc3\x9f"
                                   "e \xe6\xbc\xa2\none\nprefix a\nprefix ab\nlast\n";
        const size_t n = sizeof half - 1, times = r.n_bytes / n;
        CHECK(times >= 1 && times <= 2 && times * n == r.n_bytes);
        CHECK(memcmp(r.text, half, n) == 0 && memcmp(r.text + r.n_bytes - n, half, n) == 0);
        CHECK_EQ(r.counts.records, times * 10);
        CHECK_EQ(r.counts.null_documents, times * 2);
        CHECK_EQ(r.counts.empty_documents, times);
        CHECK_EQ(r.counts.documents + r.counts.null_documents, r.counts.records);
    }
}

TEST(from_any_place_on_documents_and_checksum_are_the_same)
{
    static reading whole, rest;
    for (size_t i = 0; i < N_NAMES; i++) {
        corpus_options o = {.batch_bytes = 4, .max_piece_bytes = 16};
        if (!readable(names[i], &o, &whole))
            continue;
        CHECK(whole.n_places > 8);
        for (size_t p = 0; p < whole.n_places; p++) {
            o.n_decoders = p % 3;
            read_all(&rest, names[i], &o, &whole.places[p]);
            CHECK_INT(rest.result, 0);
            CHECK_EQ(rest.n_bytes, whole.n_bytes - whole.text_at[p]);
            CHECK(memcmp(rest.text, whole.text + whole.text_at[p], rest.n_bytes) == 0);
            if (p + 1 < whole.n_places)
                CHECK(rest.end.checksum == whole.end.checksum &&
                      rest.end.stored_bytes == whole.end.stored_bytes);
            if (p + 1 < whole.n_places)
                CHECK_EQ(memcmp(&rest.counts, &whole.counts, sizeof rest.counts), 0);
        }
    }
}

TEST(a_place_of_another_file_is_refused)
{
    static reading whole, rest;
    const corpus_options o = {.batch_bytes = 4, .max_piece_bytes = 16};
    if (!readable(names[0], &o, &whole))
        SKIP("it cannot be read");
    corpus_place place = whole.places[0];
    place.line = 1000;
    read_all(&rest, names[0], &o, &place);
    CHECK(rest.result < 0 && rest.err.status == FAILURE_CHANGED);
    place = whole.places[whole.n_places / 3];
    place.stored.checksum ^= 1; /* of a file of the same size and time, with other pages */
    read_all(&rest, names[0], &o, &place);
    CHECK(rest.result < 0 && rest.err.status == FAILURE_CHANGED);
    place = whole.places[whole.n_places / 3];
    place.stored.n_bytes += 7;
    read_all(&rest, names[0], &o, &place);
    CHECK(rest.result < 0 && rest.err.status == FAILURE_CHANGED);
    input_version version = {.known = true, .n_bytes = 5};
    corpus_options other = o;
    other.versions = &version;
    read_all(&rest, names[0], &other, NULL);
    CHECK(rest.result < 0 && rest.err.status == FAILURE_CHANGED);
}

static void copy_file(const char *from, const char *to)
{
    char bytes[8192];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    CHECK(in && out);
    const size_t n_bytes = fread(bytes, 1, sizeof bytes, in);
    CHECK(n_bytes > 0 && n_bytes < sizeof bytes);
    CHECK_EQ(fwrite(bytes, 1, n_bytes, out), n_bytes);
    fclose(in);
    fclose(out);
}

/* Its pages look damaged then. */
TEST(a_file_that_is_written_to_has_changed)
{
    static const char zeros[1000];
    static reading r;
    const char *name = check_path("written.parquet");
    corpus_options o = {.batch_bytes = 4, .max_piece_bytes = 16};
    if (!readable(names[0], &o, &r))
        SKIP("it cannot be read");
    copy_file(names[0], name);
    file_facts facts;
    int fd;
    CHECK_INT(file_open(name, &fd, &facts), 0);
    tokmap_i_file_close(fd);
    const input_version version = input_version_of(&facts);
    o.versions = &version;
    corpus_batch batch = {0};
    corpus *c = corpus_open(&name, 1, &o, NULL, &r.err);
    CHECK(c && corpus_read(c, &batch, &r.err) > 0);
    FILE *f = fopen(name, "r+b");
    CHECK(f && fseek(f, 4, SEEK_SET) == 0 && fwrite(zeros, 1, sizeof zeros, f) == sizeof zeros);
    CHECK(fseek(f, 0, SEEK_END) == 0 && fputc(0, f) == 0 && fclose(f) == 0);
    while ((r.result = corpus_read(c, &batch, &r.err)) > 0) {
    }
    CHECK(r.result < 0 && r.err.status == FAILURE_CHANGED &&
          strstr(r.err.text, "has changed: it had "));
    corpus_batch_free(&batch);
    corpus_close(c);
    remove(name);
}

TEST(fields_of_a_row_decide_and_are_kept)
{
    static reading r;
    static const char *const files[] = {FOLDER "numbers_plain.parquet",
                                        FOLDER "numbers_packed.parquet"};
    for (size_t i = 0; i < 2; i++) {
        field_list fields = {0};
        failure why;
        CHECK(field_list_parse(&fields, "score,@row", &why));
        where *w =
            where_compile("yes == 1 and not (real < 0) and meta.n is not null", &fields, &why);
        CHECK(w != NULL);
        corpus_options o = {
            .field = "meta.name", .fields = &fields, .n_kept = 2, .where = w, .n_decoders = 1};
        if (readable(files[i], &o, &r)) {
            CHECK_EQ(r.n_bytes, 4);
            CHECK(memcmp(r.text, "a\nb\n", 4) == 0);
            CHECK_EQ(r.counts.records, 4);
            CHECK_EQ(r.counts.filtered_documents, 2);
        }
        o.field = "nothing";
        read_all(&r, files[i], &o, NULL);
        CHECK(r.result < 0 && strstr(r.err.text, "it has no column \"nothing\""));
        where_free(w);
        field_list_free(&fields);
    }
}

TEST(a_bad_text_is_named_by_its_row)
{
    static reading r;
    corpus_options o = {.batch_bytes = 8, .max_piece_bytes = 8, .safe_cut = cut_nowhere};
    if (!readable(names[0], &(corpus_options){0}, &r))
        SKIP("it cannot be read");
    read_all(&r, names[0], &o, NULL);
    CHECK(r.result < 0);
    CHECK(strstr(r.err.text, "row 3 (row group 0, page 0, byte 4): byte"));
    o.on_error = ON_ERROR_SKIP;
    read_all(&r, names[0], &o, NULL);
    CHECK_INT(r.result, 0);
    CHECK_EQ(r.counts.documents + r.counts.bad_documents + r.counts.null_documents, 20);
    CHECK(r.counts.bad_documents > 1);
}
