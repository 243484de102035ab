/* SPDX-License-Identifier: Apache-2.0 */
/* values.h - the values of documents: the columns of a dataset and the late columns beside it, and
 * the values as text. Functions that return int return CLI_OK, or an exit code with a message. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tokmap_writer.h"

/* Finds the column of the index of this name; false if there is none. */
bool values_find_column(const tokmap_dataset *ds, const char *name, size_t name_bytes,
                        tokmap_meta_column *column);
/* Returns "int64", "float64", "string", or "null" for a column without values. */
const char *values_type_name(tokmap_value_type type);

/* Prints a line about a column. */
void values_print_column(const tokmap_meta_column *column, bool json);
/* Prints the line about a late column. */
int values_print_late(const tokmap_dataset *ds, const char *name, bool json);
/* All columns of a dataset: those of the index, then the late ones, with `verify` compared with
 * their checksums. Starts as {0}. */
typedef struct value_columns {
    tokmap_column **columns;
    tokmap_meta_column *info; /* of each */
    size_t n;
} value_columns;
int values_open_all(value_columns *v, const tokmap_dataset *ds, bool verify);
void values_close_all(value_columns *v);
/* Prints the values of a document as a JSON object. False if one is damaged. NaN and infinities,
 * which JSON does not have, become the strings "NaN", "Infinity" and "-Infinity". */
bool values_print_row(FILE *out, const value_columns *v, uint64_t document);

/* For tables of integers and strings. */
bool values_is_same(const tokmap_value *a, const tokmap_value *b);
uint64_t values_hash(const tokmap_value *v);

/* Gives the values of a column to a writer, whose documents from number `first` on are those of the
 * column. The n_null documents of the list, in order, get none. */
int values_copy(const tokmap_column *from, tokmap_column_writer *to, uint64_t first,
                uint64_t n_documents, const uint64_t *null, uint64_t n_null);

/* Chooses the documents for which an expression holds. *kept: a bit for each document, bit d % 64
 * of kept[d / 64]; the caller frees it. */
int values_select(const tokmap_dataset *ds, const char *where, uint64_t **kept);
static inline bool values_is_kept(const uint64_t *kept, uint64_t document)
{
    return kept[document / 64] >> document % 64 & 1;
}
