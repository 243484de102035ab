/* SPDX-License-Identifier: Apache-2.0 */
/* bytes_tokenizer.h - the built-in tokenizer `bytes`: each byte is its own id, and 256 ends a
 * document. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BYTES_TOKENIZER_NAME "bytes"

enum {
    BYTES_TOKENIZER_EOD = 256
};

/* Writes the text of the ids, without ends of documents, to text[0 .. n_ids), and sets *n_bytes.
 * Returns the number of ids read: less than n_ids if the next one is not an id of this
 * tokenizer. */
size_t bytes_tokenizer_decode(const uint32_t *ids, size_t n_ids, uint8_t *text, size_t *n_bytes);
