/* SPDX-License-Identifier: Apache-2.0 */
/* stated_tokens.h - finds the token that begins or ends a document, as stated by the files of a
 * tokenizer: the vocabulary file, and tokenizer_config.json and generation_config.json beside
 * it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tokenizer/file/tokenizer_file.h"

#define STATED_TOKENS_MAX 16

typedef struct stated_token {
    uint32_t id;
    const char *source; /* the name of the file */
} stated_token;

/* The tokens, without duplicates; at most STATED_TOKENS_MAX. */
typedef struct stated_tokens {
    stated_token list[STATED_TOKENS_MAX];
    size_t n;
    bool guessed; /* no file states one */
    bool none;    /* tokenizer_config.json states that there is none */
    file_facts read[2];
    size_t n_read;
} stated_tokens;

/* Finds the tokens of a role, "eos" or "bos". If no file states an eos, takes special tokens with
 * the usual names. A bos that is null in tokenizer_config.json means that there is none, whatever
 * the others state. false: a file beside the tokenizer cannot be read. */
bool stated_tokens_find(stated_tokens *tokens, const char *role, const tokenizer_file *file,
                        failure *err);

#define STATED_TOKENS_LIST_BYTES 1024
/* Lists them for messages: "</s>" (2, tokenizer_config.json) and "<eot>" (7,
 * generation_config.json). */
void stated_tokens_list(const stated_tokens *tokens, const tokenizer_file *file,
                        char list[STATED_TOKENS_LIST_BYTES]);
