/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_vocab_merges.c - any bytes as vocab.json, and what follows a NUL as merges.txt: refused with
 * a reason, or a sound model. */
#include "check_model.h"

#include <string.h>

#include "tokenizer/load/model_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size > 0 ? memchr(data, '\0', size) : NULL;
    const size_t n_bytes = nul ? (size_t)(nul - data) : size;
    const model_source source = {
        .data = data,
        .n_bytes = n_bytes,
        .merges = nul ? nul + 1 : NULL,
        .merges_bytes = nul ? size - 1 - n_bytes : 0,
    };
    check_loader(load_vocab_merges, &source);
    return 0;
}
