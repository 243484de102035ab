/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.h - text to ids and back, exactly as the reference implementation does it.
 *
 * A tokenizer does not change after it is made, so threads share it. Each thread has its own
 * encoder, with a cache of words. Ids never depend on the cache. Pure: the caller reads the
 * files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"
#include "tokenizer/model/id_buffer.h"
#include "tokenizer/model/model.h"
#include "tokenizer/encode/token_ranges.h"

typedef struct tokenizer tokenizer;
typedef struct encoder encoder;

/* What to do with a special token that is written in the text. Added tokens that are not special
 * always match. */
typedef enum specials_policy {
    SPECIALS_TEXT,  /* plain text; counted */
    SPECIALS_MATCH, /* becomes its id */
    SPECIALS_ERROR, /* TOKENIZE_SPECIAL */
    SPECIALS_DROP   /* left out; the text before and after it is encoded separately */
} specials_policy;

/* Copies what it needs from the model, which the caller frees. NULL: err->text names the part that
 * is not supported, or says that memory ran out. */
tokenizer *tokenizer_new(const model *m, failure *err);
/* Makes the built-in `bytes`: each byte is its own id, and 256 ends a document. NULL: out of
 * memory. */
tokenizer *tokenizer_new_bytes(void);
void tokenizer_free(tokenizer *t);

typedef struct tokenizer_info {
    uint32_t vocab_size;     /* the largest possible id + 1, including added tokens */
    uint32_t bos_id, eos_id; /* around documents: as the file or the preset says, or MODEL_NO_ID */
    bool eos_guessed;        /* from the usual name of a special token ... */
    uint32_t eos_rival;      /* ... and this is another candidate, or MODEL_NO_ID */
    bool takes_bytes;        /* it encodes bytes that are not UTF-8 (byte-level) */
    bool decodes;            /* false: the decoder of the file is not supported */
    const char *family;
    const char *unicode;   /* the version of the tables that take part, such as "16.0.0", or NULL */
    const char *no_ranges; /* why tokenizer_find_ranges always fails, or NULL */
} tokenizer_info;
/* What it returns is valid as long as the tokenizer. */
const tokenizer_info *tokenizer_get_info(const tokenizer *t);
/* Returns the id of the token with this content, specials first; MODEL_NO_ID: there is none. */
uint32_t tokenizer_find(const tokenizer *t, const char *content, size_t n_bytes);

/* Returns the rules, for encoder.c. */
const struct text_rules *tokenizer_rules(const tokenizer *t);

/* ---- Encode ---- */

typedef enum tokenize_status {
    TOKENIZE_OK,
    TOKENIZE_NO_MEMORY,
    TOKENIZE_SPECIAL, /* SPECIALS_ERROR, and the text contains one */
    TOKENIZE_TOO_LONG /* the normalizer makes too much of it: normalizer.h */
} tokenize_status;
#define TOKENIZE_TOO_LONG_TEXT                                                                     \
    "the normalizer of the tokenizer makes more than 64 bytes of each byte of it, and 1 MiB, or "  \
    "more than 4 GiB in all"

typedef struct encoder_options {
    size_t cache_bytes; /* 0: 32 MiB */
    size_t chunk_bytes; /* of text that is split into words at a time; 0: 48 KiB */
    specials_policy specials;
} encoder_options;

encoder *encoder_new(const tokenizer *t, const encoder_options *options);
void encoder_free(encoder *e);
/* Sets what to do with specials in the next texts. */
void encoder_set_specials(encoder *e, specials_policy specials);
/* Appends the ids of a whole text of at most TEXT_MAX_BYTES. It has TEXT_PADDING readable bytes
 * after it and is UTF-8, or any bytes if the tokenizer takes bytes. */
tokenize_status encoder_encode(encoder *e, const uint8_t *text, size_t n_bytes, id_buffer *out);
#define TEXT_MAX_BYTES ((size_t)2 << 30)

/* A special token in a text. */
typedef struct special_match {
    size_t at;            /* offset in the text */
    const uint8_t *bytes; /* in the text, or of the tokenizer */
    size_t n_bytes;
} special_match;
/* Returns the special token for which encoder_encode has just refused this text. If the token is
 * found in normalized text, `at` is where its content first occurs in the text; if the normalizer
 * made it of other characters, where the text between two added tokens begins. */
special_match encoder_refused_special(const encoder *e, const uint8_t *text, size_t n_bytes);
/* Returns how many specials the texts have contained so far. */
uint64_t encoder_specials_seen(const encoder *e);

/* Finds the range of bytes of the text that each id stands for, n_ids of them, in order and without
 * overlaps. An id that stands for no byte, such as a blank that is put before the text, has an
 * empty range where the next one begins; an added token has the white space that it takes. Bytes
 * that no id stands for are specials that were left out. Returns NULL, or why there are none, with
 * the byte of the text where they end: always info.no_ranges, if that is not NULL. Allocates
 * nothing; any number of threads may call it. */
const char *tokenizer_find_ranges(const tokenizer *t, const encoded_text *e, byte_range *ranges,
                                  size_t *place);

/* ---- Decode ---- */

/* Returns the text of one id inside a text; NULL: there is no such id. For specials, their
 * content. */
const uint8_t *tokenizer_token_bytes(const tokenizer *t, uint32_t id, size_t *n_bytes);
/* Decodes ids to a malloced text, if info.decodes: as by the reference decoder (U+2581 to
 * spaces, without SentencePiece's leading space, with byte fallback). false: out of memory (*bad is
 * SIZE_MAX), or ids[*bad] does not exist. */
bool tokenizer_decode(const tokenizer *t, const uint32_t *ids, size_t n_ids, model_text *text,
                      size_t *bad);
