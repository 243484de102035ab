/* SPDX-License-Identifier: Apache-2.0 */
/* encoder_case.h - a tokenizer for a model that a test made, what it gives, and the models and
 * texts of sentencepiece as far as both families have them. */
#pragma once

#include "support/check.h"

#include "oracles/char_naive.h"
#include "tokenizer/encode/tokenizer.h"

typedef struct engine {
    model m;
    specials_policy specials;
    tokenizer *t;
    encoder *e;
    id_buffer out;
} engine;

void engine_start(engine *g, size_t cache_bytes);
void engine_end(engine *g);
/* In memory of its size and the padding, whose bytes belong to no character of the text. */
void encode(engine *g, const char *text, size_t n);
/* A text of random pieces has the ids that it has in chunks of any size. */
void check_chunks(engine *g, const char *const *pieces, size_t n_kinds, size_t n_pieces);
void check_chunks_of(engine *g, const char *text, size_t n);
void expect_ids(const engine *g, const naive_ids *want, const char *text);
long rounds(long in_check, long in_long);
void refused(model *m, const char *why);

/* ---- sentencepiece ---- */

/* All but the pieces. */
void sentencepiece_model(model *m, model_kind kind);
/* The text as it is searched for pieces; returns its size. */
size_t sentencepiece_text(const model *m, const char *text, size_t n, char *marked);

/* Texts of a million bytes that repeat a unit end in time, and their ids decode to a text; `equal`:
 * to the same one. */
void runs_come_back(void (*make)(model *), const char *const *units, size_t n_units, bool equal);
