/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize/normalizer_cuts.h"

#include <string.h>

#include "tokenizer/split/splitter.h"
#include "tokenizer/split/text_cut.h"
#include "tokenizer/unicode/grapheme.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/unicode/unicode.h"
#include "text/utf8.h"

#define N NORMALIZER_CUT_CHARACTERS

bool cut_map(const charsmap *map, uint32_t *character)
{
    uint8_t bytes[4];
    const size_t length = utf8_encode(*character, bytes);
    replacement r;
    if (map->rules.n_units == 0 || charsmap_longest(map, bytes, length, &r) == 0)
        return true;
    return r.n_bytes > 0 && utf8_decode(r.bytes, r.n_bytes, character) == r.n_bytes;
}

/* ---- Replace ---- */

static bool occurs_in(const model_text *text, uint32_t character)
{
    const uint8_t *bytes = (const uint8_t *)text->s;
    for (size_t at = 0, length; at < text->n_bytes; at += length) {
        uint32_t c = bytes[at];
        length = c < 0x80 ? 1 : utf8_decode(bytes + at, text->n_bytes - at, &c);
        if (length == 0 || c == character)
            return true;
    }
    return false;
}

static bool is_one_character(const model_text *text, uint32_t *c)
{
    return text->n_bytes > 0 &&
           utf8_decode((const uint8_t *)text->s, text->n_bytes, c) == text->n_bytes;
}

/* Whether the result for around[i] is known: it is unchanged, or replaced alone. */
static bool replace_one(const normalize_step *step, uint32_t *around, size_t i)
{
    uint32_t from, to;
    if (!occurs_in(&step->from, around[i]))
        return true;
    if (!is_one_character(&step->from, &from))
        return false;
    if (step->kind == NORMALIZE_REPLACE_RUNS) /* one is not a run */
        return i == 2 && around[1] != from && around[3] != from;
    if (!is_one_character(&step->to, &to))
        return false;
    around[i] = to;
    return true;
}

static bool replace_all(const normalize_step *step, uint32_t *around)
{
    for (size_t i = 0; i < N; i++)
        if (!replace_one(step, around, i))
            return false;
    return true;
}

/* ---- Precompiled and NFC ---- */

/* Whether there is a cluster boundary between any two of them, whatever is before them. */
static bool are_clusters(const uint32_t *around)
{
    bool alone = true;
    for (size_t i = 0; i < N && alone; i++)
        alone = grapheme_is_alone(around[i]);
    if (alone)
        return true;
    uint8_t text[(N + 1) * 4];
    size_t lengths[N], n_bytes = utf8_encode(around[0], text);
    for (size_t i = 0; i < N; i++)
        n_bytes += lengths[i] = utf8_encode(around[i], text + n_bytes);
    /* Two equal characters, to find those that join with the ones before. */
    if (grapheme_length(text, 2 * lengths[0]) != lengths[0])
        return false;
    const uint8_t *at = text + lengths[0], *end = text + n_bytes;
    for (size_t i = 0; i < N; i++) {
        if (grapheme_length(at, (size_t)(end - at)) != lengths[i])
            return false;
        at += lengths[i];
    }
    return true;
}

static bool is_normal(uint32_t character)
{
    uint8_t bytes[4];
    const size_t length = utf8_encode(character, bytes);
    return unicode_class_of(character) != CLASS_MARK && nfc_stable_prefix(bytes, length) == length;
}

/* The results for the outer characters are not known, because their neighbours are not. */
static bool map_each(const normalize_step *step, const charsmap *map, uint32_t *around)
{
    for (size_t i = 1; i + 1 < N; i++)
        if (step->kind == NORMALIZE_NFC ? !is_normal(around[i]) : !cut_map(map, &around[i]))
            return false;
    return true;
}

static bool map_all(const char_map *map, uint32_t *around)
{
    for (size_t i = 0; i < N; i++)
        if (!char_map_one(map, around[i], &around[i]))
            return false;
    return true;
}

/* ---- All ---- */

static bool is_blank(uint32_t character)
{
    return unicode_class_of(character) == CLASS_SPACE;
}

