/* SPDX-License-Identifier: Apache-2.0 */
/* le.h - loads and stores little-endian numbers at any alignment. */
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
