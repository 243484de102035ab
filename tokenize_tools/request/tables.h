/* SPDX-License-Identifier: Apache-2.0 */
/* tables.h - what the columns of all CSV and TSV inputs are: their names are the same, and a column
 * is of strings if it has a string in the look at one of them. */
#pragma once

#include "formats/reader.h"
#include "request/options.h"

typedef struct table_columns { /* starts as {0} */
    size_t n, n_others;        /* inputs that are tables, and others that are not empty */
    const char *first, *other; /* the first table, and one whose columns have other names */
    uint64_t header, text_fields, number_fields;
    const char *text_in[FIELD_LIST_MAX]; /* for each of text_fields, the first such table */
} table_columns;

/* Adds an input that was looked at. The name must stay valid. */
void table_columns_add(table_columns *t, const char *name, corpus_format format,
                       const reader_summary *summary);
/* Refuses what does not fit; then the options say which fields are strings. all_seen: every input
 * was looked at. Returns an exit code, and prints the error. */
int table_columns_settle(const table_columns *t, bool all_seen, pack_options *options);
/* Refuses what does not fit to the options, which have the fields that are strings. */
int table_columns_check_again(const table_columns *t, const pack_options *options);
