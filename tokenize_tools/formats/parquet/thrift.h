/* SPDX-License-Identifier: Apache-2.0 */
/* thrift.h - reads Thrift's compact protocol, in which Parquet stores its headers.
 *
 *     static const thrift_field fields[] = {{1, thrift_integer, offsetof(page, n_rows)}, {0}};
 *     thrift_read(t, THRIFT_STRUCT, fields, &page);
 *
 * After an error all calls do nothing, and t->why is the reason: check it once, at the end. A field
 * that is absent leaves its destination unchanged. Nothing is allocated. */
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
    bool ends_early; /* the error: the bytes end too early */
    unsigned depth;  /* of nesting, while a value is skipped */
} thrift;

typedef struct thrift_bytes {
    const uint8_t *data;
    size_t n_bytes;
} thrift_bytes;

typedef struct thrift_list {
    uint8_t type; /* of its elements */
    uint32_t n;   /* at most as many as bytes follow */
} thrift_list;

/* Reads a value into *to. A type that does not fit is an error. */
typedef void thrift_reader(thrift *t, uint8_t type, void *to);

typedef struct thrift_field {
    int32_t id;
    thrift_reader *read;
    size_t offset;                     /* of the destination in the struct */
    const struct thrift_field *fields; /* if `read` is NULL: those of a structure */
} thrift_field;

/* Reads a structure. The last row of the table is {0}; fields that it does not list are skipped. */
void thrift_read(thrift *t, uint8_t type, const thrift_field *fields, void *to);
thrift_reader thrift_integer; /* int64_t */
thrift_reader thrift_boolean; /* bool; only for fields */
thrift_reader thrift_binary;  /* thrift_bytes */
thrift_reader thrift_present; /* bool: true; skips a value of any type */
/* Begins a list. The caller reads or skips each element, as a value of list.type. */
thrift_list thrift_begin_list(thrift *t, uint8_t type);
/* Goes to the next field, whose value the caller reads or skips. *id is 0 before the first one.
 * Returns false at the end of the structure. */
bool thrift_next(thrift *t, int32_t *id, uint8_t *type);
void thrift_skip(thrift *t, uint8_t type);
void thrift_fail(thrift *t, const char *why); /* keeps the first reason */

/* Reads a number with seven bits in each byte, lowest first, as Parquet's encodings use it too.
 * Returns false if it does not end, or has more than 64 bits. */
bool thrift_varint(const uint8_t **at, const uint8_t *end, uint64_t *value);
int64_t thrift_zigzag(uint64_t n);
