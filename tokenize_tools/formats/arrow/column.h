/* SPDX-License-Identifier: Apache-2.0 */
/* column.h - the values of one column of a record batch, from its plain buffers. Pure. */
#pragma once

#include "formats/arrow/schema.h"
#include "base/number.h"
#include "tokmap.h"

/* The values of a dictionary, in parts: each delta adds one. */
typedef struct arrow_dictionary arrow_dictionary;

typedef struct arrow_column {
    const arrow_field *field;
    uint64_t n_rows;
    arrow_bytes *buffers; /* plain, in the order of arrow_find_buffers */
    size_t n_buffers;
    const arrow_dictionary *dictionary; /* NULL: none, or not read yet */
    /* Whether the last buffer, with the text of strings, is not in memory; and its size. */
    bool without_text;
    uint64_t text_bytes;
    uint64_t first; /* in a part of a dictionary: index of its first value */
} arrow_column;

struct arrow_dictionary {
    arrow_column *parts;
    size_t n_parts;
    uint64_t n_values;
};

/* Whether the values are strings, stored one after another, with offsets to them. */
bool arrow_has_offsets(const arrow_field *f);
/* Checks that all buffers are large enough for n_rows rows. */
bool arrow_check_column(const arrow_column *c, failure *err);
bool arrow_is_null(const arrow_column *c, uint64_t row);
/* Reads a value. Its text is valid as long as the buffers, or is in `decimal`. */
bool arrow_read_value(const arrow_column *c, uint64_t row, char decimal[NUMBER_DECIMAL_TEXT_BYTES],
                      tokmap_value *v, failure *err);
/* Finds the text of a row that is not null in the last buffer, of a column `without_text`. */
bool arrow_find_text(const arrow_column *c, uint64_t row, arrow_extent *text, failure *err);
