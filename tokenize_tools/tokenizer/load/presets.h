/* SPDX-License-Identifier: Apache-2.0 */
/* presets.h - the special tokens and ids that belong to a --pattern: tiktoken's files contain only
 * ranks. */
#pragma once

#include "tokenizer/model/model.h"

/* A special, or several consecutive ones that differ by a number. */
typedef struct preset_special {
    uint32_t id;      /* of the first */
    const char *text; /* with * for the number */
    uint32_t n;       /* 0: a single one, without a number */
    uint32_t number;  /* of the first */
    bool plain;       /* not special: always matches */
} preset_special;

typedef struct preset {
    const char *name;
    split_pattern split;
    bool nfc;
    uint32_t n_ranks; /* of its files; or PRESET_ANY_RANKS */
    bool from_ranks;  /* the specials' ids start at the number of ranks */
    const preset_special *specials;
    size_t n_specials;
    const char *bos, *eos; /* or NULL */
} preset;

/* The choice of --pattern: a preset, or with PRESET_ANY after its name only its pattern and
 * normalizer, for files with any number of ranks; or a regular expression. */
typedef struct preset_choice {
    const preset *preset; /* the first one with its name */
    bool any;
    const char *expression; /* or NULL */
} preset_choice;

#define PRESET_TEKKEN "tekken"
#define PRESET_ANY ":any"
#define PRESET_ANY_RANKS 0
/* Finds a choice. A text with other characters than names have is an expression. false: there is no
 * preset with this name, or it is NULL; err lists all names. */
bool preset_find(preset_choice *choice, const char *name, failure *err);
/* Returns the names in order; NULL after the last. */
const char *preset_name(size_t index);
#define PRESET_MAX_NAMES 32
#define PRESET_N_TEKKEN 20
/* Adds the specials that a tekken.json up to version 7 leaves out: ids 0 to PRESET_N_TEKKEN - 1. */
bool preset_add_tekken_specials(model *m, failure *err);
/* Sets pattern, normalizer, specials, bos_id and eos_id. false: the preset is for files with
 * another number of ranks, or the expression cannot be matched as tiktoken does. */
bool preset_apply(preset_choice choice, model *m, uint32_t n_ranks, failure *err);
