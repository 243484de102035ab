/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/marks.h"

#include <stdlib.h>
#include <string.h>

#include "formats/marked_text.h"
#include "base/array.h"
#include "base/le.h"
#include "base/simd.h"

uint32_t pack_marks_bits(const pack_options *options)
{
    return options->input.roles ? UINT32_MAX << MARKED_ROLE_SHIFT : MARKED_TOKEN;
}

void pack_marks_free(pack_marks *m)
{
    free(m->tokens);
    id_buffer_free(&m->ids);
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

/* Returns the bits of an id that are its mark. */
static uint32_t mark_of(const pack_marks *m, uint32_t id)
{
    return id & pack_marks_bits(m->parts->options);
}

/* A token without bytes, such as a blank that a tokenizer adds, is one of the next character. */
static uint64_t end_of_token(const byte_range *r)
{
    return r->end + (r->begin == r->end);
}

/* Marks the ids. Of the parts of which a token has a byte, the first that counts decides; if none
 * counts, the first that has a role. A special token that was dropped has bytes, but no id. */
static void mark_ids(const pack_marks *m, pack_text text, uint32_t *ids, size_t n_ids)
{
    size_t k = 0;
    for (size_t i = 0; i < n_ids; i++)
        ids[i] |= MARKED_TOKEN;
    for (size_t i = 0; i < text.n_ranges; i++) {
        const text_range *range = &text.ranges[i];
        while (k < n_ids && end_of_token(&m->tokens[k]) <= range->begin)
            k++;
        for (size_t j = k; j < n_ids && m->tokens[j].begin < range->end; j++) {
            const uint32_t mark = mark_of(m, ids[j]);
            const bool counts = !(mark & MARKED_TOKEN), is_prompt = mark == MARKED_TOKEN;
            if (!counts && (is_prompt || !(range->mark & MARKED_TOKEN)))
                ids[j] = (ids[j] & ~mark) | (uint32_t)range->mark;
        }
    }
}

static tokenize_status encode_parts(pack_marks *m, encoder *e, pack_text text, id_buffer *ids)
{
    const size_t before = ids->n;
    size_t place;
    const tokenize_status status = encoder_encode(e, text.bytes, text.n_bytes, ids);
    const size_t n_ids = ids->n - before;
    if (status != TOKENIZE_OK)
        return status;
    if (!array_reserve(&m->tokens, &m->capacity, n_ids, sizeof *m->tokens))
        return TOKENIZE_NO_MEMORY;
    const encoded_text encoded = {.text = text.bytes,
                                  .n_bytes = text.n_bytes,
                                  .drop_specials = m->parts->options->specials == SPECIALS_DROP,
                                  .take_specials = m->parts->options->specials == SPECIALS_MATCH,
                                  .ids = ids->ids + before,
                                  .n_ids = n_ids};
    if (tokenizer_find_ranges(m->parts->tokenizer->tokenizer, &encoded, m->tokens, &place))
        return TOKENIZE_SPECIAL;
    mark_ids(m, text, ids->ids + before, n_ids);
    array_free_large(&m->tokens, &m->capacity, sizeof *m->tokens);
    return TOKENIZE_OK;
}

/* ---- Documents ---- */

/* The id that ends a document, or MODEL_NO_ID if there is none to add. ids: of the document. */
static uint32_t end_of(const pack_marks *m, const uint32_t *ids, size_t n)
{
    const uint32_t eod_id = m->parts->tokens->eod_id;
    if (!m->parts->options->input.list || n == 0 || eod_id == MODEL_NO_ID)
        return eod_id;
    const uint32_t last = ids[n - 1];
    const uint32_t mark = mark_of(m, last);
    return (last & ~mark) == eod_id ? MODEL_NO_ID : eod_id | mark;
}

tokenize_status pack_marks_encode(pack_marks *m, encoder *e, pack_text text, id_buffer *ids)
{
    const pack_options *o = m->parts->options;
    const size_t before = ids->n;
    const uint32_t bos_id = m->parts->tokens->bos_id;
    const bool begins = bos_id != MODEL_NO_ID;
    if (begins && !id_buffer_append(ids, bos_id))
        return TOKENIZE_NO_MEMORY;
    const size_t first = ids->n;
    const tokenize_status status = o->input.list == LIST_TOKENS ? take_tokens(text, ids)
                                   : o->input.list == LIST_PARTS
                                       ? encode_parts(m, e, text, ids)
                                       : encoder_encode(e, text.bytes, text.n_bytes, ids);
    if (status != TOKENIZE_OK) {
        ids->n = before;
        return status;
    }
    if (begins && o->input.list && ids->n > first)
        ids->ids[before] |= mark_of(m, ids->ids[first]);
    const bool ends = !(ids->n == before && o->also == PACK_ALSO_MEGATRON);
    const uint32_t end = ends ? end_of(m, ids->ids + first, ids->n - first) : MODEL_NO_ID;
    return end == MODEL_NO_ID || id_buffer_append(ids, end) ? TOKENIZE_OK : TOKENIZE_NO_MEMORY;
}
