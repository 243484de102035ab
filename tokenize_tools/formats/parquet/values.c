/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/parquet/values.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base.h"
#include "base/number.h"
#include "base/le.h"

static bool fail_page(parquet_values *v, const char *why)
{
    v->why = why;
    return false;
}

/* ---- One value ---- */

/* Zeros are padding, which some writers add. */
static const char after_last[] = "trailing data after its last value";

static size_t size_of(const parquet_element *column)
{
    if (column->type == PARQUET_FIXED_BYTES)
        return column->fixed_bytes;
    return column->type == PARQUET_INT32 || column->type == PARQUET_FLOAT ? 4 : 8;
}

static void set_text(tokmap_value *value, const uint8_t *bytes, size_t n_bytes)
{
    value->type = TOKMAP_VALUE_STRING;
    value->text = bytes ? (const char *)bytes : "";
    value->text_bytes = n_bytes;
}

/* Sets a number from its stored bits: the lower 32 if the type has no more. */
static bool set_number(const parquet_values *v, uint64_t bits, tokmap_value *value)
{
    const bool is_unsigned = v->column->kind == PARQUET_UNSIGNED;
    const uint32_t low = (uint32_t)bits;
    if (v->column->type == PARQUET_FLOAT || v->column->type == PARQUET_DOUBLE) {
        value->type = TOKMAP_VALUE_FLOAT64;
        value->real = le_get_real((const uint8_t *)&bits, size_of(v->column));
    } else if (is_unsigned) {
        *value = number_of_unsigned(v->column->type == PARQUET_INT32 ? low : bits);
    } else {
        value->type = TOKMAP_VALUE_INT64;
        value->integer = v->column->type == PARQUET_INT32 ? (int32_t)low : (int64_t)bits;
        value->text_bytes = v->column->time;
    }
    return true;
}

/* Sets a value of a fixed size. A decimal becomes a text of its bytes, for set_decimal. */
static bool set_stored_number(parquet_values *v, const uint8_t *at, tokmap_value *value)
{
    const size_t size = size_of(v->column);
    if (v->column->type != PARQUET_FIXED_BYTES)
        return set_number(v, size == 4 ? le_get32(at) : le_get64(at), value);
    set_text(value, at, size);
    return true;
}

/* Writes a decimal, given its integer, or its bytes from the highest one on. */
static bool set_decimal(parquet_values *v, tokmap_value *value)
{
    uint8_t bytes[NUMBER_MAX_DECIMAL_BYTES];
    const bool is_integer = value->type == TOKMAP_VALUE_INT64;
    const size_t n = is_integer ? sizeof value->integer : value->text_bytes;
    if (n == 0 || n > sizeof bytes)
        return fail_page(v, "a decimal does not have 1 to 32 bytes");
    for (size_t i = 0; i < n; i++)
        bytes[i] = is_integer ? (uint8_t)((uint64_t)value->integer >> 8 * i)
                              : (uint8_t)value->text[n - 1 - i];
    *value = number_of_decimal(bytes, n, v->column->scale, v->decimal);
    return true;
}

static bool set_boolean(tokmap_value *value, bool is_true)
{
    value->type = TOKMAP_VALUE_INT64;
    value->integer = is_true;
    return true;
}

/* ---- PLAIN ---- */

static const char past_end[] = "a value extends beyond its end";

/* Reads the size of the bytes that follow. */
static bool take_size(parquet_values *v, uint32_t *n_bytes)
{
    if (v->end - v->at < 4 || le_get32(v->at) > (size_t)(v->end - v->at) - 4)
        return fail_page(v, past_end);
    *n_bytes = le_get32(v->at);
    v->at += 4;
    return true;
}

static bool take_plain_text(parquet_values *v, tokmap_value *value)
{
    uint32_t n_bytes;
    if (!take_size(v, &n_bytes))
        return false;
    set_text(value, v->at, n_bytes);
    v->at += n_bytes;
    return true;
}

static bool take_plain_number(parquet_values *v, tokmap_value *value)
{
    const size_t n_bytes = size_of(v->column);
    if ((size_t)(v->end - v->at) < n_bytes)
        return fail_page(v, past_end);
    v->at += n_bytes;
    return set_stored_number(v, v->at - n_bytes, value);
}

