/* SPDX-License-Identifier: Apache-2.0 */
/* column_parts.h - writes the parts of a column of values, one after another, from values that come
 * in the order of their documents. docs/FORMAT.md section 3.7. */
#pragma once

#include "format/meta_section.h"
#include "tokmap.h"

/* Values that can be read several times, from the first document on. */
typedef struct tokmap_i_values {
    const char *path; /* of the file that holds them, for messages */
    uint64_t n_documents;
    void *context;
    void (*rewind)(void *context);
    /* Reads the next value, valid until the next call. TOKMAP_END after the last one. */
    tokmap_status (*next)(void *context, tokmap_value *out, tokmap_error *err);
} tokmap_i_values;

typedef struct tokmap_i_string_table tokmap_i_string_table;

/* A column that is being written. Starts with the first members; all others are 0. */
typedef struct tokmap_i_column_parts {
    tokmap_i_values values;
    const tokmap_i_meta_column *column; /* placed */
    void *context;
    tokmap_status (*put)(void *context, const void *data, size_t n_bytes, tokmap_error *err);
    uint64_t at; /* how many bytes were put before, counted as in column->at */

    uint64_t text_end;              /* bytes of the strings so far */
    uint64_t row;                   /* the document whose value is written */
    uint8_t validity;               /* bits of the documents since the last multiple of eight */
    tokmap_i_string_table *strings; /* of a dictionary */
} tokmap_i_column_parts;

/* Makes the column a dictionary if that is smaller than the strings themselves. It is of type
 * string, and not placed yet. */
tokmap_status tokmap_i_choose_dictionary(tokmap_i_meta_column *c, const tokmap_i_values *values,
                                         tokmap_error *err);
/* Writes a part that the column has. The parts are written in their order, each once: the strings
 * of a dictionary get their numbers while the codes are written. */
tokmap_status tokmap_i_column_parts_put(tokmap_i_column_parts *p, tokmap_i_meta_part part,
                                        tokmap_error *err);
/* Writes zeros up to byte `at`. */
tokmap_status tokmap_i_column_parts_pad(tokmap_i_column_parts *p, uint64_t at, tokmap_error *err);
void tokmap_i_column_parts_end(tokmap_i_column_parts *p);
