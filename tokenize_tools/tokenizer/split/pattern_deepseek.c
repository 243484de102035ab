/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_deepseek.c - DeepSeek's words, after splits at digits and at Chinese characters:
 *
 * deepseek    DeepSeek V3, R1
 * spark       without newlines after other characters, each newline alone: Spark-X2.5 */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_vector.h"
#include "tokenizer/split/splitter_scalar.h"

/* Finds words of [\r\n]|\s+(?!\S)|\s+, except the last blank of a run: newlines at its beginning
 * are words. */
SPLITTER_INLINE uint64_t blanks_and_newlines(carry *c, const block *b, const pieces *p)
{
    uint64_t first = b->blank & ~(next_to(b->blank, c->blank) & ~p->begin);
    uint64_t newlines = through(first | (next_to(0, c->tail) & b->newline), b->newline);
    uint64_t starts = first | newlines | (next_to(newlines, c->tail) & b->blank);
    c->blank = b->blank;
    c->tail = newlines;
    return starts;
}

SPLITTER_INLINE uint64_t deepseek_like(carry *c, const block *b, const block *next,
                                       bool newline_tail, const pieces *p)
{
    uint64_t letter = b->letter, blank = b->blank, inside = ~p->begin;
    uint64_t unmatched = b->exists & ~(letter | blank | b->visible);
    uint64_t ascii_letter = letter & ~b->wide;

    uint64_t visible_words =
        b->visible & b->lead & ~(inside & next_to(b->visible | b->space, c->visible | c->space));
    /* ASCII letters there follow ASCII punctuation. */
    uint64_t ascii_first = next_to(visible_words & ~b->wide, c->other_first) & inside;
    uint64_t ascii_word =
        through(ascii_first | (next_to(0, c->ascii_word) & inside), ascii_letter & inside);
    uint64_t letter_before = next_to(letter, c->letter);
    uint64_t absorbing = unmatched | (blank & ~b->newline);
    uint64_t absorbed = inside & next_to(absorbing, c->absorbed);
    uint64_t starts =
        letter & ~(inside & letter_before) & ~absorbed & ~(ascii_letter & ascii_first);
    starts |= letter & ~ascii_letter & next_to(ascii_word, c->ascii_word);

    uint64_t then = b->exists & ~blank & inside;
    uint64_t then_after = next->exists & ~next->blank & ~p->begin_after;
    uint64_t last = followed_by(blank, then, then_after, b, next);
    if (newline_tail) {
        uint64_t tail =
            through(next_to(b->visible, c->visible) | (c->tail >> 63), b->newline & inside);
        starts |= (last & ~b->newline) | blank_words(c, b, next, tail, p);
    } else {
        starts |= last | blanks_and_newlines(c, b, p);
    }
    starts |= unmatched & ~(inside & next_to(unmatched, c->other));
    starts |= followed_by(unmatched, letter & inside, next->letter & ~p->begin_after, b, next);

    c->letter = letter;
    c->visible = b->visible;
    c->space = b->space;
    c->other = unmatched;
    c->other_first = visible_words & ~b->wide;
    c->ascii_word = ascii_word;
    c->absorbed = absorbing;
    return (starts | visible_words | p->begin) & b->lead;
}

SPLITTER_INLINE uint64_t deepseek_words(carry *c, const block *b, const block *next,
                                        const pieces *p)
{
    return deepseek_like(c, b, next, true, p);
}

static uint64_t spark_words(carry *c, const block *b, const block *next, const pieces *p)
{
    return deepseek_like(c, b, next, false, p);
}

/* The pieces are groups of three numbers and runs of Chinese characters. */
SPLITTER_INLINE uint64_t deepseek3_words(carry *c, const block *b, const block *next,
                                         const pieces *none)
{
    (void)none;
    const uint64_t number_before = c->number;
    pieces p = {.begin = edges(b->number, number_before) | edges(b->cjk, c->cjk),
                .begin_after = edges(next->number, b->number) | edges(next->cjk, b->cjk)};
    p.begin |= digit_groups(c, b, b->number & b->lead & ~next_to(b->number, number_before), 3);
    p.begin &= b->lead;
    c->number = b->number;
    c->cjk = b->cjk;
    return deepseek_words(c, b, next, &p);
}

SPLIT_SCANNERS(deepseek3, WANT_DEEPSEEK, true)

/* ---- The rows ---- */

#define REGEX_ASCII_WORD "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
#define REGEX_WORD "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"

const split_stage stage_deepseek = {
    .alternatives = {REGEX_ASCII_WORD, REGEX_WORD, "\\x20?[\\p{P}\\p{S}]+[\\r\\n]*",
                     "\\s*[\\r\\n]+", "\\s+(?!\\S)|\\s+"},
    .words = deepseek_words,
    .wanted = WANT_DEEPSEEK,
};

const split_stage stage_spark = {
    .alternatives = {REGEX_ASCII_WORD, REGEX_WORD, "\\x20?[\\p{P}\\p{S}]+", "[\\r\\n]",
                     "\\s+(?!\\S)|\\s+"},
    .words = spark_words,
    .wanted = WANT_DEEPSEEK,
};
