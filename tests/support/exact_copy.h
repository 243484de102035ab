/* SPDX-License-Identifier: Apache-2.0 */
/* exact_copy.h - bytes in memory of exactly their size, so that a sanitizer detects every read
 * beyond them. */
#pragma once

#include <stdlib.h>
#include <string.h>

/* free() frees it. */
static inline void *exact_copy(const void *bytes, size_t n_bytes)
{
    void *copy = malloc(n_bytes ? n_bytes : 1);
    if (!copy)
        abort();
    if (n_bytes)
        memcpy(copy, bytes, n_bytes);
    return copy;
}
