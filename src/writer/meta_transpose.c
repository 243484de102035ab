/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/meta_transpose.h"

#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"
#include "format/meta_section.h"

/* ---- The different strings of a column, numbered in the order in which they came ---- */

enum {
    TABLE_BYTES = 16 << 20, /* of text, at most */
    TABLE_SLOTS = 2 * TOKMAP_I_MAX_META_DICTIONARY
};

typedef struct string_table {
    uint32_t n_strings;
    tokmap_i_bytes text;
    uint32_t ends[TOKMAP_I_MAX_META_DICTIONARY];
    uint32_t slots[TABLE_SLOTS]; /* number + 1; 0: free */
} string_table;

static void close_table(string_table *t)
{
    if (t)
        free(t->text.data);
    free(t);
}

/* Finds the number of a string, which is added if it is new. Sets *fits to false if there are too
 * many. */
static tokmap_status number_string(string_table *t, const tokmap_value *v, uint32_t *number,
                                   bool *fits, tokmap_error *err)
{
    size_t slot = tokmap_i_checksum(v->text, v->text_bytes) % TABLE_SLOTS;
    *fits = true;
    while (t->slots[slot] != 0) {
        *number = t->slots[slot] - 1;
        const size_t start = *number == 0 ? 0 : t->ends[*number - 1];
        if (t->ends[*number] - start == v->text_bytes &&
            (v->text_bytes == 0 ||
             (t->text.data && memcmp(t->text.data + start, v->text, v->text_bytes) == 0)))
            return TOKMAP_OK;
        slot = (slot + 1) % TABLE_SLOTS;
    }
    *fits = t->n_strings < TOKMAP_I_MAX_META_DICTIONARY &&
            v->text_bytes <= TABLE_BYTES - t->text.n_bytes;
    if (!*fits)
        return TOKMAP_OK;
    if (!tokmap_i_bytes_append(&t->text, v->text, v->text_bytes))
        return FAIL_MEMORY(err);
    *number = t->n_strings++;
    t->ends[*number] = (uint32_t)t->text.n_bytes;
    t->slots[slot] = t->n_strings;
    return TOKMAP_OK;
}

typedef struct transpose {
    tokmap_i_meta_writer *w;
    tokmap_i_index_writer *to;
    uint64_t at;           /* bytes of the section so far */
    uint64_t text_end;     /* bytes of the strings so far */
    uint64_t row;          /* the document whose value is written */
    uint8_t validity;      /* bits of the documents since the last multiple of eight */
    string_table *strings; /* the strings of the current column, if it is a dictionary */
    tokmap_i_meta meta;
} transpose;

/* ---- Output ---- */

static tokmap_status put_bytes(transpose *t, const void *data, size_t n_bytes, tokmap_error *err)
{
    t->at += n_bytes;
    return tokmap_i_index_writer_put(t->to, data, n_bytes, err);
}

static tokmap_status put_u64(transpose *t, uint64_t value, tokmap_error *err)
{
    uint8_t bytes[8];
    le_put64(bytes, value);
    return put_bytes(t, bytes, sizeof bytes, err);
}

static tokmap_status pad_to(transpose *t, uint64_t at, tokmap_error *err)
{
    static const uint8_t zeros[TOKMAP_I_META_ALIGNMENT];
    if (at < t->at || at - t->at >= sizeof zeros)
        return FAIL(err, TOKMAP_ERR_CORRUPT,
                    "%s: changed while it was read; another process changed it, or the disk failed",
                    t->w->path);
    return put_bytes(t, zeros, (size_t)(at - t->at), err);
}

/* ---- What a column will be ---- */

/* Chooses a dictionary if it is smaller than the strings themselves. */
static tokmap_status choose_strings(transpose *t, uint32_t column, tokmap_error *err)
{
    tokmap_i_meta_column *c = &t->meta.columns[column];
    string_table *strings = calloc(1, sizeof(string_table));
    if (!strings)
        return FAIL_MEMORY(err);
    tokmap_i_meta_cursor cursor = tokmap_i_meta_cursor_at(t->w, column);
    tokmap_status status = TOKMAP_OK;
    bool fits = true;
    while (!status && fits) {
        tokmap_value v;
        uint32_t number;
        status = tokmap_i_meta_cursor_next(&cursor, &v, err);
        if (!status && v.type == TOKMAP_VALUE_STRING)
            status = number_string(strings, &v, &number, &fits, err);
    }
    const uint64_t n = t->w->n_rows;
    const uint32_t code_bytes = strings->n_strings <= 256 ? 1 : 2;
    const uint64_t dictionary =
        code_bytes * n + 8 * ((uint64_t)strings->n_strings + 1) + strings->text.n_bytes;
    if (status == TOKMAP_END && dictionary < 8 * (n + 1) + c->text_bytes) {
        c->type = TOKMAP_I_META_DICTIONARY;
        c->code_bytes = code_bytes;
        c->n_strings = strings->n_strings;
        c->text_bytes = strings->text.n_bytes;
    }
    free(cursor.segment.data);
    close_table(strings);
    return status < 0 ? status : TOKMAP_OK;
}

/* ---- Parts ---- */

