/* SPDX-License-Identifier: Apache-2.0 */
/* numbers.h - an array of the caller: little-endian numbers of 4 or 8 bytes. */
#pragma once

#include "base/le.h"

typedef struct tokmap_i_numbers {
    const uint8_t *bytes; /* NULL: there is no array */
    uint64_t n;
    uint32_t number_bytes;
} tokmap_i_numbers;

static inline uint64_t tokmap_i_number_at(const tokmap_i_numbers *numbers, uint64_t i)
{
    return numbers->number_bytes == 4 ? le_get32(numbers->bytes + 4 * i)
                                      : le_get64(numbers->bytes + 8 * i);
}
