/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_cl100k.c - cl100k and its relatives: a family is a row of data.
 *
 * cl100k        cl100k, Llama 3, OLMo 2, Phi-4
 * nanochat      with one or two digits
 * qwen2         with single digits: Qwen 2 to 3
 * qwen35        with single digits and marks as letters: Qwen 3.5
 * seed          with single digits and no newlines after other characters: Seed-Coder
 * k2_horizon    with marks and joiners as letters: K2-Horizon
 * jais2         blanks in powers of two: Jais 2
 * k_exaone      with single digits, and words that contain spaces: K-EXAONE
 * cl100k_08     tiktoken's expression since 0.8, as Oniguruma reads it
 * cl100k_tiktoken  the same, as tiktoken reads it
 * o200k         words by case: o200k, harmony, Llama 4
 * tekken        o200k without contractions and with single digits: Mistral
 * kimi          o200k with runs of Chinese characters: Kimi K2 */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/splitter_vector.h"
#include "tokenizer/unicode/table_rows.h"

typedef struct family {
    bool joiners; /* U+200C and U+200D are letters too */
    bool han;     /* \p{Han} is not a letter; [\p{Han}]+ comes first */
    bool cased;   /* a word ends where lower case is followed by upper case */
    bool contraction_first, contraction_last;
    bool no_tail;  /* nothing, or else ... */
    bool slashes;  /* [\r\n/]*, or else [\r\n]* after other characters */
    bool trailing; /* blanks at the end are one word, with their newlines */
    bool powers;   /* blanks before a word in groups of 512, 256 ... 1 */
    int n_digits;  /* of a group; 0: any number */
} family;

static bool is_joiner(uint32_t code_point)
{
    return code_point == 0x200C || code_point == 0x200D;
}

static bool is_han(uint32_t code_point)
{
    if (code_point >= 0x4E00 && code_point <= 0x9FFF)
        return true;
    const uint32_t *range = find_row(unicode_han, UNICODE_N_HAN, sizeof *unicode_han, code_point);
    return code_point >= range[0] && code_point <= range[1];
}

/* ---- Masks ---- */

/* A single character that is not a letter, number or newline joins the letters after it if a word
 * starts at it. That is the first of a run of others, or any blank. Returns where words of others
 * start. */
SPLITTER_INLINE uint64_t other_words(carry *c, const block *b, uint64_t other, uint64_t *absorbed,
                                     const pieces *p)
{
    uint64_t before = next_to(other | b->space, c->other | c->space) & ~p->begin;
    uint64_t first = other & b->lead & ~before;
    uint64_t first_bytes = all_bytes(first, c->other_first, b);
    uint64_t absorbing = first_bytes | (b->blank & ~b->newline);
    *absorbed = next_to(absorbing, c->absorbed) & ~p->begin;
    c->other = other;
    c->other_first = first_bytes;
    c->absorbed = absorbing;
    c->space = b->space;
    return first;
}

SPLITTER_INLINE uint64_t number_words(carry *c, const block *b, int n_digits, const pieces *p)
{
    uint64_t starts = b->number & b->lead;
    if (n_digits != 1)
        starts = digit_groups(c, b, starts & (~next_to(b->number, c->number) | p->begin),
                              (unsigned)n_digits);
    c->number = b->number;
    return starts;
}

/* Whether the text ends with blanks, in one of the two blocks, or a piece does. */
SPLITTER_INLINE bool ends_with_blank(const block *b, const block *next, const pieces *p)
{
    if ((p->begin & b->blank << 1) | (p->begin_after & next_to(next->blank, b->blank)))
        return true;
    if (next->exists == ~(uint64_t)0)
        return false;
    return next->exists ? next->blank & (next->exists ^ next->exists >> 1)
                        : b->blank & (b->exists ^ b->exists >> 1);
}

