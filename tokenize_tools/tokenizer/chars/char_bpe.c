/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/chars/char_bpe.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/chars/char_bpe_parts.h"
#include "text/utf8.h"

const char_words *char_bpe_words(const char_bpe *b)
{
    return &b->words;
}

bool char_bpe_knows(const char_bpe *b, uint32_t character)
{
    const bool is_mark = character == ' ' && b->spaces_are_marks;
    const uint32_t symbol = char_bpe_symbol(b, is_mark ? CHAR_WORDS_MARK : character);
    return symbol != NO_SYMBOL && !char_bpe_is_odd(b, symbol);
}

unsigned char_bpe_must_know(const char_bpe *b)
{
    return b->byte_fallback ? 0 : b->unknown_id == MODEL_NO_ID ? 2 : 1;
}

/* ---- Symbols to ids ---- */

static int compare_odd(const void *key, const void *element)
{
    const uint32_t symbol = *(const uint32_t *)key;
    const struct odd_output *o = element;
    return (symbol > o->symbol) - (symbol < o->symbol);
}

static bool append_output(const char_bpe *b, uint32_t symbol, id_buffer *out)
{
    const uint32_t *ids = &symbol;
    size_t n = 1;
    if (char_bpe_is_odd(b, symbol)) {
        const struct odd_output *o =
            bsearch(&symbol, b->odd_outputs, b->n_odd, sizeof *o, compare_odd);
        ids = b->odd_ids.ids + o->first;
        n = o->n;
    }
    if (!id_buffer_reserve(out, n))
        return false;
    memcpy(out->ids + out->n, ids, n * sizeof *ids);
    out->n += n;
    return true;
}

/* Replaces the symbols from `first` on by their ids. */
static bool put_outputs(const char_bpe *b, size_t first, id_buffer *out)
{
    bool any = false;
    for (size_t i = first; i < out->n && !any; i++)
        any = char_bpe_is_odd(b, out->ids[i]);
    if (!any)
        return true;
    const size_t n = out->n - first;
    uint32_t *symbols = malloc(n * sizeof *symbols);
    bool put = symbols != NULL;
    if (put)
        memcpy(symbols, out->ids + first, n * sizeof *symbols);
    out->n = first;
    for (size_t i = 0; i < n && put; i++)
        put = append_output(b, symbols[i], out);
    free(symbols);
    return put;
}

void char_bpe_fuse_unknown(const char_bpe *b, size_t first, id_buffer *out)
{
    size_t n = first;
    if (!b->fuse_after)
        return;
    for (size_t i = first; i < out->n; i++) {
        if (i == first || out->ids[i] != b->unknown_id || out->ids[i - 1] != b->unknown_id)
            out->ids[n++] = out->ids[i];
    }
    out->n = n;
}

/* ---- Text to symbols ---- */

typedef struct reader {
    const char_bpe *b;
    const uint8_t *at, *end;
    uint32_t *symbols; /* with room for everything that the text can give */
    size_t n;
    bool after_unknown;
} reader;

static void put_unknown(reader *r, size_t length)
{
    static const uint8_t mark[3] = {0xE2, 0x96, 0x81};
    const char_bpe *b = r->b;
    const bool is_mark = *r->at == ' ' && b->spaces_are_marks;
    const uint8_t *bytes = is_mark ? mark : r->at;
    const size_t n_bytes = is_mark ? sizeof mark : length;
    if (b->byte_fallback) {
        for (size_t i = 0; i < n_bytes; i++)
            r->symbols[r->n++] = b->byte_ids[bytes[i]];
    } else if (b->unknown_id != MODEL_NO_ID && !(b->fuse_before && r->after_unknown)) {
        r->symbols[r->n++] = b->unknown_id;
    }
    r->after_unknown = true;
}

static void read_character(reader *r)
{
    uint32_t c = *r->at, symbol = NO_SYMBOL;
    size_t length = 1;
    if (c >= 0x80)
        length = utf8_decode(r->at, (size_t)(r->end - r->at), &c);
    else if (c == ' ' && r->b->spaces_are_marks)
        c = CHAR_WORDS_MARK;
    if (length > 0)
        symbol = char_bpe_symbol(r->b, r->at + length == r->end ? c + r->b->last_offset : c);
    length = length > 0 ? length : 1;
    if (symbol != NO_SYMBOL) {
        r->symbols[r->n++] = symbol;
        r->after_unknown = false;
    } else {
        put_unknown(r, length);
    }
    r->at += length;
}

/* The length of the longest user-defined piece at the start of the text, and its id. */
static size_t match_user(const char_bpe *b, const uint8_t *text, size_t n_bytes, uint32_t *id)
{
    const double_array *t = &b->user;
    return t->n_units == 0 ? 0 : double_array_longest(t, double_array_root(t), text, n_bytes, id);
}

void char_bpe_join_user_pieces(const char_bpe *b, const uint8_t *text, const size_t sizes[2],
                               uint64_t *starts)
{
    uint32_t id;
    for (unsigned k = 0; k < b->n_user_firsts; k++) {
        const uint8_t *at = text, *end = text + sizes[0];
        while (at < end && (at = memchr(at, b->user_firsts[k], (size_t)(end - at)))) {
            const size_t from = (size_t)(at++ - text);
            const size_t to = from + match_user(b, text + from, sizes[1] - from, &id);
            for (size_t i = from + 1; i < to && i < sizes[0]; i++)
                starts[i / 64] &= ~((uint64_t)1 << i % 64);
        }
    }
}

/* Merges the symbols before a user-defined piece, and appends its id. */
static bool encode_part(reader *r, merge_scratch *scratch, id_buffer *out)
{
    uint32_t user_id = 0;
    size_t length = 0;
    const size_t room = (size_t)(r->end - r->at) * r->b->symbols_per_byte;
    if (!id_buffer_reserve(out, room))
        return false;
    r->symbols = out->ids + out->n;
    r->n = 0;
    r->after_unknown = false;
    while (r->at < r->end) {
        length = match_user(r->b, r->at, (size_t)(r->end - r->at), &user_id);
        if (length > 0)
            break;
        read_character(r);
    }
    const size_t first = out->n;
    const size_t n = merge_symbols(r->b->merges, scratch, r->symbols, r->n);
    if (n == SIZE_MAX)
        return false;
    out->n += n;
    r->at += length;
    return put_outputs(r->b, first, out) && (length == 0 || id_buffer_append(out, user_id));
}

/* ---- All ---- */

bool char_bpe_encode(const char_bpe *b, merge_scratch *scratch, const uint8_t *text, size_t n_bytes,
                     id_buffer *out)
{
    reader r = {.b = b, .at = text, .end = text + n_bytes};
    const size_t first = out->n;
    uint32_t id;
    if (n_bytes <= b->longest_whole && double_array_find(&b->whole, text, n_bytes, &id))
        return id_buffer_append(out, id);
    while (r.at < r.end)
        if (!encode_part(&r, scratch, out))
            return false;
    char_bpe_fuse_unknown(b, first, out);
    return true;
}
