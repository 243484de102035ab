/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_thousands.c - numbers in groups of three, counted from their right:
 *
 * thousands        before o200k: tiny-aya
 * thousands_only   words run over blanks: SuperBPE
 * superbpe         and words: SuperBPE's first step */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_algebra.h"
#include "tokenizer/unicode/unicode.h"

static bool is_decimal(character c)
{
    return c.code_point != UINT32_MAX && unicode_is_decimal(c.code_point);
}

/* Oniguruma's \w. It has six numbers that Rust's lacks, and not the two joiners of Rust's. */
static bool is_word(character c)
{
    const uint32_t p = c.code_point;
    if (p == 0xB2 || p == 0xB3 || p == 0xB9 || (p >= 0xBC && p <= 0xBE))
        return true;
    return p != UINT32_MAX && p != 0x200C && p != 0x200D && unicode_is_word(p);
}

/* The end of the run of decimal digits at i; *n is their number. A long run is counted once. */
static size_t decimals_end(text_cursor *v, size_t i, size_t *n)
{
    size_t end = i;
    *n = 0;
    for (character c = char_at(v, end); is_decimal(c); c = char_at(v, end)) {
        end += c.n_bytes;
        ++*n;
    }
    return end;
}

static size_t skip_decimals(const text_cursor *v, size_t i, size_t n)
{
    for (; n > 0; n--)
        i += char_at(v, i).n_bytes;
    return i;
}

/* \d{1,3}(?=(?:\d{3})*\b): a run that no word character follows. */
static size_t thousands_match(text_cursor *v, size_t i)
{
    if (v->run_end <= i) {
        v->run_end = decimals_end(v, i, &v->run_left);
        v->run_grouped = !is_word(char_at(v, v->run_end));
    }
    if (v->run_end == i || !v->run_grouped)
        return 0;
    const size_t n = v->run_left % 3 == 0 ? 3 : v->run_left % 3;
    v->run_left -= n;
    return skip_decimals(v, i, n);
}

/* (?=(\d{3})+(?!\d)): matches of nothing. */
static size_t thousands_only_match(text_cursor *v, size_t i)
{
    if (!is_decimal(char_at(v, i)))
        return 0;
    if (v->run_end <= i)
        v->run_end = decimals_end(v, i, &v->run_left);
    return v->run_left-- % 3 == 0 ? i : 0;
}

/* Numbers are left to the scalar splitter. */
static uint64_t superbpe_words(carry *c, const block *b, const block *next, const pieces *p)
{
    c->undecided |= b->number != 0;
    return gpt2_runs(c, b, next, b->number, p) & b->lead;
}

/* ---- The rows ---- */

const split_stage stage_thousands = {
    .alternatives = {"\\d{1,3}(?=(?:\\d{3})*\\b)"},
    .match = thousands_match,
    .begins = "\\d",
};

const split_stage stage_thousands_only = {
    .alternatives = {"(?=(\\d{3})+(?!\\d))"},
    .match = thousands_only_match,
    .begins = "\\d",
};

const split_stage stage_superbpe = {
    .alternatives = {"(?=(\\d{3})+(?!\\d))", "\\x20?\\p{L}+", "\\x20?[^\\s\\p{L}\\p{N}]+",
                     "\\s+(?!\\S)|\\s+"},
    .match = thousands_only_match,
    .words = superbpe_words,
};
