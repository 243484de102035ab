/* SPDX-License-Identifier: Apache-2.0 */
/* foreign_memory.h - memory as foreign_bytes: a file of any claimed size of which only the first
 * bytes can be read, so that tests of sizes near 2^63 need no such file. */
#pragma once

#include <string.h>

#include "foreign/readers.h"

typedef struct foreign_memory {
    const uint8_t *data;
    size_t n_bytes;
    foreign_bytes bytes;
} foreign_memory;

void foreign_memory_init(foreign_memory *memory, const uint8_t *data, size_t n_bytes,
                         uint64_t claimed_bytes);

/* Counts the documents that a decoder hands out. */
typedef struct foreign_counter {
    uint64_t n_documents, n_tokens, last, hash;
} foreign_counter;

bool foreign_counter_add(void *user, uint64_t n_tokens);
