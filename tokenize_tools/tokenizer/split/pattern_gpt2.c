/* pattern_gpt2.c - GPT-2's expression, alone and after other splits:
 *
 * gpt2        GPT-2, r50k, p50k, GPT-NeoX, Phi-2, ByteLevel with use_regex
 * starcoder   each digit alone, then GPT-2: StarCoder, SmolLM
 * falcon      Punctuation, GPT-2, Digits and [0-9][0-9][0-9] */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/splitter_vector.h"
#include "tokenizer/split/text_cut.h"

/* ---- The definition ---- */

static size_t gpt2_match(view *v, size_t i)
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
    return starts;
}

/* Runs of punctuation are words of their own, so GPT-2's expression never sees an apostrophe with
 * letters after it, and there are no contractions. */
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

SPLIT_WALKERS(gpt2, 0)
SPLIT_WALKERS(starcoder, WANT_HF_NUMERIC)
SPLIT_WALKERS(falcon, WANT_FALCON)

/* ---- The rows ---- */

/* `\s++$` before `\s+(?!\S)` matches the same at the end of the text. In cl100k, which has an
 * alternative for newlines, it would change words; so it is known here only. */
const split_stage stage_gpt2 = {
    .name = "gpt2",
    .component = COMPONENT_BYTE_LEVEL,
    .alternatives = {"'s|'t|'re|'ve|'m|'ll|'d '(?:[sdmt]|ll|ve|re)",
                     "\\x20?\\p{L}+ \\x20?\\p{L}++ \\x20?[\\p{L}]+",
                     "\\x20?\\p{N}+ \\x20?\\p{N}++ \\x20?[\\p{N}]+",
                     "\\x20?[^\\s\\p{L}\\p{N}]+ \\x20?[^\\s\\p{L}\\p{N}]++",
                     REGEX_BLANKS " \\s++$|\\s+(?!\\S)|\\s"},
    .everything = true,
    .cuts = CUT_ANYWHERE,
    .match = gpt2_match,
    SPLIT_VECTOR(gpt2),
};

const split_list list_starcoder = {"starcoder", SPLIT_STARCODER, SPLIT_VECTOR(starcoder)};
const split_list list_falcon = {"falcon", SPLIT_FALCON, SPLIT_VECTOR(falcon)};
