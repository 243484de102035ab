/* sp_cuts.h - whether the steps of a normalizer look at two neighbors in a text apart. Pure. */
#ifndef TOKMAP_SP_CUTS_H
#define TOKMAP_SP_CUTS_H

#include "tokenizer/chars/charsmap.h"

/* Replaces a character that is looked at alone by what the rules make of it. false: that is not
 * exactly one character. */
bool sp_cut_map(const charsmap *map, uint32_t *character);
/* sp_normalizer_cuts for the steps of a tokenizer.json. */
bool sp_cut_steps(const normalize_step *steps, size_t n_steps, const charsmap *map,
                  const uint32_t *around, uint32_t beside[2]);

#endif /* TOKMAP_SP_CUTS_H */
