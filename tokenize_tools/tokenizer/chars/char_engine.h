/* SPDX-License-Identifier: Apache-2.0 */
/* char_engine.h - the tokenizers over characters: sentencepiece's BPE and Unigram, and similar ones
 * in tokenizer.json. Normalizes text and cuts it into independent words, most of which were seen
 * before. Pure. */
#ifndef TOKMAP_CHAR_ENGINE_H
#define TOKMAP_CHAR_ENGINE_H

#include "tokenizer/model/id_buffer.h"
#include "tokenizer/model/model.h"

typedef struct char_engine char_engine;
typedef struct char_scratch char_scratch; /* one for each thread */

/* Copies what it needs from the model. NULL: err names what is not supported exactly. */
char_engine *char_engine_new(const model *m, model_error *err);
void char_engine_free(char_engine *e);

/* The largest offset at which the text may be cut, or 0. The part after the cut is encoded with
 * STRETCH_CONTINUES, by any scratch; if char_engine_in_order, by one with the sentence of the part
 * before. */
size_t char_engine_cut(const char_engine *e, const uint8_t *text, size_t n_searched,
                       size_t n_bytes);
bool char_engine_in_order(const char_engine *e);

char_scratch *char_scratch_new(const char_engine *e, size_t cache_bytes);
void char_scratch_free(char_scratch *s);

enum {
    STRETCH_FIRST = 1,     /* the text begins a document: a dummy prefix is put before it */
    STRETCH_CONTINUES = 2, /* it continues the text before a cut */
    /* What to do with special tokens in normalized text; without these they are text. */
    STRETCH_SPECIALS_MATCH = 4,
    STRETCH_SPECIALS_DROP = 8
};

/* Appends the ids of the text between two added tokens (it may contain those that match in
 * normalized text). It must be UTF-8, and TEXT_PADDING bytes after it must be readable. false: out
 * of memory. */
bool char_scratch_encode(char_scratch *s, const uint8_t *text, size_t n_bytes, unsigned flags,
                         id_buffer *out);
/* The state of the sentence, if char_engine_in_order; else nothing. */
typedef struct char_sentence {
    double score;
    bool unknown; /* it ends with unknown characters that became one id, and following ones join
                     it */
} char_sentence;
char_sentence char_scratch_save(const char_scratch *s);
void char_scratch_restore(char_scratch *s, char_sentence sentence);
/* How many special tokens were found in normalized text so far. */
uint64_t char_scratch_specials_seen(const char_scratch *s);

/* The text of existing ids, malloced, as decoded by the reference. false: out of memory. */
bool char_engine_decode(const char_engine *e, const uint32_t *ids, size_t n_ids, model_text *text);

#endif /* TOKMAP_CHAR_ENGINE_H */
