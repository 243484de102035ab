/* splitter_algebra.h - the words of one block, by shifts and ands over its masks.
 *
 * next_to(x) are the bytes after those of x, ahead(x, n) those n bytes before them. A run is a
 * stretch of neighbouring bits; through(seeds, run) are the bits of runs from a seed on, found by
 * the carry of an addition. splitter_scalar.c says what each pattern means. */
#ifndef TOKMAP_SPLITTER_ALGEBRA_H
#define TOKMAP_SPLITTER_ALGEBRA_H

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

/* Where the run that holds bit i ends, in two blocks; 128 if it goes on after them. */
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

/* First bytes of the characters of `which` whose next character is of `then`; none is of both. */
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

/* ---- What several patterns have ---- */

/* \p{N}{1,3}, a group from each of `begins` on, where runs begin. Characters count, not bytes. */
SPLITTER_INLINE uint64_t wide_digit_groups(carry *c, const block *b, uint64_t begins)
{
    uint64_t groups = 0;
    unsigned n_digits = c->digits;
    for (uint64_t left = b->number & b->lead; left != 0; left &= left - 1) {
        uint64_t digit = left & -left;
        if (begins & digit || n_digits == 3) {
            groups |= digit;
            n_digits = 0;
        }
        n_digits++;
    }
    c->digits = n_digits;
    return groups;
}

/* Where the last run has no group it is too short for one: then c->digits, more than three, makes
 * none in the next block. */
SPLITTER_INLINE uint64_t ascii_digit_groups(carry *c, uint64_t number, uint64_t begins)
{
    uint64_t groups = begins, third = number & number << 1 & number << 2;
    if (c->digits <= 3 && number & ~begins & 1 && run_end(number, 0, 0) > 3 - c->digits)
        groups |= bit(3 - c->digits);
    for (uint64_t more = groups << 3 & third; more != 0; more = more << 3 & third)
        groups |= more;
    if (number >> 63)
        c->digits = groups == 0 ? 64 : (unsigned)__builtin_clzll(groups) + 1;
    return groups;
}

SPLITTER_INLINE uint64_t digit_groups(carry *c, const block *b, uint64_t begins)
{
    if (b->number == 0)
        return 0;
    return b->number & b->wide ? wide_digit_groups(c, b, begins)
                               : ascii_digit_groups(c, b->number, begins);
}

/* All bytes of the characters of which `first` are the first bytes. */
SPLITTER_INLINE uint64_t all_bytes(uint64_t first, uint64_t first_before, const block *b)
{
    return first | through(next_to(first, first_before), b->wide & ~b->lead);
}

/* Of the blanks after a newline, those that begin a word: \s*[\r\n]+ goes on to the last newline
 * of the run, so these are not followed by blanks and another newline. */
SPLITTER_INLINE uint64_t after_last_newline(carry *c, uint64_t candidates, const block *b,
                                            const block *next)
{
    uint64_t blank = b->blank & ~b->newline, blank_after = next->blank & ~next->newline;
    uint64_t ends = b->newline & blank << 1;
    uint64_t ends_after = next->newline & next_to(blank_after, blank);
    if (candidates == 0 || ((ends | ends_after) == 0 && blank_after != ~(uint64_t)0))
        return candidates;
    uint64_t found = candidates;
    for (uint64_t left = candidates; left != 0; left &= left - 1) {
        unsigned end = run_end(blank, blank_after, lowest(left));
        c->undecided |= end == 128;
        if (end < 128 && has_bit(b->newline, next->newline, end))
            found &= ~(left & -left);
    }
    return found;
}

/* Notes that the word at byte i, of n <= 3 bytes, is a contraction; *joined are all its bytes. */
SPLITTER_INLINE void join(carry *c, unsigned i, unsigned n, uint64_t *joined, uint64_t *forced)
{
    uint64_t bytes = bit(n) - 1;
    *joined |= bytes << i;
    if (i + n < 64)
        *forced |= bit(i + n);
    else
        c->forced |= bit(i + n - 64);
    if (i + n > 64)
        c->joined |= bytes >> (64 - i);
}

