/* SPDX-License-Identifier: Apache-2.0 */
/* normalizer_cuts.h - whether the steps of a normalizer handle two neighbours in a text
 * independently. Pure. */
#ifndef TOKMAP_NORMALIZER_CUTS_H
#define TOKMAP_NORMALIZER_CUTS_H

#include "tokenizer/normalize/step_list.h"

/* Replaces a character by the result of the rules for it alone. false: that is not exactly one
 * character. */
bool cut_map(const charsmap *map, uint32_t *character);
/* normalizer_cuts for the steps of a tokenizer.json. */
bool cut_steps(const step_list *list, const uint32_t *around, uint32_t beside[2]);

#endif /* TOKMAP_NORMALIZER_CUTS_H */
