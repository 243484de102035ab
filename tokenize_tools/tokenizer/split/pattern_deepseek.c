/* pattern_deepseek.c - deepseek3: three splits in sequence (DeepSeek V3, R1). */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/splitter_vector.h"

/* ---- The definition ---- */

static bool is_ascii_letter(character c)
{
    uint32_t lower = c.code_point | 0x20;
    return lower >= 'a' && lower <= 'z';
}

/* The last of the three splits, applied to a piece that the others left. Only characters of
 * CLASS_OTHER may match nothing; a run of them is a word, up to the next match. */
static size_t deepseek_piece_end(const view *v, size_t i)
{
    character c = char_at(v, i), next = char_at(v, i + c.n_bytes);
    if (is_of(c, VISIBLE) && c.code_point < 0x80 && is_ascii_letter(next)) {
        for (i++; is_ascii_letter(next); next = char_at(v, i))
            i++;
        return i;
    }
    if (is_of(c, LETTERS | MARKS))
        return skip_classes(v, i, LETTERS | MARKS);
    if (is_of(c, 1 << CLASS_OTHER | BLANKS) && !is_newline(c) && is_of(next, LETTERS | MARKS))
        return skip_classes(v, i + c.n_bytes, LETTERS | MARKS);
    if (is_of(c, VISIBLE) || (c.code_point == ' ' && is_of(next, VISIBLE)))
        return skip_newlines(v, skip_classes(v, i + c.n_bytes, VISIBLE), false);
    if (is_of(c, BLANKS))
        return blanks_end(v, i, true);
    size_t last = i;
    for (; is_of(c, 1 << CLASS_OTHER); c = char_at(v, i)) {
        last = i;
        i += c.n_bytes;
    }
    return is_of(c, LETTERS | MARKS) ? last : i;
}

static bool is_in_cjk(const character *c)
{
    return is_cjk(c->code_point);
}

static bool is_in_other_text(const character *c)
{
    return !is_cjk(c->code_point) && c->class != CLASS_NUMBER;
}

static size_t deepseek3_end(view *v, size_t i)
{
    character c = char_at(v, i);
    if (is_of(c, NUMBERS))
        return digits_end(v, i, 3);
    v->is_in_piece = is_cjk(c.code_point) ? is_in_cjk : is_in_other_text;
    return deepseek_piece_end(v, i);
}

/* ---- The same by masks ---- */

SPLITTER_INLINE uint64_t deepseek3_words(carry *c, const block *b, const block *next)
{
    uint64_t letter = b->letter, number = b->number, cjk = b->cjk, blank = b->blank;
    uint64_t unmatched = b->exists & ~(letter | number | blank | b->visible);
    uint64_t number_before = next_to(number, c->number);
    /* Inside a piece: not at its start. */
    uint64_t inside = ~(number | number_before | (cjk ^ next_to(cjk, c->cjk)));
    uint64_t ascii_letter = letter & ~b->wide;

    uint64_t visible_words =
        b->visible & b->lead & ~(inside & next_to(b->visible | b->space, c->visible | c->space));
    /* ASCII letters there follow ASCII punctuation. */
    uint64_t ascii_first = next_to(visible_words, c->other_first);
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

SPLIT_WALKERS(deepseek3, WANT_DEEPSEEK)

/* ---- The row ---- */

const split_definition split_deepseek3 = {
    .name = "deepseek3",
    .stages = {{STAGE_REGEX, {"\\p{N}{1,3}"}},
               {STAGE_REGEX, {"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"}},
               {STAGE_REGEX,
                {"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+",
                 "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+", "\\x20?[\\p{P}\\p{S}]+[\\r\\n]*",
                 "\\s*[\\r\\n]+", "\\s+(?!\\S)|\\s+"}}},
    .word_end = deepseek3_end,
    SPLIT_VECTOR(deepseek3),
};