/* For each apostrophe that begins a word. Returns what begins words after contractions. */
SPLITTER_INLINE uint64_t first_contractions(carry *c, const block *b, uint64_t apostrophes,
                                            bool any_case, uint64_t *joined)
{
    uint64_t forced = c->forced;
    *joined = c->joined;
    c->forced = c->joined = 0;
    for (; apostrophes != 0; apostrophes &= apostrophes - 1) {
        unsigned i = lowest(apostrophes);
        unsigned n = (unsigned)split_contraction(b->bytes + i, 3, any_case);
        if (n > 0)
            join(c, i, n, joined, &forced);
    }
    return forced;
}

/* For each apostrophe that ends a word of letters. What follows begins a word, also an apostrophe,
 * which then is not of a contraction. */
SPLITTER_INLINE uint64_t last_contractions(carry *c, const block *b, const block *next,
                                           uint64_t apostrophes, uint64_t *joined)
{
    uint64_t forced = c->forced;
    *joined = c->joined;
    c->forced = c->joined = 0;
    for (; apostrophes != 0; apostrophes &= apostrophes - 1) {
        unsigned i = lowest(apostrophes);
        unsigned n = (unsigned)split_contraction(b->bytes + i, 3, true);
        if (n == 0 || forced >> i & 1)
            continue;
        join(c, i, n, joined, &forced);
        /* A word that begins without case would have to forget the lower case before it. */
        c->undecided |= has_bit(b->caseless | b->mark, next->caseless | next->mark, i + n);
    }
    return forced;
}

/* ---- GPT-2, StarCoder ---- */

SPLITTER_INLINE uint64_t gpt2_like(carry *c, const block *b, const block *next, bool single_digits)
{
    uint64_t visible = b->exists & ~b->blank, visible_after = next->exists & ~next->blank;
    uint64_t other = visible & ~(b->letter | b->number), number = b->number, joined;
    uint64_t same =
        (b->letter & next_to(b->letter, c->letter)) | (other & next_to(other, c->other));
    uint64_t after_space = next_to(b->space, c->space);
    if (single_digits) { /* and pieces end before them */
        after_space &= ~number;
        visible_after &= ~next->number;
    } else {
        same |= number & next_to(number, c->number);
    }
    uint64_t starts = visible & ~same & ~after_space;
    uint64_t apostrophes = starts & b->apostrophe & ahead(b->letter, next->letter, 1);
    starts |= b->blank & ~next_to(b->blank, c->blank);
    starts |=
        followed_by(b->blank, single_digits ? visible & ~number : visible, visible_after, b, next);
    uint64_t forced = first_contractions(c, b, apostrophes, false, &joined);
    c->letter = b->letter;
    c->other = other;
    c->number = number;
    c->space = b->space;
    c->blank = b->blank;
    joined &= ~apostrophes;
    return ((starts & ~joined) | forced) & b->lead;
}

SPLITTER_INLINE uint64_t gpt2_words(carry *c, const block *b, const block *next)
{
    return gpt2_like(c, b, next, false);
}

SPLITTER_INLINE uint64_t starcoder_words(carry *c, const block *b, const block *next)
{
    return gpt2_like(c, b, next, true);
}

/* ---- Falcon ---- */

/* The last two passes see bytes: runs of digits, and [0-9][0-9][0-9] in them. Those of more than
 * two ASCII digits begin where the ASCII digits do. */
SPLITTER_INLINE uint64_t falcon_digits(carry *c, const block *b, const block *next, uint64_t words)
{
    uint64_t ascii = b->number & ~b->wide, ascii_after = next->number & ~next->wide;
    uint64_t digits = ascii | b->high_digits, digits_before = c->ascii_digits | c->high_digits;
    uint64_t long_run = ahead(ascii, ascii_after, 1) & ahead(ascii, ascii_after, 2);
    uint64_t after_high = next_to(b->high_digits, c->high_digits);
    uint64_t begins = ascii & (~next_to(digits, digits_before) | words | (after_high & long_run));
    uint64_t starts = digits ^ next_to(digits, digits_before);
    if (c->ascii_digits >> 63 == 0)
        c->digits = 64; /* a high digit may stand there, but no group goes on from it */
    if (ascii != 0)
        starts |= ascii_digit_groups(c, ascii, begins);
    c->ascii_digits = ascii;
    c->high_digits = b->high_digits;
    return starts;
}

