/* SPDX-License-Identifier: Apache-2.0 */
/* splitter_families.h - what cl100k and its relatives differ in, and their algebra. */
#ifndef TOKMAP_SPLITTER_FAMILIES_H
#define TOKMAP_SPLITTER_FAMILIES_H

#include "tokenizer/split/splitter_algebra.h"
#include "tokenizer/split/splitter_scalar.h"

typedef struct family {
    unsigned letters; /* what words are made of, after [^\r\n\p{L}\p{N}]? */
    unsigned others;  /* what runs of other characters are made of */
    bool joiners;     /* U+200C and U+200D are letters too */
    bool han;         /* \p{Han} is no letter; [\p{Han}]+ comes first */
    bool cased;       /* a word ends where lower case is followed by upper case */
    bool contraction_first, contraction_last;
    bool no_tail;  /* nothing, or else ... */
    bool slashes;  /* [\r\n/]*, or else [\r\n]* after other characters */
    bool trailing; /* blanks at the end are one word, with their newlines */
    bool powers;   /* blanks before a word in groups of 512, 256 ... 1 */
    int n_digits;  /* of a group; 0: any number */
} family;

/* Those that come after other splits too. */
static const family qwen2 = {LETTERS, OTHERS, .contraction_first = true, .n_digits = 1};
static const family cl100k_any_digits = {LETTERS, OTHERS, .contraction_first = true};
static const family o200k_each_digit = {LETTERS | MARKS,          OTHERS,          .cased = true,
                                        .contraction_last = true, .slashes = true, .n_digits = 1};

bool split_is_joiner(uint32_t code_point);
bool split_is_han(uint32_t code_point);

/* A single character that is not a letter, number or newline joins the letters after it if a word
 * starts at it. That is the first of a run of others, or any blank. Returns where words of others
 * start. */
SPLITTER_INLINE uint64_t other_words(carry *c, const block *b, uint64_t other, uint64_t *absorbed,
                                     const pieces *p)
{
    uint64_t before = next_to(other | b->space, c->other | c->space) & ~p->begin;
    uint64_t first = other & b->lead & ~before;
    uint64_t first_bytes = all_bytes(first, c->other_first, b);
    uint64_t absorbing = first_bytes | (b->blank & ~b->newline);
    *absorbed = next_to(absorbing, c->absorbed) & ~p->begin;
    c->other = other;
    c->other_first = first_bytes;
    c->absorbed = absorbing;
    c->space = b->space;
    return first;
}

SPLITTER_INLINE uint64_t number_words(carry *c, const block *b, int n_digits, const pieces *p)
{
    uint64_t starts = b->number & b->lead;
    if (n_digits != 1)
        starts = digit_groups(c, b, starts & (~next_to(b->number, c->number) | p->begin),
                              (unsigned)n_digits);
    c->number = b->number;
    return starts;
}

/* Whether the text ends with blanks, in one of the two blocks, or a piece does. */
SPLITTER_INLINE bool ends_with_blank(const block *b, const block *next, const pieces *p)
{
    if ((p->begin & b->blank << 1) | (p->begin_after & next_to(next->blank, b->blank)))
        return true;
    if (next->exists == ~(uint64_t)0)
        return false;
    return next->exists ? next->blank & (next->exists ^ next->exists >> 1)
                        : b->blank & (b->exists ^ b->exists >> 1);
}

SPLITTER_INLINE uint64_t cl100k_words(carry *c, const block *b, const block *next, const pieces *p)
{
    const family *f = c->family;
    uint64_t visible = b->exists & ~b->blank, visible_after = next->exists & ~next->blank;
    uint64_t other = visible & ~(b->letter | b->number), absorbed, tail = 0;
    if (!f->no_tail)
        tail = through(next_to(other, c->other) | (c->tail >> 63), b->newline & ~p->begin);
    uint64_t starts = other_words(c, b, other, &absorbed, p);
    uint64_t apostrophes = starts & b->apostrophe & ahead(b->letter, next->letter, 1);
    starts |= b->letter & ~(next_to(b->letter, c->letter) & ~p->begin) & ~absorbed;
    starts |= number_words(c, b, f->n_digits, p);
    uint64_t last =
        followed_by(b->blank, visible & ~p->begin, visible_after & ~p->begin_after, b, next);
    uint64_t blanks = (last & ~b->newline) | blank_words(c, b, next, tail, p);
    if (f->powers) { /* shorter runs are split as without */
        const uint64_t blank = b->blank & ~b->newline, blank_after = next->blank & ~next->newline;
        c->undecided |= (blank & ahead(blank, blank_after, 1) & ahead(blank, blank_after, 2)) != 0;
    }
    c->undecided |= f->trailing && ends_with_blank(b, next, p);
    /* `joined` is not used: the letters of contractions are in `absorbed`. */
    starts |= blanks | first_contractions(c, b, apostrophes, true, p).forced;
    c->letter = b->letter;
    return (starts | p->begin) & b->lead;
}

/* Marks are letters, except inside a word of others. Such a word starts where a second other
 * character follows the first, or where the first follows a space; it continues through marks. */
