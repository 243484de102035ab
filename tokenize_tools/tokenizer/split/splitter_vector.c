/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/split/splitter_vector.h"

/* The algebra of any stage. */
SPLITTER_INLINE uint64_t any_words(carry *c, const block *b, const block *next, const pieces *p)
{
    return c->words(c, b, next, p);
}

SPLIT_SCANNERS(any, s->stages[stage]->wanted, stage == 0)
