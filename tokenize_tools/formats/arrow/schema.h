/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - decodes the messages of Arrow's IPC format: the columns, and where a record batch has
 * their buffers. Pure. */
#pragma once

#include "formats/arrow/flatbuffer.h"
#include "base/error.h"
#include "base/moment.h"

typedef struct arrow_bytes {
    const uint8_t *bytes;
    size_t n_bytes;
} arrow_bytes;

/* ---- Messages ---- */

#define ARROW_PREFIX_BYTES 8

typedef enum arrow_kind { /* as stored */
    ARROW_END = 0,
    ARROW_SCHEMA = 1,
    ARROW_DICTIONARY = 2,
    ARROW_RECORDS = 3
} arrow_kind;

typedef struct arrow_message {
    arrow_kind kind;
    bool is_v4; /* written by Arrow before 1.0 */
    uint64_t body_bytes;
    flatbuffer buffer;
    flat_table header;
} arrow_message;

/* Reads the bytes before a message: the size of its metadata, 0 at the end of the stream. */
bool arrow_read_prefix(const uint8_t *prefix, size_t *metadata_bytes, failure *err);
/* Reads a message. The metadata must stay valid, and *m must not move. */
bool arrow_read_message(arrow_message *m, const uint8_t *metadata, size_t n_bytes, failure *err);

/* Reads the footer of a file: the number of its record batches. */
bool arrow_read_footer(const uint8_t *footer, size_t n_bytes, uint64_t *n_batches, failure *err);

/* ---- The schema ---- */

typedef enum arrow_type { /* as stored */
    ARROW_NULL = 1,
    ARROW_INT,
    ARROW_FLOAT,
    ARROW_BINARY,
    ARROW_UTF8,
    ARROW_BOOL,
    ARROW_DECIMAL,
    ARROW_DATE,
    ARROW_TIME,
    ARROW_TIMESTAMP,
    ARROW_INTERVAL,
    ARROW_LIST,
    ARROW_STRUCT,
    ARROW_UNION,
    ARROW_FIXED_BINARY,
    ARROW_FIXED_LIST,
    ARROW_MAP,
    ARROW_DURATION,
    ARROW_LARGE_BINARY,
    ARROW_LARGE_UTF8,
    ARROW_LARGE_LIST,
    ARROW_RUN_END,
    ARROW_BINARY_VIEW,
    ARROW_UTF8_VIEW,
    ARROW_LIST_VIEW,
    ARROW_LARGE_LIST_VIEW
} arrow_type;

#define ARROW_NO_FIELD SIZE_MAX

typedef struct arrow_field {
    arrow_bytes name;
    size_t parent; /* ARROW_NO_FIELD: a column */
    size_t depth;
    arrow_type type; /* of the values; with a dictionary, of its values */
    unsigned bits;   /* of a number */
    bool is_unsigned;
    int32_t scale;  /* of a decimal */
    time_unit time; /* of dates and timestamps */
    bool has_dictionary;
    int64_t dictionary_id;
    unsigned index_bits; /* of an index into the dictionary */
    bool index_unsigned;
    size_t node;         /* its index among the nodes of a record batch */
    size_t n_buffers;    /* its own, without the extra ones of a view */
    size_t first_buffer; /* not counting the extra buffers of views */
    size_t n_views;      /* before it */
} arrow_field;

typedef struct arrow_schema {
    arrow_field *fields; /* a parent comes before its children */
    size_t n_fields;
    size_t n_nodes, n_buffers, n_views;
    bool is_v4;
} arrow_schema;

/* Reads a schema, whose names are valid as long as the message. Call arrow_free_schema even if this
 * fails. */
bool arrow_read_schema(arrow_schema *s, const arrow_message *m, failure *err);
void arrow_free_schema(arrow_schema *s);

/* Finds a column, or a part of one, by its dotted path. NULL: there is none, or more than one. */
const arrow_field *arrow_find_field(const arrow_schema *s, const char *path, failure *err);
/* Returns the name of a type, such as "string" or "dictionary of string". */
const char *arrow_type_name(const arrow_field *f);
bool arrow_is_view(arrow_type type);
/* Whether values are strings or bytes, in any form. */
bool arrow_is_text(const arrow_field *f);
/* Whether values can become a tokmap_value. */
bool arrow_is_value(const arrow_field *f);

/* ---- Record batches and dictionaries ---- */

typedef struct arrow_extent {
    uint64_t offset, n_bytes; /* in the body of a message */
} arrow_extent;

typedef struct arrow_batch {
    uint64_t n_rows;
    uint64_t body_bytes;
    bool is_compressed; /* by zstd */
    flat_list nodes, buffers, view_counts;
    int64_t dictionary_id;
    bool is_delta; /* adds to the dictionary; else replaces it */
} arrow_batch;

/* Reads a record batch or a dictionary batch. The message must stay valid. */
bool arrow_read_batch(arrow_batch *b, const arrow_message *m, failure *err);
/* Finds the n buffers of a field in this batch: the validity of each struct around the field, from
 * the outermost one on, the validity of the field, then its other buffers. An absent buffer is
 * empty. Free *extents, even if this fails. */
bool arrow_find_buffers(const arrow_batch *b, const arrow_schema *s, const arrow_field *f,
                        arrow_extent **extents, size_t *n, failure *err);
/* Makes a schema of one column for the values of a dictionary. It uses *storage; do not free it. */
arrow_schema arrow_dictionary_schema(const arrow_field *f, arrow_field *storage);
