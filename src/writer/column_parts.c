/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/column_parts.h"

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"

/* ---- The different strings of a column, numbered in the order in which they came ---- */

enum {
    TABLE_BYTES = 16 << 20, /* of text, at most */
    TABLE_SLOTS = 2 * TOKMAP_I_MAX_META_DICTIONARY
};

struct tokmap_i_string_table {
    uint32_t n_strings;
    tokmap_i_bytes text;
    uint32_t ends[TOKMAP_I_MAX_META_DICTIONARY];
    uint32_t slots[TABLE_SLOTS]; /* number + 1; 0: free */
};

static void close_table(tokmap_i_string_table *t)
{
    if (t)
        free(t->text.data);
    free(t);
}

/* Finds the number of a string, which is added if it is new. Sets *fits to false if there are too
 * many. */
static tokmap_status number_string(tokmap_i_string_table *t, const tokmap_value *v,
                                   uint32_t *number, bool *fits, tokmap_error *err)
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

/* ---- Output ---- */

static tokmap_status put_bytes(tokmap_i_column_parts *p, const void *data, size_t n_bytes,
                               tokmap_error *err)
{
    p->at += n_bytes;
    return p->put(p->context, data, n_bytes, err);
}

static tokmap_status put_u64(tokmap_i_column_parts *p, uint64_t value, tokmap_error *err)
{
    uint8_t bytes[8];
    le_put64(bytes, value);
    return put_bytes(p, bytes, sizeof bytes, err);
}

tokmap_status tokmap_i_column_parts_pad(tokmap_i_column_parts *p, uint64_t at, tokmap_error *err)
{
    static const uint8_t zeros[TOKMAP_I_META_ALIGNMENT];
    if (at < p->at || at - p->at >= sizeof zeros)
        return FAIL(err, TOKMAP_ERR_CORRUPT,
                    "%s: changed while it was read; another process changed it, or the disk failed",
                    p->values.path);
    return put_bytes(p, zeros, (size_t)(at - p->at), err);
}

/* ---- What a column will be ---- */

tokmap_status tokmap_i_choose_dictionary(tokmap_i_meta_column *c, const tokmap_i_values *values,
                                         tokmap_error *err)
{
    tokmap_i_string_table *strings = calloc(1, sizeof *strings);
    if (!strings)
        return FAIL_MEMORY(err);
    tokmap_status status = TOKMAP_OK;
    bool fits = true;
    values->rewind(values->context);
    while (!status && fits) {
        tokmap_value v;
        uint32_t number;
        status = values->next(values->context, &v, err);
        if (!status && v.type == TOKMAP_VALUE_STRING)
            status = number_string(strings, &v, &number, &fits, err);
    }
    const uint64_t n = values->n_documents;
    const uint32_t code_bytes = strings->n_strings <= 256 ? 1 : 2;
    const uint64_t dictionary =
        code_bytes * n + 8 * ((uint64_t)strings->n_strings + 1) + strings->text.n_bytes;
    if (status == TOKMAP_END && dictionary < 8 * (n + 1) + c->text_bytes) {
        c->type = TOKMAP_I_META_DICTIONARY;
        c->code_bytes = code_bytes;
        c->n_strings = strings->n_strings;
        c->text_bytes = strings->text.n_bytes;
    }
    close_table(strings);
    return status < 0 ? status : TOKMAP_OK;
}

/* ---- Parts ---- */

/* Encodes a number, or the 0 of a null, in number_bytes of the column. */
static void encode_number(const tokmap_i_meta_column *c, const tokmap_value *v, uint8_t bytes[8])
{
    const double real = v->type == TOKMAP_VALUE_INT64 ? (double)v->integer : v->real;
    const float single = (float)real;
    uint32_t half;
    uint64_t bits = v->type == TOKMAP_VALUE_INT64 ? (uint64_t)v->integer : 0;
    memcpy(&half, &single, sizeof half);
    if (v->type != TOKMAP_VALUE_NULL && c->type == TOKMAP_I_META_FLOAT64)
        memcpy(&bits, &real, sizeof bits);
    if (v->type != TOKMAP_VALUE_NULL && c->type == TOKMAP_I_META_FLOAT64 && c->number_bytes == 4)
        bits = half;
    le_put64(bytes, bits);
}

/* Writes what a part has for a value. */
static tokmap_status put_value(tokmap_i_column_parts *p, tokmap_i_meta_part part,
                               const tokmap_value *v, tokmap_error *err)
{
    const tokmap_i_meta_column *c = p->column;
    const bool is_string = v->type == TOKMAP_VALUE_STRING, is_null = v->type == TOKMAP_VALUE_NULL;
    uint8_t bytes[8] = {0};
    uint32_t number = 0;
    bool fits;
    tokmap_status status = TOKMAP_OK;
    switch (part) {
    case TOKMAP_I_META_VALIDITY: /* a byte has the bits of eight documents */
        bytes[0] = (uint8_t)(p->validity | !is_null << p->row % 8);
        p->validity = p->row % 8 == 7 ? 0 : bytes[0];
        return p->row % 8 == 7 || p->row + 1 == p->values.n_documents ? put_bytes(p, bytes, 1, err)
                                                                      : TOKMAP_OK;
    case TOKMAP_I_META_VALUES:
        if (p->strings) {
            if (is_string)
                status = number_string(p->strings, v, &number, &fits, err);
            le_put16(bytes, (uint16_t)number);
            return status ? status : put_bytes(p, bytes, c->code_bytes, err);
        }
        encode_number(c, v, bytes);
        return put_bytes(p, bytes, c->number_bytes, err);
    case TOKMAP_I_META_OFFSETS:
        p->text_end += is_string ? v->text_bytes : 0;
        return put_u64(p, p->text_end, err);
    default:
        return is_string ? put_bytes(p, v->text, v->text_bytes, err) : TOKMAP_OK;
    }
}

tokmap_status tokmap_i_column_parts_put(tokmap_i_column_parts *p, tokmap_i_meta_part part,
                                        tokmap_error *err)
{
    const bool of_table = part == TOKMAP_I_META_OFFSETS || part == TOKMAP_I_META_TEXT;
    tokmap_status status = TOKMAP_OK;
    if (p->column->type == TOKMAP_I_META_DICTIONARY && !p->strings) {
        p->strings = calloc(1, sizeof *p->strings);
        if (!p->strings)
            return FAIL_MEMORY(err);
    }
    p->text_end = p->validity = 0;
    if (part == TOKMAP_I_META_OFFSETS)
        status = put_u64(p, 0, err);
    if (p->strings && of_table) {
        if (part == TOKMAP_I_META_TEXT)
            return put_bytes(p, p->strings->text.data, p->strings->text.n_bytes, err);
        for (uint32_t i = 0; !status && i < p->strings->n_strings; i++)
            status = put_u64(p, p->strings->ends[i], err);
        return status;
    }
    p->values.rewind(p->values.context);
    for (p->row = 0; !status; p->row++) {
        tokmap_value v;
        status = p->values.next(p->values.context, &v, err);
        if (!status)
            status = put_value(p, part, &v, err);
    }
    return status == TOKMAP_END ? TOKMAP_OK : status;
}

void tokmap_i_column_parts_end(tokmap_i_column_parts *p)
{
    close_table(p->strings);
    p->strings = NULL;
}
