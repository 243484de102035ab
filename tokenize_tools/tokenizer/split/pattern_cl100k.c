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
#include "tokenizer/split/splitter_families.h"
#include "tokenizer/split/splitter_vector.h"
#include "tokenizer/split/text_cut.h"

/* ---- The definition ---- */

static const family cl100k = {LETTERS, OTHERS, .contraction_first = true, .n_digits = 3};
static const family nanochat = {LETTERS, OTHERS, .contraction_first = true, .n_digits = 2};
static const family qwen35 = {LETTERS | MARKS, OTHERS & ~MARKS, .contraction_first = true,
                              .n_digits = 1};
static const family seed = {LETTERS, OTHERS, .contraction_first = true, .no_tail = true,
                            .n_digits = 1};
static const family k2_horizon = {LETTERS | MARKS, OTHERS, .joiners = true,
                                  .contraction_first = true, .n_digits = 3};
static const family jais2 = {LETTERS, OTHERS, .contraction_first = true, .powers = true,
                             .n_digits = 3};
static const family k_exaone = {LETTERS,        OTHERS,           .contraction_first = true,
                                .spaced = true, .one_tail = true, .n_digits = 1};
static const family cl100k_08 = {LETTERS, OTHERS, .contraction_first = true, .trailing = true};
static const family cl100k_tiktoken = {LETTERS, OTHERS, .contraction_first = true, .trailing = true,
                                       .n_digits = 3};
static const family o200k = {LETTERS | MARKS,          OTHERS,          .cased = true,
                             .contraction_last = true, .slashes = true, .n_digits = 3};
static const family tekken = {LETTERS | MARKS, OTHERS, .cased = true, .slashes = true,
                              .n_digits = 1};
static const family kimi = {LETTERS | MARKS,          OTHERS,       .han = true, .cased = true,
                            .contraction_last = true, .n_digits = 3};

bool split_is_joiner(uint32_t code_point)
{
    return code_point == 0x200C || code_point == 0x200D;
}

/* \p{Han} of Unicode 16. */
bool split_is_han(uint32_t code_point)
{
    static const uint32_t ranges[][2] = {
        {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},
        {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},
        {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
        {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D},
        {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D},
        {0x30000, 0x3134A}, {0x31350, 0x323AF}};
    if (code_point >= 0x4E00 && code_point <= 0x9FFF)
        return true;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges && ranges[i][0] <= code_point; i++) {
        if (code_point <= ranges[i][1])
            return code_point != UINT32_MAX;
    }
    return false;
}

static bool is_letter_of(const family *f, character c, unsigned classes)
{
    return (is_of(c, classes) && !(f->han && split_is_han(c.code_point))) ||
           (f->joiners && split_is_joiner(c.code_point));
}

static size_t skip_letters(const view *v, const family *f, size_t i, unsigned classes)
{
    if (!f->han && !f->joiners)
        return skip_classes(v, i, classes);
    for (character c = char_at(v, i); is_letter_of(f, c, classes); c = char_at(v, i))
        i += c.n_bytes;
    return i;
}

/* [U]*[L]+ or, where that fails, [U]+[L]*. U and L are upper and lower case; caseless letters and
 * marks are in both. If no lower case letter follows the run of U, then [L]+ can only match a
 * caseless letter at its end: the word ends after the last one of the run. If there is none, the
 * second alternative takes the whole run. */
static size_t cased_end(const view *v, const family *f, size_t i)
{
    size_t after_caseless = i, start = i;
    character c = char_at(v, i);
    for (; is_letter_of(f, c, UPPER | CASELESS); c = char_at(v, i)) {
        i += c.n_bytes;
        if (is_of(c, CASELESS))
            after_caseless = i;
    }
    if (is_of(c, LOWER))
        return skip_letters(v, f, i, LOWER | CASELESS);
    return after_caseless > start ? after_caseless : i;
}

/* (?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+ from a letter. */
static size_t spaced_end(const view *v, size_t i)
{
    for (;; i++) {
        i = skip_classes(v, i, LETTERS | MARKS);
        if (char_at(v, i).code_point != ' ' || !is_of(char_at(v, i + 1), LETTERS))
            return i;
    }
}

static size_t letters_end(const view *v, const family *f, size_t i)
{
    if (f->spaced)
        return spaced_end(v, i);
    size_t end = f->cased ? cased_end(v, f, i) : skip_letters(v, f, i, f->letters);
    return f->contraction_last ? end + contraction_at(v, end, true) : end;
}