/* Runs of punctuation are words, and GPT-2's expression does not see over them; so there are no
 * contractions. */
SPLITTER_INLINE uint64_t falcon_words(carry *c, const block *b, const block *next)
{
    uint64_t visible = b->exists & ~b->blank, visible_after = next->exists & ~next->blank;
    uint64_t letter = b->letter, number = b->number, punctuation = b->punctuation;
    uint64_t other = visible & ~(letter | number | punctuation);
    uint64_t same = (letter & next_to(letter, c->letter)) | (other & next_to(other, c->other)) |
                    (number & next_to(number, c->number)) |
                    (punctuation & next_to(punctuation, c->punctuation));
    uint64_t after_space = next_to(b->space, c->space) & ~punctuation;
    uint64_t starts = (visible & ~same & ~after_space) | (b->blank & ~next_to(b->blank, c->blank));
    starts |=
        followed_by(b->blank, visible & ~punctuation, visible_after & ~next->punctuation, b, next);
    starts &= b->lead;
    c->letter = letter;
    c->other = other;
    c->number = number;
    c->punctuation = punctuation;
    c->space = b->space;
    c->blank = b->blank;
    return starts | falcon_digits(c, b, next, starts);
}

/* ---- The family of cl100k ---- */

/* Blanks: the first of a run that is not of the tail of a word before, the first after the last
 * newline, and the last when something visible follows. */
SPLITTER_INLINE uint64_t blank_words(carry *c, const block *b, const block *next, uint64_t tail,
                                     uint64_t last)
{
    uint64_t after_newline = b->blank & ~b->newline & next_to(b->newline, c->newline);
    uint64_t starts = b->blank & ~tail & ~(next_to(b->blank, c->blank) & ~next_to(tail, c->tail));
    starts |= after_last_newline(c, after_newline, b, next) | (last & ~b->newline);
    c->blank = b->blank;
    c->newline = b->newline;
    c->tail = tail;
    return starts;
}

/* One character that is no letter, number or newline goes with the letters after it, if it begins
 * a word itself: others, and any blank. Returns the words of others. */
SPLITTER_INLINE uint64_t other_words(carry *c, const block *b, uint64_t other, uint64_t *absorbed)
{
    uint64_t first = other & b->lead & ~next_to(other, c->other) & ~next_to(b->space, c->space);
    uint64_t first_bytes = all_bytes(first, c->other_first, b);
    uint64_t absorbing = first_bytes | (b->blank & ~b->newline);
    *absorbed = next_to(absorbing, c->absorbed);
    c->other = other;
    c->other_first = first_bytes;
    c->absorbed = absorbing;
    c->space = b->space;
    return first;
}

SPLITTER_INLINE uint64_t number_words(carry *c, const block *b, bool by_three)
{
    uint64_t starts = b->number & b->lead;
    if (by_three)
        starts = digit_groups(c, b, starts & ~next_to(b->number, c->number));
    c->number = b->number;
    return starts;
}

SPLITTER_INLINE uint64_t cl100k_like(carry *c, const block *b, const block *next, bool by_three)
{
    uint64_t visible = b->exists & ~b->blank, visible_after = next->exists & ~next->blank;
    uint64_t other = visible & ~(b->letter | b->number), absorbed, joined;
    uint64_t tail = through(next_to(other, c->other) | (c->tail >> 63), b->newline);
    uint64_t starts = other_words(c, b, other, &absorbed);
    uint64_t apostrophes = starts & b->apostrophe & ahead(b->letter, next->letter, 1);
    starts |= b->letter & ~next_to(b->letter, c->letter) & ~absorbed;
    starts |= number_words(c, b, by_three);
    starts |= blank_words(c, b, next, tail, followed_by(b->blank, visible, visible_after, b, next));
    starts |= first_contractions(c, b, apostrophes, true, &joined);
    c->letter = b->letter;
    return starts & b->lead; /* the letters of contractions are absorbed, and not joined */
}

