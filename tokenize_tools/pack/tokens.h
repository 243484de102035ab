/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.h - the tokens around each document: --eod and --bos. */
#ifndef TOKMAP_PACK_TOKENS_H
#define TOKMAP_PACK_TOKENS_H

#include <stdint.h>

#include "pack/options.h"
#include "tokenizer/file/tokenizer_file.h"

typedef struct pack_tokens {
    uint32_t eod_id, bos_id; /* or MODEL_NO_ID */
    uint64_t vocab_size;     /* of all ids, including these two */
} pack_tokens;

/* Opens the tokenizer that the options name, and resolves the words of the options to ids. Returns
 * an exit code, and prints the error; then too the file must be closed. */
int pack_tokens_open(pack_tokens *tokens, tokenizer_file *file, const pack_options *options);

#endif /* TOKMAP_PACK_TOKENS_H */
