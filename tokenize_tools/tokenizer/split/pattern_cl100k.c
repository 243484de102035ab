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

/* For all families of each kind. */
SPLIT_WALKERS(cl100k, WANT_MARKS_AS_LETTERS & s->stages[0]->wanted, true)
SPLIT_WALKERS(o200k, WANT_CASE | ((WANT_HIGH | WANT_HAN) & s->stages[0]->wanted), true)

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
#define FAMILY(x, like)                                                                            \
    .name = #x, .everything = true, .cuts = CUT_ANYWHERE, .family = &x, .words = like##_words,     \
    .walkers = &like##_walkers

const split_stage stage_cl100k = {FAMILY(cl100k, cl100k),
                                  .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1,3}",
                                                   REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_cl100k_any_digits = {FAMILY(cl100k_any_digits, cl100k),
                                             .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS,
                                                              "\\p{N}+", REGEX_OTHERS,
                                                              REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_cl100k_08 = {FAMILY(cl100k_08, cl100k),
                                     .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS,
                                                      "\\p{N}{1,3}+", REGEX_OTHERS, "\\s++$",
                                                      REGEX_NEWLINES, REGEX_BLANKS}};

/* For files of ranks. */
const split_stage stage_cl100k_tiktoken = {
    FAMILY(cl100k_tiktoken, cl100k), .dialect = EXPRESSION_RUST,
    .alternatives = {"'(?i:[sdmt]|ll|ve|re)", "[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++", "\\p{N}{1,3}+",
                     "\\x20?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+", "\\s++$", "\\s*[\\r\\n]",
                     REGEX_BLANKS}};

const split_stage stage_nanochat = {
    FAMILY(nanochat, cl100k), .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1,2}",
                                               REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_qwen2 = {FAMILY(qwen2, cl100k),
                                 .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}",
                                                  REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_qwen35 = {
    FAMILY(qwen35, cl100k), .wanted = WANT_MARKS_AS_LETTERS,
    .alternatives = {REGEX_CONTRACTIONS, "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+", "\\p{N}",
                     "\\x20?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*", REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_seed = {FAMILY(seed, cl100k),
                                .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1}",
                                                 "\\x20?[^\\s\\p{L}\\p{N}\\r\\n]+", REGEX_NEWLINES,
                                                 REGEX_BLANKS}};

const split_stage stage_k2_horizon = {
    FAMILY(k2_horizon, o200k), .wanted = WANT_CASE | WANT_HIGH,
    .alternatives = {REGEX_CONTRACTIONS,
                     "[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}|\\p{M}|\\u200C|\\u200D)+ "
                     "[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}|\\p{M}|\\x{200C}|\\x{200D})+",
                     "\\p{N}{1,3}", REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_jais2 = {
    FAMILY(jais2, cl100k),
    .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1,3}", REGEX_OTHERS, REGEX_NEWLINES,
                     "\\s{512}(?!\\S)", "\\s{256}(?!\\S)", "\\s{128}(?!\\S)", "\\s{64}(?!\\S)",
                     "\\s{32}(?!\\S)", "\\s{16}(?!\\S)", "\\s{8}(?!\\S)", "\\s{4}(?!\\S)",
                     "\\s{1,2}(?!\\S)", "\\s{1}"}};

/* A word is a whole sentence, so vector functions would not make it faster. */
const split_stage stage_k_exaone = {
    .name = "k_exaone",
    .alternatives = {REGEX_CONTRACTIONS,
                     "[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?:\\x20\\p{L}\\p{M}*)*)+", "\\p{N}",
                     "\\x20?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?", REGEX_NEWLINES, REGEX_BLANKS},
    .everything = true,
    .cuts = CUT_ANYWHERE & ~CUT_AT_SPACE,
};

const split_stage stage_o200k = {
    FAMILY(o200k, o200k), .wanted = WANT_CASE,
    .alternatives = {REGEX_BEFORE REGEX_UPPER "*" REGEX_LOWER "+" REGEX_SUFFIX,
                     REGEX_BEFORE REGEX_UPPER "+" REGEX_LOWER "*" REGEX_SUFFIX, "\\p{N}{1,3}",
                     REGEX_OTHERS_AND_SLASH, REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_o200k_each_digit = {
    FAMILY(o200k_each_digit, o200k), .wanted = WANT_CASE,
    .alternatives = {REGEX_BEFORE REGEX_UPPER "*" REGEX_LOWER "+" REGEX_SUFFIX,
                     REGEX_BEFORE REGEX_UPPER "+" REGEX_LOWER "*" REGEX_SUFFIX, "\\p{N}",
                     REGEX_OTHERS_AND_SLASH, REGEX_NEWLINES, REGEX_BLANKS}};

const split_stage stage_tekken = {FAMILY(tekken, o200k), .wanted = WANT_CASE,
                                  .alternatives = {REGEX_BEFORE REGEX_UPPER "*" REGEX_LOWER "+",
                                                   REGEX_BEFORE REGEX_UPPER "+" REGEX_LOWER "*",
                                                   "\\p{N}", REGEX_OTHERS_AND_SLASH, REGEX_NEWLINES,
                                                   REGEX_BLANKS}};

const split_stage stage_kimi = {
    FAMILY(kimi, o200k), .wanted = WANT_CASE | WANT_HIGH | WANT_HAN,
    .alternatives = {
        "[\\p{Han}]+", REGEX_BEFORE REGEX_UPPER_BUT_HAN "*" REGEX_LOWER_BUT_HAN "+" REGEX_SUFFIX,
        REGEX_BEFORE REGEX_UPPER_BUT_HAN "+" REGEX_LOWER_BUT_HAN "*" REGEX_SUFFIX, "\\p{N}{1,3}",
        "\\x20?[^\\s\\p{L}\\p{N}]+[\\r\\n]*", REGEX_NEWLINES, REGEX_BLANKS}};
