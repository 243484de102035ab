/* SPDX-License-Identifier: Apache-2.0 */
/* normalizer_case.h - normalizers for a test, and texts for them. */
#pragma once

#include "support/check.h"

#include "base/base.h"
#include "oracles/char_naive.h"
#include "tokenizer/model/double_array.h"

#define N NAIVE_N

typedef struct rule {
    const char *from, *to;
} rule;

/* As they may be in a charsmap: of letters, marks, blanks, and longer ones over shorter ones. */
#define N_PRECOMPILED_RULES 19
extern const rule precompiled_rules[N_PRECOMPILED_RULES];

/* The blob of these rules, which differ, as sentencepiece stores it. */
void make_charsmap(model_text *blob, const rule *rules, size_t n_rules);

/* ---- sentencepiece's ---- */

typedef struct way { /* to normalize */
    const rule *rules;
    size_t n_rules;
    const char *const *user;
    size_t n_user;
    bool dummy, collapse, escape, suffix;
} way;

void set_way(model *m, const way *w);
size_t some_normal_text(const way *w, char *text);

/* ---- tokenizer.json's steps ---- */

model_text text_of(const char *s);
void add_step(model *m, const normalize_step *step);
