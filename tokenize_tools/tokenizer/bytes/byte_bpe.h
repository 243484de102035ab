/* byte_bpe.h - byte-level BPE: splits text into words, and merges each word from its bytes. */
#ifndef TOKMAP_BYTE_BPE_H
#define TOKMAP_BYTE_BPE_H

#include "tokenizer/model/id_buffer.h"
#include "tokenizer/model/model.h"

typedef struct byte_bpe byte_bpe;
typedef struct byte_encoder byte_encoder; /* one for each thread */

/* NULL: err says what is missing or not supported. */
byte_bpe *byte_bpe_new(const model *m, model_error *err);
void byte_bpe_free(byte_bpe *b);
/* Whether every byte has a token. */
bool byte_bpe_takes_bytes(const byte_bpe *b);

byte_encoder *byte_encoder_new(const byte_bpe *b, size_t cache_bytes);
void byte_encoder_free(byte_encoder *e);
/* Appends the ids of a text with TEXT_PADDING readable bytes after it. false: out of memory, or
 * 4 GiB or more. */
bool byte_encoder_encode(byte_encoder *e, const uint8_t *text, size_t n_bytes, id_buffer *out);

#endif /* TOKMAP_BYTE_BPE_H */
