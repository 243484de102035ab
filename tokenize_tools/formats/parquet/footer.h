/* SPDX-License-Identifier: Apache-2.0 */
/* footer.h - the footer of a Parquet file: its columns, and where their pages are.
 *
 * A file is "PAR1", pages, the footer, the footer's size in 4 bytes, and "PAR1" again. Each row
 * group has one chunk for each column: an optional dictionary page, then data pages.
 *
 * Columns are the leaves of a tree; the dotted path of a leaf names it ("meta.score"). Memory is
 * bounded by the size of the footer: 16 bytes for each of its bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/moment.h"

enum {
    PARQUET_HEAD_BYTES = 4,
    PARQUET_TAIL_BYTES = 8
};
#define PARQUET_MAX_FOOTER_BYTES ((uint64_t)256 << 20)

typedef enum parquet_type { /* how values are stored */
    PARQUET_BOOLEAN,
    PARQUET_INT32,
    PARQUET_INT64,
    PARQUET_INT96,
    PARQUET_FLOAT,
    PARQUET_DOUBLE,
    PARQUET_BYTE_ARRAY,
    PARQUET_FIXED_BYTES
} parquet_type;

typedef enum parquet_kind { /* what values mean, where reading them depends on it */
    PARQUET_PLAIN,          /* signed numbers, booleans, bytes */
    PARQUET_TIME,           /* dates, times and timestamps, stored as numbers */
    PARQUET_UNSIGNED,
    PARQUET_TEXT,
    PARQUET_DECIMAL,
    PARQUET_NULL, /* all values are null */
    PARQUET_OTHER /* interval, BSON, half floats and the like */
} parquet_kind;

typedef struct parquet_element { /* a column or a group of columns */
    const uint8_t *name;
    uint32_t name_bytes;
    uint32_t parent; /* index; element 0 is the root */
    uint32_t leaf;   /* if is_leaf: index among all columns */
    bool is_leaf;
    uint8_t depth, max_definition, max_repetition;
    parquet_type type;
    parquet_kind kind;
    uint32_t fixed_bytes; /* size of a decimal stored as FIXED_BYTES */
    int32_t scale;        /* of a decimal */
    time_unit time;       /* of dates and timestamps */
} parquet_element;

typedef struct parquet_chunk {
    uint64_t offset;                /* of its first page */
    uint64_t first_value, n_values; /* of the column */
    uint64_t stored_bytes;
    uint32_t encodings; /* bit N is set if a page has encoding N */
    uint8_t codec;
    bool encrypted, external; /* external: in another file */
    bool all_null;            /* according to its statistics */
} parquet_chunk;

typedef struct parquet_row_group {
    uint64_t first_row, n_rows;
} parquet_row_group;

typedef struct parquet_footer {
    uint64_t n_rows;
    parquet_element *elements;
    size_t n_elements, n_leaves;
    parquet_row_group *groups;
    parquet_chunk *chunks; /* n_leaves for each row group */
    size_t n_groups;
} parquet_footer;

/* The reason that functions of this folder return when memory runs out: compare the pointer. */
extern const char parquet_no_memory[];

/* Checks the first 4 and the last 8 bytes of a file, and reads the size of the footer, which ends
 * where the last 8 bytes begin. False: *err says why. */
bool parquet_find_footer(const uint8_t *head, const uint8_t *tail, uint64_t file_bytes,
                         uint32_t *footer_bytes, failure *err);
/* Reads the footer, whose bytes must stay valid as long as *f. If it fails, it frees *f. */
bool parquet_footer_read(parquet_footer *f, const uint8_t *bytes, size_t n_bytes,
                         uint64_t file_bytes, failure *err);
void parquet_footer_free(parquet_footer *f);
/* Returns the offset at which the last chunk ends. */
uint64_t parquet_footer_pages_end(const parquet_footer *f);

const parquet_chunk *parquet_chunk_of(const parquet_footer *f, size_t group,
                                      const parquet_element *column);

/* ---- Columns ---- */

/* Whether all values of the column are null, by its type or by the statistics of all row groups. */
bool parquet_is_null(const parquet_footer *f, const parquet_element *column);
/* Whether it is a column of numbers, booleans or strings, without lists. */
bool parquet_is_value(const parquet_element *e);
/* Finds the column with this path, if its values can be the text of documents: strings, or all
 * null. NULL: *err says why, and lists the columns. */
const parquet_element *parquet_text_column(const parquet_footer *f, const char *path, failure *err);
/* The same as parquet_text_column, but finds a column of numbers, booleans or strings. */
const parquet_element *parquet_value_column(const parquet_footer *f, const char *path,
                                            failure *err);
/* Finds the column with the elements of the list with this path. If `member` is NULL, they must be
 * numbers or booleans; else they must be groups of a string "text" and a boolean "train", of which
 * `member` names the column to return. Any other list is an error. Sets *definition to the
 * definition level of an element that is not missing. */
const parquet_element *parquet_list_column(const parquet_footer *f, const char *path,
                                           const char *member, uint8_t *definition, failure *err);
/* Writes the dotted path, cut to n_bytes, with ? for bytes that are not plain ASCII text. */
void parquet_path(const parquet_footer *f, const parquet_element *e, char *text, size_t n_bytes);
/* Writes the names of the encodings, such as "PLAIN, RLE_DICTIONARY". */
void parquet_encodings_text(uint32_t encodings, char *text, size_t n_bytes);
