/* presets.h - what --pattern brings beside the pattern: the files of tiktoken hold ranks and
 * nothing else. */
#ifndef TOKMAP_PRESETS_H
#define TOKMAP_PRESETS_H

#include "model.h"

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
    uint32_t n_ranks; /* the specials go with files that have this many; 0: with any */
    bool from_ranks;  /* their ids are counted from the number of ranks */
    const preset_special *specials;
    size_t n_specials;
    const char *bos, *eos; /* or NULL */
} preset;

#define PRESET_TEKKEN "tekken"
/* The first of this name, NULL if there is none. */
const preset *preset_find(const char *name);
/* All names, "gpt2, cl100k, ..."; static. */
const char *preset_names(void);
#define PRESET_N_TEKKEN 20
/* Those that a tekken.json up to version 7 leaves out: ids 0 to PRESET_N_TEKKEN - 1. */
bool preset_add_tekken_specials(model *m, model_error *err);
/* Sets pattern and normalizer; specials, bos_id and eos_id where they go with so many ranks. */
bool preset_apply(const preset *p, model *m, uint32_t n_ranks, model_error *err);

#endif /* TOKMAP_PRESETS_H */