SPLITTER_INLINE uint64_t marks_as_others(carry *c, const block *b, uint64_t other, uint64_t mark,
                                         const pieces *p)
{
    uint64_t marks_before = c->mark_as_other;
    c->mark_as_other = 0;
    if ((mark & ~p->begin & next_to(other, c->other | marks_before)) == 0)
        return 0;
    uint64_t second = other & b->lead & next_to(other | b->space, c->other | c->space) & ~p->begin;
    uint64_t going_on = ((c->other & ~c->other_first) | marks_before) >> 63;
    c->mark_as_other = mark & through(second | going_on, (other | mark) & ~p->begin);
    return c->mark_as_other;
}

/* Where [U]*[L]+ splits letters, with caseless letters in both sets: at an upper case letter after
 * a lower case one, with only caseless letters between them; and at a run of upper case letters
 * that ends the letters, if a caseless letter precedes it. */
SPLITTER_INLINE uint64_t cased_words(carry *c, const block *b, const block *next, uint64_t letter,
                                     const pieces *p)
{
    uint64_t caseless = letter & (b->caseless | b->mark);
    uint64_t lower = letter & ~(b->upper | caseless);
    uint64_t seeds = next_to(lower, c->lower_word);
    uint64_t lower_word = lower | through(seeds, caseless & ~p->begin);
    uint64_t starts = b->upper & next_to(lower_word, c->lower_word);
    uint64_t candidates = b->upper & b->lead & next_to(caseless, c->caseless) & ~starts & ~p->begin;
    uint64_t letter_after = (next->letter | next->mark) & ~p->begin_after;
    for (; candidates != 0; candidates &= candidates - 1) {
        unsigned end =
            run_end(b->upper & ~p->begin, next->upper & ~p->begin_after, lowest(candidates));
        c->undecided |= end == 128 || (end >= 64 && has_bit(0, next->caseless | next->mark, end));
        if (end < 128 && !has_bit(letter & ~p->begin, letter_after, end))
            starts |= candidates & -candidates;
    }
    c->lower_word = lower_word;
    c->caseless = caseless;
    return starts;
}

/* For each apostrophe after a word of letters. A word starts after the contraction. If an
 * apostrophe is next, it starts that word and is not part of a contraction. */
SPLITTER_INLINE contractions last_contractions(carry *c, const block *b, const block *next,
                                               uint64_t apostrophes, const pieces *p)
{
    contractions found = {c->forced, c->joined};
    c->forced = c->joined = 0;
    for (; apostrophes != 0; apostrophes &= apostrophes - 1) {
        unsigned i = lowest(apostrophes);
        unsigned n = contraction_of(b, i, true, p);
        if (n == 0 || found.forced >> i & 1)
            continue;
        join(c, i, n, &found);
        /* The word after it starts with a caseless letter, but `lower_word` is still set. */
        c->undecided |= has_bit(b->caseless | b->mark, next->caseless | next->mark, i + n);
    }
    return found;
}

SPLITTER_INLINE uint64_t o200k_words(carry *c, const block *b, const block *next, const pieces *p)
{
    const family *f = c->family;
    uint64_t visible = b->exists & ~b->blank, visible_after = next->exists & ~next->blank;
    uint64_t letters = b->letter, mark = b->mark, slash = f->slashes ? b->slash : 0, han = 0;
    if (f->joiners)
        mark |= found_bytes(&c->found, b, b->high & ~b->letter, split_is_joiner);
    if (f->han) {
        uint64_t han_before = c->found;
        han = b->cjk | found_bytes(&c->found, b, b->high & ~b->cjk, split_is_han);
        c->found = han;
        c->undecided |= (han & ~b->letter) != 0;
        letters &= ~han;
        han &= ~(next_to(han, han_before) & ~p->begin);
    }
    uint64_t other = visible & ~(b->letter | mark | b->number), absorbed;
    uint64_t marks = marks_as_others(c, b, other, mark, p);
    uint64_t letter = letters | (mark & ~marks);
    other |= marks;
    uint64_t tail = through((b->newline & next_to(other, c->other)) | (c->tail >> 63),
                            (b->newline | slash) & ~p->begin);
    c->undecided |= marks != 0 && (tail & slash) != 0;
    other &= ~tail;
    uint64_t starts = other_words(c, b, other, &absorbed, p);
    uint64_t first_apostrophes = starts & b->apostrophe & ahead(b->letter, next->letter, 1);
    uint64_t apostrophes = b->apostrophe & next_to(letter, c->letter) & ~p->begin;
    starts |= (letter & ~(next_to(letter, c->letter) & ~p->begin) & ~absorbed) | han;
    if (f->cased)
        starts |= cased_words(c, b, next, letter, p);
    starts |= number_words(c, b, f->n_digits, p);
    uint64_t last =
        followed_by(b->blank, visible & ~p->begin, visible_after & ~p->begin_after, b, next);
    starts |= (last & ~b->newline) | blank_words(c, b, next, tail, p);
    contractions found = {0};
    if (f->contraction_last)
        found = last_contractions(c, b, next, apostrophes, p);
    if (f->contraction_first) /* their letters are in `absorbed` */
        starts |= first_contractions(c, b, first_apostrophes, true, p).forced;
    c->letter = letter;
    return ((starts & ~found.joined) | found.forced | p->begin) & b->lead;
}

#endif /* TOKMAP_SPLITTER_FAMILIES_H */
