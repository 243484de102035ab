/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/split/splitter.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"

#define DECLARE(X, x) extern const split_stage stage_##x;
SPLIT_STAGES(DECLARE)
#undef DECLARE

#define ROW(X, x) [STAGE_##X] = &stage_##x,
const split_stage *const split_stages[STAGE_N] = {SPLIT_STAGES(ROW)};
#undef ROW

/* Patterns of several stages that are faster together. */
extern const split_scanners deepseek3_scanners, starcoder_scanners;
static const struct {
    split_pattern pattern;
    const split_scanners *scanners;
} lists[] = {{SPLIT_DEEPSEEK3, &deepseek3_scanners}, {SPLIT_STARCODER, &starcoder_scanners}};

static const split_stage *stage_of(split_pattern p, unsigned place)
{
    static const split_stage own = {0};
    const unsigned id = split_stage_at(p, place);
    return id < STAGE_N ? split_stages[id] : &own;
}

bool split_drops_blanks(split_pattern p)
{
    for (unsigned k = 0; split_stage_at(p, k); k++) {
        if (stage_of(p, k)->drops_blanks)
            return true;
    }
    return false;
}

/* ---- Which stage an expression is ---- */

/* Compares a spelling with the text of a file, in which \n may be written as a newline. Returns the
 * length of the match in the text, or 0. */
static size_t match_spelling(const char *spelling, size_t n_spelling, const char *text,
                             size_t n_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < n_spelling; i++, n++) {
        const bool escape = spelling[i] == '\\' && i + 1 < n_spelling;
        if (n == n_bytes)
            return 0;
        if (escape && strncmp(spelling + i, "\\x20", 4) == 0 && text[n] == ' ')
            i += 3;
        else if (escape && ((spelling[i + 1] == 'r' && text[n] == '\r') ||
                            (spelling[i + 1] == 'n' && text[n] == '\n')))
            i++;
        else if (spelling[i] != text[n])
            return 0;
    }
    return n;
}

/* The length of the match of one alternative, up to a bar or the end of the text; 0: it does not
 * match. */
static size_t match_alternative(const char *spellings, const char *text, size_t n_bytes)
{
    while (*spellings) {
        const size_t n_spelling = strcspn(spellings, " ");
        const size_t n = match_spelling(spellings, n_spelling, text, n_bytes);
        if (n > 0 && (n == n_bytes || text[n] == '|'))
            return n;
        spellings += n_spelling;
        spellings += *spellings == ' ';
    }
    return 0;
}

static bool matches(const split_stage *stage, const char *text, size_t n_bytes)
{
    size_t at = 0;
    for (size_t i = 0; i < SPLIT_MAX_ALTERNATIVES && stage->alternatives[i]; i++) {
        if (i > 0 && (at == n_bytes || text[at++] != '|'))
            return false;
        const size_t n = match_alternative(stage->alternatives[i], text + at, n_bytes - at);
        if (n == 0)
            return false;
        at += n;
    }
    return at > 0 && at == n_bytes;
}

/* Returns the first stage with this expression. */
split_stage_id split_find_stage(const char *text, size_t n_bytes)
{
    for (int id = STAGE_NONE + 1; id < STAGE_N; id++) {
        if (split_stages[id]->dialect == EXPRESSION_RUBY &&
            matches(split_stages[id], text, n_bytes))
            return (split_stage_id)id;
    }
    return STAGE_NONE;
}

/* ---- New and free ---- */

/* Returns the first spelling of each alternative that `match` does not stand for. */
static size_t write_expression(const split_stage *stage, char *out)
{
    const size_t first = stage->match ? 1 : 0;
    size_t n = 0;
    for (size_t i = first; i < SPLIT_MAX_ALTERNATIVES && stage->alternatives[i]; i++) {
        const size_t length = strcspn(stage->alternatives[i], " ");
        if (i > first)
            out[n++] = '|';
        memcpy(out + n, stage->alternatives[i], length);
        n += length;
    }
    return n;
}

