/* bytes_tokenizer.h - the built-in tokenizer `bytes`: a byte is its own id, 256 ends a document. */
#ifndef TOKMAP_BYTES_TOKENIZER_H
#define TOKMAP_BYTES_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#define BYTES_TOKENIZER_NAME "bytes"

enum {
    BYTES_TOKENIZER_EOD = 256,
    BYTES_TOKENIZER_VOCAB_SIZE = 257
};

/* One id for each byte. */
void bytes_tokenizer_encode(const uint8_t *text, size_t n_bytes, uint32_t *ids);
/* The text of the ids, without the ends of documents, in text[0 .. n_ids). Sets *n_bytes.
 * Returns the number of ids read: fewer than n_ids when the next one is not of this tokenizer. */
size_t bytes_tokenizer_decode(const uint32_t *ids, size_t n_ids, uint8_t *text, size_t *n_bytes);

#endif /* TOKMAP_BYTES_TOKENIZER_H */
