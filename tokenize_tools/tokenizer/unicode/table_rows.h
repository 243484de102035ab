/* SPDX-License-Identifier: Apache-2.0 */
/* table_rows.h - finds the row of a table for a code point. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Rows of row_bytes begin with a number, and are sorted by it. Returns the last one of n_rows > 0
 * whose number is at most this, or the first one. */
static inline const void *find_row(const void *rows, size_t n_rows, size_t row_bytes,
                                   uint32_t number)
{
    const uint8_t *low = rows;
    while (n_rows > 1) {
        const size_t half = n_rows / 2;
        uint32_t first;
        memcpy(&first, low + half * row_bytes, sizeof first);
        low += first <= number ? half * row_bytes : 0;
        n_rows -= half;
    }
    return low;
}