static size_t others_end(const view *v, const family *f, size_t i)
{
    const size_t end = skip_classes(v, i, f->others);
    if (f->one_tail)
        return end + is_newline(char_at(v, end));
    return f->no_tail ? end : skip_newlines(v, end, f->slashes);
}

/* \s{512}(?!\S)|\s{256}(?!\S)|... of n blanks: the largest that leaves one for the word. */
static size_t power_of_blanks(size_t n, bool at_end)
{
    size_t size = 512;
    while (size > 1 && (size > n || (size == n && !at_end)))
        size /= 2;
    return size;
}

static size_t powers_end(view *v, size_t i)
{
    size_t n = 0, end = i;
    if (i >= v->no_newline_before) { /* else a long run would be searched again for each group */
        end = blanks_end(v, i, true);
        if (is_newline(char_at(v, end - 1)))
            return end;
        v->no_newline_before = end;
    }
    character c = char_at(v, i);
    for (end = i; n <= 512 && is_of(c, BLANKS); c = char_at(v, end), n++)
        end += c.n_bytes;
    for (n = power_of_blanks(n, end == v->n_bytes); n > 0; n--)
        i += char_at(v, i).n_bytes;
    return i;
}

static size_t family_blanks_end(view *v, const family *f, size_t i)
{
    if (f->trailing && skip_classes(v, i, BLANKS) == v->n_bytes)
        return v->n_bytes;
    return f->powers ? powers_end(v, i) : blanks_end(v, i, true);
}

static size_t family_end(view *v, const family *f, size_t i)
{
    character c = char_at(v, i);
    if (f->han && split_is_han(c.code_point)) {
        for (; split_is_han(c.code_point); c = char_at(v, i))
            i += c.n_bytes;
        return i;
    }
    if (f->contraction_first && c.code_point == '\'') {
        size_t contraction = contraction_at(v, i, true);
        if (contraction > 0)
            return i + contraction;
    }
    if (is_letter_of(f, c, f->letters))
        return letters_end(v, f, i);
    if (is_of(c, NUMBERS))
        return digits_end(v, i, f->n_digits);
    character next = char_at(v, i + c.n_bytes);
    if (!is_newline(c) && is_letter_of(f, next, f->letters))
        return letters_end(v, f, i + c.n_bytes);
    if (is_of(c, f->others) || (c.code_point == ' ' && is_of(next, f->others)))
        return others_end(v, f, i + c.n_bytes);
    return family_blanks_end(v, f, i);
}

/* ---- The same by masks ---- */

#define TWIN(x, like, wanted)                                                                      \
    SPLITTER_INLINE uint64_t x##_words(carry *c, const block *b, const block *next,                \
                                       const pieces *p)                                            \
    {                                                                                              \
        return like##_pieces(&x, c, b, next, p);                                                   \
    }                                                                                              \
    SPLIT_WALKERS(x, wanted)
TWIN(cl100k, cl100k, 0)
TWIN(cl100k_any_digits, cl100k, 0)
TWIN(cl100k_08, cl100k, 0)
TWIN(cl100k_tiktoken, cl100k, 0)
TWIN(nanochat, cl100k, 0)
TWIN(qwen2, cl100k, 0)
TWIN(qwen35, cl100k, WANT_MARKS_AS_LETTERS)
TWIN(seed, cl100k, 0)
TWIN(jais2, cl100k, 0)
TWIN(k2_horizon, o200k, WANT_CASE | WANT_HIGH)
TWIN(o200k, o200k, WANT_CASE)
TWIN(o200k_each_digit, o200k, WANT_CASE)
TWIN(tekken, o200k, WANT_CASE)
TWIN(kimi, o200k, WANT_CASE | WANT_HIGH | WANT_HAN)

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
#define FAMILY(x)                                                                                  \
    .name = #x, .everything = true, .cuts = CUT_ANYWHERE, .match = x##_match, SPLIT_VECTOR(x)

#define MATCH(x)                                                                                   \
    static size_t x##_match(view *v, size_t i)                                                     \
    {                                                                                              \
        return family_end(v, &x, i);                                                               \
    }

MATCH(cl100k)
const split_stage stage_cl100k = {FAMILY(cl100k),
                                  .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1,3}",
                                                   REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(cl100k_any_digits)
const split_stage stage_cl100k_any_digits = {
    FAMILY(cl100k_any_digits), .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}+",
                                                REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(cl100k_08)
