/* SPDX-License-Identifier: Apache-2.0 */
/* splitter_algebra.h - finds the words of one block by shifts and ands of its masks.
 *
 * next_to(x) are the bytes after those of x, ahead(x, n) the bytes n before them. A run is a
 * sequence of adjacent bits; through(seeds, run) are the bits of runs from a seed to the end of the
 * run, found by the carry of an addition. What only one pattern needs is in pattern_*.c. */
#pragma once

#include "tokenizer/split/splitter_blocks.h"
#include "tokenizer/split/splitter_scalar.h"

SPLITTER_INLINE uint64_t bit(unsigned i)
{
    return (uint64_t)1 << i;
}

SPLITTER_INLINE unsigned lowest(uint64_t mask)
{
    return (unsigned)__builtin_ctzll(mask);
}

SPLITTER_INLINE uint64_t next_to(uint64_t mask, uint64_t mask_before)
{
    return mask << 1 | mask_before >> 63;
}

SPLITTER_INLINE uint64_t ahead(uint64_t mask, uint64_t mask_after, unsigned n)
{
    return mask >> n | mask_after << (64 - n);
}

SPLITTER_INLINE uint64_t through(uint64_t seeds, uint64_t run)
{
    seeds &= run;
    return run & (~(run + seeds) | seeds);
}

/* Returns where the run that holds bit i ends, in two blocks; 128 if it continues after them. */
SPLITTER_INLINE unsigned run_end(uint64_t mask, uint64_t mask_after, unsigned i)
{
    uint64_t rest = ~mask >> i;
    if (rest != 0)
        return i + lowest(rest);
    return mask_after == ~(uint64_t)0 ? 128 : 64 + lowest(~mask_after);
}

SPLITTER_INLINE bool has_bit(uint64_t mask, uint64_t mask_after, unsigned i)
{
    return (i < 64 ? mask >> i : mask_after >> (i - 64)) & 1;
}

/* First bytes of those characters of `which` that a character of `then` follows. No character is in
 * both. */
SPLITTER_INLINE uint64_t followed_by(uint64_t which, uint64_t then, uint64_t then_after,
                                     const block *b, const block *next)
{
    uint64_t one = which & b->lead, found = one & ahead(then, then_after, 1);
    if ((one & b->wide) == 0)
        return found;
    uint64_t inner = b->wide & ~b->lead, inner_after = next->wide & ~next->lead;
    uint64_t two = one & ahead(inner, inner_after, 1);
    uint64_t three = two & ahead(inner, inner_after, 2);
    uint64_t four = three & ahead(inner, inner_after, 3);
    found |= (two & ahead(then, then_after, 2)) | (three & ahead(then, then_after, 3));
    return found | (four & ahead(then, then_after, 4));
}

/* Returns the edges of runs of a class. */
SPLITTER_INLINE uint64_t edges(uint64_t mask, uint64_t mask_before)
{
    return mask ^ next_to(mask, mask_before);
}

/* ---- What several patterns have ---- */

/* \p{N}{1,n}: where groups start, with n = 2 or 3; n = 0: where runs start. `begins` are the starts
 * of runs. Counts characters, not bytes. */
SPLITTER_INLINE uint64_t wide_digit_groups(carry *c, const block *b, uint64_t begins, unsigned n)
{
    uint64_t groups = 0;
    unsigned n_digits = c->digits;
    for (uint64_t left = b->number & b->lead; left != 0; left &= left - 1) {
        uint64_t digit = left & -left;
        if (begins & digit || n_digits == n) {
            groups |= digit;
            n_digits = 0;
        }
        n_digits++;
    }
    c->digits = n_digits;
    return groups;
}

/* If no group starts in the last run, the run is too short for one. Then c->digits is set to more
 * than n, so that none starts in the next block. */
SPLITTER_INLINE uint64_t ascii_digit_groups(carry *c, uint64_t number, uint64_t begins, unsigned n)
{
    uint64_t groups = begins, same = number & ~begins;
    uint64_t last = number & same << 1 & (n == 3 ? same << 2 : number);
    if (c->digits <= n && same & 1 && run_end(same, 0, 0) >= n - c->digits &&
        number >> (n - c->digits) & 1)
        groups |= bit(n - c->digits);
    for (uint64_t more = groups << n & last; more != 0; more = more << n & last)
        groups |= more;
    if (number >> 63)
        c->digits = groups == 0 ? 64 : (unsigned)__builtin_clzll(groups) + 1;
    return groups;
}

SPLITTER_INLINE uint64_t digit_groups(carry *c, const block *b, uint64_t begins, unsigned n)
{
    if (b->number == 0 || n == 0)
        return begins;
    return b->number & b->wide ? wide_digit_groups(c, b, begins, n)
                               : ascii_digit_groups(c, b->number, begins, n);
}

/* The bytes of those characters of `among` that `is_in`. *before: the same, in the block before. */
SPLITTER_INLINE uint64_t found_bytes(uint64_t *before, const block *b, uint64_t among,
                                     bool (*is_in)(uint32_t))
{
    uint64_t found = 0, inner = b->wide & ~b->lead;
    for (uint64_t left = among & b->lead; left != 0; left &= left - 1) {
        uint32_t code_point;
        const unsigned i = lowest(left);
        if (utf8_decode(b->bytes + i, 4, &code_point) > 1 && is_in(code_point))
            found |= bit(i);
    }
    *before = found | through(next_to(found, *before), inner);
    return *before;
}

