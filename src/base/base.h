/* SPDX-License-Identifier: Apache-2.0 */
/* base.h - arithmetic on sizes, and other one-line functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

static inline uint64_t div_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* Rounds a up to a multiple of b. Only for values far below 2^64, such as sizes that were already
 * checked. */
static inline uint64_t round_up(uint64_t a, uint64_t b)
{
    return div_up(a, b) * b;
}

static inline bool is_zero(const void *bytes, size_t n_bytes)
{
    const uint8_t *p = bytes;
    return n_bytes == 0 || (*p == 0 && memcmp(p, p + 1, n_bytes - 1) == 0);
}

/* Returns what follows the last slash. */
static inline const char *name_in_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