SPLITTER_INLINE uint64_t cl100k_words(carry *c, const block *b, const block *next, const pieces *p)
{
    const family *f = c->family;
    uint64_t visible = b->exists & ~b->blank, visible_after = next->exists & ~next->blank;
    uint64_t other = visible & ~(b->letter | b->number), absorbed, tail = 0;
    if (!f->no_tail)
        tail = through(next_to(other, c->other) | (c->tail >> 63), b->newline & ~p->begin);
    uint64_t starts = other_words(c, b, other, &absorbed, p);
    uint64_t apostrophes = starts & b->apostrophe & ahead(b->letter, next->letter, 1);
    starts |= b->letter & ~(next_to(b->letter, c->letter) & ~p->begin) & ~absorbed;
    starts |= number_words(c, b, f->n_digits, p);
    uint64_t last =
        followed_by(b->blank, visible & ~p->begin, visible_after & ~p->begin_after, b, next);
    uint64_t blanks = (last & ~b->newline) | blank_words(c, b, next, tail, p);
    if (f->powers) { /* shorter runs are split as without */
        const uint64_t blank = b->blank & ~b->newline, blank_after = next->blank & ~next->newline;
        c->undecided |= (blank & ahead(blank, blank_after, 1) & ahead(blank, blank_after, 2)) != 0;
    }
    c->undecided |= f->trailing && ends_with_blank(b, next, p);
    /* `joined` is not used: the letters of contractions are in `absorbed`. */
    starts |= blanks | first_contractions(c, b, apostrophes, true, p).forced;
    c->letter = b->letter;
    return (starts | p->begin) & b->lead;
}

/* Marks are letters, except inside a word of others. Such a word starts where a second other
 * character follows the first, or where the first follows a space; it continues through marks. */
SPLITTER_INLINE uint64_t marks_as_others(carry *c, const block *b, uint64_t other, uint64_t mark,
                                         const pieces *p)
{
    uint64_t marks_before = c->mark_as_other;
    c->mark_as_other = 0;
    if ((mark & ~p->begin & next_to(other, c->other | marks_before)) == 0)
        return 0;
    uint64_t second = other & b->lead & next_to(other | b->space, c->other | c->space) & ~p->begin;
    uint64_t going_on = ((c->other & ~c->other_first) | marks_before) >> 63;
    c->mark_as_other = mark & through(second | going_on, (other | mark) & ~p->begin);
    return c->mark_as_other;
}

/* Where [U]*[L]+ splits letters, with caseless letters in both sets: at an upper case letter after
 * a lower case one, with only caseless letters between them; and at a run of upper case letters
 * that ends the letters, if a caseless letter precedes it. */
SPLITTER_INLINE uint64_t cased_words(carry *c, const block *b, const block *next, uint64_t letter,
                                     const pieces *p)
{
    uint64_t caseless = letter & (b->caseless | b->mark);
    uint64_t lower = letter & ~(b->upper | caseless);
    uint64_t seeds = next_to(lower, c->lower_word);
    uint64_t lower_word = lower | through(seeds, caseless & ~p->begin);
    uint64_t starts = b->upper & next_to(lower_word, c->lower_word);
    uint64_t candidates = b->upper & b->lead & next_to(caseless, c->caseless) & ~starts & ~p->begin;
    uint64_t letter_after = (next->letter | next->mark) & ~p->begin_after;
    for (; candidates != 0; candidates &= candidates - 1) {
        unsigned end =
            run_end(b->upper & ~p->begin, next->upper & ~p->begin_after, lowest(candidates));
        c->undecided |= end == 128 || (end >= 64 && has_bit(0, next->caseless | next->mark, end));
        if (end < 128 && !has_bit(letter & ~p->begin, letter_after, end))
            starts |= candidates & -candidates;
    }
    c->lower_word = lower_word;
    c->caseless = caseless;
    return starts;
}

/* For each apostrophe after a word of letters. A word starts after the contraction. If an
 * apostrophe is next, it starts that word and is not part of a contraction. */
SPLITTER_INLINE contractions last_contractions(carry *c, const block *b, const block *next,
                                               uint64_t apostrophes, const pieces *p)
{
    contractions found = {c->forced, c->joined};
    c->forced = c->joined = 0;
    for (; apostrophes != 0; apostrophes &= apostrophes - 1) {
        const unsigned i = lowest(apostrophes);
        const unsigned n = found.forced >> i & 1 ? 0 : contraction_of(b, i, true, p);
        if (n == 0)
            continue;
        join(c, i, n, &found);
        /* The word after it starts with a caseless letter, but `lower_word` is still set. */
        c->undecided |= has_bit(b->caseless | b->mark, next->caseless | next->mark, i + n);
    }
    return found;
}

