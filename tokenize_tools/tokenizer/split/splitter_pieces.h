/* SPDX-License-Identifier: Apache-2.0 */
/* splitter_pieces.h - the algebra of splits at classes of characters, alone and before others. Each
 * function adds the starts of its own stage to those of the pieces before it. */
#ifndef TOKMAP_SPLITTER_PIECES_H
#define TOKMAP_SPLITTER_PIECES_H

#include "tokenizer/split/splitter_algebra.h"
#include "tokenizer/split/splitter_families.h"

/* [X]+ */
SPLITTER_INLINE uint64_t run_words(uint64_t *before, uint64_t x, const block *b)
{
    const uint64_t starts = edges(x, *before);
    *before = x;
    return starts & b->lead;
}

/* [X] */
SPLITTER_INLINE uint64_t one_words(uint64_t *before, uint64_t x, const block *b)
{
    const uint64_t starts = x | next_to(x, *before);
    *before = x;
    return starts & b->lead;
}

/* \p{N}{1,3} */
SPLITTER_INLINE uint64_t number_groups(carry *c, const block *b, const pieces *p)
{
    const uint64_t runs = edges(b->number, c->number);
    return (number_words(c, b, 3, p) | runs) & b->lead;
}

/* A class in two blocks, and in the block before. */
typedef struct class_masks {
    uint64_t here, after, *before;
} class_masks;

/* \s?[X]+; c->blank is left to the caller. */
SPLITTER_INLINE uint64_t blank_run_words(const carry *c, class_masks x, const block *b,
                                         const block *next, const pieces *p)
{
    const uint64_t blank = b->blank & ~x.here, after = next_to(x.here, *x.before);
    const uint64_t joined = next_to(blank, c->blank & ~*x.before) & ~p->begin;
    uint64_t starts = (x.here & ~after & ~joined) | (after & ~x.here);
    starts |= followed_by(blank, x.here & ~p->begin, x.after & ~p->begin_after, b, next);
    *x.before = x.here;
    return starts & b->lead;
}

/* \s+$ */
SPLITTER_INLINE uint64_t last_blank_words(carry *c, const block *b, const block *next,
                                          const pieces *p)
{
    const uint64_t blank = b->blank & ~p->begin, blank_after = next->blank & ~p->begin_after;
    uint64_t starts = blank & b->lead & ~next_to(b->blank, c->blank);
    c->undecided |= ((b->newline & ~p->begin) | (next->newline & ~p->begin_after)) != 0;
    for (uint64_t left = starts; left != 0; left &= left - 1) {
        const unsigned end = run_end(blank, blank_after, lowest(left));
        c->undecided |= end == 128;
        if (end < 128 && has_bit(b->exists & ~p->begin, next->exists & ~p->begin_after, end))
            starts &= ~(left & -left);
    }
    return starts;
}

/* Newlines that are \r?\n: all but a \r before something else. */
SPLITTER_INLINE uint64_t line_ends(const block *b)
{
    uint64_t found = b->newline;
    for (uint64_t left = b->newline; left != 0; left &= left - 1) {
        const uint8_t *at = b->bytes + lowest(left);
        if (at[0] == '\r' && at[1] != '\n')
            found &= ~(left & -left);
    }
    return found;
}

/* (?:\r?\n)+, merged with what follows */
SPLITTER_INLINE uint64_t line_words(carry *c, const block *b)
{
    const uint64_t ends = line_ends(b), starts = ends & ~next_to(ends, c->line_ends);
    c->line_ends = ends;
    return starts;
}

/* Runs of the same one of Youtu's classes, of which the last is b->cjk. */
SPLITTER_INLINE uint64_t youtu_class_words(carry *c, const block *b)
{
    uint64_t found[SPLIT_YOUTU_CLASSES + 1] = {0}, starts = 0;
    for (uint64_t left = b->high & ~b->cjk; left != 0; left &= left - 1) {
        const unsigned i = lowest(left);
        uint32_t code_point = 0;
        if (utf8_decode(b->bytes + i, 4, &code_point) > 0)
            found[split_youtu_class(code_point)] |= bit(i);
    }
    for (int k = 1; k < SPLIT_YOUTU_CLASSES; k++)
        starts |= run_words(&c->youtu[k], all_bytes(found[k], c->youtu[k], b), b);
    return starts | run_words(&c->cjk, b->cjk, b);
}

/* Every third byte of [i, end), in two blocks; those of the next one are kept in c->groups. */
SPLITTER_INLINE uint64_t each_third(carry *c, unsigned i, unsigned end)
{
    uint64_t found = 0;
    for (; i < end; i += 3) {
        if (i < 64)
            found |= bit(i);
        else
            c->groups |= bit(i - 64);
    }
    return found;
}

/* The end of the run of digits that begins at byte i, in its piece. Digits of several bytes are
 * left to the scalar splitter. */
SPLITTER_INLINE unsigned digits_run_end(carry *c, const block *b, const block *next, unsigned i,
                                        const pieces *p)
{
    const uint64_t inside = (b->number & ~p->begin) | bit(i);
    const unsigned end = run_end(inside, next->number & ~p->begin_after, i);
    c->undecided |= end == 128 || (next->number & next->wide) != 0;
    return end;
}

SPLITTER_INLINE uint64_t digits_runs(carry *c, const block *b, const pieces *p)
{
    c->undecided |= (b->number & b->wide) != 0;
    return c->undecided ? 0 : b->number & ~(next_to(b->number, c->number) & ~p->begin);
}

/* The character at byte i of two blocks. */
SPLITTER_INLINE character block_char(const block *b, const block *next, unsigned i)
{
    uint32_t code_point = UINT32_MAX;
    if (!has_bit(b->exists, next->exists, i) ||
        utf8_decode(i < 64 ? b->bytes + i : next->bytes + (i - 64), 4, &code_point) == 0)
        return (character){UINT32_MAX, CLASS_END, 1};
    return (character){code_point, class_of(code_point), 1};
}

/* (?=(\d{3})+(?!\d)) */
SPLITTER_INLINE uint64_t thousands_only_groups(carry *c, const block *b, const block *next,
                                               const pieces *p)
{
    uint64_t found = c->groups;
    c->groups = 0;
    for (uint64_t left = digits_runs(c, b, p); left != 0; left &= left - 1) {
        const unsigned i = lowest(left), end = digits_run_end(c, b, next, i, p);
        if (c->undecided)
            break;
        found |= each_third(c, i + (end - i) % 3, end);
    }
    return found;
}

#endif /* TOKMAP_SPLITTER_PIECES_H */
