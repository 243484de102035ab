/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_thousands.c - numbers in groups of three, counted from their right:
 *
 * thousands        before o200k: tiny-aya
 * thousands_only   words run over blanks: SuperBPE
 * superbpe         and words: SuperBPE's first step */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_algebra.h"
#include "tokenizer/split/text_cut.h"
#include "tokenizer/unicode/unicode.h"

static bool is_decimal(character c)
{
    return c.code_point != UINT32_MAX && unicode_is_decimal(c.code_point);
}

/* Oniguruma's \w. It has six numbers that Rust's lacks, and not the two joiners of Rust's. */
static bool is_word(character c)
{
    switch (c.code_point) {
    case 0xB2:
    case 0xB3:
    case 0xB9:
    case 0xBC:
    case 0xBD:
    case 0xBE:
        return true;
    case 0x200C:
    case 0x200D:
    case UINT32_MAX:
        return false;
    default:
        return unicode_is_word(c.code_point);
    }
}

/* The end of the run of decimal digits at i; *n is their number. A long run is counted once. */
static size_t decimals_end(view *v, size_t i, size_t *n)
{
    size_t end = i;
    *n = 0;
    for (character c = char_at(v, end); is_decimal(c); c = char_at(v, end)) {
        end += c.n_bytes;
        ++*n;
    }
    return end;
}

static size_t skip_decimals(const view *v, size_t i, size_t n)
{
    for (; n > 0; n--)
        i += char_at(v, i).n_bytes;
    return i;
}

/* \d{1,3}(?=(?:\d{3})*\b): a run that no word character follows. */
static size_t thousands_match(view *v, size_t i)
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
static bool is_before_thousands(view *v, size_t i)
{
    if (!is_decimal(char_at(v, i)))
        return false;
    if (v->run_end <= i)
        v->run_end = decimals_end(v, i, &v->run_left);
    return v->run_left-- % 3 == 0;
}

static size_t thousands_only_match(view *v, size_t i)
{
    return is_before_thousands(v, i) ? i : 0;
}

/* \s+(?!\S)|\s+: the run of blanks, or without its last one, which the next word may start with. */
static size_t blanks_end(const view *v, size_t start)
{
    size_t i = start, last = start;
    character c = char_at(v, i);
    for (; is_of(c, BLANKS); c = char_at(v, i)) {
        last = i;
        i += c.n_bytes;
    }
    return c.class == CLASS_END || last == start ? i : last;
}

/* Where nothing is matched, no other alternative is tried. */
static size_t superbpe_match(view *v, size_t i)
{
    if (is_before_thousands(v, i))
        return i;
    character c = char_at(v, i);
    const size_t body = i + (c.code_point == ' ');
    const character first = char_at(v, body);
    if (is_of(first, LETTERS))
        return skip_classes(v, body, LETTERS);
    if (is_of(first, OTHERS))
        return skip_classes(v, body, OTHERS);
    return is_of(c, BLANKS) ? blanks_end(v, i) : 0;
}

/* Numbers are left to the scalar splitter. */
static uint64_t superbpe_words(carry *c, const block *b, const block *next, const pieces *p)
{
    c->undecided |= b->number != 0;
    return gpt2_runs(c, b, next, b->number, p) & b->lead;
}

/* ---- The rows ---- */

const split_stage stage_thousands = {
    .name = "thousands",
    .alternatives = {"\\d{1,3}(?=(?:\\d{3})*\\b)"},
    .match = thousands_match,
    .begins = "\\d",
};

const split_stage stage_thousands_only = {
    .name = "thousands_only",
    .alternatives = {"(?=(\\d{3})+(?!\\d))"},
    .match = thousands_only_match,
    .begins = "\\d",
};

const split_stage stage_superbpe = {
    .name = "superbpe",
    .alternatives = {"(?=(\\d{3})+(?!\\d))", "\\x20?\\p{L}+", "\\x20?[^\\s\\p{L}\\p{N}]+",
                     "\\s+(?!\\S)|\\s+"},
    .cuts = CUT_ANYWHERE,
    .match = superbpe_match,
    .words = superbpe_words,
};
