/* SPDX-License-Identifier: Apache-2.0 */
/* test_parquet_reader.c - the rows of Parquet files as documents of a corpus: from any place on
 * they are the same, with any number of threads. */
#include "corpus/corpus.h"
#include "input/input.h"
#include "fields/where.h"
#include "support/bad_days.h"
#include "support/check.h"
#include "support/part_reading.h"
#include "system/files.h"
#include "system/platform.h"
#include "system/input_file.h"

#define FOLDER "tests/formats/parquet/"

static part_reading read_all(const char *name, const corpus_options *options,
                             const corpus_place *from)
{
    part_reading r;
    CHECK_NO_PROBLEM(part_reading_read(&r, &name, 1, options, from));
    return r;
}

static const char *const names[] = {
    FOLDER "text_delta_bytes.parquet", FOLDER "text_dictionary_gzip.parquet",
    FOLDER "text_mixed_v2.parquet",    FOLDER "text_delta_length_zstd.parquet",
    FOLDER "polars.parquet",           FOLDER "duckdb.parquet",
};
enum {
    N_NAMES = sizeof names / sizeof *names
};

static bool readable(const char *name, const corpus_options *o, part_reading *r)
{
    FILE *f = fopen(name, "rb");
    if (!f)
        SKIP("%s cannot be opened from this folder", name);
    fclose(f);
    *r = read_all(name, o, NULL);
    if (r->result < 0)
        CHECK_SAYS(r->err.text, "this build has no");
    return r->result == 0;
}

TEST(documents_are_the_rows_that_are_not_null)
{
    static const char half[] = "one||two words|Stra\xc3\x9f"
                               "e \xe6\xbc\xa2|one|prefix a|prefix ab|last|";
    part_reading r;
    const corpus_options o = {0};
    for (size_t i = 0; i < N_NAMES; i++) {
        char both[2 * sizeof half];
        if (!readable(names[i], &o, &r))
            continue;
        const uint64_t times = r.counts.records / 10;
        snprintf(both, sizeof both, "%s%s", half, times == 2 ? half : "");
        CHECK_STR(part_reading_text(&r), both);
        CHECK_EQ(r.counts.records, times * 10);
        CHECK_EQ(r.counts.null_documents, times * 2);
        CHECK_EQ(r.counts.empty_documents, times);
        CHECK_EQ(r.counts.documents + r.counts.null_documents, r.counts.records);
        part_reading_free(&r);
    }
}

TEST(from_any_place_on_documents_and_checksum_are_the_same)
{
    part_reading whole;
    for (size_t i = 0; i < N_NAMES; i++) {
        corpus_options o = {.batch_bytes = 4};
        if (!readable(names[i], &o, &whole))
            continue;
        CHECK(part_reading_n_places(&whole) > 8);
        for (size_t p = 0; p < part_reading_n_places(&whole); p++) {
            const part_place *place = part_reading_place(&whole, p);
            part_reading rest = read_all(names[i], &o, &place->place);
            CHECK_NO_PROBLEM(part_reading_compare_rest(&whole, place, &rest));
            part_reading_free(&rest);
        }
        part_reading_free(&whole);
    }
}

static void expect_changed(const corpus_options *o, const corpus_place *from)
{
    part_reading r = read_all(names[0], o, from);
    CHECK(r.result < 0 && r.err.status == FAILURE_CHANGED);
    part_reading_free(&r);
}

TEST(a_place_of_another_file_is_refused)
{
    part_reading whole;
    corpus_options o = {.batch_bytes = 4};
    if (!readable(names[0], &o, &whole))
        SKIP("it cannot be read");
    corpus_place place = part_reading_place(&whole, 0)->place;
    place.line = 1000;
    expect_changed(&o, &place);
    place = part_reading_place(&whole, part_reading_n_places(&whole) / 3)->place;
    place.stored.checksum ^= 1; /* of a file of the same size and time, with other pages */
    expect_changed(&o, &place);
    place.stored.checksum ^= 1;
    place.stored.n_bytes += 7;
    expect_changed(&o, &place);
    input_version version = {.known = true, .n_bytes = 5};
    o.versions = &version;
    expect_changed(&o, NULL);
    part_reading_free(&whole);
}

/* Its pages look damaged then. */
TEST(a_file_that_is_written_to_has_changed)
{
    static const char zeros[1000];
    part_reading r;
    const char *name = check_path("written.parquet");
    corpus_options o = {.batch_bytes = 4};
    if (!readable(names[0], &o, &r))
        SKIP("it cannot be read");
    part_reading_free(&r);
    const file_bytes copy = file_load(names[0]);
    CHECK(file_store(name, copy.data, copy.n_bytes));
    free(copy.data);
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
    part_reading r;
    static const char *const files[] = {FOLDER "numbers_plain.parquet",
                                        FOLDER "numbers_packed.parquet"};
    for (size_t i = 0; i < 2; i++) {
        field_list fields = {0};
        failure why;
        CHECK(field_list_parse(&fields, "score,@row", &why));
        where *w =
            where_compile("yes == 1 and not (real < 0) and meta.n is not null", &fields, &why);
        CHECK(w != NULL);
        corpus_options o = {.reader.field = "meta.name",
                            .reader.fields = &fields,
                            .reader.n_kept = 2,
                            .reader.where = w};
        if (readable(files[i], &o, &r)) {
            CHECK_STR(part_reading_text(&r), "a|b|");
            CHECK_EQ(r.counts.records, 4);
            CHECK_EQ(r.counts.filtered_documents, 2);
        }
        part_reading_free(&r);
        o.reader.field = "nothing";
        r = read_all(files[i], &o, NULL);
        CHECK(r.result < 0 && strstr(r.err.text, "it has no column \"nothing\""));
        part_reading_free(&r);
        where_free(w);
        field_list_free(&fields);
    }
}

TEST(a_bad_text_is_named_by_its_row)
{
    part_reading r;
    corpus_options o = {.batch_bytes = 8, .reader.max_document = 8};
    if (!readable(names[0], &(corpus_options){0}, &r))
        SKIP("it cannot be read");
    part_reading_free(&r);
    r = read_all(names[0], &o, NULL);
    CHECK(r.result < 0);
    CHECK_SAYS(r.err.text, "row 3 (row group 0, page 0, byte 4): byte");
    part_reading_free(&r);
    o.reader.on_error = ON_ERROR_SKIP;
    r = read_all(names[0], &o, NULL);
    CHECK_INT(r.result, 0);
    CHECK_EQ(r.counts.documents + r.counts.bad_documents + r.counts.null_documents, 20);
    CHECK(r.counts.bad_documents > 1);
    part_reading_free(&r);
}
