/* SPDX-License-Identifier: Apache-2.0 */
#include "foreign/foreign_memory.h"

static bool foreign_memory_read(void *user, uint64_t offset, void *dst, size_t n_bytes)
{
    const foreign_memory *memory = user;
    if (offset > memory->n_bytes || n_bytes > memory->n_bytes - offset)
        return false;
    if (n_bytes > 0)
        memcpy(dst, memory->data + offset, n_bytes);
    return true;
}

void foreign_memory_init(foreign_memory *memory, const uint8_t *data, size_t n_bytes,
                         uint64_t claimed_bytes)
{
    memory->data = data;
    memory->n_bytes = n_bytes;
    memory->bytes = (foreign_bytes){claimed_bytes, foreign_memory_read, memory};
}

bool foreign_counter_add(void *user, uint64_t n_tokens)
{
    foreign_counter *counter = user;
    counter->n_documents++;
    counter->n_tokens += n_tokens;
    counter->last = n_tokens;
    counter->hash = (counter->hash ^ n_tokens) * 0x9e3779b97f4a7c15u;
    return true;
}
