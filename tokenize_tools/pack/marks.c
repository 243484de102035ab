/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/marks.h"

#include <stdlib.h>
#include <string.h>

#include "corpus/marked_text.h"
#include "text/array.h"
#include "text/little_endian.h"

void pack_marks_free(pack_marks *m)
{
    free(m->text);
    free(m->ranges);
}

/* ---- Tokens ---- */

static tokenize_status take_tokens(pack_text text, id_buffer *ids)
{
    const size_t n = text.n_bytes / 4;
    if (!id_buffer_reserve(ids, n))
        return TOKENIZE_NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        ids->ids[ids->n + i] = le_get32(text.bytes + 4 * i);
    ids->n += n;
    return TOKENIZE_OK;
}

/* ---- Parts ---- */

/* Copies the text without its marks. false: out of memory. */
static bool take_text(pack_marks *m, pack_text text)
{
    if (!array_reserve(&m->text, &m->capacity, text.n_bytes + TEXT_PADDING, 1))
        return false;
    m->n_bytes = 0;
    for (size_t i = 0; i < text.n_bytes; i++)
        if (text.bytes[i] != MARKED_BEGIN && text.bytes[i] != MARKED_END)
            m->text[m->n_bytes++] = text.bytes[i];
    memset(m->text + m->n_bytes, 0, TEXT_PADDING);
    return true;
}

/* A token without bytes, such as a blank that a tokenizer adds, is one of the next character. */
static uint64_t end_of_token(const byte_range *r)
{
    return r->end + (r->begin == r->end);
}

/* Which tokens count is the rule of transformers: those of a part, from the first one that has a
 * byte of its first character to the first one that has a byte of its last. One that two parts
 * share counts if one of them does. A special token that was dropped has bytes, but no id. */
static void mark_ids(const pack_marks *m, pack_text text, uint32_t *ids, size_t n_ids)
{
    size_t k = 0, n = 0, last = 0; /* bytes of m->text, and where its last character begins */
    for (size_t i = 0; i < text.n_bytes; i++) {
        if (text.bytes[i] == MARKED_BEGIN) {
            for (; k < n_ids && end_of_token(&m->ranges[k]) <= n; k++)
                ids[k] |= MARKED_TOKEN;
        } else if (text.bytes[i] == MARKED_END) {
            while (k < n_ids && m->ranges[k].begin <= last &&
                   (k == 0 || end_of_token(&m->ranges[k - 1]) <= last))
                k++;
        } else {
            last = text.bytes[i] >> 6 == 2 ? last : n;
            n++;
        }
    }
    for (; k < n_ids; k++)
        ids[k] |= MARKED_TOKEN;
}

static tokenize_status encode_parts(pack_marks *m, encoder *e, pack_text text, id_buffer *ids)
{
    const size_t before = ids->n;
    size_t place;
    if (!take_text(m, text))
        return TOKENIZE_NO_MEMORY;
    const tokenize_status status = encoder_encode(e, m->text, m->n_bytes, TEXT_FIRST, ids);
    const size_t n_ids = ids->n - before;
    if (status != TOKENIZE_OK)
        return status;
    if (!array_reserve(&m->ranges, &m->ranges_capacity, n_ids, sizeof *m->ranges))
        return TOKENIZE_NO_MEMORY;
    const encoded_text encoded = {.text = m->text,
                                  .n_bytes = m->n_bytes,
                                  .begins = true,
                                  .drop_specials = m->specials == SPECIALS_DROP,
                                  .take_specials = m->specials == SPECIALS_MATCH,
                                  .ids = ids->ids + before,
                                  .n_ids = n_ids};
    if (tokenizer_find_ranges(m->tokenizer, &encoded, m->ranges, &place))
        return TOKENIZE_SPECIAL;
    mark_ids(m, text, ids->ids + before, n_ids);
    return TOKENIZE_OK;
}

/* ---- Documents ---- */

static tokenize_status encode(pack_marks *m, encoder *e, pack_text text, id_buffer *ids)
{
    if (m->list == LIST_TOKENS)
        return take_tokens(text, ids);
    if (m->list == LIST_PARTS)
        return encode_parts(m, e, text, ids);
    return encoder_encode(e, text.bytes, text.n_bytes, text.first ? TEXT_FIRST : 0, ids);
}

/* The id that ends a document, or MODEL_NO_ID if there is none to add. ids: of the document. */
static uint32_t end_of(const pack_marks *m, const uint32_t *ids, size_t n)
{
    if (!m->list || n == 0 || m->eod_id == MODEL_NO_ID)
        return m->eod_id;
    const uint32_t last = ids[n - 1];
    return (last & ~MARKED_TOKEN) == m->eod_id ? MODEL_NO_ID : m->eod_id | (last & MARKED_TOKEN);
}

tokenize_status pack_marks_encode(pack_marks *m, encoder *e, pack_text text, id_buffer *ids)
{
    const size_t before = ids->n;
    const bool begins = text.first && m->bos_id != MODEL_NO_ID;
    if (begins && !id_buffer_append(ids, m->bos_id))
        return TOKENIZE_NO_MEMORY;
    const size_t first = ids->n;
    const tokenize_status status = encode(m, e, text, ids);
    if (status != TOKENIZE_OK) {
        ids->n = before;
        return status;
    }
    if (begins && m->list && ids->n > first)
        ids->ids[before] |= ids->ids[first] & MARKED_TOKEN;
    const bool ends = text.last && !(m->empty_without_eod && text.first && ids->n == before);
    const uint32_t end = ends ? end_of(m, ids->ids + first, ids->n - first) : MODEL_NO_ID;
    return end == MODEL_NO_ID || id_buffer_append(ids, end) ? TOKENIZE_OK : TOKENIZE_NO_MEMORY;
}

size_t pack_marks_safe_cut(corpus_list list, const tokenizer *t, const uint8_t *text,
                           size_t n_searched, size_t n_bytes)
{
    if (list == LIST_PARTS)
        return 0;
    return list ? n_bytes / 4 * 4 : tokenizer_safe_cut(t, text, n_searched, n_bytes);
}
