/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_column.h - the values of one column of a Parquet file, in the order of the rows.
 *
 * One page is in memory at a time, with the dictionary of its column chunk. */
#pragma once

#include "formats/parquet/parquet_file.h"
#include "formats/parquet/values.h"

typedef struct parquet_column_options {
    uint64_t memory_bytes;  /* a page, with its dictionary, may take twice this */
    uint64_t memory_option; /* the value of --memory that it follows from, for a message */
    /* Called before so much more memory is taken; it may wait. False: reading fails with ECANCELED.
     * NULL: it is not called. */
    bool (*grow)(void *context, uint64_t n_bytes);
    void *context;
} parquet_column_options;

typedef struct parquet_column {
    /* These are of the last value; NULL before the first. */
    const parquet_page_place *page;
    /* The sum of the checksums of all pages that were begun so far, with dictionaries; each counts
     * from the first of its values that was returned. */
    uint64_t checksum;
    uint64_t dictionary_checksum; /* the part of it that is the dictionary of the current page */
    uint32_t repetition, definition;
    uint64_t n_values; /* of the column, up to it */
} parquet_column;

/* The file and the column must stay valid. Begins at the first of the rows, which of a list are
 * values, as parquet_values_of_group counts them; only pages with some of
 * them are read, but their last page may give values after them. */
parquet_column *parquet_column_open(const parquet_file *f, const parquet_element *column,
                                    parquet_rows rows, const parquet_column_options *options,
                                    failure *err);
void parquet_column_close(parquet_column *c);
/* 1: the next value, valid until the next call; 0: the end; -1: an error. */
int parquet_column_next(parquet_column *c, tokmap_value *value, failure *err);
