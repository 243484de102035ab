/* stated_tokens.h - finds the token that begins or ends a document, as stated by the files of a
 * tokenizer: the vocabulary file, and tokenizer_config.json and generation_config.json beside
 * it. */
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

/* Without duplicates; at most STATED_TOKENS_MAX. */
typedef struct stated_tokens {
    stated_token list[STATED_TOKENS_MAX];
    size_t n;
} stated_tokens;

/* `role` is "eos" or "bos". If no file states an eos, takes special tokens with the usual names.
 * Returns an exit code, and prints the error. */
int stated_tokens_find(stated_tokens *tokens, const char *role, const tokenizer_file *file);

#endif /* TOKMAP_STATED_TOKENS_H */
