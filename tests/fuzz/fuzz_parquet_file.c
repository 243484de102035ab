/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_parquet_file.c - any bytes as a Parquet file: each column gives the same values or the same
 * error with and without threads, from the start and from a row in the middle. As documents, of
 * texts or of lists, its parts give what the whole gives. */
#include "fuzz/fuzz.h"

#include <unistd.h>

#include <xxhash.h>

#include "formats/parquet/parquet_column.h"
#include "support/part_reading.h"
#include "support/random_input.h"

enum {
    MAX_ROWS = 100000
};

typedef struct reading {
    int result;
    uint64_t n_values, sum, checksum;
    uint64_t sum_from_middle; /* of the values from `middle` on */
    failure err;
} reading;

static uint64_t hash_of(const tokmap_value *v)
{
    uint64_t bits = (uint64_t)v->integer;
    if (v->type == TOKMAP_VALUE_STRING)
        return XXH3_64bits(v->text, v->text_bytes);
    if (v->type == TOKMAP_VALUE_FLOAT64)
        memcpy(&bits, &v->real, sizeof bits);
    return bits * UINT64_C(0x9e3779b97f4a7c15) + v->type;
}

static reading read_column(const parquet_file *f, const parquet_element *e, uint64_t row,
                           uint64_t middle)
{
    const parquet_column_options options = {.memory_bytes = 1 << 22, .memory_option = 1 << 22};
    reading r = {.n_values = row};
    tokmap_value value;
    const parquet_rows rows = {.begin = row, .end = f->footer.n_rows};
    parquet_column *c = parquet_column_open(f, e, rows, &options, &r.err);
    require(c != NULL);
    while ((r.result = parquet_column_next(c, &value, &r.err)) > 0 && r.n_values < MAX_ROWS) {
        r.sum = r.sum * 31 + hash_of(&value);
        if (r.n_values++ >= middle)
            r.sum_from_middle = r.sum_from_middle * 31 + hash_of(&value);
    }
    r.checksum = c->checksum;
    require(r.result >= 0 || strlen(r.err.text) > 0);
    parquet_column_close(c);
    return r;
}

static void check_column(const parquet_file *f, const parquet_element *e)
{
    const uint64_t middle = f->footer.n_rows / 2;
    const reading a = read_column(f, e, 0, middle);
    require(a.result != 0 || a.n_values == f->footer.n_rows);
    if (a.result != 0)
        return;
    const reading c = read_column(f, e, middle, middle);
    require(c.result == 0 && c.sum == a.sum_from_middle);
}

/* The size of the file chooses the places and the options. Tokens may be their own labels. */
static void check_parts(const char *name, char *path, corpus_list list, size_t size)
{
    const field_list labels = {1, {path}};
    const bool has_labels = list == LIST_TOKENS && size % 3 == 0;
    const corpus_options o = {
        .reader.format = CORPUS_PARQUET,
        .reader.field = path,
        .reader.list = list,
        .reader.fields = has_labels ? &labels : NULL,
        .reader.marks = has_labels ? MARKS_LABELS : MARKS_NONE,
        .reader.on_error = (corpus_on_error)(size % 2),
        .batch_bytes = size % 2 ? 4 : 1000,
        .reader.max_document = 1000,
        .reader.page_memory = 1 << 22,
    };
    part_reading all;
    uint64_t random = size;
    require(part_reading_compare(&all, &name, 1, &o, &random) == NULL);
    part_reading_free(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[64], path[512];
    uint8_t level;
    parquet_file f;
    failure err;
    failure why;
    const int fd = input_file(name, data, size);
    if (parquet_file_open(&f, name, fd, &err)) {
        for (size_t i = 1; i < f.footer.n_elements && i < 8; i++) {
            parquet_path(&f.footer, &f.footer.elements[i], path, sizeof path);
            const parquet_element *e = parquet_value_column(&f.footer, path, &why);
            if (e)
                check_column(&f, e);
            if (parquet_text_column(&f.footer, path, &why) && f.footer.n_rows < MAX_ROWS)
                check_parts(name, path, LIST_NONE, size);
            if (parquet_list_column(&f.footer, path, NULL, &level, &why) &&
                f.footer.n_rows < MAX_ROWS)
                check_parts(name, path, LIST_TOKENS, size);
            if (parquet_list_column(&f.footer, path, "text", &level, &why) &&
                parquet_list_column(&f.footer, path, "train", &level, &why) &&
                f.footer.n_rows < MAX_ROWS)
                check_parts(name, path, LIST_PARTS, size);
        }
    } else {
        require(strlen(err.text) > 0);
    }
    parquet_file_close(&f);
    close(fd);
    return 0;
}