static bool take_plain_boolean(parquet_values *v, tokmap_value *value)
{
    const uint32_t n = v->n_taken++;
    if (n / 8 >= (size_t)(v->end - v->begin))
        return fail_page(v, past_end);
    v->at = v->begin + n / 8 + 1;
    return set_boolean(value, v->begin[n / 8] >> n % 8 & 1);
}

/* ---- Dictionary ---- */

/* Lists the offsets of all byte arrays. Each array begins with its length. */
static const char *list_offsets(parquet_dictionary *d)
{
    size_t at = 0;
    for (uint32_t i = 0; i < d->n_values; i++) {
        if (d->n_bytes - at < 4 || le_get32(d->bytes + at) > d->n_bytes - at - 4)
            return past_end;
        d->offsets[i] = (uint32_t)at;
        at += 4 + (size_t)le_get32(d->bytes + at);
    }
    return is_zero(d->bytes + at, d->n_bytes - at) ? NULL : after_last;
}

const char *parquet_dictionary_begin(parquet_dictionary *d, const parquet_element *column,
                                     const parquet_page_header *header, const uint8_t *bytes)
{
    *d = (parquet_dictionary){
        .bytes = bytes, .n_bytes = header->plain_bytes, .n_values = header->n_values};
    if (header->encoding != PARQUET_ENCODING_PLAIN &&
        header->encoding != PARQUET_ENCODING_PLAIN_DICTIONARY)
        return "its dictionary has an unknown encoding";
    if (column->type == PARQUET_BOOLEAN)
        return "a column of booleans cannot have a dictionary";
    if (column->type != PARQUET_BYTE_ARRAY)
        return d->n_bytes / size_of(column) >= d->n_values ? NULL : past_end;
    if (d->n_bytes / 4 < d->n_values)
        return past_end;
    d->offsets = malloc((size_t)header->n_values * sizeof *d->offsets + 1);
    return d->offsets ? list_offsets(d) : parquet_no_memory;
}

void parquet_dictionary_free(parquet_dictionary *d)
{
    free(d->offsets);
    *d = (parquet_dictionary){0};
}

static bool take_from_dictionary(parquet_values *v, tokmap_value *value)
{
    const parquet_dictionary *d = v->dictionary;
    uint32_t index;
    if (!parquet_runs_next(&v->runs, &index))
        return fail_page(v, past_end);
    if (index >= d->n_values)
        return fail_page(v, "a value is not in the dictionary");
    if (!d->offsets)
        return set_stored_number(v, d->bytes + index * size_of(v->column), value);
    const uint8_t *at = d->bytes + d->offsets[index];
    set_text(value, at + 4, le_get32(at));
    return true;
}

static bool begin_indexes(parquet_values *v)
{
    if (!v->dictionary || !v->dictionary->bytes)
        return fail_page(v, "it needs a dictionary, but its column chunk has none");
    /* A page of nulls may have no indexes, and then no width of indexes either. */
    const uint32_t width = v->at < v->end ? *v->at : 0;
    if (width > 32)
        return fail_page(v, "the width of its indexes is more than 32 bits");
    v->at += v->at < v->end;
    parquet_runs_begin(&v->runs, width, v->at, (size_t)(v->end - v->at));
    v->at = v->end;
    return true;
}

/* ---- RLE, for booleans ---- */

static bool take_run(parquet_values *v, tokmap_value *value)
{
    uint32_t bit;
    return parquet_runs_next(&v->runs, &bit) ? set_boolean(value, bit) : fail_page(v, past_end);
}

static bool begin_boolean_runs(parquet_values *v)
{
    if (v->at == v->end)
        return true; /* all values are null */
    uint32_t n_bytes;
    if (!take_size(v, &n_bytes))
        return false;
    parquet_runs_begin(&v->runs, 1, v->at, n_bytes);
    v->at = v->end;
    return true;
}

/* ---- Deltas ---- */

static bool take_delta(parquet_values *v, tokmap_value *value)
{
    uint64_t bits;
    return parquet_delta_next(&v->numbers, &bits) ? set_number(v, bits, value)
                                                  : fail_page(v, past_end);
}