/* Returns all bytes of the characters of which `first` are the first bytes. */
SPLITTER_INLINE uint64_t all_bytes(uint64_t first, uint64_t first_before, const block *b)
{
    return first | through(next_to(first, first_before), b->wide & ~b->lead);
}

/* Returns the blanks after a newline that start a word. \s*[\r\n]+ extends to the last newline of
 * the run, so a word starts only where no other newline follows in the run of blanks. */
SPLITTER_INLINE uint64_t after_last_newline(carry *c, uint64_t candidates, const block *b,
                                            const block *next, const pieces *p)
{
    uint64_t newline = b->newline & ~p->begin, newline_after = next->newline & ~p->begin_after;
    uint64_t blank = b->blank & ~(b->newline | p->begin);
    uint64_t blank_after = next->blank & ~(next->newline | p->begin_after);
    uint64_t ends = newline & blank << 1;
    uint64_t ends_after = newline_after & next_to(blank_after, blank);
    if (candidates == 0 || ((ends | ends_after) == 0 && blank_after != ~(uint64_t)0))
        return candidates;
    uint64_t found = candidates;
    for (uint64_t left = candidates & ~p->begin; left != 0; left &= left - 1) {
        unsigned end = run_end(blank, blank_after, lowest(left));
        c->undecided |= end == 128;
        if (end < 128 && has_bit(newline, newline_after, end))
            found &= ~(left & -left);
    }
    return found;
}

typedef struct contractions {
    uint64_t forced; /* words start here, after a contraction */
    uint64_t joined; /* the bytes of contractions */
} contractions;

/* Records a contraction of n <= 3 bytes at byte i. */
SPLITTER_INLINE void join(carry *c, unsigned i, unsigned n, contractions *found)
{
    uint64_t bytes = bit(n) - 1;
    found->joined |= bytes << i % 64;
    if (i + n < 64)
        found->forced |= bit(i + n);
    else
        c->forced |= bit(i + n - 64);
    if (i + n > 64)
        c->joined |= bytes >> (64 - i);
}

/* The length of the contraction that begins with the apostrophe at byte i, in its piece, or 0: 's
 * 't 'm 'd 're 've 'll. any_case also takes U+017F, the long s, for an s. */
SPLITTER_INLINE unsigned contraction_of(const block *b, unsigned i, bool any_case, const pieces *p)
{
    const uint8_t *text = b->bytes + i;
    const uint8_t fold = any_case ? 0x20 : 0; /* makes one of these letters only of a letter */
    const uint8_t first = text[1] | fold, second = text[2] | fold;
    unsigned n = 0;
    if (first == 's' || first == 't' || first == 'm' || first == 'd')
        n = 2;
    else if (((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l') ||
             (any_case && text[1] == 0xC5 && text[2] == 0xBF))
        n = 3;
    for (unsigned k = 1; k < n; k++)
        n = has_bit(p->begin, p->begin_after, i + k) ? 0 : n;
    return n;
}

/* Finds the contractions after apostrophes that start a word. */
SPLITTER_INLINE contractions first_contractions(carry *c, const block *b, uint64_t apostrophes,
                                                bool any_case, const pieces *p)
{
    contractions found = {c->forced, c->joined};
    c->forced = c->joined = 0;
    for (; apostrophes != 0; apostrophes &= apostrophes - 1) {
        unsigned i = lowest(apostrophes);
        unsigned n = contraction_of(b, i, any_case, p);
        if (n > 0)
            join(c, i, n, &found);
    }
    return found;
}

/* Words that start at blanks: the first blank of a run that is not in the tail of the word before,
 * and the first one after the last newline. */
SPLITTER_INLINE uint64_t blank_words(carry *c, const block *b, const block *next, uint64_t tail,
                                     const pieces *p)
{
    uint64_t after_newline = b->blank & ~b->newline & next_to(b->newline, c->newline);
    uint64_t same = next_to(b->blank, c->blank) & ~next_to(tail, c->tail) & ~p->begin;
    uint64_t starts = b->blank & ~tail & ~same;
    starts |= after_last_newline(c, after_newline, b, next, p);
    c->blank = b->blank;
    c->newline = b->newline;
    c->tail = tail;
    return starts;
}

/* Runs of letters, of numbers and of others, with a space before them, but not before those that
 * are `apart`; and \s+(?!\S)|\s+. */
SPLITTER_INLINE uint64_t gpt2_runs(carry *c, const block *b, const block *next, uint64_t apart,
                                   const pieces *p)
{
    uint64_t visible = b->exists & ~b->blank, visible_after = next->exists & ~next->blank;
    uint64_t other = visible & ~(b->letter | b->number);
    uint64_t same = (b->letter & next_to(b->letter, c->letter)) |
                    (other & next_to(other, c->other)) |
                    (b->number & next_to(b->number, c->number));
    uint64_t starts = visible & ~same & ~(next_to(b->space, c->space) & ~apart);
    starts |= (b->blank & ~next_to(b->blank, c->blank)) | p->begin;
    starts |= followed_by(b->blank, visible & ~p->begin, visible_after & ~p->begin_after, b, next);
    c->letter = b->letter;
    c->other = other;
    c->number = b->number;
    c->space = b->space;
    c->blank = b->blank;
    return starts;
}