/* Only the two characters beside the cut matter, and whether a run goes on across it. */
static bool replace_blanks(const normalize_step *step, uint32_t *around)
{
    if (is_blank(around[1]) || (is_blank(around[2]) && is_blank(around[3])))
        return false;
    if (is_blank(around[2]) && step->kind == NORMALIZE_REPLACE_BLANKS)
        return is_one_character(&step->to, &around[2]);
    return around[2] != '\n' && around[2] != '\r' && around[2] != '\t';
}

bool cut_steps(const step_list *list, const uint32_t *around, uint32_t beside[2])
{
    uint32_t now[N];
    bool mapped = false;
    memcpy(now, around, sizeof now);
    for (size_t i = 0; i < list->n_steps; i++) {
        const normalize_step *step = &list->steps[i].step;
        if (list->steps[i].map) {
            if (mapped || !map_all(list->steps[i].map, now))
                return false;
            continue;
        }
        switch (step->kind) {
        case NORMALIZE_PREPEND:
            break;
        case NORMALIZE_STRIP:
            if (is_blank(now[1]))
                return false;
            break;
        case NORMALIZE_REPLACE:
        case NORMALIZE_REPLACE_RUNS:
            if (!replace_all(step, now))
                return false;
            break;
        case NORMALIZE_REPLACE_BLANKS:
        case NORMALIZE_REPLACE_LONG_BLANKS:
            if (!replace_blanks(step, now))
                return false;
            break;
        default:
            if (mapped || !are_clusters(now) || !map_each(step, &list->charsmap, now))
                return false;
            mapped = true;
        }
    }
    beside[0] = now[1];
    beside[1] = now[2];
    return true;
}

/* ---- Words of a pattern ---- */

static bool is_blank_text(const model_text *text)
{
    return text->n_bytes == 1 && text->s[0] == ' ';
}

/* Whether no match has a character that is beside a cut. */
static bool is_beside_no_cut(const model_text *from)
{
    for (size_t i = 0; i < from->n_bytes; i++) {
        const uint8_t c = (uint8_t)from->s[i];
        if (c <= ' ' || (uint8_t)((c | 0x20) - 'a') < 26 || (uint8_t)(c - '0') < 10)
            return false;
    }
    return true;
}

/* What the step leaves of the places of text_cut.h. Letters there begin and end with a letter or
 * its marks in all forms; a newline may become a blank, and ideographs may get blanks. */
static unsigned cuts_of_step(const normalize_step *step, bool drops_blanks)
{
    const unsigned ascii = CUT_AT_SPACE | CUT_AT_NEWLINE | CUT_AT_DIGIT;
    const unsigned no_newline = CUT_ANYWHERE & ~(unsigned)CUT_AT_NEWLINE;
    switch (step->kind) {
    case NORMALIZE_NFC:
    case NORMALIZE_NFD:
    case NORMALIZE_NFKC:
    case NORMALIZE_NFKD:
    case NORMALIZE_STRIP_ACCENTS:
    case NORMALIZE_LOWERCASE:
    case NORMALIZE_PREPEND:
        return CUT_ANYWHERE;
    case NORMALIZE_NMT:
        return drops_blanks ? CUT_ANYWHERE : no_newline;
    case NORMALIZE_BERT:
        return drops_blanks ? CUT_ANYWHERE : CUT_AT_SPACE | CUT_AT_DIGIT | CUT_AT_SIGN;
    case NORMALIZE_STRIP: /* no part of the text ends with a blank */
        return step->right ? no_newline : CUT_ANYWHERE;
    case NORMALIZE_REPLACE:
        return is_beside_no_cut(&step->from) ? ascii : 0;
    case NORMALIZE_REPLACE_RUNS: /* the blank of a cut is a single one */
        return is_blank_text(&step->from) ? ascii : 0;
    case NORMALIZE_REPLACE_BLANKS:
    case NORMALIZE_REPLACE_LONG_BLANKS:
        return is_blank_text(&step->to) ? CUT_AT_SPACE | CUT_AT_DIGIT : 0;
    default:
        return 0;
    }
}

unsigned normalizer_text_cuts(const model *m)
{
    unsigned cuts = split_cuts(m->split);
    for (size_t i = 0; i < m->n_steps; i++)
        cuts &= cuts_of_step(&m->steps[i], m->split != SPLIT_NONE && split_drops_blanks(m->split));
    return cuts;
}
