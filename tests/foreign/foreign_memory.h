/* foreign_memory.h - memory as foreign_bytes: a file of any claimed size of which only the first
 * bytes can be read, so that tests of sizes near 2^63 need no such file. */
#ifndef TOKMAP_FOREIGN_MEMORY_H
#define TOKMAP_FOREIGN_MEMORY_H

#include <string.h>

#include "foreign/foreign.h"

typedef struct foreign_memory {
    const uint8_t *data;
    size_t n_bytes;
    foreign_bytes bytes;
} foreign_memory;

static bool foreign_memory_read(void *user, uint64_t offset, void *dst, size_t n_bytes)
{
    const foreign_memory *memory = user;
    if (offset > memory->n_bytes || n_bytes > memory->n_bytes - offset)
        return false;
    if (n_bytes > 0)
        memcpy(dst, memory->data + offset, n_bytes);
    return true;
}

static inline void foreign_memory_init(foreign_memory *memory, const uint8_t *data, size_t n_bytes,
                                       uint64_t claimed_bytes)
{
    memory->data = data;
    memory->n_bytes = n_bytes;
    memory->bytes = (foreign_bytes){claimed_bytes, foreign_memory_read, memory};
}

/* Counts the documents that a decoder hands out. */
typedef struct foreign_counter {
    uint64_t n_documents, n_tokens, last, hash;
} foreign_counter;

static inline bool foreign_counter_add(void *user, uint64_t n_tokens)
{
    foreign_counter *counter = user;
    counter->n_documents++;
    counter->n_tokens += n_tokens;
    counter->last = n_tokens;
    counter->hash = (counter->hash ^ n_tokens) * 0x9e3779b97f4a7c15u;
    return true;
}

#endif /* TOKMAP_FOREIGN_MEMORY_H */
