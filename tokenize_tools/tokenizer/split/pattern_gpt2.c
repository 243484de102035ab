/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_gpt2.c - GPT-2's expression, alone and after other splits:
 *
 * gpt2        GPT-2, r50k, p50k, GPT-NeoX, Phi-2, ByteLevel with use_regex
 * byte_level  the same, after which characters stand for bytes
 * starcoder   each digit alone, then GPT-2: StarCoder, SmolLM
 * falcon      Punctuation, GPT-2, Digits and [0-9][0-9][0-9] */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/splitter_vector.h"
#include "tokenizer/split/text_cut.h"

SPLITTER_INLINE uint64_t gpt2_words(carry *c, const block *b, const block *next, const pieces *p)
{
    uint64_t starts = gpt2_runs(c, b, next, 0, p);
    uint64_t apostrophes = starts & b->apostrophe & ahead(b->letter, next->letter, 1);
    contractions found = first_contractions(c, b, apostrophes, false, p);
    found.joined &= ~apostrophes;
    return ((starts & ~found.joined) | found.forced) & b->lead;
}

/* Each number is a piece. */
SPLITTER_INLINE uint64_t starcoder_words(carry *c, const block *b, const block *next,
                                         const pieces *none)
{
    (void)none;
    const pieces numbers = {.begin = b->number | next_to(b->number, c->number),
                            .begin_after = next->number};
    return gpt2_words(c, b, next, &numbers);
}

/* The last two splits work on bytes: runs of digits, then [0-9][0-9][0-9] in them. Groups of three
 * start where a run of ASCII digits starts. */
SPLITTER_INLINE uint64_t falcon_digits(carry *c, const block *b, const block *next, uint64_t words)
{
    uint64_t ascii = b->number & ~b->wide, ascii_after = next->number & ~next->wide;
    uint64_t digits = ascii | b->high_digits, digits_before = c->ascii_digits | c->high_digits;
    uint64_t long_run = ahead(ascii, ascii_after, 1) & ahead(ascii, ascii_after, 2);
    uint64_t after_high = next_to(b->high_digits, c->high_digits);
    uint64_t begins = ascii & (~next_to(digits, digits_before) | words | (after_high & long_run));
    uint64_t starts = digits ^ next_to(digits, digits_before);
    if (c->ascii_digits >> 63 == 0)
        c->digits = 64; /* no group of three continues after a high digit */
    if (ascii != 0)
        starts |= ascii_digit_groups(c, ascii, begins, 3);
    c->ascii_digits = ascii;
    c->high_digits = b->high_digits;
    return starts & b->exists;
}

/* Runs of punctuation are words of their own, so GPT-2's expression never sees an apostrophe with
 * letters after it, and there are no contractions. */
SPLITTER_INLINE uint64_t falcon_words(carry *c, const block *b, const block *next,
                                      const pieces *none)
{
    (void)none;
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

SPLIT_WALKERS(gpt2, 0)
SPLIT_LIST_WALKERS(starcoder, WANT_HF_NUMERIC)
SPLIT_LIST_WALKERS(falcon, WANT_FALCON)

/* ---- The rows ---- */

/* `\s++$` before `\s+(?!\S)` matches the same at the end of the text. In cl100k, which has an
 * alternative for newlines, it would change words; so it is known here only. */
#define GPT2                                                                                       \
    .everything = true, .cuts = CUT_ANYWHERE, SPLIT_VECTOR(gpt2),                                  \
    .alternatives = {"'s|'t|'re|'ve|'m|'ll|'d '(?:[sdmt]|ll|ve|re)",                               \
                     "\\x20?\\p{L}+ \\x20?\\p{L}++ \\x20?[\\p{L}]+",                               \
                     "\\x20?\\p{N}+ \\x20?\\p{N}++ \\x20?[\\p{N}]+",                               \
                     "\\x20?[^\\s\\p{L}\\p{N}]+ \\x20?[^\\s\\p{L}\\p{N}]++",                       \
                     REGEX_BLANKS " \\s++$|\\s+(?!\\S)|\\s"}
const split_stage stage_gpt2 = {.name = "gpt2", GPT2};
/* The same, before stages that see its bytes. */
const split_stage stage_byte_level = {
    .name = "byte_level", .component = COMPONENT_BYTE_LEVEL, GPT2};

const split_list list_starcoder = {"starcoder", SPLIT_STARCODER, SPLIT_LIST_VECTOR(starcoder)};
const split_list list_falcon = {"falcon", SPLIT_FALCON, SPLIT_LIST_VECTOR(falcon)};
