/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_column.h - the values of one column of a Parquet file, in the order of the rows.
 *
 * The page is the unit of work: threads read, check and decompress pages ahead, as many as fit into
 * memory; without threads, the caller does it page by page. The values, and errors with their
 * place, are the same with any number of threads and any memory, except that a page needs enough
 * memory for itself and the dictionary of its column chunk. */
#pragma once

#include "formats/parquet/parquet_file.h"
#include "formats/parquet/values.h"

typedef struct parquet_column_options {
    unsigned n_threads;     /* 0: none */
    uint64_t memory_bytes;  /* for pages; one alone, with its dictionary, may take twice this */
    uint64_t memory_option; /* the value of --memory that it follows from, for a message */
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
    uint64_t n_large;  /* at the end: pages larger than the memory, which were read alone */
} parquet_column;

/* The file and the column must stay valid. Begins at the first of the rows, which of a list are
 * values, as parquet_values_of_group counts them; only pages with some of
 * them are read, but their last page may give values after them. Threads start with the first
 * value. */
parquet_column *parquet_column_open(const parquet_file *f, const parquet_element *column,
                                    parquet_rows rows, const parquet_column_options *options,
                                    failure *err);
void parquet_column_close(parquet_column *c);
/* 1: the next value, valid until the next call; 0: the end; -1: an error. */
int parquet_column_next(parquet_column *c, tokmap_value *value, failure *err);
