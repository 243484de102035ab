/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/split/splitter_blocks.h"

#include <string.h>

#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/text_cut.h"
#include "tokenizer/unicode/unicode.h"
#include "text/utf8.h"

#define NONE 0xFF
const uint8_t all_letters_from[16] = {NONE, NONE, NONE, 0x90, 0xB8, 0x80, 0x80, 0x80,
                                      0x80, 0x80, 0xB0, 0x80, 0x80, 0x80, NONE, NONE};
const uint8_t all_letters_to[16] = {0,    0,    0,    0xBF, 0xBF, 0xBF, 0xBF, 0xBF,
                                    0xBF, 0xBF, 0xBF, 0xBF, 0xBF, 0x9D, 0,    0};
const uint8_t cjk_from[16] = {NONE, NONE, NONE, 0x81, 0xB8, 0x80, 0x80, 0x80,
                              0x80, 0x80, NONE, NONE, NONE, NONE, NONE, NONE};
const uint8_t cjk_to[16] = {0, 0, 0, 0x83, 0xBF, 0xBF, 0xBF, 0xBF, 0xBF, 0xBE, 0, 0, 0, 0, 0, 0};
const uint8_t old_cjk_from[16] = {0xA0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                  0x80, 0x80, 0xB0, 0x80, 0x80, 0x80, NONE, NONE};
const uint8_t old_cjk_to[16] = {0xBF, 0xBF, 0xBF, 0xBF, 0xBF, 0xBF, 0xBF, 0xBF,
                                0xBF, 0xBE, 0xBF, 0xBF, 0xBF, 0x9F, 0,    0};

const uint8_t *text_reader_edge(text_reader *r, size_t at)
{
    uint8_t *edge = r->edges[at / 64 % 2];
    size_t n_before = at < EDGE_BEFORE ? at : EDGE_BEFORE;
    size_t n_after = r->n_bytes - at;
    if (n_after > EDGE_BYTES - EDGE_BEFORE)
        n_after = EDGE_BYTES - EDGE_BEFORE;
    memset(edge, 0, EDGE_BYTES);
    memcpy(edge + EDGE_BEFORE - n_before, r->text + at - n_before, n_before + n_after);
    return edge + EDGE_BEFORE;
}

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

/* The first byte of the character that byte `at` belongs to. */
static size_t first_byte(const text_reader *r, size_t at)
{
    size_t first = at;
    uint32_t code_point;
    while (first > 0 && at - first < 3 && is_continuation(r->text[first]))
        first--;
    size_t n_bytes = utf8_decode(r->text + first, r->n_bytes - first, &code_point);
    return first + n_bytes > at ? first : at;
}

static unicode_class class_wanted(uint32_t code_point, unsigned wanted)
{
    unicode_class class = unicode_class_of(code_point);
    if (wanted & WANT_WORDS)
        return unicode_word_pages[unicode_word_index[code_point >> 7]][code_point & 127];
    if (wanted & WANT_OLD_DEEPSEEK)
        return unicode_deepseek_pages[unicode_deepseek_index[code_point >> 7]][code_point & 127];
    if (wanted & WANT_HF_NUMERIC && unicode_hf_is(HF_NUMBER, code_point))
        return CLASS_NUMBER;
    if (wanted & WANT_FALCON && unicode_hf_is(HF_PUNCTUATION, code_point))
        return CLASS_PUNCTUATION;
    return wanted & WANT_FALCON && class == CLASS_PUNCTUATION ? CLASS_SYMBOL : class;
}

