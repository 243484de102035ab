/* stated_tokens.h - which token begins or ends a document, as the files of a tokenizer say: the
 * vocabulary file itself, and tokenizer_config.json and generation_config.json beside it. */
#ifndef TOKMAP_STATED_TOKENS_H
#define TOKMAP_STATED_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "tokenizer/file/tokenizer_file.h"

#define STATED_TOKENS_MAX 16

typedef struct stated_token {
    uint32_t id;
    const char *source; /* the name of the file */
} stated_token;

/* Different ids only; those beyond STATED_TOKENS_MAX are left out. */
typedef struct stated_tokens {
    stated_token list[STATED_TOKENS_MAX];
    size_t n;
} stated_tokens;

/* `role` is "eos" or "bos". Only where no file states an eos, special tokens with the usual names
 * of one are taken. Returns an exit code, with a message. */
int stated_tokens_find(stated_tokens *tokens, const char *role, const tokenizer_file *file);

#endif /* TOKMAP_STATED_TOKENS_H */
