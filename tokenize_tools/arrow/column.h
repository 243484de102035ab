/* SPDX-License-Identifier: Apache-2.0 */
/* column.h - the values of one column of a record batch, from its plain buffers. Pure. */
#pragma once

#include "arrow/schema.h"
#include "base/number.h"
#include "tokmap.h"

/* The values of a dictionary: parts that are added to it one after the other. */
typedef struct arrow_dictionary arrow_dictionary;

typedef struct arrow_column {
    const arrow_field *field;
    uint64_t n_rows;
    arrow_bytes *buffers; /* plain, in the order of arrow_find_buffers */
    size_t n_buffers;
    const arrow_dictionary *dictionary; /* if the field has one; NULL: it has not been read yet */
    /* The last buffer, of a string that is not a view, is not in memory; this is its size. */
    bool without_text;
    uint64_t text_bytes;
    uint64_t first; /* of a part of a dictionary: the number of its first value */
} arrow_column;

struct arrow_dictionary {
    arrow_column *parts;
    size_t n_parts;
    uint64_t n_values;
};

/* Whether its values are strings one after the other, with offsets to them. */
bool arrow_has_offsets(const arrow_field *f);
/* Checks the sizes of all buffers, so that rows below n_rows can be read. */
bool arrow_check_column(const arrow_column *c, failure *err);
bool arrow_is_null(const arrow_column *c, uint64_t row);
/* Reads a value; the text stays valid as long as the buffers, that of a decimal is in `decimal`. */
bool arrow_read_value(const arrow_column *c, uint64_t row, char decimal[NUMBER_DECIMAL_TEXT_BYTES],
                      tokmap_value *v, failure *err);
/* The text of a row that is not null, of a column `without_text`: where it is in that buffer. */
bool arrow_find_text(const arrow_column *c, uint64_t row, arrow_extent *text, failure *err);