void text_reader_paint(text_reader *r, size_t at, unsigned wanted, painted_block *painted)
{
    uint64_t leads[5] = {0};
    size_t end = r->n_bytes - at > 64 ? at + 64 : r->n_bytes, n_bytes;
    memset(painted, 0, sizeof *painted);
    for (size_t i = first_byte(r, at); i < end; i += n_bytes) {
        uint32_t code_point = 0;
        unicode_class class = CLASS_OTHER;
        n_bytes = utf8_decode(r->text + i, r->n_bytes - i, &code_point);
        if (n_bytes > 0)
            class = class_wanted(code_point, wanted);
        bool cjk = n_bytes > 0 && (wanted & WANT_HAN       ? false
                                   : wanted & WANT_OLD_CJK ? is_old_cjk(code_point)
                                                           : is_cjk(code_point));
        n_bytes += n_bytes == 0;
        if (i >= at)
            leads[n_bytes] |= (uint64_t)1 << (i - at);
        for (size_t k = i < at ? at : i; k < i + n_bytes && k < end; k++) {
            painted->classes[k - at] = (uint8_t) class;
            painted->cjk |= (uint64_t)cjk << (k - at);
        }
    }
    painted->lead = leads[1] | leads[2] | leads[3] | leads[4];
    r->lead2 = leads[2];
    r->lead3 = leads[3];
    r->lead4 = leads[4];
}

bool text_reader_paint_fours(const text_reader *r, const uint8_t *p, unsigned wanted,
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

/* A place from `at` on where the words of the text before and after do not depend on each other. */
static size_t next_cut(const walk *w, size_t begin, size_t at)
{
    const text_reader *r = &w->reader;
    for (size_t size = 512; size < r->n_bytes - begin; size *= 2) {
        const size_t cut =
            text_cut(r->text + begin, 0, size, split_cuts(w->splitter->pattern, NULL));
        if (cut > 0 && begin + cut >= at)
            return begin + cut;
    }
    return r->n_bytes;
}

/* The same as split_pieces() from `start` on, up to a place from `at` on where a word starts. */
static size_t split_until(walk *w, size_t start, size_t at)
{
    const size_t n_bytes = w->reader.n_bytes;
    view *v = &w->view;
    const bool same_piece = start >= v->begin && start < v->n_bytes;
    *v = (view){.text = v->text, .begin = start, .n_bytes = same_piece ? v->n_bytes : start};
    for (size_t i = start; i < n_bytes;) {
        if (i >= v->n_bytes)
            *v = (view){.text = v->text,
                        .begin = i,
                        .n_bytes = split_next_start(w->starts, i + 1, n_bytes)};
        const size_t end = split_match(w->splitter, w->stage, v, i);
        const bool starts_next = end > i && w->splitter->joins[w->stage] != JOIN_NEXT;
        if (end >= i && i >= at)
            return i;
        if (end >= i)
            split_set_bit(w->starts, i);
        i = end > i ? end : i + char_at(v, i).n_bytes;
        if (starts_next && i < n_bytes)
            split_set_bit(w->starts, i);
        if (i >= at && (starts_next || i >= v->n_bytes))
            return i;
    }
    return n_bytes;
}

/* Where the last word starts that is known, at most at the beginning of the block, unless the words
 * up to a later place were found before. */
static size_t last_start(const walk *w, size_t at)
{
    size_t k = at / 64;
    if (w->by_words_end >= at)
        return w->by_words_end;
    while (k > 0 && w->starts[k - 1] == 0)
        k--;
    return k > 0 ? k * 64 - 1 - (size_t)__builtin_clzll(w->starts[k - 1]) : 0;
}

size_t walk_by_words(walk *w, size_t at)
{
    const size_t start = last_start(w, at);
    if (w->stage == SPLIT_ALL) {
        w->by_words_end = next_cut(w, start, at + 64);
        split_range(w->splitter, w->reader.text, start, w->by_words_end, w->starts);
        return w->by_words_end;
    }
    /* Further each time, because a long run may be read to its end each time. */
    w->n_bytes_by_words = at <= w->by_words_end ? w->n_bytes_by_words * 2 : 64;
    w->by_words_end = split_until(w, start, at + w->n_bytes_by_words);
    return w->by_words_end;
}
