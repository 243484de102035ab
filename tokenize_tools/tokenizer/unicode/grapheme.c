/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/unicode/grapheme.h"

#include "tokenizer/unicode/grapheme_tables.h"
#include "tokenizer/unicode/table_rows.h"
#include "base/utf8.h"

enum {
    OTHER,
    CR,
    LF,
    CONTROL,
    EXTEND,
    ZWJ,
    REGIONAL,
    PREPEND,
    SPACING_MARK,
    HANGUL_L,
    HANGUL_V,
    HANGUL_T,
    HANGUL_LV, /* these two are not in the table */
    HANGUL_LVT
};

enum {
    NO_CONJUNCT,
    CONSONANT,
    CONJUNCT_EXTEND,
    LINKER
};

#define BREAK_OF(kind) ((kind)&15u)
#define CONJUNCT_OF(kind) ((kind) >> 4 & 3u)
#define PICTOGRAPHIC 0x40u

static uint32_t kind_of(uint32_t code_point)
{
    if (code_point >= 0xAC00 && code_point < 0xD7A4)
        return (code_point - 0xAC00) % 28 == 0 ? HANGUL_LV : HANGUL_LVT;
    const uint32_t block = code_point < 0x10000 ? code_point >> 8 : 0x100;
    const uint32_t *ranges = grapheme_ranges + grapheme_blocks[block];
    const uint32_t *end =
        grapheme_ranges + (block < 0x100 ? grapheme_blocks[block + 1] + 1u : grapheme_n_ranges);
    const uint32_t *range =
        find_row(ranges, (size_t)(end - ranges), sizeof *range, code_point << 8 | 0xFF);
    return *range & 0xFF;
}

/* What the rules need to know of the cluster so far. */
typedef struct history {
    uint32_t last;          /* break property of the character before */
    unsigned n_regional;    /* regional indicators just before */
    bool pictographic;      /* a pictograph, then only EXTEND */
    bool joined_pictograph; /* that, then ZWJ */
    bool consonant;         /* a consonant, then only linkers and conjunct extenders */
    bool linked;            /* ... with a linker among them */
} history;

static void note_character(history *h, uint32_t kind)
{
    const uint32_t conjunct = CONJUNCT_OF(kind);
    h->last = BREAK_OF(kind);
    h->n_regional = h->last == REGIONAL ? h->n_regional + 1 : 0;
    h->joined_pictograph = h->pictographic && h->last == ZWJ;
    h->pictographic = (kind & PICTOGRAPHIC) || (h->pictographic && h->last == EXTEND);
    h->linked = h->consonant && (conjunct == LINKER || (h->linked && conjunct == CONJUNCT_EXTEND));
    h->consonant = conjunct == CONSONANT || (h->consonant && conjunct != NO_CONJUNCT);
}

static bool is_syllable_joined(uint32_t before, uint32_t after)
{
    switch (before) {
    case HANGUL_L:
        return after == HANGUL_L || after == HANGUL_V || after == HANGUL_LV || after == HANGUL_LVT;
    case HANGUL_V:
    case HANGUL_LV:
        return after == HANGUL_V || after == HANGUL_T;
    case HANGUL_T:
    case HANGUL_LVT:
        return after == HANGUL_T;
    default:
        return false;
    }
}

static bool is_control(uint32_t kind)
{
    return kind == CR || kind == LF || kind == CONTROL;
}

/* Rules GB3 to GB999. */
static bool goes_on(const history *h, uint32_t kind)
{
    const uint32_t after = BREAK_OF(kind);
    if (h->last == CR && after == LF)
        return true;
    if (is_control(h->last) || is_control(after))
        return false;
    return after == EXTEND || after == ZWJ || after == SPACING_MARK || h->last == PREPEND ||
           is_syllable_joined(h->last, after) || (h->linked && CONJUNCT_OF(kind) == CONSONANT) ||
           (h->joined_pictograph && (kind & PICTOGRAPHIC)) ||
           (after == REGIONAL && h->n_regional % 2 == 1);
}

size_t grapheme_length(const uint8_t *text, size_t n_bytes)
{
    history h = {0};
    size_t at = 0;
    while (at < n_bytes) {
        uint32_t c;
        size_t n = utf8_decode(text + at, n_bytes - at, &c);
        if (n == 0) { /* invalid UTF-8, against the precondition: one byte alone */
            n = 1;
            c = 0;
        }
        const uint32_t kind = kind_of(c);
        if (at > 0 && !goes_on(&h, kind))
            break;
        note_character(&h, kind);
        at += n;
    }
    return at;
}