static bool begin_delta(parquet_values *v)
{
    if (v->at < v->end && !parquet_delta_begin(&v->numbers, v->at, (size_t)(v->end - v->at)))
        return fail_page(v, "the header of its deltas is malformed");
    v->at = v->end;
    return true;
}

/* Begins lengths, and moves v->at to the bytes after them. */
static bool begin_lengths(parquet_values *v, parquet_delta *lengths)
{
    if (!parquet_delta_begin(lengths, v->at, (size_t)(v->end - v->at)))
        return fail_page(v, "the header of its lengths is malformed");
    const uint8_t *end = parquet_delta_end(lengths);
    if (!end)
        return fail_page(v, "its lengths are malformed");
    v->at = end;
    return true;
}

static bool take_delta_length(parquet_values *v, tokmap_value *value)
{
    uint64_t n_bytes;
    if (!parquet_delta_next(&v->numbers, &n_bytes) || n_bytes > (size_t)(v->end - v->at))
        return fail_page(v, past_end);
    set_text(value, v->at, (size_t)n_bytes);
    v->at += n_bytes;
    return true;
}

static bool begin_delta_length(parquet_values *v)
{
    return v->at == v->end || begin_lengths(v, &v->numbers);
}

/* Takes a value: a prefix of the value before, and a suffix. It is never longer than the page. */
static bool take_delta_bytes(parquet_values *v, tokmap_value *value)
{
    uint64_t prefix, suffix;
    if (!parquet_delta_next(&v->numbers, &prefix) || !parquet_delta_next(&v->suffixes, &suffix) ||
        suffix > (size_t)(v->end - v->at))
        return fail_page(v, past_end);
    if (prefix > v->value_bytes)
        return fail_page(v, "the prefix of a value is longer than the value before");
    if (!array_reserve(&v->value, &v->value_capacity, (size_t)(prefix + suffix), 1))
        return fail_page(v, parquet_no_memory);
    if (suffix)
        memcpy(v->value + prefix, v->at, (size_t)suffix);
    v->value_bytes = (size_t)(prefix + suffix);
    v->at += suffix;
    set_text(value, v->value, v->value_bytes);
    return true;
}

static bool begin_delta_bytes(parquet_values *v)
{
    v->value_bytes = 0;
    return v->at == v->end || (begin_lengths(v, &v->numbers) && begin_lengths(v, &v->suffixes));
}

/* ---- BYTE_STREAM_SPLIT: the first bytes of all values, then their second bytes, and so on ---- */

static bool take_split(parquet_values *v, tokmap_value *value)
{
    const size_t size = size_of(v->column), n = (size_t)(v->end - v->begin) / size;
    if (v->n_taken >= n)
        return fail_page(v, past_end);
    for (size_t i = 0; i < size; i++)
        v->split[i] = v->begin[i * n + v->n_taken];
    v->n_taken++;
    return set_stored_number(v, v->split, value);
}

/* ---- The page ---- */

static bool begin_split(parquet_values *v)
{
    v->at = v->end;
    return (v->end - v->begin) % (ptrdiff_t)size_of(v->column) == 0 || fail_page(v, past_end);
}

static bool begin_encoding(parquet_values *v)
{
    enum {
        BOOLEAN = 1 << PARQUET_BOOLEAN,
        TEXT = 1 << PARQUET_BYTE_ARRAY,
        INTEGER = 1 << PARQUET_INT32 | 1 << PARQUET_INT64,
        FIXED = 1 << PARQUET_FIXED_BYTES,
        NUMBER = INTEGER | FIXED | 1 << PARQUET_FLOAT | 1 << PARQUET_DOUBLE,
        ANY = 0xff
    };
    static const struct {
        parquet_encoding encoding;
        unsigned types; /* of columns, a bit for each; the first row that fits is used */
        bool (*begin)(parquet_values *);
        bool (*take)(parquet_values *, tokmap_value *);
    } encodings[] = {
        {PARQUET_ENCODING_PLAIN, TEXT, NULL, take_plain_text},
        {PARQUET_ENCODING_PLAIN, BOOLEAN, NULL, take_plain_boolean},
        {PARQUET_ENCODING_PLAIN, ANY, NULL, take_plain_number},
        {PARQUET_ENCODING_PLAIN_DICTIONARY, ANY, begin_indexes, take_from_dictionary},
        {PARQUET_ENCODING_RLE_DICTIONARY, ANY, begin_indexes, take_from_dictionary},
        {PARQUET_ENCODING_RLE, BOOLEAN, begin_boolean_runs, take_run},
        {PARQUET_ENCODING_DELTA_BINARY, INTEGER, begin_delta, take_delta},
        {PARQUET_ENCODING_DELTA_LENGTH, TEXT, begin_delta_length, take_delta_length},
        {PARQUET_ENCODING_DELTA_BYTES, TEXT | FIXED, begin_delta_bytes, take_delta_bytes},
        {PARQUET_ENCODING_SPLIT, NUMBER, begin_split, take_split},
    };
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        v->take = encodings[i].take;
        if (v->encoding == encodings[i].encoding && encodings[i].types >> v->column->type & 1)
            return !encodings[i].begin || encodings[i].begin(v);
    }
    return fail_page(v, "its encoding cannot be read for a column of its type");
}

