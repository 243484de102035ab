/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_after.c - the vector functions of relatives of cl100k that come after other splits:
 * MiniCPM5, A.X-K2, Laguna, tiny-aya and Youtu-LLM. */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_pieces.h"
#include "tokenizer/split/splitter_vector.h"

SPLITTER_INLINE uint64_t minicpm5_words(carry *c, const block *b, const block *next,
                                        const pieces *none)
{
    const uint64_t number_before = c->number;
    const pieces p = {number_groups(c, b, none), next->number, 0, false};
    c->number = number_before;
    return cl100k_pieces(&cl100k_any_digits, c, b, next, &p);
}

SPLITTER_INLINE uint64_t ax_k2_words(carry *c, const block *b, const block *next,
                                     const pieces *none)
{
    (void)none;
    const pieces p = {run_words(&c->cjk, b->cjk, b), next->cjk, 0, false};
    return cl100k_pieces(&qwen2, c, b, next, &p);
}

SPLITTER_INLINE uint64_t laguna_words(carry *c, const block *b, const block *next,
                                      const pieces *none)
{
    (void)none;
    const pieces p = {line_words(c, b), next->newline ? line_ends(next) : 0, 0, false};
    return cl100k_pieces(&qwen2, c, b, next, &p);
}

/* A family whose digits are grouped here. */
static const family o200k_any_digits = {LETTERS | MARKS, OTHERS, .cased = true,
                                        .contraction_last = true, .slashes = true};

/* Runs of digits that no word character follows are grouped from their right, and are pieces. */
SPLITTER_INLINE uint64_t tiny_aya_words(carry *c, const block *b, const block *next,
                                        const pieces *none)
{
    (void)none;
    pieces p = {.numbers = c->groups};
    c->groups = 0;
    c->undecided |= (b->number & b->wide) != 0;
    uint64_t runs = b->number & ~next_to(b->number, c->number) & ~b->wide;
    for (; runs != 0; runs &= runs - 1) {
        unsigned i = lowest(runs), end = run_end(b->number, next->number, i);
        if (end == 128 || (next->number & next->wide) != 0) {
            c->undecided = true;
            break;
        }
        const bool from_right = !split_is_word(block_char(b, next, end));
        if (from_right)
            p.begin |= bit(i);
        p.numbers |= bit(i);
        p.numbers |= each_third(c, from_right ? i + (end - i) % 3 : i, end);
    }
    const unsigned first = lowest(~(next->wide & ~next->lead)); /* after a blank of the block */
    if (b->blank >> 63 && next->number >> first & 1) {
        const unsigned end = run_end(next->number, 0, first);
        c->undecided |= end >= 64 || (next->number & next->wide) != 0;
        if (end < 64 && !split_is_word(block_char(next, next, end)))
            p.begin_after = bit(first);
    }
    c->number = b->number;
    return o200k_pieces(&o200k_any_digits, c, b, next, &p);
}

SPLITTER_INLINE uint64_t youtu_llm_words(carry *c, const block *b, const block *next,
                                         const pieces *none)
{
    (void)none;
    pieces p = {.begin = youtu_class_words(c, b), .begin_after = next->cjk, .apart = true};
    for (uint64_t left = next->high & ~next->cjk & 0xF; left != 0; left &= left - 1) {
        uint32_t code_point = 0;
        utf8_decode(next->bytes + lowest(left), 4, &code_point);
        p.begin_after |= split_youtu_class(code_point) ? left & -left : 0;
    }
    return o200k_pieces(&o200k_each_digit, c, b, next, &p);
}

SPLIT_LIST_WALKERS(youtu_llm, WANT_CASE | WANT_CJK | WANT_HIGH)
SPLIT_LIST_WALKERS(tiny_aya, WANT_CASE)
SPLIT_LIST_WALKERS(minicpm5, 0)
SPLIT_LIST_WALKERS(ax_k2, WANT_CJK)
SPLIT_LIST_WALKERS(laguna, 0)

const split_list list_minicpm5 = {"minicpm5", SPLIT_MINICPM5, SPLIT_LIST_VECTOR(minicpm5)};
const split_list list_ax_k2 = {"ax_k2", SPLIT_AX_K2, SPLIT_LIST_VECTOR(ax_k2)};
const split_list list_laguna = {"laguna", SPLIT_LAGUNA, SPLIT_LIST_VECTOR(laguna)};
const split_list list_tiny_aya = {"tiny_aya", SPLIT_TINY_AYA, SPLIT_LIST_VECTOR(tiny_aya)};
const split_list list_youtu = {"youtu_llm", SPLIT_YOUTU, SPLIT_LIST_VECTOR(youtu_llm)};
