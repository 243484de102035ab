/* SPDX-License-Identifier: Apache-2.0 */
/* meta_transpose.c - writes the section of values: reads the spool once or more for each column. */
#include "format/meta_section.h"
#include "base/status.h"
#include "writer/meta_writer.h"
#include "writer/string_table.h"

enum {
    PIECE_BYTES = 64 << 10
};

typedef struct transpose {
    tokmap_i_meta_writer *w;
    tokmap_i_meta_put *put;
    void *context;
    uint64_t at;       /* bytes of the section so far */
    uint64_t text_end; /* of the strings so far */
    uint8_t *piece;
    size_t piece_used;
    tokmap_i_string_table *strings; /* of the current column, if it is a dictionary */
    tokmap_i_meta meta;
} transpose;

/* ---- Output ---- */

static tokmap_status flush_piece(transpose *t, tokmap_error *err)
{
    const size_t n_bytes = t->piece_used;
    t->piece_used = 0;
    return n_bytes == 0 ? TOKMAP_OK : t->put(t->context, t->piece, n_bytes, err);
}

static tokmap_status put_bytes(transpose *t, const void *data, size_t n_bytes, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    t->at += n_bytes;
    if (n_bytes > PIECE_BYTES - t->piece_used)
        status = flush_piece(t, err);
    if (!status && n_bytes > PIECE_BYTES)
        return t->put(t->context, data, n_bytes, err);
    if (!status && n_bytes > 0)
        memcpy(t->piece + t->piece_used, data, n_bytes);
    t->piece_used += n_bytes;
    return status;
}

static tokmap_status put_u64(transpose *t, uint64_t value, tokmap_error *err)
{
    uint8_t bytes[8];
    store_le64(bytes, value);
    return put_bytes(t, bytes, sizeof bytes, err);
}

static tokmap_status pad_to(transpose *t, uint64_t at, tokmap_error *err)
{
    static const uint8_t zeros[TOKMAP_I_META_ALIGNMENT];
    if (at < t->at || at - t->at >= sizeof zeros)
        return FAIL(err, TOKMAP_ERR_CORRUPT,
                    "%s: changed while it was read; another process changed it, or the disk failed",
                    t->w->spool.path);
    return put_bytes(t, zeros, (size_t)(at - t->at), err);
}

/* ---- What a column will be ---- */

static tokmap_status number_string(tokmap_i_string_table *strings, const tokmap_value *v,
                                   uint32_t *number, bool *fits, tokmap_error *err)
{
    const tokmap_i_string_result result =
        tokmap_i_string_table_number(strings, v->text, v->text_bytes, number);
    *fits = result == TOKMAP_I_STRING_FOUND;
    return result == TOKMAP_I_STRING_NO_MEMORY ? FAIL_MEMORY(err) : TOKMAP_OK;
}

/* A dictionary if it is smaller than the strings themselves. */
static void choose(tokmap_i_meta_column *c, const tokmap_i_string_table *strings,
                   uint64_t n_documents)
{
    const uint32_t code_bytes = strings->n_strings <= 256 ? 1 : 2;
    const uint64_t plain = 8 * (n_documents + 1) + c->text_bytes;
    const uint64_t dictionary =
        code_bytes * n_documents + 8 * ((uint64_t)strings->n_strings + 1) + strings->text.n_bytes;
    if (dictionary >= plain)
        return;
    c->type = TOKMAP_I_META_DICTIONARY;
    c->code_bytes = code_bytes;
    c->n_strings = strings->n_strings;
    c->text_bytes = strings->text.n_bytes;
}