SPLITTER_INLINE uint64_t cl100k_words(carry *c, const block *b, const block *next)
{
    return cl100k_like(c, b, next, true);
}

/* And qwen35, with marks as letters. */
SPLITTER_INLINE uint64_t qwen2_words(carry *c, const block *b, const block *next)
{
    return cl100k_like(c, b, next, false);
}

/* ---- o200k, tekken ---- */

/* Marks are letters, save in a word of others: one begins where a second other character follows
 * the first, or the first follows a space, and goes on through marks. */
SPLITTER_INLINE uint64_t marks_as_others(carry *c, const block *b, uint64_t other)
{
    uint64_t marks_before = c->mark_as_other;
    c->mark_as_other = 0;
    if ((b->mark & (next_to(other, c->other | marks_before))) == 0)
        return 0;
    uint64_t second = other & b->lead & next_to(other | b->space, c->other | c->space);
    uint64_t going_on = ((c->other & ~c->other_first) | marks_before) >> 63;
    c->mark_as_other = b->mark & through(second | going_on, other | b->mark);
    return c->mark_as_other;
}

/* [A]*[B]+ with A upper case and B lower case, both with the caseless: a word begins at upper case
 * after lower case, with only caseless between them; and at the last upper case run of all letters
 * if a caseless one stands before it. */
SPLITTER_INLINE uint64_t cased_words(carry *c, const block *b, const block *next, uint64_t letter)
{
    uint64_t caseless = b->caseless | (letter & b->mark);
    uint64_t lower = letter & ~(b->upper | caseless);
    uint64_t seeds = next_to(lower, c->lower_word);
    uint64_t lower_word = lower | through(seeds, caseless);
    uint64_t starts = b->upper & next_to(lower_word, c->lower_word);
    uint64_t candidates = b->upper & b->lead & next_to(caseless, c->caseless) & ~starts;
    uint64_t letter_after = next->letter | next->mark;
    for (; candidates != 0; candidates &= candidates - 1) {
        unsigned end = run_end(b->upper, next->upper, lowest(candidates));
        c->undecided |= end == 128;
        if (end < 128 && !has_bit(letter, letter_after, end))
            starts |= candidates & -candidates;
    }
    c->lower_word = lower_word;
    c->caseless = caseless;
    return starts;
}

SPLITTER_INLINE uint64_t o200k_like(carry *c, const block *b, const block *next, bool o200k)
{
    uint64_t visible = b->exists & ~b->blank, visible_after = next->exists & ~next->blank;
    uint64_t other = visible & ~(b->letter | b->mark | b->number), absorbed, joined = 0;
    uint64_t marks = marks_as_others(c, b, other);
    uint64_t letter = b->letter | (b->mark & ~marks);
    other |= marks;
    uint64_t tail =
        through((b->newline & next_to(other, c->other)) | (c->tail >> 63), b->newline | b->slash);
    c->undecided |= marks != 0 && (tail & b->slash) != 0;
    other &= ~tail;
    uint64_t starts = other_words(c, b, other, &absorbed);
    uint64_t apostrophes = b->apostrophe & next_to(letter, c->letter);
    starts |= letter & ~next_to(letter, c->letter) & ~absorbed;
    starts |= cased_words(c, b, next, letter);
    starts |= number_words(c, b, o200k);
    starts |= blank_words(c, b, next, tail, followed_by(b->blank, visible, visible_after, b, next));
    uint64_t forced = o200k ? last_contractions(c, b, next, apostrophes, &joined) : 0;
    c->letter = letter;
    return ((starts & ~joined) | forced) & b->lead;
}

SPLITTER_INLINE uint64_t o200k_words(carry *c, const block *b, const block *next)
{
    return o200k_like(c, b, next, true);
}

