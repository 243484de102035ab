/* SPDX-License-Identifier: Apache-2.0 */
/* thrift.h - reads Thrift's compact protocol, in which Parquet stores its headers.
 *
 *     static const thrift_field fields[] = {{1, thrift_integer, offsetof(page, n_rows)}, {0}};
 *     thrift_read(t, THRIFT_STRUCT, fields, &page);
 *
 * After an error all calls do nothing, and t->why says why: check it once, at the end. A field that
 * is absent leaves its place as it was. Nothing is allocated, and what is read is bounded by the
 * bytes that there are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    THRIFT_TRUE = 1,
    THRIFT_FALSE = 2,
    THRIFT_LIST = 9,
    THRIFT_STRUCT = 12,
    THRIFT_MAX_DEPTH = 64
};

typedef struct thrift {
    const uint8_t *at, *end;
    const char *why; /* NULL: no error so far */
    bool short_of;   /* the error is that the bytes end too early */
    unsigned depth;  /* of what is being skipped */
} thrift;

typedef struct thrift_bytes {
    const uint8_t *data;
    size_t n_bytes;
} thrift_bytes;

typedef struct thrift_list {
    uint8_t type; /* of its elements */
    uint32_t n;   /* not more than there are bytes */
} thrift_list;

/* Reads a value of this type into *to; it is an error if the type does not fit. */
typedef void thrift_reader(thrift *t, uint8_t type, void *to);

typedef struct thrift_field {
    int32_t id;
    thrift_reader *read;
    size_t offset;                     /* of the place in the structure in memory */
    const struct thrift_field *fields; /* with read NULL: a structure of these fields */
} thrift_field;

/* Reads a structure; the last row of the table is {0}. Fields that are not in it are skipped. */
void thrift_read(thrift *t, uint8_t type, const thrift_field *fields, void *to);
thrift_reader thrift_integer; /* int64_t */
thrift_reader thrift_boolean; /* bool; of a field */
thrift_reader thrift_binary;  /* thrift_bytes */
thrift_reader thrift_present; /* bool: true; any type */
/* Begins a list; its elements must be read or skipped, each as a value of list.type. */
thrift_list thrift_begin_list(thrift *t, uint8_t type);
/* Goes to the next field, whose value must be read or skipped; false at the end of the structure.
 * The first id is 0. */
bool thrift_next(thrift *t, int32_t *id, uint8_t *type);
void thrift_skip(thrift *t, uint8_t type);
void thrift_fail(thrift *t, const char *why); /* the first reason counts */

/* A number of seven bits a byte, lowest first, as Parquet's encodings use it too. Returns false if
 * it does not end, or has more than 64 bits. */
bool thrift_varint(const uint8_t **at, const uint8_t *end, uint64_t *value);
int64_t thrift_zigzag(uint64_t n);
