/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/model/bytes_tokenizer.h"

size_t bytes_tokenizer_decode(const uint32_t *ids, size_t n_ids, uint8_t *text, size_t *n_bytes)
{
    size_t n = 0, i = 0;
    for (; i < n_ids && ids[i] <= BYTES_TOKENIZER_EOD; i++) {
        if (ids[i] != BYTES_TOKENIZER_EOD)
            text[n++] = (uint8_t)ids[i];
    }
    *n_bytes = n;
    return i;
}
