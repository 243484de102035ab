/* pattern_after.c - the vector functions of relatives of cl100k that come after other splits:
 * MiniCPM5, A.X-K2, Laguna, tiny-aya and Youtu-LLM. */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_families.h"
#include "tokenizer/split/splitter_vector.h"

/* The edges of runs of a class. */
SPLITTER_INLINE uint64_t edges(uint64_t mask, uint64_t mask_before)
{
    return mask ^ next_to(mask, mask_before);
}

SPLITTER_INLINE uint64_t minicpm5_words(carry *c, const block *b, const block *next)
{
    uint64_t number_before = c->number;
    pieces p = {edges(b->number, number_before), next->number, 0, false};
    p.begin |= number_words(c, b, 3, &(pieces){0});
    p.begin &= b->lead;
    c->number = number_before;
    return cl100k_pieces(&cl100k_any_digits, c, b, next, &p);
}

SPLITTER_INLINE uint64_t ax_k2_words(carry *c, const block *b, const block *next)
{
    const pieces p = {edges(b->cjk, c->cjk) & b->lead, next->cjk, 0, false};
    c->cjk = b->cjk;
    return cl100k_pieces(&qwen2, c, b, next, &p);
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

SPLITTER_INLINE uint64_t laguna_words(carry *c, const block *b, const block *next)
{
    const uint64_t ends = line_ends(b);
    const pieces p = {ends & ~next_to(ends, c->line_ends), next->newline ? line_ends(next) : 0, 0,
                      false};
    c->line_ends = ends;
    return cl100k_pieces(&qwen2, c, b, next, &p);
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

/* A family whose digits are grouped here. */
static const family o200k_any_digits = {LETTERS | MARKS, OTHERS, .cased = true,
                                        .contraction_last = true, .slashes = true};

/* Runs of digits that no word character follows are grouped from their right, and are pieces. */
SPLITTER_INLINE uint64_t tiny_aya_words(carry *c, const block *b, const block *next)
{
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
        i += from_right && (end - i) % 3 ? (end - i) % 3 : 3;
        for (; i < end; i += 3) {
            if (i < 64)
                p.numbers |= bit(i);
            else
                c->groups |= bit(i - 64);
        }
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

/* The edges of runs of the same one of Youtu's classes. */
SPLITTER_INLINE uint64_t youtu_words(carry *c, const block *b, const block *next)
{
    uint64_t found[SPLIT_YOUTU_CLASSES + 1] = {0};
    pieces p = {.apart = true};
    for (uint64_t left = b->wide & b->lead; left != 0; left &= left - 1) {
        const unsigned i = lowest(left);
        uint32_t code_point = 0;
        utf8_decode(b->bytes + i, 4, &code_point);
        found[split_youtu_class(code_point)] |= bit(i);
    }
    for (int k = 1; k <= SPLIT_YOUTU_CLASSES; k++) {
        const uint64_t all = found[k] | through(next_to(found[k], c->youtu[k]), b->wide & ~b->lead);
        p.begin |= edges(all, c->youtu[k]) & b->lead;
        c->youtu[k] = all;
    }
    for (uint64_t left = next->wide & next->lead & 0xF; left != 0; left &= left - 1) {
        uint32_t code_point = 0;
        utf8_decode(next->bytes + lowest(left), 4, &code_point);
        p.begin_after |= split_youtu_class(code_point) ? left & -left : 0;
    }
    return o200k_pieces(&o200k_each_digit, c, b, next, &p);
}

SPLIT_WALKERS(youtu, WANT_CASE)
SPLIT_WALKERS(tiny_aya, WANT_CASE)
SPLIT_WALKERS(minicpm5, 0)
SPLIT_WALKERS(ax_k2, WANT_CJK)
SPLIT_WALKERS(laguna, 0)

const split_list list_minicpm5 = {"minicpm5", SPLIT_MINICPM5, SPLIT_VECTOR(minicpm5)};
const split_list list_ax_k2 = {"ax_k2", SPLIT_AX_K2, SPLIT_VECTOR(ax_k2)};
const split_list list_laguna = {"laguna", SPLIT_LAGUNA, SPLIT_VECTOR(laguna)};
const split_list list_tiny_aya = {"tiny_aya", SPLIT_TINY_AYA, SPLIT_VECTOR(tiny_aya)};
const split_list list_youtu = {"youtu_llm", SPLIT_YOUTU, SPLIT_VECTOR(youtu)};
