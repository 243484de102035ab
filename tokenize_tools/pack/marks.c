/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/marks.h"

#include "corpus/marked_text.h"
#include "text/little_endian.h"

void pack_marks_free(pack_marks *m)
{
    (void)m;
}

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
    tokenize_status status =
        m->list == LIST_TOKENS
            ? take_tokens(text, ids)
            : encoder_encode(e, text.bytes, text.n_bytes, text.first ? TEXT_FIRST : 0, ids);
    if (status != TOKENIZE_OK) {
        ids->n = before;
        return status;
    }
    if (begins && m->list && ids->n > first)
        ids->ids[before] |= ids->ids[first] & MARKED_TOKEN;
    const uint32_t end = text.last ? end_of(m, ids->ids + first, ids->n - first) : MODEL_NO_ID;
    return end == MODEL_NO_ID || id_buffer_append(ids, end) ? TOKENIZE_OK : TOKENIZE_NO_MEMORY;
}

size_t pack_marks_safe_cut(corpus_list list, const tokenizer *t, const uint8_t *text,
                           size_t n_searched, size_t n_bytes)
{
    if (list == LIST_PARTS)
        return 0;
    return list ? n_bytes / 4 * 4 : tokenizer_safe_cut(t, text, n_searched, n_bytes);
}
