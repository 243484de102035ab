/* SPDX-License-Identifier: Apache-2.0 */
#include "format/spans_section.h"

#include "base/base.h"
#include "base/le.h"

const tokmap_i_roles tokmap_i_usual_roles = {{0, 0, UINT64_MAX, UINT64_MAX >> 1}};

/* Returns the size of a section. roles: each span has its own role. */
static uint64_t section_bytes(const tokmap_i_spans *s, bool roles)
{
    return TOKMAP_I_SPANS_HEAD_BYTES + 8 * s->n_pages + (TOKMAP_I_SPAN_BYTES + roles) * s->n_spans;
}

void tokmap_i_spans_encode(const tokmap_i_spans *s, uint8_t *head)
{
    memset(head, 0, TOKMAP_I_SPANS_HEAD_BYTES);
    le_put64(head, s->n_spans);
    le_put64(head + 8, s->hash);
    le_put32(head + 16, s->role);
}

const char *tokmap_i_spans_decode(const uint8_t *head, uint64_t n_bytes, uint64_t n_tokens,
                                  tokmap_i_spans *s)
{
    *s = (tokmap_i_spans){.n_spans = le_get64(head),
                          .n_pages = div_up(n_tokens, (uint64_t)1 << TOKMAP_I_SPANS_PAGE_BITS),
                          .hash = le_get64(head + 8),
                          .role = le_get32(head + 16)};
    if (s->role > TOKMAP_I_OWN_ROLES || !is_zero(head + 20, 4))
        return "a reserved field of the spans is not zero";
    if (s->n_spans > TOKMAP_I_MAX_SPANS ||
        n_bytes != section_bytes(s, s->role == TOKMAP_I_OWN_ROLES))
        return "the spans do not fit into their section";
    return NULL;
}

/* ---- Hash ---- */

static void end_run(tokmap_i_span_hash *h)
{
    uint8_t run[16];
    le_put64(run, h->begin);
    le_put64(run + 8, h->end);
    if (h->any)
        tokmap_i_hasher_add(h->hasher, run, sizeof run);
}

void tokmap_i_span_hash_add(tokmap_i_span_hash *h, const tokmap_span *span)
{
    if (span->role == TOKMAP_SPAN_REDACTED || tokmap_i_role_counts(span->role))
        return;
    if (!h->any || span->first_token != h->end) {
        end_run(h);
        h->begin = span->first_token;
    }
    h->end = span->first_token + span->n_tokens;
    h->any = true;
}

uint64_t tokmap_i_span_hash_get(tokmap_i_span_hash *h)
{
    end_run(h);
    return h->any ? tokmap_i_hasher_get(h->hasher) : 0;
}

/* ---- Lookups ---- */

static const uint8_t *bytes_at(const tokmap_i_span_cursor *c, uint64_t offset)
{
    return c->from ? c->from->get(c->from, offset) : c->spans->bytes + offset;
}

/* Sets *n to the number of spans on the pages before this one. */
static bool count_before(const tokmap_i_span_cursor *c, uint64_t page, uint64_t *n)
{
    *n = c->spans->n_spans;
    if (page >= c->spans->n_pages)
        return true;
    const uint8_t *entry = bytes_at(c, TOKMAP_I_SPANS_HEAD_BYTES + 8 * page);
    if (entry)
        *n = le_get64(entry);
    return entry && *n <= c->spans->n_spans;
}

static const uint8_t *span_at(const tokmap_i_span_cursor *c, uint64_t i)
{
    return bytes_at(c, TOKMAP_I_SPANS_HEAD_BYTES + 8 * c->spans->n_pages + TOKMAP_I_SPAN_BYTES * i);
}

static tokmap_status go_to_page(tokmap_i_span_cursor *c, uint64_t page)
{
    c->page = page;
    const bool read = count_before(c, page, &c->i) && count_before(c, page + 1, &c->page_end);
    return read && c->i <= c->page_end ? TOKMAP_OK : TOKMAP_ERR_CORRUPT;
}

tokmap_status tokmap_i_spans_seek(tokmap_i_span_cursor *c, uint64_t token)
{
    const tokmap_status status = go_to_page(c, token >> TOKMAP_I_SPANS_PAGE_BITS);
    uint64_t n = status ? 0 : c->page_end - c->i;
    while (n > 0) {
        const uint8_t *span = span_at(c, c->i + n / 2);
        if (!span)
            return TOKMAP_ERR_CORRUPT;
        const bool before = le_get32(span + 4) < (uint32_t)token;
        c->i += before ? n / 2 + 1 : 0;
        n = before ? n - n / 2 - 1 : n / 2;
    }
    return status;
}

tokmap_status tokmap_i_spans_next(tokmap_i_span_cursor *c, tokmap_span *out)
{
    const tokmap_i_spans *s = c->spans;
    while (c->i == c->page_end) {
        const tokmap_status status =
            c->page + 1 < s->n_pages ? go_to_page(c, c->page + 1) : TOKMAP_END;
        if (status)
            return status;
    }
    const uint8_t *span = span_at(c, c->i);
    if (!span)
        return TOKMAP_ERR_CORRUPT;
    const uint64_t first = le_get32(span), end = le_get32(span + 4) + UINT64_C(1);
    const uint8_t *role =
        s->role == TOKMAP_I_OWN_ROLES ? bytes_at(c, section_bytes(s, false) + c->i) : NULL;
    if (first >= end || (s->role == TOKMAP_I_OWN_ROLES && !role))
        return TOKMAP_ERR_CORRUPT;
    *out = (tokmap_span){(c->page << TOKMAP_I_SPANS_PAGE_BITS) + first, end - first,
                         (tokmap_span_role)(role ? *role : s->role)};
    c->i++;
    return TOKMAP_OK;
}
