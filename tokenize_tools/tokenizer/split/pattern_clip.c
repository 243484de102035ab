/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_clip.c - CLIP's expression, whose blanks are removed: words are letters, one number, or
 * others. The older files of the text encoders know no specials. */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_algebra.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/text_cut.h"

/* Special tokens are rare, and left to the scalar splitter. */
SPLITTER_INLINE bool may_have_special(const block *b, uint64_t starts)
{
    for (; starts != 0; starts &= starts - 1) {
        const uint8_t *at = b->bytes + lowest(starts);
        if (at[0] == '<' && at[1] == '|')
            return true;
    }
    return false;
}

SPLITTER_INLINE uint64_t clip_like(carry *c, const block *b, const block *next, bool has_specials,
                                   const pieces *p)
{
    uint64_t visible = b->exists & ~b->blank, other = visible & ~(b->letter | b->number);
    uint64_t same =
        (b->letter & next_to(b->letter, c->letter)) | (other & next_to(other, c->other));
    uint64_t starts = (visible & ~same) | (b->blank & ~next_to(b->blank, c->blank)) | p->begin;
    uint64_t apostrophes = starts & b->apostrophe & ahead(b->letter, next->letter, 1);
    contractions found = first_contractions(c, b, apostrophes, false, p);
    if (has_specials)
        c->undecided |= may_have_special(b, starts & other & ~b->wide);
    c->letter = b->letter;
    c->other = other;
    c->blank = b->blank;
    found.joined &= ~apostrophes;
    return ((starts & ~found.joined) | found.forced) & b->lead;
}

static uint64_t clip_words(carry *c, const block *b, const block *next, const pieces *p)
{
    return clip_like(c, b, next, true, p);
}

static uint64_t clip_old_words(carry *c, const block *b, const block *next, const pieces *p)
{
    return clip_like(c, b, next, false, p);
}

/* ---- The rows ---- */

#define REGEX_WORDS                                                                                \
    "'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "[\\p{L}]+", "[\\p{N}]", "[^\\s\\p{L}\\p{N}]+"

const split_stage stage_clip = {
    .name = "clip",
    .alternatives = {"<\\|startoftext\\|>", "<\\|endoftext\\|>", REGEX_WORDS},
    .drops_blanks = true,
    .cuts = CUT_ANYWHERE,
    .words = clip_words,
};

const split_stage stage_clip_old = {
    .name = "clip_old",
    .alternatives = {REGEX_WORDS},
    .drops_blanks = true,
    .cuts = CUT_ANYWHERE,
    .words = clip_old_words,
};
