/* SPDX-License-Identifier: Apache-2.0 */
/* little_endian.h - loads and stores little-endian numbers at any alignment. */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline uint16_t le_get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t le_get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t le_get64(const uint8_t *p)
{
    return le_get32(p) | (uint64_t)le_get32(p + 4) << 32;
}

/* A number of n_bytes, at most 8. */
static inline uint64_t le_get(const uint8_t *p, size_t n_bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n_bytes; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

/* Stores the lowest n_bytes of value. */
static inline void le_put(uint8_t *p, uint64_t value, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}
