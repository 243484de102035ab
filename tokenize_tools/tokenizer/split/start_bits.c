/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/split/start_bits.h"

size_t split_next_start(const uint64_t *starts, size_t at, size_t end)
{
    while (at < end) {
        const uint64_t rest = starts[at / 64] >> at % 64;
        if (rest != 0)
            return at + (size_t)__builtin_ctzll(rest) < end ? at + (size_t)__builtin_ctzll(rest)
                                                            : end;
        at = (at / 64 + 1) * 64;
    }
    return end;
}

size_t split_take_last_start(uint64_t *starts, size_t n_bytes)
{
    size_t k = (n_bytes - 1) / 64;
    while (k > 0 && starts[k] == 0)
        k--;
    const uint64_t later = k > 0 ? starts[k] : starts[0] & ~(uint64_t)1;
    if (later == 0)
        return 0;
    return split_clear_bit(starts, k * 64 + 63 - (size_t)__builtin_clzll(later));
}
