/* presets.h - what --pattern brings beside the pattern: the files of tiktoken hold ranks and
 * nothing else. */
#ifndef TOKMAP_PRESETS_H
#define TOKMAP_PRESETS_H

#include "tokenizer/model/model.h"

/* A special, or several in a row that differ by a number. */
typedef struct preset_special {
    uint32_t id;      /* of the first */
    uint32_t n;       /* 0: one without a number */
    const char *text; /* with * for the number */
    uint32_t number;  /* of the first */
    bool plain;       /* not special: matches always */
} preset_special;

typedef struct preset {
    const char *name;
    split_pattern split;
    bool nfc;
    uint32_t n_ranks; /* of the files that it is for */
    bool from_ranks;  /* their ids are counted from the number of ranks */
    const preset_special *specials;
    size_t n_specials;
    const char *bos, *eos; /* or NULL */
} preset;

/* What --pattern chooses: a preset, or with PRESET_ANY behind its name only its pattern and
 * normalizer, for files of any number of ranks. */
typedef struct preset_choice {
    const preset *preset; /* the first of its name */
    bool any;
} preset_choice;

#define PRESET_TEKKEN "tekken"
#define PRESET_ANY ":any"
#define PRESET_NAMES_BYTES 160
/* false: there is none of this name, and err has all names. */
bool preset_find(preset_choice *choice, const char *name, model_error *err);
/* The names in order; NULL after the last. */
const char *preset_name(size_t index);
#define PRESET_MAX_NAMES 32
/* All names: "gpt2, p50k, ...". */
void preset_names(char names[PRESET_NAMES_BYTES]);
#define PRESET_N_TEKKEN 20
/* Those that a tekken.json up to version 7 leaves out: ids 0 to PRESET_N_TEKKEN - 1. */
bool preset_add_tekken_specials(model *m, model_error *err);
/* Sets pattern and normalizer, specials, bos_id and eos_id. false: a preset for files with another
 * number of ranks. */
bool preset_apply(preset_choice choice, model *m, uint32_t n_ranks, model_error *err);

#endif /* TOKMAP_PRESETS_H */
