/* SPDX-License-Identifier: Apache-2.0 */
/* spans.c - the spans of a writer: the call, what ends with a document, and their section. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/status.h"
#include "format/spans_section.h"
#include "writer/writer.h"

/* ---- Of a document ---- */

tokmap_status tokmap_i_writer_add_span(tokmap_writer *w, const tokmap_span *span, tokmap_error *err)
{
    tokmap_span *last = NULL;
    if (w->spans.n_bytes > 0)
        last = (tokmap_span *)(w->spans.data + w->spans.n_bytes) - 1;
    const uint64_t end = last ? last->first_token + last->n_tokens : 0;
    if (!w->index->has_spans && w->index->n_documents > 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: document %" PRIu64
                    " has a span, but the first one had none: set has_spans",
                    w->names.index_path, w->index->n_documents);
    w->index->has_spans = true;
    if (span->n_tokens == 0 || span->first_token < end || span->first_token > TOKMAP_I_MAX_TOKENS ||
        span->n_tokens > TOKMAP_I_MAX_TOKENS || (uint32_t)span->role >= TOKMAP_I_OWN_ROLES)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: document %" PRIu64 ": a span of %" PRIu64 " tokens from token %" PRIu64
                    " on, with role %d: must have tokens, a role below 255, and begin at token "
                    "%" PRIu64 " or later",
                    w->names.index_path, w->index->n_documents, span->n_tokens, span->first_token,
                    (int)span->role, end);
    if (last && span->first_token == end && span->role == last->role) {
        last->n_tokens += span->n_tokens;
        return TOKMAP_OK;
    }
    return tokmap_i_bytes_append(&w->spans, span, sizeof *span) ? TOKMAP_OK : FAIL_MEMORY(err);
}

tokmap_status tokmap_writer_add_span(tokmap_writer *w, const tokmap_span *span, tokmap_error *err)
{
    tokmap_status status = tokmap_i_writer_enter(w, span, TOKMAP_I_OUTPUT_ANY, __func__, err);
    if (status)
        return status;
    status = tokmap_i_writer_add_span(w, span, &w->failure);
    return tokmap_i_writer_leave(w, status, err);
}

tokmap_status tokmap_i_writer_end_spans(tokmap_writer *w, uint64_t end, tokmap_error *err)
{
    const tokmap_span *spans = (const tokmap_span *)w->spans.data;
    const size_t n = w->spans.n_bytes / sizeof *spans;
    const uint64_t begin = w->index->last_end;
    tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; i < n && !status; i++) {
        const tokmap_span span = {begin + spans[i].first_token, spans[i].n_tokens, spans[i].role};
        if (span.first_token + span.n_tokens > end)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "%s: document %" PRIu64 " has %" PRIu64
                        " tokens, but a span that ends at its token %" PRIu64,
                        w->names.index_path, w->index->n_documents, end - begin,
                        spans[i].first_token + spans[i].n_tokens);
        status = tokmap_i_index_writer_span(w->index, &span, err);
    }
    w->spans.n_bytes = 0;
    return status;
}

/* ---- The section ---- */

/* The part of span number *i from token *from on that is on one page; moves both on. */
static tokmap_span next_part(const tokmap_i_index_writer *w, uint64_t *i, uint64_t *from)
{
    const uint8_t *p = w->spans.data + TOKMAP_I_ADDED_SPAN_BYTES * *i;
    const uint64_t first = MAX(load_le64(p), *from), end = load_le64(p) + (load_le64(p + 8) >> 8);
    *from = MIN(end, ((first >> TOKMAP_I_SPANS_PAGE_BITS) + 1) << TOKMAP_I_SPANS_PAGE_BITS);
    *i += *from == end;
    return (tokmap_span){first, *from - first, (tokmap_span_role)p[8]};
}

/* Counts the parts, and those before each page; finds their role and their hash. */
static void measure(const tokmap_i_index_writer *w, tokmap_i_spans *s, tokmap_i_hasher *hasher,
                    uint8_t *starts)
{
    const uint64_t n = w->spans.n_bytes / TOKMAP_I_ADDED_SPAN_BYTES;
    tokmap_i_span_hash hash = {.hasher = hasher};
    uint64_t from = 0, page = 0;
    for (uint64_t i = 0; i < n; s->n_spans++) {
        const tokmap_span part = next_part(w, &i, &from);
        for (; page <= part.first_token >> TOKMAP_I_SPANS_PAGE_BITS; page++)
            store_le64(starts + 8 * page, s->n_spans);
        if (s->n_spans == 0)
            s->role = (uint32_t)part.role;
        else if (s->role != (uint32_t)part.role)
            s->role = TOKMAP_I_OWN_ROLES;
        tokmap_i_span_hash_add(&hash, &part);
    }
    for (; page < s->n_pages; page++)
        store_le64(starts + 8 * page, s->n_spans);
    s->hash = tokmap_i_span_hash_get(&hash);
}

/* Writes a list: what of each part is in `bytes`. */
static tokmap_status put_list(tokmap_i_index_writer *w, bool roles, tokmap_error *err)
{
    const uint64_t n = w->spans.n_bytes / TOKMAP_I_ADDED_SPAN_BYTES;
    uint64_t from = 0;
    tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < n && !status;) {
        const tokmap_span part = next_part(w, &i, &from);
        uint8_t bytes[TOKMAP_I_SPAN_BYTES] = {(uint8_t)part.role};
        if (!roles) {
            store_le32(bytes, (uint32_t)part.first_token);
            store_le32(bytes + 4, (uint32_t)(part.first_token + part.n_tokens - 1));
        }
        status = tokmap_i_index_writer_put(w, bytes, roles ? 1 : sizeof bytes, err);
    }
    return status;
}

tokmap_status tokmap_i_put_spans(tokmap_i_index_writer *w, tokmap_error *err)
{
    tokmap_i_spans s = {.n_pages = div_up(w->last_end, UINT64_C(1) << TOKMAP_I_SPANS_PAGE_BITS)};
    uint8_t head[TOKMAP_I_SPANS_HEAD_BYTES], *starts = malloc((size_t)s.n_pages * 8 + 1);
    tokmap_i_hasher *hasher = tokmap_i_hasher_open();
    tokmap_status status = starts && hasher ? TOKMAP_OK : FAIL_MEMORY(err);
    if (!status) {
        measure(w, &s, hasher, starts);
        tokmap_i_spans_encode(&s, head);
        status = tokmap_i_index_writer_put(w, head, sizeof head, err);
    }
    if (!status)
        status = tokmap_i_index_writer_put(w, starts, (size_t)s.n_pages * 8, err);
    if (!status)
        status = put_list(w, false, err);
    if (!status && s.role == TOKMAP_I_OWN_ROLES)
        status = put_list(w, true, err);
    tokmap_i_hasher_close(hasher);
    free(starts);
    return status;
}
