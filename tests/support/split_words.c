/* SPDX-License-Identifier: Apache-2.0 */
#include "support/split_words.h"

#include <stdlib.h>

#include "tokenizer/split/pattern.h"

static const splitter *kept(size_t i)
{
    static splitter *splitters[256];
    if (!splitters[i])
        splitters[i] = splitter_new(split_known(i), NULL);
    if (!splitters[i])
        abort();
    return splitters[i];
}

unsigned cuts_of(split_pattern p)
{
    static unsigned found[STAGE_N];
    if (p == SPLIT_NONE || p >= STAGE_N || kept(p)->stages[0]->match || kept(p)->joins[0])
        return split_cuts(p, NULL);
    if (found[p] == 0)
        found[p] = 1u << 31 | split_cuts(p, NULL) | expression_cuts(kept(p)->expressions[0]);
    return found[p] & ~(1u << 31);
}

void split_words(split_pattern p, simd_level e, const uint8_t *text, size_t n_bytes,
                 uint64_t *starts)
{
    splitter s = {.pattern = p};
    for (size_t i = 0; split_known(i) != SPLIT_UNKNOWN; i++) {
        if (split_known(i) == p) {
            splitter_words(kept(i), e, text, n_bytes, starts);
            return;
        }
    }
    for (; split_stage_at(p, s.n_stages); s.n_stages++) {
        const splitter *one = kept(split_stage_at(p, s.n_stages));
        s.stages[s.n_stages] = one->stages[0];
        s.expressions[s.n_stages] = one->expressions[0];
        s.joins[s.n_stages] = one->joins[0];
    }
    splitter_words(&s, e, text, n_bytes, starts);
}
