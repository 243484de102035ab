/* pattern_gpt2.c - GPT-2's expression, alone and after another split:
 *
 * gpt2        GPT-2, r50k, p50k, GPT-NeoX, Phi-2, ByteLevel with use_regex
 * starcoder   each \p{N} alone, then GPT-2: StarCoder, SmolLM */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/splitter_vector.h"

/* ---- The definition ---- */

size_t split_gpt2_end(view *v, size_t i)
{
    static const unsigned runs[] = {LETTERS, NUMBERS, OTHERS};
    character c = char_at(v, i);
    size_t contraction = contraction_at(v, i, false);
    if (contraction > 0)
        return i + contraction;
    size_t body = i + (c.code_point == ' ');
    c = char_at(v, body);
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
        if (is_of(c, runs[k]))
            return skip_classes(v, body + c.n_bytes, runs[k]);
    }
    return blanks_end(v, i, false);
}

static bool is_numeric(uint32_t code_point)
{
    if (code_point < 0x80)
        return code_point >= '0' && code_point <= '9';
    return code_point != UINT32_MAX && unicode_hf_numeric(code_point);
}

static bool is_not_numeric(const character *c)
{
    return !is_numeric(c->code_point);
}

static size_t starcoder_end(view *v, size_t i)
{
    character c = char_at(v, i);
    if (is_numeric(c.code_point))
        return i + c.n_bytes;
    v->is_in_piece = is_not_numeric;
    return split_gpt2_end(v, i);
}

/* ---- The same by masks ---- */

SPLITTER_INLINE uint64_t gpt2_like(carry *c, const block *b, const block *next, bool single_digits)
{
    uint64_t visible = b->exists & ~b->blank, visible_after = next->exists & ~next->blank;
    uint64_t other = visible & ~(b->letter | b->number), number = b->number, joined;
    uint64_t same =
        (b->letter & next_to(b->letter, c->letter)) | (other & next_to(other, c->other));
    uint64_t after_space = next_to(b->space, c->space);
    if (single_digits) { /* a piece ends before each of them */
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

SPLIT_WALKERS(gpt2, 0)
SPLIT_WALKERS(starcoder, WANT_HF_NUMERIC)

/* ---- The rows ---- */

/* `\s++$` before `\s+(?!\S)` matches the same at the end of the text. In cl100k, which has an
 * alternative for newlines, it would change words; so it is known here only. */
const split_definition split_gpt2 = {
    .name = "gpt2",
    .stages = {{STAGE_REGEX,
                {"'s|'t|'re|'ve|'m|'ll|'d '(?:[sdmt]|ll|ve|re)",
                 "\\x20?\\p{L}+ \\x20?\\p{L}++ \\x20?[\\p{L}]+",
                 "\\x20?\\p{N}+ \\x20?\\p{N}++ \\x20?[\\p{N}]+",
                 "\\x20?[^\\s\\p{L}\\p{N}]+ \\x20?[^\\s\\p{L}\\p{N}]++",
                 REGEX_BLANKS " \\s++$|\\s+(?!\\S)|\\s"}}},
    .word_end = split_gpt2_end,
    SPLIT_VECTOR(gpt2),
};

const split_definition split_starcoder = {
    .name = "starcoder",
    .stages = {{.kind = STAGE_EACH_DIGIT}, {.kind = STAGE_BYTE_LEVEL}},
    .word_end = starcoder_end,
    SPLIT_VECTOR(starcoder),
};