const split_stage stage_cl100k_08 = {
    FAMILY(cl100k_08), .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1,3}+",
                                        REGEX_OTHERS, "\\s++$", REGEX_NEWLINES, REGEX_BLANKS}};

/* For files of ranks. */
MATCH(cl100k_tiktoken)
const split_stage stage_cl100k_tiktoken = {FAMILY(cl100k_tiktoken)};

MATCH(nanochat)
const split_stage stage_nanochat = {
    FAMILY(nanochat), .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1,2}",
                                       REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(qwen2)
const split_stage stage_qwen2 = {FAMILY(qwen2),
                                 .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}",
                                                  REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(qwen35)
const split_stage stage_qwen35 = {
    FAMILY(qwen35),
    .alternatives = {REGEX_CONTRACTIONS, "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+", "\\p{N}",
                     "\\x20?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*", REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(seed)
const split_stage stage_seed = {FAMILY(seed),
                                .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1}",
                                                 "\\x20?[^\\s\\p{L}\\p{N}\\r\\n]+", REGEX_NEWLINES,
                                                 REGEX_BLANKS}};

MATCH(k2_horizon)
const split_stage stage_k2_horizon = {
    FAMILY(k2_horizon),
    .alternatives = {REGEX_CONTRACTIONS,
                     "[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}|\\p{M}|\\u200C|\\u200D)+ "
                     "[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}|\\p{M}|\\x{200C}|\\x{200D})+",
                     "\\p{N}{1,3}", REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(jais2)
const split_stage stage_jais2 = {
    FAMILY(jais2),
    .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1,3}", REGEX_OTHERS, REGEX_NEWLINES,
                     "\\s{512}(?!\\S)", "\\s{256}(?!\\S)", "\\s{128}(?!\\S)", "\\s{64}(?!\\S)",
                     "\\s{32}(?!\\S)", "\\s{16}(?!\\S)", "\\s{8}(?!\\S)", "\\s{4}(?!\\S)",
                     "\\s{1,2}(?!\\S)", "\\s{1}"}};

/* A word is a whole sentence, so vector functions would not make it faster. */
MATCH(k_exaone)
const split_stage stage_k_exaone = {
    .name = "k_exaone",
    .alternatives = {REGEX_CONTRACTIONS,
                     "[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?:\\x20\\p{L}\\p{M}*)*)+", "\\p{N}",
                     "\\x20?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?", REGEX_NEWLINES, REGEX_BLANKS},
    .everything = true,
    .cuts = CUT_ANYWHERE & ~CUT_AT_SPACE,
    .match = k_exaone_match,
};

MATCH(o200k)
const split_stage stage_o200k = {
    FAMILY(o200k),
    .alternatives = {REGEX_BEFORE REGEX_UPPER "*" REGEX_LOWER "+" REGEX_SUFFIX,
                     REGEX_BEFORE REGEX_UPPER "+" REGEX_LOWER "*" REGEX_SUFFIX, "\\p{N}{1,3}",
                     REGEX_OTHERS_AND_SLASH, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(o200k_each_digit)
const split_stage stage_o200k_each_digit = {
    FAMILY(o200k_each_digit),
    .alternatives = {REGEX_BEFORE REGEX_UPPER "*" REGEX_LOWER "+" REGEX_SUFFIX,
                     REGEX_BEFORE REGEX_UPPER "+" REGEX_LOWER "*" REGEX_SUFFIX, "\\p{N}",
                     REGEX_OTHERS_AND_SLASH, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(tekken)
const split_stage stage_tekken = {
    FAMILY(tekken), .alternatives = {REGEX_BEFORE REGEX_UPPER "*" REGEX_LOWER "+",
                                     REGEX_BEFORE REGEX_UPPER "+" REGEX_LOWER "*", "\\p{N}",
                                     REGEX_OTHERS_AND_SLASH, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(kimi)
const split_stage stage_kimi = {
    FAMILY(kimi),
    .alternatives = {
        "[\\p{Han}]+", REGEX_BEFORE REGEX_UPPER_BUT_HAN "*" REGEX_LOWER_BUT_HAN "+" REGEX_SUFFIX,
        REGEX_BEFORE REGEX_UPPER_BUT_HAN "+" REGEX_LOWER_BUT_HAN "*" REGEX_SUFFIX, "\\p{N}{1,3}",
        "\\x20?[^\\s\\p{L}\\p{N}]+[\\r\\n]*", REGEX_NEWLINES, REGEX_BLANKS}};
