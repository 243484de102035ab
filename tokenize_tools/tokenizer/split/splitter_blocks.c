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
    if (wanted & WANT_HF_NUMERIC && unicode_hf_numeric(code_point))
        return CLASS_NUMBER;
    if (wanted & WANT_FALCON && unicode_hf_punctuation(code_point))
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
        bool cjk = n_bytes > 0 && is_cjk(code_point);
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

void walk_begin(walk *w, split_pattern p, const uint8_t *text, size_t n_bytes, uint64_t *starts)
{
    w->pattern = p;
    w->view = (view){.text = text, .n_bytes = n_bytes};
    w->reader.text = text;
    w->reader.n_bytes = n_bytes;
    w->reader.lead2 = w->reader.lead3 = w->reader.lead4 = 0;
    w->starts = starts;
}

/* A place from `at` on where the words of the text before and after do not depend on each other. */
static size_t next_cut(const walk *w, size_t begin, size_t at)
{
    const text_reader *r = &w->reader;
    for (size_t size = 512; size < r->n_bytes - begin; size *= 2) {
        const size_t cut = text_cut(r->text + begin, 0, size, split_cuts(w->pattern));
        if (cut > 0 && begin + cut >= at)
            return begin + cut;
    }
    return r->n_bytes;
}

static void set_zero(uint64_t *starts, size_t from, size_t to)
{
    while (from < to)
        starts[from++] = 0;
}

size_t walk_by_words(walk *w, size_t at)
{
    size_t n_bytes = w->reader.n_bytes, k = at / 64, start = 0;
    size_t n_known = k + 1; /* elements of starts that are set */
    while (k > 0 && w->starts[k - 1] == 0)
        k--;
    if (k > 0)
        start = k * 64 - 1 - (size_t)__builtin_clzll(w->starts[k - 1]);
    w->starts[at / 64] = 0;
    if (w->pattern >= STAGE_N || !split_stages[w->pattern]->everything) {
        const size_t end = next_cut(w, start, at + 64);
        set_zero(w->starts, n_known, end / 64 + 1);
        split_range(w->pattern, w->reader.text, start, end, w->starts);
        return end;
    }
    while (start < at + 64 && start < n_bytes) {
        w->starts[start / 64] |= (uint64_t)1 << start % 64;
        start = split_stages[w->pattern]->match(&w->view, start);
        if (n_known <= start / 64) {
            set_zero(w->starts, n_known, start / 64 + 1);
            n_known = start / 64 + 1;
        }
    }
    return start;
}
