/* SPDX-License-Identifier: Apache-2.0 */
/* spans_section.h - the section of spans: tokens that have a role, which says whether their labels
 * count. Pure; docs/FORMAT.md section 3.9. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "format/document_index.h"
#include "tokmap.h"

enum {
    TOKMAP_I_SPANS_HEAD_BYTES = 24,
    TOKMAP_I_SPAN_BYTES = 8,
    TOKMAP_I_OWN_ROLES = 255, /* in place of the role of all spans: each has its own */
    TOKMAP_I_SPANS_PAGE_BITS = 32
};
#define TOKMAP_I_MAX_SPANS ((uint64_t)1 << 40)

typedef struct tokmap_i_spans {
    const uint8_t *bytes; /* of the section; set by the caller after decoding */
    uint64_t n_spans;     /* 0: there is no section */
    uint64_t n_pages, hash;
    uint32_t role; /* of all, or TOKMAP_I_OWN_ROLES */
} tokmap_i_spans;

/* Whether the labels of tokens of this role count, unless a program is told otherwise. */
static inline bool tokmap_i_role_counts(tokmap_span_role role)
{
    return role >= TOKMAP_SPAN_COUNTED;
}

/* A bit for each role: whether the labels of its tokens count. */
typedef struct tokmap_i_roles {
    uint64_t bits[4];
} tokmap_i_roles;

/* The roles that count unless a program is told otherwise: from 128 to 254. */
extern const tokmap_i_roles tokmap_i_usual_roles;

static inline bool tokmap_i_roles_have(const tokmap_i_roles *roles, tokmap_span_role role)
{
    return roles->bits[(uint32_t)role / 64 % 4] >> (uint32_t)role % 64 & 1;
}

/* Returns false if the labels of all these tokens count. */
static inline bool tokmap_i_spans_may_mask(const tokmap_i_spans *spans, const tokmap_i_roles *roles)
{
    return spans->n_spans > 0 &&
           (spans->role == TOKMAP_I_OWN_ROLES || !tokmap_i_roles_have(roles, spans->role));
}

void tokmap_i_spans_encode(const tokmap_i_spans *spans, uint8_t *head);
/* Decodes the head of a section. Returns what is wrong; NULL: nothing. */
const char *tokmap_i_spans_decode(const uint8_t *head, uint64_t n_bytes, uint64_t n_tokens,
                                  tokmap_i_spans *spans);

/* The hash of spans that are added in order. It covers the longest runs of tokens whose labels do
 * not count, without redacted ones; 0 if there are none. */
typedef struct tokmap_i_span_hash {
    tokmap_i_hasher *hasher;
    uint64_t begin, end; /* the run that the next span may continue */
    bool any;
} tokmap_i_span_hash;

void tokmap_i_span_hash_add(tokmap_i_span_hash *h, const tokmap_span *span);
uint64_t tokmap_i_span_hash_get(tokmap_i_span_hash *h);

/* A position among the spans. from: reads the section without its map, or NULL. */
typedef struct tokmap_i_span_cursor {
    const tokmap_i_spans *spans;
    tokmap_i_pieces *from;
    uint64_t i, page, page_end; /* the next span, its page, and the end of the spans of that page */
} tokmap_i_span_cursor;

/* The page of a cursor before the first span; then i and page_end are 0. */
#define TOKMAP_I_BEFORE_SPANS UINT64_MAX

/* Goes to the first span that ends after this token. The caller has set the first two fields.
 * TOKMAP_ERR_CORRUPT: the section is damaged, or could not be read. */
tokmap_status tokmap_i_spans_seek(tokmap_i_span_cursor *c, uint64_t token);
/* Returns the span, and goes to the next one. TOKMAP_END: there is none. */
tokmap_status tokmap_i_spans_next(tokmap_i_span_cursor *c, tokmap_span *out);
