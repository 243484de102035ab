/* SPDX-License-Identifier: Apache-2.0 */
/* piece_step.h - walks a trie of pieces along a text in which a blank may stand for U+2581. */
#ifndef TOKMAP_PIECE_STEP_H
#define TOKMAP_PIECE_STEP_H

#include "tokenizer/words/double_array.h"

typedef struct piece_trie { /* starts as {0}, which must not be walked */
    double_array a;
    bool spaces_are_marks;
} piece_trie;

static inline bool piece_step(const piece_trie *t, uint32_t *state, uint8_t byte, bool *has_value)
{
    if (byte != ' ' || !t->spaces_are_marks)
        return double_array_step(&t->a, state, byte, has_value);
    return double_array_step(&t->a, state, 0xE2, has_value) &&
           double_array_step(&t->a, state, 0x96, has_value) &&
           double_array_step(&t->a, state, 0x81, has_value);
}

#endif /* TOKMAP_PIECE_STEP_H */