/* Writes what a part has for a value. */
static tokmap_status put_value(transpose *t, const tokmap_i_meta_column *c, tokmap_i_meta_part part,
                               const tokmap_value *v, tokmap_error *err)
{
    const bool is_string = v->type == TOKMAP_VALUE_STRING, is_null = v->type == TOKMAP_VALUE_NULL;
    const double real = v->type == TOKMAP_VALUE_INT64 ? (double)v->integer : v->real;
    uint8_t bytes[2] = {0};
    uint32_t number = 0;
    uint64_t bits = 0;
    bool fits;
    tokmap_status status = TOKMAP_OK;
    switch (part) {
    case TOKMAP_I_META_VALIDITY: /* a byte has the bits of eight documents */
        bytes[0] = (uint8_t)(t->validity | !is_null << t->row % 8);
        t->validity = t->row % 8 == 7 ? 0 : bytes[0];
        return t->row % 8 == 7 || t->row + 1 == t->w->n_rows ? put_bytes(t, bytes, 1, err)
                                                             : TOKMAP_OK;
    case TOKMAP_I_META_VALUES:
        if (t->strings) {
            if (is_string)
                status = number_string(t->strings, v, &number, &fits, err);
            le_put16(bytes, (uint16_t)number);
            return status ? status : put_bytes(t, bytes, c->code_bytes, err);
        }
        if (!is_null && c->type == TOKMAP_I_META_FLOAT64)
            memcpy(&bits, &real, sizeof bits);
        else if (v->type == TOKMAP_VALUE_INT64)
            bits = (uint64_t)v->integer;
        return put_u64(t, bits, err);
    case TOKMAP_I_META_OFFSETS:
        t->text_end += is_string ? v->text_bytes : 0;
        return put_u64(t, t->text_end, err);
    default:
        return is_string ? put_bytes(t, v->text, v->text_bytes, err) : TOKMAP_OK;
    }
}

static tokmap_status put_part(transpose *t, uint32_t column, tokmap_i_meta_part part,
                              tokmap_error *err)
{
    const bool of_table = part == TOKMAP_I_META_OFFSETS || part == TOKMAP_I_META_TEXT;
    tokmap_status status = TOKMAP_OK;
    t->text_end = t->validity = 0;
    if (part == TOKMAP_I_META_OFFSETS)
        status = put_u64(t, 0, err);
    if (t->strings && of_table) {
        if (part == TOKMAP_I_META_TEXT)
            return put_bytes(t, t->strings->text.data, t->strings->text.n_bytes, err);
        for (uint32_t i = 0; !status && i < t->strings->n_strings; i++)
            status = put_u64(t, t->strings->ends[i], err);
        return status;
    }
    tokmap_i_meta_cursor cursor = tokmap_i_meta_cursor_at(t->w, column);
    for (t->row = 0; !status; t->row++) {
        tokmap_value v;
        status = tokmap_i_meta_cursor_next(&cursor, &v, err);
        if (!status)
            status = put_value(t, &t->meta.columns[column], part, &v, err);
    }
    free(cursor.segment.data);
    return status == TOKMAP_END ? TOKMAP_OK : status;
}

/* Writes a column. The strings get their numbers while the codes are written. */
static tokmap_status put_column(transpose *t, uint32_t column, tokmap_error *err)
{
    const tokmap_i_meta_column *c = &t->meta.columns[column];
    if (c->type == TOKMAP_I_META_DICTIONARY) {
        t->strings = calloc(1, sizeof(string_table));
        if (!t->strings)
            return FAIL_MEMORY(err);
    }
    tokmap_status status = TOKMAP_OK;
    for (int part = 0; !status && part < TOKMAP_I_META_PARTS; part++) {
        if (!c->has[part])
            continue;
        status = pad_to(t, c->at[part], err);
        if (!status)
            status = put_part(t, column, (tokmap_i_meta_part)part, err);
    }
    close_table(t->strings);
    t->strings = NULL;
    return status;
}

tokmap_status tokmap_i_put_values(tokmap_i_meta_writer *w, tokmap_i_index_writer *to,
                                  tokmap_error *err)
{
    uint8_t directory[TOKMAP_I_META_DIRECTORY_BYTES];
    transpose t = {.w = w, .to = to, .meta = {.n_columns = w->n_columns, .n_documents = w->n_rows}};
    tokmap_status status = tokmap_i_meta_writer_flush(w, err);
    for (uint32_t i = 0; !status && i < w->n_columns; i++) {
        const tokmap_i_meta_state *state = &w->columns[i];
        const bool is_string = state->type == TOKMAP_VALUE_STRING;
        t.meta.columns[i] = (tokmap_i_meta_column){
            .type = (uint32_t)state->type,
            .n_nulls = state->n_nulls,
            .n_strings = is_string ? w->n_rows : 0,
            .text_bytes = state->text_bytes,
            .name = w->names[i],
            .name_bytes = strlen(w->names[i]),
        };
        status = is_string ? choose_strings(&t, i, err) : TOKMAP_OK;
    }
    if (!status && !tokmap_i_meta_place(&t.meta))
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: the values are too large", w->path);
    if (!status)
        status = put_bytes(&t, directory, tokmap_i_meta_encode(&t.meta, directory), err);
    for (uint32_t i = 0; !status && i < w->n_columns; i++)
        status = put_column(&t, i, err);
    return status ? status : pad_to(&t, t.meta.section_bytes, err);
}