SPLITTER_INLINE uint64_t tekken_words(carry *c, const block *b, const block *next)
{
    return o200k_like(c, b, next, false);
}

/* ---- DeepSeek ---- */

SPLITTER_INLINE uint64_t deepseek_words(carry *c, const block *b, const block *next)
{
    uint64_t letter = b->letter, number = b->number, cjk = b->cjk, blank = b->blank;
    uint64_t unmatched = b->exists & ~(letter | number | blank | b->visible);
    uint64_t number_before = next_to(number, c->number);
    uint64_t inside = ~(number | number_before | (cjk ^ next_to(cjk, c->cjk))); /* of a piece */
    uint64_t ascii_letter = letter & ~b->wide;

    uint64_t visible_words =
        b->visible & b->lead & ~(inside & next_to(b->visible | b->space, c->visible | c->space));
    uint64_t ascii_first = next_to(visible_words, c->other_first); /* if it is ASCII */
    uint64_t ascii_word = through(ascii_first | (c->ascii_word >> 63), ascii_letter);
    uint64_t letter_before = next_to(letter, c->letter);
    uint64_t absorbing = unmatched | (blank & ~b->newline);
    uint64_t absorbed = inside & next_to(absorbing, c->absorbed);
    uint64_t starts =
        letter & ~(inside & letter_before) & ~absorbed & ~(ascii_letter & ascii_first);
    starts |= letter & ~ascii_letter & next_to(ascii_word, c->ascii_word);

    uint64_t tail =
        through((inside & next_to(b->visible, c->visible)) | (c->tail >> 63), b->newline);
    uint64_t then = letter | b->visible | unmatched, then_after = next->exists & ~next->blank;
    then_after &= ~(next->number | next->cjk);
    starts |= blank_words(c, b, next, tail, followed_by(blank, then & ~cjk, then_after, b, next));
    starts |= unmatched & ~(inside & next_to(unmatched, c->other));
    starts |= followed_by(unmatched & cjk, letter & cjk, next->letter & next->cjk, b, next);
    starts |= followed_by(unmatched & ~cjk, letter & ~cjk, next->letter & ~next->cjk, b, next);
    starts |= digit_groups(c, b, number & b->lead & ~number_before);

    c->letter = letter;
    c->number = number;
    c->cjk = cjk;
    c->visible = b->visible;
    c->space = b->space;
    c->other = unmatched;
    c->other_first = visible_words;
    c->ascii_word = ascii_word;
    c->absorbed = absorbing;
    return (starts | visible_words) & b->lead;
}

/* ---- All ---- */

/* false: the pattern has no algebra. */
SPLITTER_INLINE bool walk_text(walk *w, classify_function *classify)
{
    switch (w->pattern) {
    case SPLIT_GPT2:
        walk_blocks(w, 0, classify, gpt2_words);
        return true;
    case SPLIT_STARCODER:
        walk_blocks(w, WANT_HF_NUMERIC, classify, starcoder_words);
        return true;
    case SPLIT_CL100K:
        walk_blocks(w, 0, classify, cl100k_words);
        return true;
    case SPLIT_QWEN2:
        walk_blocks(w, 0, classify, qwen2_words);
        return true;
    case SPLIT_QWEN35:
        walk_blocks(w, WANT_MARKS_AS_LETTERS, classify, qwen2_words);
        return true;
    case SPLIT_O200K:
        walk_blocks(w, WANT_CASE, classify, o200k_words);
        return true;
    case SPLIT_TEKKEN:
        walk_blocks(w, WANT_CASE, classify, tekken_words);
        return true;
    case SPLIT_DEEPSEEK3:
        walk_blocks(w, WANT_DEEPSEEK, classify, deepseek_words);
        return true;
    case SPLIT_FALCON:
        walk_blocks(w, WANT_FALCON, classify, falcon_words);
        return true;
    case SPLIT_NONE:
    case SPLIT_N_PATTERNS:
        break;
    }
    return false;
}

#endif /* TOKMAP_SPLITTER_ALGEBRA_H */
