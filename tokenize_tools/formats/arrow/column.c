/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/arrow/column.h"

#include <inttypes.h>

#include "base/le.h"

/* ---- Sizes ---- */

enum {
    VIEW_BYTES = 16,
    INLINE_BYTES = 12 /* the longest text that is stored in its view */
};

/* Returns the size, in bits, of an element of the buffer after the validity. */
static unsigned element_bits(const arrow_field *f)
{
    if (f->has_dictionary)
        return f->index_bits;
    if (f->type == ARROW_BOOL)
        return 1;
    if (arrow_is_view(f->type))
        return VIEW_BYTES * 8;
    if (arrow_is_text(f))
        return f->type == ARROW_LARGE_BINARY || f->type == ARROW_LARGE_UTF8 ? 64 : 32;
    return f->bits;
}

bool arrow_has_offsets(const arrow_field *f)
{
    return !f->has_dictionary && arrow_is_text(f) && !arrow_is_view(f->type);
}

static const arrow_bytes *own_buffer(const arrow_column *c, size_t n)
{
    return &c->buffers[c->field->depth + n];
}

bool arrow_check_column(const arrow_column *c, failure *err)
{
    const arrow_field *f = c->field;
    if (!arrow_is_value(f))
        return fail(err, "a column has the type %s, which cannot be read", arrow_type_name(f));
    if (c->n_buffers < f->depth + f->n_buffers || c->n_rows > UINT64_MAX / 256)
        return fail(err, "damaged: a column without its buffers");
    for (size_t i = 0; i <= f->depth && i < c->n_buffers; i++) {
        if (c->buffers[i].n_bytes > 0 && c->buffers[i].n_bytes < (c->n_rows + 7) / 8)
            return fail(err, "damaged: the validity of a column is too short");
    }
    if (f->n_buffers == 0 || c->n_rows == 0)
        return true;
    const unsigned bits = element_bits(f);
    const uint64_t n_elements = c->n_rows + arrow_has_offsets(f);
    if (bits != 1 && bits != 8 && bits != 16 && bits != 32 && bits != 64 && bits != 128 &&
        bits != 256)
        return fail(err, "damaged: a column of numbers of %u bits", bits);
    return own_buffer(c, 1)->n_bytes >= (n_elements * bits + 7) / 8 ||
           fail(err, "damaged: the values of a column are too short");
}

/* ---- Values ---- */

static bool is_set(const uint8_t *bits, uint64_t index)
{
    return bits[index / 8] >> (index % 8) & 1;
}

bool arrow_is_null(const arrow_column *c, uint64_t row)
{
    if (c->field->n_buffers == 0)
        return true;
    for (size_t i = 0; i <= c->field->depth; i++) {
        if (c->buffers[i].n_bytes > 0 && !is_set(c->buffers[i].bytes, row))
            return true;
    }
    return false;
}

static int64_t read_integer(const uint8_t *p, uint64_t index, unsigned bits, bool is_unsigned)
{
    const int64_t n = le_get_signed(p + index * (bits / 8), bits / 8);
    return is_unsigned && bits < 64 ? n & (INT64_MAX >> (63 - bits)) : n;
}

bool arrow_find_text(const arrow_column *c, uint64_t row, arrow_extent *text, failure *err)
{
    const uint8_t *offsets = own_buffer(c, 1)->bytes;
    const unsigned bits = element_bits(c->field);
    const int64_t from = read_integer(offsets, row, bits, false);
    const int64_t to = read_integer(offsets, row + 1, bits, false);
    const uint64_t text_bytes = c->without_text ? c->text_bytes : own_buffer(c, 2)->n_bytes;
    if (from < 0 || to < from || (uint64_t)to > text_bytes)
        return fail(err, "damaged: the text is outside its buffer");
    *text = (arrow_extent){.offset = (uint64_t)from, .n_bytes = (uint64_t)(to - from)};
    return true;
}

/* Reads a view: the length of a text, then the text if it is short; else its first 4 bytes, its
 * buffer, and its offset in the buffer. */
