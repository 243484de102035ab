/* SPDX-License-Identifier: Apache-2.0 */
#include "base/token_scan.h"

#include "base/le.h"

/* Returns the largest id. One loop, compiled once for each target below: it becomes vector code
 * where the target has the instructions (the unsigned 16-bit maximum came with SSE4.1, so a
 * portable build lacks it). */
static inline __attribute__((always_inline)) uint32_t largest(const uint8_t *p, size_t n_tokens,
                                                              uint32_t token_bytes)
{
    if (token_bytes == 2) {
        uint16_t max = 0;
        for (size_t i = 0; i < n_tokens; i++) {
            const uint16_t id = le_get16(p + 2 * i);
            max = id > max ? id : max;
        }
        return max;
    }
    uint32_t max = 0;
    for (size_t i = 0; i < n_tokens; i++) {
        const uint32_t id = le_get32(p + 4 * i);
        max = id > max ? id : max;
    }
    return max;
}

static inline __attribute__((always_inline)) uint32_t
store(uint8_t *restrict dst, const uint32_t *restrict ids, size_t n_ids, uint32_t token_bytes)
{
    uint32_t max = 0;
    if (token_bytes == 2) {
        for (size_t i = 0; i < n_ids; i++) {
            le_put16(dst + 2 * i, (uint16_t)ids[i]);
            max = ids[i] > max ? ids[i] : max;
        }
        return max;
    }
    for (size_t i = 0; i < n_ids; i++) {
        le_put32(dst + 4 * i, ids[i]);
        max = ids[i] > max ? ids[i] : max;
    }
    return max;
}

uint32_t tokmap_i_store_ids_scalar(uint8_t *dst, const uint32_t *ids, size_t n_ids,
                                   uint32_t token_bytes)
{
    return store(dst, ids, n_ids, token_bytes);
}

uint32_t tokmap_i_largest_id_scalar(const void *tokens, size_t n_tokens, uint32_t token_bytes)
{
    return largest(tokens, n_tokens, token_bytes);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint32_t largest_avx2(const void *tokens, size_t n_tokens,
                                                             uint32_t token_bytes)
{
    return largest(tokens, n_tokens, token_bytes);
}

__attribute__((target("avx2"))) static uint32_t store_avx2(uint8_t *dst, const uint32_t *ids,
                                                           size_t n_ids, uint32_t token_bytes)
{
    return store(dst, ids, n_ids, token_bytes);
}
#endif

uint32_t tokmap_i_store_ids(uint8_t *dst, const uint32_t *ids, size_t n_ids, uint32_t token_bytes)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return store_avx2(dst, ids, n_ids, token_bytes);
#endif
    return store(dst, ids, n_ids, token_bytes);
}

uint32_t tokmap_i_largest_id(const void *tokens, size_t n_tokens, uint32_t token_bytes)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return largest_avx2(tokens, n_tokens, token_bytes);
#endif
    return largest(tokens, n_tokens, token_bytes);
}