static tokmap_status count_strings(transpose *t, uint32_t column, tokmap_error *err)
{
    tokmap_i_string_table *strings = tokmap_i_string_table_open();
    if (!strings)
        return FAIL_MEMORY(err);
    tokmap_i_meta_cursor cursor = tokmap_i_meta_cursor_at(&t->w->spool, column);
    tokmap_status status = TOKMAP_OK;
    bool fits = true;
    while (!status && fits) {
        tokmap_value v;
        uint32_t number;
        status = tokmap_i_meta_cursor_next(&cursor, &v, err);
        if (!status && v.type == TOKMAP_VALUE_STRING)
            status = number_string(strings, &v, &number, &fits, err);
    }
    if (status == TOKMAP_END)
        choose(&t->meta.columns[column], strings, t->w->n_rows);
    free(cursor.segment.data);
    tokmap_i_string_table_close(strings);
    return status < 0 ? status : TOKMAP_OK;
}

static tokmap_status describe(transpose *t, uint32_t column, tokmap_error *err)
{
    static const uint32_t types[] = {TOKMAP_I_META_NULL, TOKMAP_I_META_INT64, TOKMAP_I_META_FLOAT64,
                                     TOKMAP_I_META_STRING};
    const tokmap_i_meta_state *state = &t->w->columns[column];
    tokmap_i_meta_column *c = &t->meta.columns[column];
    *c = (tokmap_i_meta_column){
        .type = types[state->type],
        .n_nulls = state->n_nulls,
        .n_strings = state->type == TOKMAP_VALUE_STRING ? t->w->n_rows : 0,
        .text_bytes = state->text_bytes,
        .name = t->w->spool.names[column],
        .name_bytes = strlen(t->w->spool.names[column]),
    };
    return c->type == TOKMAP_I_META_STRING ? count_strings(t, column, err) : TOKMAP_OK;
}

/* ---- Parts ---- */

/* Writes what a part has for the value of document `row`. */
typedef tokmap_status use_value(transpose *t, const tokmap_i_meta_column *c, const tokmap_value *v,
                                uint64_t row, tokmap_error *err);

static tokmap_status for_each(transpose *t, uint32_t column, use_value *use, tokmap_error *err)
{
    tokmap_i_meta_cursor cursor = tokmap_i_meta_cursor_at(&t->w->spool, column);
    tokmap_status status = TOKMAP_OK;
    for (uint64_t row = 0; !status; row++) {
        tokmap_value v;
        status = tokmap_i_meta_cursor_next(&cursor, &v, err);
        if (!status)
            status = use(t, &t->meta.columns[column], &v, row, err);
    }
    free(cursor.segment.data);
    return status == TOKMAP_END ? TOKMAP_OK : status;
}

/* The bits of eight documents come into the last byte of the piece. */
static tokmap_status put_bit(transpose *t, const tokmap_i_meta_column *c, const tokmap_value *v,
                             uint64_t row, tokmap_error *err)
{
    static const uint8_t none;
    (void)c;
    const tokmap_status status = row % 8 == 0 ? put_bytes(t, &none, 1, err) : TOKMAP_OK;
    if (!status && v->type != TOKMAP_VALUE_NULL)
        t->piece[t->piece_used - 1] |= (uint8_t)(1u << row % 8);
    return status;
}

static tokmap_status put_number(transpose *t, const tokmap_i_meta_column *c, const tokmap_value *v,
                                uint64_t row, tokmap_error *err)
{
    (void)row;
    const double real = v->type == TOKMAP_VALUE_INT64 ? (double)v->integer : v->real;
    uint64_t bits = 0;
    if (v->type != TOKMAP_VALUE_NULL && c->type == TOKMAP_I_META_FLOAT64)
        memcpy(&bits, &real, sizeof bits);
    else if (v->type == TOKMAP_VALUE_INT64)
        bits = (uint64_t)v->integer;
    return put_u64(t, bits, err);
}

static tokmap_status put_code(transpose *t, const tokmap_i_meta_column *c, const tokmap_value *v,
                              uint64_t row, tokmap_error *err)
{
    (void)row;
    uint8_t bytes[2];
    uint32_t number = 0;
    bool fits;
    const tokmap_status status = v->type == TOKMAP_VALUE_STRING
                                     ? number_string(t->strings, v, &number, &fits, err)
                                     : TOKMAP_OK;
    store_le16(bytes, (uint16_t)number);
    return status ? status : put_bytes(t, bytes, c->code_bytes, err);
}

