/* SPDX-License-Identifier: Apache-2.0 */
/* base.h - little-endian loads and stores, alignment. */
#pragma once

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tokmap needs a little-endian processor: it returns pointers to mapped tokens"
#elif __SIZEOF_POINTER__ != 8
#error "tokmap needs a 64-bit processor: it maps files that are larger than 4 GiB"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* memcpy: correct for any alignment. */
static inline uint16_t load_le16(const uint8_t *p)
{
    uint16_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline uint32_t load_le32(const uint8_t *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline uint64_t load_le64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline void store_le16(uint8_t *p, uint16_t x)
{
    memcpy(p, &x, sizeof x);
}

static inline void store_le32(uint8_t *p, uint32_t x)
{
    memcpy(p, &x, sizeof x);
}

static inline void store_le64(uint8_t *p, uint64_t x)
{
    memcpy(p, &x, sizeof x);
}

static inline uint64_t div_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* Only for values far below 2^64, such as sizes that were already checked. */
static inline uint64_t round_up(uint64_t a, uint64_t b)
{
    return div_up(a, b) * b;
}

static inline bool is_zero(const void *bytes, size_t n_bytes)
{
    const uint8_t *p = bytes;
    uint8_t any = 0;
    for (size_t i = 0; i < n_bytes; i++)
        any |= p[i];
    return any == 0;
}

/* What follows the last slash. */
static inline const char *name_in_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The size of a struct in the version where this member was the last one. */
#define SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof((type *)0)->member)