SPLITTER_INLINE uint64_t o200k_words(carry *c, const block *b, const block *next, const pieces *p)
{
    const family *f = c->family;
    uint64_t visible = b->exists & ~b->blank, visible_after = next->exists & ~next->blank;
    uint64_t letters = b->letter, mark = b->mark, slash = f->slashes ? b->slash : 0, han = 0;
    if (f->joiners)
        mark |= found_bytes(&c->found, b, b->high & ~b->letter, is_joiner);
    if (f->han) {
        uint64_t han_before = c->found;
        han = b->cjk | found_bytes(&c->found, b, b->high & ~b->cjk, is_han);
        c->found = han;
        c->undecided |= (han & ~b->letter) != 0;
        letters &= ~han;
        han &= ~(next_to(han, han_before) & ~p->begin);
    }
    uint64_t other = visible & ~(b->letter | mark | b->number), absorbed;
    uint64_t marks = marks_as_others(c, b, other, mark, p);
    uint64_t letter = letters | (mark & ~marks);
    other |= marks;
    uint64_t tail = through((b->newline & next_to(other, c->other)) | (c->tail >> 63),
                            (b->newline | slash) & ~p->begin);
    c->undecided |= marks != 0 && (tail & slash) != 0;
    other &= ~tail;
    uint64_t starts = other_words(c, b, other, &absorbed, p);
    uint64_t first_apostrophes = starts & b->apostrophe & ahead(b->letter, next->letter, 1);
    uint64_t apostrophes = b->apostrophe & next_to(letter, c->letter) & ~p->begin;
    starts |= (letter & ~(next_to(letter, c->letter) & ~p->begin) & ~absorbed) | han;
    if (f->cased)
        starts |= cased_words(c, b, next, letter, p);
    starts |= number_words(c, b, f->n_digits, p);
    uint64_t last =
        followed_by(b->blank, visible & ~p->begin, visible_after & ~p->begin_after, b, next);
    starts |= (last & ~b->newline) | blank_words(c, b, next, tail, p);
    contractions found = {0};
    if (f->contraction_last)
        found = last_contractions(c, b, next, apostrophes, p);
    if (f->contraction_first) /* their letters are in `absorbed` */
        starts |= first_contractions(c, b, first_apostrophes, true, p).forced;
    c->letter = letter;
    return ((starts & ~found.joined) | found.forced | p->begin) & b->lead;
}

/* For all families of each kind. */
SPLIT_SCANNERS(cl100k, WANT_MARKS_AS_LETTERS & s->stages[0]->wanted, true)
SPLIT_SCANNERS(o200k, WANT_CASE | ((WANT_HIGH | WANT_HAN) & s->stages[0]->wanted), true)

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
#define REGEX_UPPER_BUT_HAN "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define REGEX_LOWER_BUT_HAN "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define REGEX_SUFFIX "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define REGEX_OTHERS_AND_SLASH "\\x20?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"

/* What the stages of this file share. */
/* clang-format off */
#define FAMILY(like, ...)                                                                          \
    .everything = true, .words = like##_words,                               \
    .scanners = &like##_scanners, .family = &(const family){__VA_ARGS__}
/* clang-format on */

const split_stage stage_cl100k = {FAMILY(cl100k, .contraction_first = true, .n_digits = 3),
                                  .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1,3}",
                                                   REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_cl100k_any_digits = {FAMILY(cl100k, .contraction_first = true),
                                             .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS,
                                                              "\\p{N}+", REGEX_OTHERS,
                                                              REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_cl100k_08 = {FAMILY(cl100k, .contraction_first = true, .trailing = true),
                                     .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS,
                                                      "\\p{N}{1,3}+", REGEX_OTHERS, "\\s++$",
                                                      REGEX_NEWLINES, REGEX_BLANKS}};

/* For files of ranks. */
const split_stage stage_cl100k_tiktoken = {
    FAMILY(cl100k, .contraction_first = true, .trailing = true, .n_digits = 3),
    .dialect = EXPRESSION_RUST,
    .alternatives = {"'(?i:[sdmt]|ll|ve|re)", "[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++", "\\p{N}{1,3}+",
                     "\\x20?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+", "\\s++$", "\\s*[\\r\\n]",
                     REGEX_BLANKS}};

const split_stage stage_nanochat = {FAMILY(cl100k, .contraction_first = true, .n_digits = 2),
                                    .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS,
                                                     "\\p{N}{1,2}", REGEX_OTHERS, REGEX_NEWLINES,
                                                     REGEX_BLANKS}};

