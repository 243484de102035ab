/* SPDX-License-Identifier: Apache-2.0 */
/* arrow_columns.h - the columns of an Arrow input that are wanted, one record batch at a time, and
 * their dictionaries; for arrow_reader.c.
 *
 * The buffers of the wanted columns are held in memory; all others are skipped. Not held is the
 * text itself, if it is one string after the other and no other wanted buffer comes after it. */
#pragma once

#include "formats/arrow/column.h"
#include "formats/options.h"
#include "input/window.h"

typedef struct arrow_columns arrow_columns;

/* Takes n_bytes of the input; dst may be NULL. The end of the input is an error. */
bool arrow_take(window *w, void *dst, uint64_t n_bytes, failure *err);

arrow_columns *arrow_columns_new(const reader_options *options, const arrow_message *schema,
                                 failure *err);
void arrow_columns_free(arrow_columns *c);
/* Bits of the fields that have no column. */
uint64_t arrow_columns_lacking(const arrow_columns *c);
/* Says which columns there are, for such a field; NULL for all others. */
const char *arrow_columns_why_lacking(const arrow_columns *c, size_t field);
/* Returns the scale of a field of decimals, or 0. */
int32_t arrow_columns_scale(const arrow_columns *c, size_t field);
/* For reader_list_fields, while the message of the schema is valid. */
bool arrow_columns_list(const arrow_columns *c, field_list *fields, failure *err);
/* Reads what is wanted of a record batch or a dictionary whose body begins in the window. */
bool arrow_columns_read(arrow_columns *c, arrow_kind kind, const arrow_batch *b, window *w,
                        failure *err);

/* ---- The current record batch ---- */

/* The values of options->fields; those that do not come from columns stay as they are. */
bool arrow_columns_values(arrow_columns *c, uint64_t row, tokmap_value *values, failure *err);

typedef struct arrow_text {
    bool is_null;
    const uint8_t *bytes; /* NULL: take n_bytes from the body */
    uint64_t n_bytes;
} arrow_text;

/* Rows must be asked for in ascending order. The text before it is skipped in the body. */
bool arrow_columns_text(arrow_columns *c, uint64_t row, arrow_text *text, failure *err);
bool arrow_columns_take(arrow_columns *c, uint8_t *dst, uint64_t n_bytes, failure *err);
