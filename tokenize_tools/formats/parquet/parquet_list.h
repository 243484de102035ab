/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_list.h - the lists of whole numbers or texts of one column of a Parquet file, row by row.
 * A list may go on over pages, but not over row groups. */
#pragma once

#include "formats/parquet/parquet_column.h"

typedef struct parquet_list {
    /* To be set, and all else to 0. */
    parquet_column *column; /* its page and checksum become those of the last list */
    uint8_t definition;     /* level of an element that is there */
    uint64_t row, first;    /* of the next list, and of the first one that is wanted */
    size_t most;            /* bytes of a list that are kept */
    uint64_t seen_bytes;    /* of the file: an earlier run read its pages up to there; or 0 */

    uint64_t seen;  /* the checksum of the column at the end of these */
    uint8_t *bytes; /* freed by the owner */
    size_t n_bytes, capacity;
    bool is_long; /* the last list has more */
    bool begun;
    int ahead; /* what reading the first value of the next list gave, which is: */
    failure err;
    tokmap_value next;
    uint32_t next_definition;
    parquet_page_place page, next_page;
    uint64_t next_checksum;
} parquet_list;

/* The values of the column that the row groups with these rows have; *n_before: rows before
 * rows.begin in its row group. Of a column without lists: the rows, and 0. */
parquet_rows parquet_list_values(const parquet_footer *f, const parquet_element *column,
                                 parquet_rows rows, uint64_t *n_before);

/* 1: the next list, as a string that is valid until the next call, or null; 0: the end; -1: an
 * error. The string has an int64_t for each element; if that is a text, its length, and the text
 * follows. */
int parquet_list_next(parquet_list *l, tokmap_value *value, failure *err);