static bool read_view(const arrow_column *c, uint64_t row, tokmap_value *v, failure *err)
{
    const uint8_t *view = own_buffer(c, 1)->bytes + row * VIEW_BYTES;
    const size_t n_bytes = le_get32(view), from = le_get32(view + 12);
    const uint64_t n = le_get32(view + 8);
    v->text = (const char *)view + 4;
    v->text_bytes = n_bytes;
    if (n_bytes <= INLINE_BYTES)
        return true;
    if (n >= c->n_buffers - c->field->depth - 2 || n_bytes > INT32_MAX || from > INT32_MAX)
        return fail(err, "damaged: a view is invalid");
    const arrow_bytes *buffer = own_buffer(c, 2 + (size_t)n);
    if (from > buffer->n_bytes || n_bytes > buffer->n_bytes - from)
        return fail(err, "damaged: the text is outside its buffer");
    v->text = (const char *)buffer->bytes + from;
    return true;
}

static bool read_indexed(const arrow_column *c, uint64_t row,
                         char decimal[NUMBER_DECIMAL_TEXT_BYTES], tokmap_value *v, failure *err)
{
    const arrow_dictionary *d = c->dictionary;
    if (!d)
        return fail(err, "uses the dictionary %" PRId64 ", which does not come before it",
                    c->field->dictionary_id);
    const int64_t index =
        read_integer(own_buffer(c, 1)->bytes, row, c->field->index_bits, c->field->index_unsigned);
    if (index < 0 || (uint64_t)index >= d->n_values)
        return fail(err, "damaged: the index %" PRId64 " into a dictionary of %" PRIu64 " values",
                    index, d->n_values);
    size_t from = 0, to = d->n_parts; /* the part is in [from, to) */
    while (to - from > 1) {
        const size_t middle = from + (to - from) / 2;
        if (d->parts[middle].first <= (uint64_t)index)
            from = middle;
        else
            to = middle;
    }
    return arrow_read_value(&d->parts[from], (uint64_t)index - d->parts[from].first, decimal, v,
                            err);
}

static bool read_text(const arrow_column *c, uint64_t row, tokmap_value *v, failure *err)
{
    arrow_extent text = {0};
    v->type = TOKMAP_VALUE_STRING;
    if (arrow_is_view(c->field->type))
        return read_view(c, row, v, err);
    if (!arrow_find_text(c, row, &text, err))
        return false;
    v->text_bytes = (size_t)text.n_bytes;
    v->text = text.n_bytes ? (const char *)own_buffer(c, 2)->bytes + text.offset : "";
    return true;
}

bool arrow_read_value(const arrow_column *c, uint64_t row, char decimal[NUMBER_DECIMAL_TEXT_BYTES],
                      tokmap_value *v, failure *err)
{
    const arrow_field *f = c->field;
    *v = (tokmap_value){.type = TOKMAP_VALUE_NULL};
    if (arrow_is_null(c, row))
        return true;
    if (f->has_dictionary)
        return read_indexed(c, row, decimal, v, err);
    if (arrow_is_text(f))
        return read_text(c, row, v, err);
    const uint8_t *values = own_buffer(c, 1)->bytes;
    if (f->type == ARROW_FLOAT) {
        v->type = TOKMAP_VALUE_FLOAT64;
        v->real = le_get_real(values + row * (f->bits / 8), f->bits / 8);
        return true;
    }
    if (f->type == ARROW_DECIMAL) {
        *v = number_of_decimal(values + row * (f->bits / 8), f->bits / 8, f->scale, decimal);
        return true;
    }
    v->type = TOKMAP_VALUE_INT64;
    v->text_bytes = f->time;
    v->integer = f->type == ARROW_BOOL ? is_set(values, row)
                                       : read_integer(values, row, f->bits, f->is_unsigned);
    if (f->is_unsigned)
        *v = number_of_unsigned((uint64_t)v->integer);
    return true;
}