typedef struct stored_levels {
    uint32_t max;
    uint8_t encoding;
    size_t n_bytes; /* version 2 */
} stored_levels;

/* Begins levels. Version 1 has their length before them, version 2 in the header of the page. */
static bool begin_levels(parquet_values *v, bool has_length, stored_levels l, parquet_runs *runs)
{
    uint32_t width = 0;
    if (has_length && l.max > 0) {
        if (l.encoding == PARQUET_ENCODING_BIT_PACKED)
            return fail_page(v, "its levels are BIT_PACKED, which cannot be read");
        if (l.encoding != PARQUET_ENCODING_RLE)
            return fail_page(v, "its levels have an unknown encoding");
        uint32_t stored;
        if (!take_size(v, &stored))
            return fail_page(v, "its levels extend beyond its end");
        l.n_bytes = stored;
    }
    while (l.max >> width)
        width++;
    parquet_runs_begin(runs, width, v->at, l.n_bytes);
    v->at += l.n_bytes;
    return true;
}

static bool begin_all_levels(parquet_values *v, const parquet_page_header *h)
{
    const bool has_length = h->type == PARQUET_PAGE_DATA;
    const stored_levels repetitions = {v->column->max_repetition, h->repetition_encoding,
                                       h->repetition_bytes},
                        definitions = {v->column->max_definition, h->level_encoding,
                                       h->definition_bytes};
    return begin_levels(v, has_length, repetitions, &v->repetitions) &&
           begin_levels(v, has_length, definitions, &v->levels);
}

bool parquet_values_begin(parquet_values *v, const parquet_element *column,
                          const parquet_page_header *header, const uint8_t *bytes,
                          const parquet_dictionary *dictionary)
{
    *v = (parquet_values){
        .column = column,
        .dictionary = dictionary,
        .encoding = header->encoding,
        .left = header->n_values,
        .at = bytes,
        .end = bytes + header->plain_bytes,
        .value = v->value,
        .value_capacity = v->value_capacity,
    };
    if (!begin_all_levels(v, header))
        return false;
    v->begin = v->at;
    return begin_encoding(v);
}

int parquet_values_next(parquet_values *v, tokmap_value *value)
{
    *value = (tokmap_value){0};
    bool ok = true;
    if (v->left == 0) {
        ok = is_zero(v->at, (size_t)(v->end - v->at)) || fail_page(v, after_last);
        return ok ? 0 : -1;
    }
    v->left--;
    if (v->column->max_repetition > 0 && !parquet_runs_next(&v->repetitions, &v->repetition))
        ok = fail_page(v, "its repetition levels end too early");
    if (ok && v->column->max_definition > 0) {
        if (!parquet_runs_next(&v->levels, &v->definition))
            ok = fail_page(v, "its definition levels end too early");
        else if (v->definition > v->column->max_definition)
            ok = fail_page(v, "a definition level is too large");
        else if (v->definition < v->column->max_definition)
            return 1;
    }
    ok = ok && v->take(v, value);
    return ok && (v->column->kind != PARQUET_DECIMAL || set_decimal(v, value)) ? 1 : -1;
}

void parquet_values_free(parquet_values *v)
{
    free(v->value);
}
