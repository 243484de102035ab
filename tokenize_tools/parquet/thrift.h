/* SPDX-License-Identifier: Apache-2.0 */
/* thrift.h - reads Thrift's compact protocol, in which Parquet stores its headers.
 *
 *     thrift_struct s = {0};
 *     while (thrift_next(t, &s)) {
 *         if (s.id == 1)
 *             n_rows = thrift_integer(t, s.type);
 *         else
 *             thrift_skip(t, s.type);
 *     }
 *
 * After an error all calls return 0, false or nothing, and t->why says why: check it once, at the
 * end. Nothing is allocated, and what is read is bounded by the bytes that there are. */
#ifndef TOKMAP_THRIFT_H
#define TOKMAP_THRIFT_H

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
} thrift;

typedef struct thrift_struct { /* start with {0} */
    int32_t id;
    uint8_t type; /* of the current field */
} thrift_struct;

typedef struct thrift_bytes {
    const uint8_t *data;
    size_t n_bytes;
} thrift_bytes;

typedef struct thrift_list {
    uint8_t type; /* of its elements */
    uint32_t n;   /* not more than there are bytes */
} thrift_list;

/* Goes to the next field; false at the end of the structure. Its value must be read or skipped. */
bool thrift_next(thrift *t, thrift_struct *s);
/* The value of a field or element of this type; it is an error if the type does not fit. */
int64_t thrift_integer(thrift *t, uint8_t type);
bool thrift_boolean(thrift *t, uint8_t type); /* of a field */
thrift_bytes thrift_binary(thrift *t, uint8_t type);
/* Begins a list; its elements must be read or skipped, each as a value of list.type. */
thrift_list thrift_begin_list(thrift *t, uint8_t type);
/* Whether the value is a structure, whose fields follow; if not, that is an error. */
bool thrift_is_struct(thrift *t, uint8_t type);
void thrift_skip(thrift *t, uint8_t type);

/* A number of seven bits a byte, lowest first, as Parquet's encodings use it too. Returns false if
 * it does not end, or has more than 64 bits. */
bool thrift_varint(const uint8_t **at, const uint8_t *end, uint64_t *value);
int64_t thrift_zigzag(uint64_t n);

#endif /* TOKMAP_THRIFT_H */