const split_stage stage_qwen2 = {FAMILY(cl100k, .contraction_first = true, .n_digits = 1),
                                 .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}",
                                                  REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_qwen35 = {
    FAMILY(cl100k, .contraction_first = true, .n_digits = 1), .wanted = WANT_MARKS_AS_LETTERS,
    .alternatives = {REGEX_CONTRACTIONS, "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+", "\\p{N}",
                     "\\x20?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*", REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_seed = {
    FAMILY(cl100k, .contraction_first = true, .no_tail = true, .n_digits = 1),
    .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1}",
                     "\\x20?[^\\s\\p{L}\\p{N}\\r\\n]+", REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_k2_horizon = {
    FAMILY(o200k, .joiners = true, .contraction_first = true, .n_digits = 3),
    .wanted = WANT_CASE | WANT_HIGH,
    .alternatives = {REGEX_CONTRACTIONS,
                     "[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}|\\p{M}|\\u200C|\\u200D)+ "
                     "[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}|\\p{M}|\\x{200C}|\\x{200D})+",
                     "\\p{N}{1,3}", REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_jais2 = {
    FAMILY(cl100k, .contraction_first = true, .powers = true, .n_digits = 3),
    .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1,3}", REGEX_OTHERS, REGEX_NEWLINES,
                     "\\s{512}(?!\\S)", "\\s{256}(?!\\S)", "\\s{128}(?!\\S)", "\\s{64}(?!\\S)",
                     "\\s{32}(?!\\S)", "\\s{16}(?!\\S)", "\\s{8}(?!\\S)", "\\s{4}(?!\\S)",
                     "\\s{1,2}(?!\\S)", "\\s{1}"}};

/* A word is a whole sentence, so vector functions would not make it faster. */
const split_stage stage_k_exaone = {
    .alternatives = {REGEX_CONTRACTIONS,
                     "[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?:\\x20\\p{L}\\p{M}*)*)+", "\\p{N}",
                     "\\x20?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?", REGEX_NEWLINES, REGEX_BLANKS},
    .everything = true,
};

const split_stage stage_o200k = {
    FAMILY(o200k, .cased = true, .contraction_last = true, .slashes = true, .n_digits = 3),
    .wanted = WANT_CASE,
    .alternatives = {REGEX_BEFORE REGEX_UPPER "*" REGEX_LOWER "+" REGEX_SUFFIX,
                     REGEX_BEFORE REGEX_UPPER "+" REGEX_LOWER "*" REGEX_SUFFIX, "\\p{N}{1,3}",
                     REGEX_OTHERS_AND_SLASH, REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_o200k_each_digit = {
    FAMILY(o200k, .cased = true, .contraction_last = true, .slashes = true, .n_digits = 1),
    .wanted = WANT_CASE,
    .alternatives = {REGEX_BEFORE REGEX_UPPER "*" REGEX_LOWER "+" REGEX_SUFFIX,
                     REGEX_BEFORE REGEX_UPPER "+" REGEX_LOWER "*" REGEX_SUFFIX, "\\p{N}",
                     REGEX_OTHERS_AND_SLASH, REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_tekken = {
    FAMILY(o200k, .cased = true, .slashes = true, .n_digits = 1), .wanted = WANT_CASE,
    .alternatives = {REGEX_BEFORE REGEX_UPPER "*" REGEX_LOWER "+",
                     REGEX_BEFORE REGEX_UPPER "+" REGEX_LOWER "*", "\\p{N}", REGEX_OTHERS_AND_SLASH,
                     REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_kimi = {
    FAMILY(o200k, .han = true, .cased = true, .contraction_last = true, .n_digits = 3),
    .wanted = WANT_CASE | WANT_HIGH | WANT_HAN,
    .alternatives = {
        "[\\p{Han}]+", REGEX_BEFORE REGEX_UPPER_BUT_HAN "*" REGEX_LOWER_BUT_HAN "+" REGEX_SUFFIX,
        REGEX_BEFORE REGEX_UPPER_BUT_HAN "+" REGEX_LOWER_BUT_HAN "*" REGEX_SUFFIX, "\\p{N}{1,3}",
        "\\x20?[^\\s\\p{L}\\p{N}]+[\\r\\n]*", REGEX_NEWLINES, REGEX_BLANKS}};
