/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_corpus.c - any bytes as an input of any format and compression, in batches of any size: the
 * documents are those of the naive model, and from any place on they are the same. If the input can
 * be cut, its parts give what the whole gives. */
#include "fuzz/fuzz.h"

#include <unistd.h>

#include "formats/arrow/arrow_reader.h"
#include "input/input.h"
#include "formats/tar_header.h"
#include "oracles/corpus_model.h"
#include "support/part_reading.h"

#define OPTION_BYTES 6
#define MAX_PLAIN ((size_t)1 << 18)

/* The fields and the expression of MODEL_WHERE. */
static void choose_where(corpus_options *o)
{
    static field_list fields;
    static where *w;
    failure err;
    if (!w)
        w = where_compile(MODEL_WHERE, &fields, &err);
    require(w != NULL);
    o->reader.fields = &fields;
    o->reader.where = w;
    o->reader.n_kept = 1;
}

static void choose_marks(corpus_options *o, const uint8_t *d)
{
    static field_list fields;
    failure err;
    require(fields.n_fields > 0 || field_list_parse(&fields, "n", &err));
    o->reader.where = NULL;
    o->reader.n_kept = 0;
    o->reader.marks = o->reader.list == LIST_TOKENS ? (corpus_marks)((d[3] >> 1) % 3) : MARKS_NONE;
    o->reader.fields = o->reader.marks ? &fields : NULL;
    o->reader.utf8 = UTF8_RAW;
}

static corpus_options choose_options(const uint8_t *d)
{
    static const size_t sizes[] = {4, 7, 16, 50, 200, 1000, 1 << 15, 1 << 20};
    static const char *const separators[] = {NULL, "\n", "--", "ab\xff"};
    corpus_options o = {
        .reader.format = (corpus_format)(d[0] % MODEL_N_FORMATS),
        .reader.utf8 = (corpus_utf8)((d[0] >> 2 & 3) % 3),
        .reader.utf8_given = !(d[1] & 8),
        .reader.strict_json = true, /* as the model */
        .reader.on_error = (corpus_on_error)(d[0] >> 4 & 1),
        .reader.field = d[0] & 64 ? "a.b" : NULL,
        .reader.columns = d[3] & 8 ? "a.b,\"text\"" : NULL,
        .reader.text_fields = UINT64_MAX, /* the model knows only strings */
        .reader.types_known = true,
        .reader.window.read_ahead = d[5] > 250,
        .reader.separator = separators[d[1] & 3],
        .batch_bytes = sizes[d[2] & 7],
        .reader.max_document = sizes[d[2] >> 4 & 7],
        .reader.window.read_bytes = d[4] ? d[4] : 4096,
    };
    o.reader.separator_bytes = o.reader.separator ? strlen(o.reader.separator) : 0;
    if (d[1] & 64)
        choose_where(&o);
    o.reader.list = d[1] & 32 ? (corpus_list)(1 + d[3] % 2) : LIST_NONE;
    if (o.reader.list)
        choose_marks(&o, d);
    o.reader.vocab_size = d[3] >> 4;
    return o;
}

/* What the input holds. Returns false when it cannot be read to its end. */
static bool read_plain(const char *name, uint8_t *plain, size_t *n_plain)
{
    failure err;
    ssize_t n = -1;
    input *in = input_open(&(input_source){.path = name}, -1, &err);
    *n_plain = 0;
    while (in && *n_plain < MAX_PLAIN &&
           (n = input_read(in, plain + *n_plain, MAX_PLAIN - *n_plain, &err)) > 0)
        *n_plain += (size_t)n;
    input_close(in);
    return n == 0;
}

/* The model knows only text. */
static bool is_of_another_target(const uint8_t *plain, size_t n_plain)
{
    return arrow_is_magic(plain, n_plain) || (n_plain >= 4 && memcmp(plain, "PAR1", 4) == 0) ||
           (n_plain >= TAR_BLOCK_BYTES && tar_is_header(plain));
}

/* The first bytes choose the places. */
static void check_parts(const char *name, const corpus_options *o, const uint8_t *data)
{
    part_reading all;
    uint64_t random = 0;
    memcpy(&random, data, OPTION_BYTES);
    require(part_reading_compare(&all, &name, 1, o, &random) == NULL);
    part_reading_free(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t plain[MAX_PLAIN];
    char name[64];
    size_t n_plain;
    if (size < OPTION_BYTES)
        return 0;
    corpus_options o = choose_options(data);
    const int fd = input_file(name, data + OPTION_BYTES, size - OPTION_BYTES);
    bool readable = read_plain(name, plain, &n_plain);
    if (is_of_another_target(plain, n_plain)) {
        close(fd);
        return 0;
    }
    if (readable && o.reader.list) { /* the model knows no lists */
        part_reading r;
        uint64_t random = data[5];
        require(part_reading_resume(&r, name, &o, &random) == NULL);
        part_reading_free(&r);
        check_parts(name, &o, data);
    } else if (readable) {
        size_t n_stored = size - OPTION_BYTES;
        bool compressed = n_stored != n_plain || memcmp(plain, data + OPTION_BYTES, n_plain) != 0;
        model m = corpus_model_read(&o, plain, n_plain, compressed);
        part_reading r;
        uint64_t random = data[5];
        require(part_reading_resume(&r, name, &o, &random) == NULL);
        require(corpus_model_compare(&m, &r, name) == NULL);
        part_reading_free(&r);
        if (!compressed && m.format != CORPUS_TEXT)
            check_parts(name, &o, data);
        corpus_model_free(&m);
    } else if (n_plain < MAX_PLAIN) {
        part_reading r;
        const char *names = name;
        require(part_reading_read(&r, &names, 1, &o, NULL) == NULL);
        require(r.result < 0);
        part_reading_free(&r);
    }
    close(fd);
    return 0;
}
