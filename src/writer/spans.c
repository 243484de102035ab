/* SPDX-License-Identifier: Apache-2.0 */
/* spans.c - the spans of the document that ends next. */
#include <inttypes.h>

#include "base/error.h"
#include "writer/writer.h"

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
