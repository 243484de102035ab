/* pattern_cl100k.c - cl100k and its relatives:
 *
 * cl100k    cl100k, Llama 3, OLMo 2, Phi-4
 * qwen2     with single digits: Qwen 2 to 3
 * qwen35    with single digits and marks as letters: Qwen 3.5
 * o200k     words by case: o200k, harmony, Llama 4
 * tekken    o200k without contractions and with single digits: Mistral */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/splitter_vector.h"

/* ---- The definition ---- */

typedef struct family {
    unsigned letters; /* what words are made of, after [^\r\n\p{L}\p{N}]? */
    unsigned others;  /* what runs of other characters are made of */
    bool cased;       /* a word ends where lower case is followed by upper case */
    bool contraction_first, contraction_last;
    bool slashes; /* [\r\n/]* after other characters, not [\r\n]* */
    int n_digits;
} family;

/* [U]*[L]+ or, where that fails, [U]+[L]*. U and L are upper and lower case; caseless letters and
 * marks are in both. If no lower case letter follows the run of U, then [L]+ can only match a
 * caseless letter at its end: the word ends after the last one of the run. If there is none, the
 * second alternative takes the whole run. */
static size_t cased_end(const view *v, size_t i)
{
    size_t after_caseless = i, start = i;
    character c = char_at(v, i);
    for (; is_of(c, UPPER | CASELESS); c = char_at(v, i)) {
        i += c.n_bytes;
        if (is_of(c, CASELESS))
            after_caseless = i;
    }
    if (is_of(c, LOWER))
        return skip_classes(v, i, LOWER | CASELESS);
    return after_caseless > start ? after_caseless : i;
}

static size_t letters_end(const view *v, const family *f, size_t i)
{
    size_t end = f->cased ? cased_end(v, i) : skip_classes(v, i, f->letters);
    return f->contraction_last ? end + contraction_at(v, end, true) : end;
}

static size_t family_end(const view *v, const family *f, size_t i)
{
    character c = char_at(v, i);
    if (f->contraction_first && c.code_point == '\'') {
        size_t contraction = contraction_at(v, i, true);
        if (contraction > 0)
            return i + contraction;
    }
    if (is_of(c, f->letters))
        return letters_end(v, f, i);
    if (is_of(c, NUMBERS))
        return digits_end(v, i, f->n_digits);
    character next = char_at(v, i + c.n_bytes);
    if (!is_newline(c) && is_of(next, f->letters))
        return letters_end(v, f, i + c.n_bytes);
    if (is_of(c, f->others) || (c.code_point == ' ' && is_of(next, f->others)))
        return skip_newlines(v, skip_classes(v, i + c.n_bytes, f->others), f->slashes);
    return blanks_end(v, i, true);
}

static size_t cl100k_end(view *v, size_t i)
{
    static const family f = {LETTERS, OTHERS, .contraction_first = true, .n_digits = 3};
    return family_end(v, &f, i);
}

static size_t qwen2_end(view *v, size_t i)
{
    static const family f = {LETTERS, OTHERS, .contraction_first = true, .n_digits = 1};
    return family_end(v, &f, i);
}

static size_t qwen35_end(view *v, size_t i)
{
    static const family f = {LETTERS | MARKS, OTHERS & ~MARKS, .contraction_first = true,
                             .n_digits = 1};
    return family_end(v, &f, i);
}

static size_t o200k_end(view *v, size_t i)
{
    static const family f = {LETTERS | MARKS,          OTHERS,          true,
                             .contraction_last = true, .slashes = true, .n_digits = 3};
    return family_end(v, &f, i);
}

static size_t tekken_end(view *v, size_t i)
{
    static const family f = {LETTERS | MARKS, OTHERS, true, .slashes = true, .n_digits = 1};
    return family_end(v, &f, i);
}

/* ---- The same by masks ---- */

/* A single character that is not a letter, number or newline joins the letters after it if a word
 * starts at it. That is the first of a run of others, or any blank. Returns where words of others
 * start. */
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
    /* `joined` is not used: the letters of contractions are in `absorbed`. */
    return starts & b->lead;
}

SPLITTER_INLINE uint64_t cl100k_words(carry *c, const block *b, const block *next)
{
    return cl100k_like(c, b, next, true);
}

SPLITTER_INLINE uint64_t qwen2_words(carry *c, const block *b, const block *next)
{
    return cl100k_like(c, b, next, false);
}

/* WANT_MARKS_AS_LETTERS puts the marks among the letters. */
SPLITTER_INLINE uint64_t qwen35_words(carry *c, const block *b, const block *next)
{
    return cl100k_like(c, b, next, false);
}

