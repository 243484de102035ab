/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/split/splitter_blocks.h"

#include <string.h>

#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/unicode/unicode.h"
#include "base/utf8.h"

#define NONE 0xFF
const uint8_t all_letters_from[16] = {NONE, NONE, NONE, 0x90, 0xB8, 0x80, 0x80, 0x80,
                                      0x80, 0x80, 0xB0, 0x80, 0x80, 0x80, NONE, NONE};
const uint8_t all_letters_to[16] = {0,    0,    0,    0xBF, 0xBF, 0xBF, 0xBF, 0xBF,
                                    0xBF, 0xBF, 0xBF, 0xBF, 0xBF, 0x9D, 0,    0};
const uint8_t cjk_from[16] = {NONE, NONE, NONE, 0x81, 0xB8, 0x80, 0x80, 0x80,
                              0x80, 0x80, NONE, NONE, NONE, NONE, NONE, NONE};
const uint8_t cjk_to[16] = {0, 0, 0, 0x83, 0xBF, 0xBF, 0xBF, 0xBF, 0xBF, 0xBE, 0, 0, 0, 0, 0, 0};

const uint8_t *block_reader_edge(block_reader *r, size_t at)
{
    uint8_t *edge = r->edges[at / 64 % 2];
    const size_t from = at > r->begin + EDGE_BEFORE ? at - EDGE_BEFORE : r->begin;
    const size_t after = at + EDGE_BYTES - EDGE_BEFORE;
    const size_t to = after < r->n_bytes ? after : r->n_bytes;
    memset(edge, 0, EDGE_BYTES);
    memcpy(edge + (EDGE_BEFORE + from - at), r->text + from, to - from);
    return edge + EDGE_BEFORE;
}

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Returns the first byte of the character that byte `at` belongs to. */
static size_t first_byte(const block_reader *r, size_t at)
{
    size_t first = at;
    uint32_t code_point;
    while (first > r->begin && at - first < 3 && is_continuation(r->text[first]))
        first--;
    size_t n_bytes = utf8_decode(r->text + first, r->n_bytes - first, &code_point);
    return first + n_bytes > at ? first : at;
}

static unicode_class class_wanted(uint32_t code_point, unsigned wanted)
{
    if (wanted & WANT_HF_NUMERIC && unicode_hf_is(HF_NUMBER, code_point))
        return CLASS_NUMBER;
    return class_page(code_point >> 7, wanted)[code_point & 127];
}

void block_reader_classify(block_reader *r, size_t at, unsigned wanted,
                           classified_block *classified)
{
    uint64_t leads[5] = {0};
    size_t end = r->n_bytes - at > 64 ? at + 64 : r->n_bytes, n_bytes;
    memset(classified, 0, sizeof *classified);
    for (size_t i = at > r->begin ? first_byte(r, at) : r->begin; i < end; i += n_bytes) {
        uint32_t code_point = 0;
        unicode_class class = CLASS_OTHER;
        n_bytes = utf8_decode(r->text + i, r->n_bytes - i, &code_point);
        if (n_bytes > 0)
            class = class_wanted(code_point, wanted);
        bool cjk = n_bytes > 0 && !(wanted & WANT_HAN) && is_cjk(code_point);
        n_bytes += n_bytes == 0;
        if (i >= at)
            leads[n_bytes] |= (uint64_t)1 << (i - at);
        for (size_t k = i < at ? at : i; k < i + n_bytes && k < end; k++) {
            classified->classes[k - at] = (uint8_t) class;
            classified->cjk |= (uint64_t)cjk << (k - at);
        }
    }
    classified->lead = leads[1] | leads[2] | leads[3] | leads[4];
    r->lead2 = leads[2];
    r->lead3 = leads[3];
    r->lead4 = leads[4];
}

bool block_reader_classify_fours(const block_reader *r, const uint8_t *p, unsigned wanted,
                                 uint64_t lead4, uint8_t *classes)
{
    uint64_t before = r->lead4 >> 61; /* at most one, 1 to 3 bytes before the block */
    for (uint64_t left = lead4; left != 0 || before != 0;) {
        int i = before ? __builtin_ctzll(before) - 3 : __builtin_ctzll(left);
        uint32_t code_point;
        if (utf8_decode(p + i, 4, &code_point) != 4)
            return false;
        memset(classes + FOUR_MARGIN + i, (int)class_wanted(code_point, wanted), 4);
        left &= before ? left : left - 1;
        before = 0;
    }
    return true;
}

/* ---- The walk ---- */

size_t split_undecided(const splitter *s, unsigned stage, block_reader *r, size_t at,
                       uint64_t *starts)
{
    text_cursor range = {.text = r->text, .begin = r->begin, .n_bytes = r->n_bytes};
    range.piece_end = r->piece_end;
    range.vectors = simd_best() != SIMD_SCALAR;
    if (range.begin < at) {
        size_t k = at / 64;
        while (starts[k - 1] == 0)
            k--;
        range.begin = k * 64 - 1 - (size_t)__builtin_clzll(starts[k - 1]);
    }
    range.n_bytes = split_range(s, stage % SPLIT_ALL, &range, at + 64, starts);
    r->piece_end = range.piece_end;
    for (unsigned k = 1; stage == SPLIT_ALL && k < s->n_stages; k++) {
        range.piece_end = 0;
        split_range(s, k, &range, SIZE_MAX, starts);
    }
    return range.n_bytes;
}