splitter *splitter_new(split_pattern p, const split_own *own)
{
    char text[4096];
    expression_error err;
    splitter *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->pattern = p;
    s->drops_blanks = split_drops_blanks(p);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        s->scanners = lists[i].pattern == p ? lists[i].scanners : s->scanners;
    for (unsigned k = 0; split_stage_at(p, k); k++) {
        const split_stage *stage = s->stages[k] = stage_of(p, k);
        const unsigned id = split_stage_at(p, k);
        const split_own *x = id < STAGE_OWN ? NULL : &own[id - STAGE_OWN];
        s->n_stages = k + 1;
        s->joins[k] = x ? x->join : stage->join;
        s->removes |= s->joins[k] == JOIN_REMOVED || s->joins[k] == JOIN_KEPT;
        if (x)
            s->expressions[k] = expression_share(x->expression);
        else if (stage->begins)
            s->expressions[k] =
                expression_new(stage->begins, strlen(stage->begins), EXPRESSION_RUBY, &err);
        else
            s->expressions[k] =
                expression_new(text, write_expression(stage, text), stage->dialect, &err);
        if (!s->expressions[k]) {
            splitter_free(s);
            return NULL;
        }
    }
    return s;
}

void splitter_free(splitter *s)
{
    for (unsigned k = 0; s && k < s->n_stages; k++)
        expression_free(s->expressions[k]);
    free(s);
}

/* ---- One stage after the other ---- */

/* Runs all stages. The later ones take what the first one has split as the whole text. */
static size_t find_words(const splitter *s, simd_level e, text_cursor whole, size_t stop,
                         uint64_t *starts)
{
    const uint8_t *text = whole.text;
    simd_level level = e == SIMD_BEST ? simd_best() : e;
    if (e == SIMD_BEST && level == SIMD_SCALAR)
        level = SIMD_BLOCKS;
    whole.vectors = level == SIMD_AVX2 || level == SIMD_AVX512;
    if (whole.n_bytes == 0)
        return 0;
    split_set_bit(starts, 0);
    if (s->scanners && s->scanners->of[level])
        return s->scanners->of[level](s, SPLIT_ALL, text, whole.n_bytes, stop, starts);
    for (unsigned k = 0; k < s->n_stages; k++) {
        const split_stage *stage = s->stages[k];
        const split_scanners *scanners =
            k == 0 && stage->scanners ? stage->scanners : &any_scanners;
        split_scanner *walk = scanners->of[level];
        const bool only_bytes = s->joins[k] == JOIN_BYTES;
        const size_t end = k == 0 ? stop : SIZE_MAX;
        whole.piece_end = 0;
        if (walk && stage->words && !whole.as_bytes)
            whole.n_bytes = walk(s, k, text, whole.n_bytes, end, starts);
        else if (!only_bytes)
            whole.n_bytes = split_range(s, k, &whole, end, starts);
        if (k == 0)
            split_clear_bit(starts, whole.n_bytes);
        whole.as_bytes |= only_bytes || stage == &stage_byte_level;
    }
    return whole.n_bytes;
}

size_t splitter_words(const splitter *s, simd_level e, const uint8_t *text, size_t n_bytes,
                      size_t stop, uint64_t *starts)
{
    return find_words(s, e, (text_cursor){.text = text, .n_bytes = n_bytes}, stop, starts);
}

size_t splitter_dropped_blanks(const splitter *s, const uint8_t *word, size_t n_bytes)
{
    return s->drops_blanks ? unicode_blanks_after(word, n_bytes, 0) : 0;
}

bool splitter_removes(const splitter *s)
{
    return s->removes;
}

size_t splitter_kept_words(const splitter *s, const uint8_t *text, size_t n_bytes, size_t stop,
                           uint8_t *kept, size_t *n_taken, uint64_t *starts, uint64_t *removed)
{
    const text_cursor whole = {.text = text, .n_bytes = n_bytes, .removed = removed};
    size_t n_kept = 0;
    *n_taken = find_words(s, SIMD_BEST, whole, stop, starts);
    for (size_t at = 0, end; at < *n_taken; at = end) {
        const uint64_t bit = (uint64_t)1 << at % 64;
        end = split_next_start(starts, at + 1, *n_taken);
        starts[at / 64] &= ~bit;
        if ((removed[at / 64] & bit) != 0)
            continue;
        memcpy(kept + n_kept, text + at, end - at);
        split_set_bit(starts, n_kept);
        n_kept += end - at;
    }
    return n_kept;
}
