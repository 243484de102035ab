/* SPDX-License-Identifier: Apache-2.0 */
/* load_bytes.h - builds the vocabulary of byte-level BPE with ranks: tiktoken and tekken. */
#pragma once

#include "tokenizer/model/model.h"
#include "tokenizer/model/name_table.h"

typedef struct byte_vocabulary { /* set m and err, the rest 0; bytes_free frees it */
    model *m;
    failure *err;
    name_table tokens;
    uint8_t *buffer;
    size_t capacity;
} byte_vocabulary;

/* Adds a token written in base64. The same bytes twice are an error. */
bool bytes_add_base64(byte_vocabulary *v, uint32_t id, const char *text, size_t n_bytes);
/* Checks, after the last token, that each of the 256 bytes is a token. Sets the kind of the
 * model. */
bool bytes_check(byte_vocabulary *v);
void bytes_free(byte_vocabulary *v);
