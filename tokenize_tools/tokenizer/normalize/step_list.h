/* SPDX-License-Identifier: Apache-2.0 */
/* step_list.h - the steps of a tokenizer.json's normalizer, ready to run. Those that look at one
 * character at a time are one char_map as far as they follow each other. Pure. */
#ifndef TOKMAP_STEP_LIST_H
#define TOKMAP_STEP_LIST_H

#include "tokenizer/model/model.h"
#include "tokenizer/normalize/char_map.h"
#include "tokenizer/normalize/charsmap.h"

typedef struct list_step {
    char_map *map; /* or NULL: */
    normalize_step step;
} list_step;

/* A step of a model makes at most two, and one more is for those before it. */
#define MAX_LIST_STEPS (2 * MODEL_MAX_STEPS + 1)

typedef struct step_list { /* starts as {0} */
    list_step steps[MAX_LIST_STEPS];
    size_t n_steps;
    charsmap charsmap; /* NORMALIZE_CHARSMAP */
} step_list;

/* Copies the first n_steps of the model. false: err names what is not supported. */
bool step_list_load(step_list *l, const model *m, size_t n_steps, failure *err);
void step_list_free(step_list *l);

typedef struct list_scratch { /* starts as {0} */
    text_buffer texts[2];
    nfc_scratch nfc;
} list_scratch;
/* *text is afterwards where it was or in the scratch. goes_on: it continues the text before a cut.
 * false: out of memory. */
bool step_list_run(const step_list *l, list_scratch *s, bool goes_on, text_span *text);

#endif /* TOKMAP_STEP_LIST_H */
