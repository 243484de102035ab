/* tokenizer.h - text to ids and back, exactly as the reference implementation does it.
 *
 * A tokenizer is made once and does not change: threads share it. Each thread has an encoder of
 * its own, with a cache of words. Ids never depend on the cache. Pure: files are read by the
 * caller. */
#ifndef TOKMAP_TOKENIZER_H
#define TOKMAP_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/model/id_buffer.h"
#include "tokenizer/model/model.h"

typedef struct tokenizer tokenizer;
typedef struct encoder encoder;

/* What happens to a special token that is written in the text. Added tokens that are not special
 * always match. */
typedef enum specials_policy {
    SPECIALS_TEXT,  /* plain text; counted */
    SPECIALS_MATCH, /* becomes its id */
    SPECIALS_ERROR, /* TOKENIZE_SPECIAL */
    SPECIALS_DROP   /* left out; the text before and after it stays apart */
} specials_policy;

/* Takes what it needs of the model, which the caller frees. NULL: err->text says what component is
 * not supported, or that memory is short. */
tokenizer *tokenizer_new(const model *m, model_error *err);
/* The built-in `bytes`: a byte is its own id, 256 ends a document. NULL: out of memory. */
tokenizer *tokenizer_new_bytes(void);
void tokenizer_free(tokenizer *t);

/* Largest id that can come out, + 1; added tokens included. */
uint32_t tokenizer_vocab_size(const tokenizer *t);
/* What ends a document: the eos of the file or the preset, or MODEL_NO_ID. */
uint32_t tokenizer_eos(const tokenizer *t);
/* Whether it is only a special token with a usual name; and another such token, or MODEL_NO_ID. */
bool tokenizer_eos_guessed(const tokenizer *t);
uint32_t tokenizer_eos_rival(const tokenizer *t);
uint32_t tokenizer_bos(const tokenizer *t);
/* The id of a token written as `content`, specials first; MODEL_NO_ID if there is none. */
uint32_t tokenizer_find(const tokenizer *t, const char *content, size_t n_bytes);
const char *tokenizer_family(const tokenizer *t);
/* "16.0.0", or another version, when Unicode tables take part, else NULL. */
const char *tokenizer_unicode(const tokenizer *t);
/* Whether bytes that are not UTF-8 have ids (byte-level). */
bool tokenizer_takes_bytes(const tokenizer *t);

/* The largest place at which the text may be cut, so that encoding the two parts one after the
 * other, the first with TEXT_FIRST and the second without, gives the ids of the whole, whatever
 * follows text[n_bytes]. 0 if there is none. */
size_t tokenizer_safe_cut(const tokenizer *t, const uint8_t *text, size_t n_bytes);
/* Whether the second part needs the state in which the first left its encoder: with Unigram, what
 * is best depends on rounded sums that begin with the document. Else any encoder may have it. */
bool tokenizer_in_order(const tokenizer *t);

/* ---- Encode ---- */

typedef enum tokenize_status {
    TOKENIZE_OK,
    TOKENIZE_NO_MEMORY,
    TOKENIZE_SPECIAL /* SPECIALS_ERROR, and one is written in the text */
} tokenize_status;

enum {
    TEXT_FIRST = 1 /* the text begins a document; without it, it goes on at a safe cut */
};

typedef struct encoder_options {
    size_t cache_bytes; /* 0: 32 MiB */
    specials_policy specials;
} encoder_options;

encoder *encoder_new(const tokenizer *t, const encoder_options *options);
void encoder_free(encoder *e);
/* Appends the ids of the text, which has TEXT_PADDING readable bytes after it and is UTF-8, or any
 * bytes where tokenizer_takes_bytes. */
tokenize_status encoder_encode(encoder *e, const uint8_t *text, size_t n_bytes, unsigned flags,
                               id_buffer *out);
/* Between two parts of a document, where tokenizer_in_order. */
typedef struct encoder_state {
    double sum;
    bool unknown; /* in a run of unknown characters, which is one id */
} encoder_state;
encoder_state encoder_save(const encoder *e);
void encoder_restore(encoder *e, encoder_state state);
/* Specials that were written in texts, so far. */
uint64_t encoder_specials_seen(const encoder *e);

/* ---- Decode ---- */

/* The text of one id as it appears inside a text; NULL for an id that is not there. Specials have
 * their content. */
const uint8_t *tokenizer_token_bytes(const tokenizer *t, uint32_t id, size_t *n_bytes);
/* false: the decoder of the tokenizer.json is none that is known here. */
bool tokenizer_decodes(const tokenizer *t);
/* The text of the ids, malloced, where tokenizer_decodes: with what the reference decoder does
 * (U+2581 to spaces, the leading space of SentencePiece taken off, byte fallback). false: out of
 * memory, or an id that is not there: *bad is its index, else SIZE_MAX. */
bool tokenizer_decode(const tokenizer *t, const uint32_t *ids, size_t n_ids, model_text *text,
                      size_t *bad);

#endif /* TOKMAP_TOKENIZER_H */
