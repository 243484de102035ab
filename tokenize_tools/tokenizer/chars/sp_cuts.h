/* sp_cuts.h - whether the steps of a normalizer handle two neighbours in a text independently.
 * Pure. */
#ifndef TOKMAP_SP_CUTS_H
#define TOKMAP_SP_CUTS_H

#include "tokenizer/chars/charsmap.h"

/* Replaces a character by the result of the rules for it alone. false: that is not exactly one
 * character. */
bool sp_cut_map(const charsmap *map, uint32_t *character);
/* sp_normalizer_cuts for the steps of a tokenizer.json. */
bool sp_cut_steps(const normalize_step *steps, size_t n_steps, const charsmap *map,
                  const uint32_t *around, uint32_t beside[2]);

#endif /* TOKMAP_SP_CUTS_H */
