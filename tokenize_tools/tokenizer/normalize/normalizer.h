/* SPDX-License-Identifier: Apache-2.0 */
/* normalizer.h - normalizes a text before it is cut into pieces: sentencepiece's normalizer, or
 * the one of a tokenizer.json. Pure. */
#pragma once

#include "tokenizer/model/model.h"
#include "tokenizer/normalize/text_buffer.h"
#include "tokenizer/unicode/unicode.h"

enum {
    NORMALIZE_FIRST = 1 /* the text begins a document; else it follows an added token */
};

typedef struct normalizer normalizer;

/* How to read the normalized text. */
typedef struct normal_form {
    bool spaces_are_marks; /* a blank stands for U+2581 */
    bool blank_prefix;     /* later code puts a blank before the text, else U+2581 */
    /* When to put it before a text that is not empty: */
    bool prefix_all;   /* any text */
    bool prefix_first; /* one that begins a document */
    bool not_twice;    /* but not if the text already begins with U+2581 */
} normal_form;

/* Makes the normalizer of m. all_steps: no steps are left to the reader of the text. NULL: err
 * names what is not supported. */
normalizer *normalizer_new(const model *m, bool all_steps, failure *err);
void normalizer_free(normalizer *n);
normal_form normalizer_form(const normalizer *n);

/* Adds the added tokens that are searched for in normalized text, with their contents normalized.
 * n has all steps; NULL: none. */
bool normalizer_add_tokens(const normalizer *n, const model *m, model *added, failure *err);

/* Appends the text with each `from`, from left to right, replaced by `to`; with `runs`, each run of
 * two or more by one `to`. */
bool normalize_replace(text_span text, model_text from, model_text to, bool runs, text_buffer *out);
/* Appends the text with a blank for each U+2581; `drop`: with nothing. false: out of memory. */
bool normalize_marks(text_span text, bool drop, text_buffer *out);

typedef struct normalize_workspace { /* starts as {0}; one for each thread */
    text_buffer texts[2], beginning;
    nfc_workspace nfc;
    size_t n_first; /* a result of normalize_text */
} normalize_workspace;
void normalize_workspace_free(normalize_workspace *s);
/* Frees what is larger than ARRAY_KEPT_BYTES, but not `text`, which may be NULL. */
void normalize_workspace_free_large(normalize_workspace *s, const uint8_t *text);

/* Normalizes *span, which afterwards is the original text or in the workspace. s->n_first: how many
 * bytes of it come from the first character of a document; if the normalizer may change, move or
 * remove that character, this is known only for a model that puts something before it alone
 * (PREPEND_FIRST). n may be NULL: no steps. false: normalize_too_long, or out of memory. */
bool normalize_text(const normalizer *n, normalize_workspace *s, unsigned flags, text_span *span);

/* What a step may write: a file with three Replace of a by 1000 a would fill any memory. */
#define NORMALIZE_MAX_GROWTH 64 /* bytes for each byte of the text, and */
#define NORMALIZE_MORE_BYTES ((size_t)1 << 20)
/* What all steps may make of a text: offsets of words have 32 bits. */
#define NORMALIZE_MAX_BYTES ((size_t)UINT32_MAX - 16)
/* Whether the last text was refused because a step or all of them wrote more. */
bool normalize_too_long(const normalize_workspace *s);