/* Marks are letters, except inside a word of others. Such a word starts where a second other
 * character follows the first, or where the first follows a space; it continues through marks. */
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

/* Where [U]*[L]+ splits letters, with caseless letters in both sets: at an upper case letter after
 * a lower case one, with only caseless letters between them; and at a run of upper case letters
 * that ends the letters, if a caseless letter precedes it. */
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

/* For each apostrophe after a word of letters. A word starts after the contraction. If an
 * apostrophe is next, it starts that word and is not part of a contraction. */
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
        /* The word after it starts with a caseless letter, but `lower_word` is still set. */
        c->undecided |= has_bit(b->caseless | b->mark, next->caseless | next->mark, i + n);
    }
    return forced;
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

SPLIT_WALKERS(cl100k, 0)
SPLIT_WALKERS(qwen2, 0)
SPLIT_WALKERS(qwen35, WANT_MARKS_AS_LETTERS)
SPLIT_WALKERS(o200k, WANT_CASE)
SPLIT_WALKERS(tekken, WANT_CASE)

/* ---- The rows ---- */

/* - `'(?i:[sdmt]|ll|ve|re)` is `(?i:'s|'t|'re|'ve|'m|'ll|'d)`: both know U+017F as an s.
 *   `'[sS]|...` does not, so it is not known.
 * - Possessive forms are the same: what follows the run never starts with a character of the run,
 *   so backtracking cannot help. (`\p{N}{1,3}+` is not known: in Oniguruma it repeats the group.)
 * - `\s*[\r\n]` ends at the last newline of the blanks, as `\s*[\r\n]+` does. */
#define REGEX_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d) '(?i:[sdmt]|ll|ve|re)"
#define REGEX_LETTERS                                                                              \
    "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+ [^\\r\\n\\p{L}\\p{N}]?+\\p{L}+ [^\\r\\n\\p{L}\\p{N}]?+\\p{L}++"
#define REGEX_OTHERS                                                                               \
    "\\x20?[^\\s\\p{L}\\p{N}]+[\\r\\n]* \\x20?[^\\s\\p{L}\\p{N}]++[\\r\\n]* "                      \
    "\\x20?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+"
#define REGEX_NEWLINES "\\s*[\\r\\n]+ \\s*[\\r\\n]"

#define REGEX_BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define REGEX_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define REGEX_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define REGEX_SUFFIX "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define REGEX_OTHERS_AND_SLASH "\\x20?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"

const split_definition split_cl100k = {
    .name = "cl100k",
    .stages = {{STAGE_REGEX,
                {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1,3}", REGEX_OTHERS, REGEX_NEWLINES,
                 REGEX_BLANKS}}},
    .word_end = cl100k_end,
    SPLIT_VECTOR(cl100k),
};

const split_definition split_qwen2 = {
    .name = "qwen2",
    .stages = {{STAGE_REGEX,
                {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}", REGEX_OTHERS, REGEX_NEWLINES,
                 REGEX_BLANKS}}},
    .word_end = qwen2_end,
    SPLIT_VECTOR(qwen2),
};

const split_definition split_qwen35 = {
    .name = "qwen35",
    .stages = {{STAGE_REGEX,
                {REGEX_CONTRACTIONS, "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+", "\\p{N}",
                 "\\x20?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*", REGEX_NEWLINES, REGEX_BLANKS}}},
    .word_end = qwen35_end,
    SPLIT_VECTOR(qwen35),
};

const split_definition split_o200k = {
    .name = "o200k",
    .stages = {{STAGE_REGEX,
                {REGEX_BEFORE REGEX_UPPER "*" REGEX_LOWER "+" REGEX_SUFFIX,
                 REGEX_BEFORE REGEX_UPPER "+" REGEX_LOWER "*" REGEX_SUFFIX, "\\p{N}{1,3}",
                 REGEX_OTHERS_AND_SLASH, REGEX_NEWLINES, REGEX_BLANKS}}},
    .word_end = o200k_end,
    SPLIT_VECTOR(o200k),
};

const split_definition split_tekken = {
    .name = "tekken",
    .stages = {{STAGE_REGEX,
                {REGEX_BEFORE REGEX_UPPER "*" REGEX_LOWER "+",
                 REGEX_BEFORE REGEX_UPPER "+" REGEX_LOWER "*", "\\p{N}", REGEX_OTHERS_AND_SLASH,
                 REGEX_NEWLINES, REGEX_BLANKS}}},
    .word_end = tekken_end,
    SPLIT_VECTOR(tekken),
};
