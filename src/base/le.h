/* SPDX-License-Identifier: Apache-2.0 */
/* le.h - loads and stores little-endian numbers at any alignment, and structs of them. */
#pragma once

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tokmap needs a little-endian processor: it returns pointers to mapped tokens"
#elif __SIZEOF_POINTER__ != 8
#error "tokmap needs a 64-bit processor: it maps files that are larger than 4 GiB"
#endif

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t le_get16(const uint8_t *p)
{
    uint16_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline uint32_t le_get32(const uint8_t *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline uint64_t le_get64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Loads a number of n_bytes, at most 8. */
static inline uint64_t le_get(const uint8_t *p, size_t n_bytes)
{
    uint64_t x = 0;
    for (size_t i = 0; i < n_bytes; i++)
        x |= (uint64_t)p[i] << (8 * i);
    return x;
}

/* Loads a signed number of 1, 2, 4 or 8 bytes. */
static inline int64_t le_get_signed(const uint8_t *p, size_t n_bytes)
{
    switch (n_bytes) {
    case 1:
        return (int8_t)*p;
    case 2:
        return (int16_t)le_get16(p);
    case 4:
        return (int32_t)le_get32(p);
    default:
        return (int64_t)le_get64(p);
    }
}

/* Loads a float, of 4 bytes, or a double. */
static inline double le_get_real(const uint8_t *p, size_t n_bytes)
{
    double real;
    float single;
    if (n_bytes == 4) {
        memcpy(&single, p, sizeof single);
        return (double)single;
    }
    memcpy(&real, p, sizeof real);
    return real;
}

static inline void le_put16(uint8_t *p, uint16_t x)
{
    memcpy(p, &x, sizeof x);
}

static inline void le_put32(uint8_t *p, uint32_t x)
{
    memcpy(p, &x, sizeof x);
}

static inline void le_put64(uint8_t *p, uint64_t x)
{
    memcpy(p, &x, sizeof x);
}

/* Stores the lowest n_bytes of x, at most 8. */
static inline void le_put(uint8_t *p, uint64_t x, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        p[i] = (uint8_t)(x >> (8 * i));
}

/* Where a member of a struct is stored: a number, or an array. It is stored as in memory, which is
 * little-endian. */
typedef struct le_field {
    size_t at, offset, n_bytes; /* offset: in the struct */
} le_field;

#define LE_FIELD(type, at, member)                                                                 \
    {                                                                                              \
        at, offsetof(type, member), sizeof((type *)0)->member                                      \
    }

static inline void le_put_fields(uint8_t *to, const void *from, const le_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + fields[i].at, (const uint8_t *)from + fields[i].offset, fields[i].n_bytes);
}

static inline void le_get_fields(void *to, const uint8_t *from, const le_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy((uint8_t *)to + fields[i].offset, from + fields[i].at, fields[i].n_bytes);
}

/* Store and load the members of a struct that a table lists. */
#define LE_PUT_FIELDS(to, from, table) le_put_fields(to, from, table, sizeof table / sizeof *table)
#define LE_GET_FIELDS(to, from, table) le_get_fields(to, from, table, sizeof table / sizeof *table)
