/* SPDX-License-Identifier: Apache-2.0 */
/* meta_section.h - the section of values of documents: a directory of columns, and their parts.
 *
 * Pure: no files, no allocation. docs/FORMAT.md section 3.7. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format_limits.h"
#include "tokmap.h"

enum {
    TOKMAP_I_META_HEAD_BYTES = 16,
    TOKMAP_I_META_ENTRY_BYTES = 48,
    TOKMAP_I_META_ALIGNMENT = 64,
    TOKMAP_I_META_DIRECTORY_BYTES = /* at most this many */
        TOKMAP_I_META_HEAD_BYTES +
        TOKMAP_I_MAX_META_COLUMNS * (TOKMAP_I_META_ENTRY_BYTES + TOKMAP_I_MAX_META_NAME)
};

typedef enum tokmap_i_meta_type {
    TOKMAP_I_META_NULL = TOKMAP_VALUE_NULL,
    TOKMAP_I_META_INT64 = TOKMAP_VALUE_INT64,
    TOKMAP_I_META_FLOAT64 = TOKMAP_VALUE_FLOAT64,
    TOKMAP_I_META_STRING = TOKMAP_VALUE_STRING,
    TOKMAP_I_META_DICTIONARY = 4
} tokmap_i_meta_type;

/* The parts of a column, in file order. */
typedef enum tokmap_i_meta_part {
    TOKMAP_I_META_VALIDITY,
    TOKMAP_I_META_VALUES, /* numbers or codes */
    TOKMAP_I_META_OFFSETS,
    TOKMAP_I_META_TEXT,
    TOKMAP_I_META_PARTS
} tokmap_i_meta_part;

/* A column, as its entry describes it, and where its parts are. */
typedef struct tokmap_i_meta_column {
    uint32_t type; /* tokmap_i_meta_type */
    uint32_t code_bytes;
    uint32_t number_bytes; /* of an int64 or float64: 8 in this section; else 0 */
    uint64_t n_nulls, n_strings, text_bytes;
    const char *name; /* in the directory */
    size_t name_bytes;
    bool has[TOKMAP_I_META_PARTS];
    uint64_t at[TOKMAP_I_META_PARTS]; /* counted from the start of the section */
    uint64_t n_bytes[TOKMAP_I_META_PARTS];
} tokmap_i_meta_column;

typedef struct tokmap_i_meta {
    uint32_t n_columns;
    uint64_t n_documents;
    uint64_t directory_bytes; /* including head and names */
    uint64_t section_bytes;
    const uint8_t *section; /* set by the caller after decoding */
    tokmap_i_meta_column columns[TOKMAP_I_MAX_META_COLUMNS];
} tokmap_i_meta;

/* Whether a column can have this name. */
bool tokmap_i_meta_name_valid(const char *name, size_t n_bytes);

/* Returns the size of a number of this type in the section. */
static inline uint32_t tokmap_i_meta_number_bytes(uint32_t type)
{
    return type == TOKMAP_I_META_INT64 || type == TOKMAP_I_META_FLOAT64 ? 8 : 0;
}
/* Whether type, sizes and counts of a column go together. */
bool tokmap_i_meta_column_fits(const tokmap_i_meta_column *c, uint64_t n_documents);
/* Computes where the parts of a column are behind byte *end, and moves *end behind the last one.
 * Returns false if the column would be too large. */
bool tokmap_i_meta_place_column(tokmap_i_meta_column *c, uint64_t n_documents, uint64_t *end);

/* Returns the size of the directory that begins with these 16 bytes; 0 if it cannot be one. */
uint64_t tokmap_i_meta_directory_bytes(const uint8_t *head);
/* Decodes a whole directory. The caller has set n_documents and section_bytes. Names point into
 * `bytes`. Returns what is wrong; NULL: nothing. */
const char *tokmap_i_meta_decode(const uint8_t *bytes, tokmap_i_meta *meta);

/* Computes where the parts are, from type, counts and names of the columns, and sets section_bytes.
 * Returns false if the section would be too large. */
bool tokmap_i_meta_place(tokmap_i_meta *meta);
/* Encodes the directory of columns that have been placed; returns its size. */
size_t tokmap_i_meta_encode(const tokmap_i_meta *meta, uint8_t *bytes);

/* Returns the value of a document. column and document are in range. TOKMAP_ERR_CORRUPT: it would
 * be outside its part. */
tokmap_status tokmap_i_meta_get(const tokmap_i_meta *meta, uint32_t column, uint64_t document,
                                tokmap_value *out);
/* Returns string number `index` of a column of strings, or of a dictionary. The errors are those of
 * tokmap_i_meta_get. */
tokmap_status tokmap_i_meta_get_string(const tokmap_i_meta *meta, uint32_t column, uint64_t index,
                                       tokmap_value *out);
/* Returns the type that users see. */
tokmap_value_type tokmap_i_meta_value_type(const tokmap_i_meta_column *column);
