/* pattern_falcon.c - falcon: Punctuation, GPT-2, Digits and [0-9][0-9][0-9] in sequence. */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/splitter_vector.h"

/* ---- The definition ---- */

static bool is_punctuation(uint32_t code_point)
{
    if (code_point < 0x80)
        return VISIBLE >> class_of(code_point) & 1;
    return code_point != UINT32_MAX && unicode_hf_punctuation(code_point);
}

static bool is_in_punctuation(const character *c)
{
    return is_punctuation(c->code_point);
}

static bool is_in_other_text(const character *c)
{
    return !is_punctuation(c->code_point);
}

static size_t falcon_end(view *v, size_t i)
{
    const character c = char_at(v, i);
    v->is_in_piece = is_punctuation(c.code_point) ? is_in_punctuation : is_in_other_text;
    return split_gpt2_end(v, i);
}

/* Falcon looks for digits after each byte was replaced by a character. The bytes B2, B3, B9, BC, BD
 * and BE become the characters with these numbers, which are numeric too. */
static bool is_falcon_digit(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || byte == 0xB2 || byte == 0xB3 || byte == 0xB9 ||
           (byte >= 0xBC && byte <= 0xBE);
}

static bool are_ascii_digits(const uint8_t *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
    }
    return true;
}

/* The last two splits, inside one word: runs of digits, then [0-9][0-9][0-9] in them. */
static void split_falcon_word(const view *v, size_t start, size_t end, uint64_t *starts)
{
    const uint8_t *text = v->text;
    size_t i = start;
    while (i < end) {
        split_set_bit(starts, i);
        bool digits = is_falcon_digit(text[i]);
        size_t matched = i; /* the end of the last group of three */
        for (; i < end && is_falcon_digit(text[i]) == digits; i++) {
            if (i < matched || end - i < 3 || !are_ascii_digits(text + i, 3))
                continue;
            split_set_bit(starts, i);
            matched = i + 3;
            if (matched < end && is_falcon_digit(text[matched]))
                split_set_bit(starts, matched);
        }
    }
}

/* ---- The same by masks ---- */

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
        starts |= ascii_digit_groups(c, ascii, begins);
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

SPLIT_WALKERS(falcon, WANT_FALCON)

/* ---- The row ---- */

const split_definition split_falcon = {
    .name = "falcon",
    .stages = {{.kind = STAGE_PUNCTUATION},
               {.kind = STAGE_BYTE_LEVEL},
               {.kind = STAGE_DIGITS},
               {STAGE_REGEX, {"[0-9][0-9][0-9]"}}},
    .word_end = falcon_end,
    .split_word = split_falcon_word,
    SPLIT_VECTOR(falcon),
};