static tokmap_status put_offset(transpose *t, const tokmap_i_meta_column *c, const tokmap_value *v,
                                uint64_t row, tokmap_error *err)
{
    (void)c;
    (void)row;
    t->text_end += v->type == TOKMAP_VALUE_STRING ? v->text_bytes : 0;
    return put_u64(t, t->text_end, err);
}

static tokmap_status put_text(transpose *t, const tokmap_i_meta_column *c, const tokmap_value *v,
                              uint64_t row, tokmap_error *err)
{
    (void)c;
    (void)row;
    return v->type == TOKMAP_VALUE_STRING ? put_bytes(t, v->text, v->text_bytes, err) : TOKMAP_OK;
}

static tokmap_status put_offsets(transpose *t, uint32_t column, tokmap_error *err)
{
    t->text_end = 0;
    tokmap_status status = put_u64(t, 0, err);
    if (!status && !t->strings)
        return for_each(t, column, put_offset, err);
    for (uint32_t i = 0; !status && i < t->strings->n_strings; i++)
        status = put_u64(t, t->strings->ends[i], err);
    return status;
}

static tokmap_status put_part(transpose *t, uint32_t column, tokmap_i_meta_part part,
                              tokmap_error *err)
{
    switch (part) {
    case TOKMAP_I_META_VALIDITY:
        return for_each(t, column, put_bit, err);
    case TOKMAP_I_META_VALUES:
        return for_each(t, column, t->strings ? put_code : put_number, err);
    case TOKMAP_I_META_OFFSETS:
        return put_offsets(t, column, err);
    default:
        return t->strings ? put_bytes(t, t->strings->text.data, t->strings->text.n_bytes, err)
                          : for_each(t, column, put_text, err);
    }
}

/* The strings get their numbers while the codes are written. */
static tokmap_status put_column(transpose *t, uint32_t column, tokmap_error *err)
{
    const tokmap_i_meta_column *c = &t->meta.columns[column];
    if (c->type == TOKMAP_I_META_DICTIONARY) {
        t->strings = tokmap_i_string_table_open();
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
    tokmap_i_string_table_close(t->strings);
    t->strings = NULL;
    return status;
}

static tokmap_status put_all(transpose *t, tokmap_error *err)
{
    tokmap_status status = tokmap_i_meta_spool_flush(&t->w->spool, err);
    t->meta.n_columns = t->w->spool.n_columns;
    t->meta.n_documents = t->w->n_rows;
    for (uint32_t i = 0; !status && i < t->meta.n_columns; i++)
        status = describe(t, i, err);
    if (!status && !tokmap_i_meta_place(&t->meta))
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: the values are too large", t->w->spool.path);
    if (status)
        return status;
    uint8_t directory[TOKMAP_I_META_DIRECTORY_BYTES];
    status = put_bytes(t, directory, tokmap_i_meta_encode(&t->meta, directory), err);
    for (uint32_t i = 0; !status && i < t->meta.n_columns; i++)
        status = put_column(t, i, err);
    if (!status)
        status = pad_to(t, t->meta.section_bytes, err);
    return status ? status : flush_piece(t, err);
}

tokmap_status tokmap_i_meta_writer_put(tokmap_i_meta_writer *w, tokmap_i_meta_put *put,
                                       void *context, tokmap_error *err)
{
    transpose *t = calloc(1, sizeof *t);
    uint8_t *piece = malloc(PIECE_BYTES);
    tokmap_status status = TOKMAP_ERR_MEMORY;
    if (t && piece) {
        t->w = w;
        t->put = put;
        t->context = context;
        t->piece = piece;
        status = put_all(t, err);
    } else {
        status = FAIL_MEMORY(err);
    }
    free(piece);
    free(t);
    return status;
}
