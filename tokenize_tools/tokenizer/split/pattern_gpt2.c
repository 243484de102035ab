/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_gpt2.c - GPT-2's expression, alone and after other splits:
 *
 * gpt2        GPT-2, r50k, p50k, GPT-NeoX, Phi-2, ByteLevel with use_regex
 * byte_level  the same, after which characters stand for bytes
 * starcoder   each digit alone, then GPT-2: StarCoder, SmolLM */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_vector.h"
#include "tokenizer/split/splitter_scalar.h"

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

SPLIT_SCANNERS(gpt2, 0, true)
SPLIT_SCANNERS(starcoder, WANT_HF_NUMERIC, true)

/* ---- The rows ---- */

/* `\s++$` before `\s+(?!\S)` matches the same at the end of the text. In cl100k, which has an
 * alternative for newlines, it would change words; so it is known here only. */
#define GPT2                                                                                       \
    .everything = true, .words = gpt2_words, .scanners = &gpt2_scanners,                           \
    .alternatives = {"'s|'t|'re|'ve|'m|'ll|'d '(?:[sdmt]|ll|ve|re)",                               \
                     "\\x20?\\p{L}+ \\x20?\\p{L}++ \\x20?[\\p{L}]+",                               \
                     "\\x20?\\p{N}+ \\x20?\\p{N}++ \\x20?[\\p{N}]+",                               \
                     "\\x20?[^\\s\\p{L}\\p{N}]+ \\x20?[^\\s\\p{L}\\p{N}]++",                       \
                     REGEX_BLANKS " \\s++$|\\s+(?!\\S)|\\s"}
const split_stage stage_gpt2 = {GPT2};
/* The same as stage_gpt2, but before stages that see its bytes. */
const split_stage stage_byte_level = {GPT2};
