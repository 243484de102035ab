/* SPDX-License-Identifier: Apache-2.0 */
#include "scan/duplicates.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "scan/document_tokens.h"

typedef struct hashed {
    uint64_t hash, document; /* UINT64_MAX: it is a duplicate */
} hashed;

typedef struct search {
    const duplicates_job *job;
    uint64_t n_documents;
    uint32_t token_bytes;
    document_tokens one, other;
    hashed *table; /* of the documents whose hash is in the range of the pass */
    size_t n, room;
} search;

uint64_t duplicates_n_passes(const duplicates_job *job, uint64_t n_documents)
{
    /* the table grows up to half again as much as it needs */
    return 1 + n_documents * sizeof(hashed) / 2 * 3 / MAX(job->memory, 1);
}

/* Hashes all documents, and keeps those of a pass. */
static tokmap_status fill_table(search *s, uint64_t pass, uint64_t n_passes, tokmap_error *err)
{
    const uint64_t width = UINT64_MAX / n_passes;
    tokmap_status status = TOKMAP_OK;
    s->n = 0;
    for (uint64_t d = 0; d < s->n_documents && !status; d++) {
        const void *tokens;
        size_t n;
        status = document_tokens_get(&s->one, d, &tokens, &n, err);
        if (status)
            break;
        const uint64_t hash = tokmap_i_checksum(tokens, n * s->token_bytes);
        s->job->on_progress(s->job->context, n);
        if (MIN(hash / width, n_passes - 1) != pass)
            continue;
        if (!array_reserve(&s->table, &s->room, s->n + 1, sizeof *s->table))
            return FAIL_MEMORY(err);
        s->table[s->n++] = (hashed){hash, d};
    }
    return status;
}

static int compare_hashed(const void *a, const void *b)
{
    const hashed *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->document > y->document) - (x->document < y->document);
}

/* Compares the tokens of later documents of the same hash with those of a document. */
static tokmap_status see_duplicates(search *s, hashed *first, const hashed *end, tokmap_error *err)
{
    const void *tokens, *other;
    size_t n, n_other;
    tokmap_status status = document_tokens_get(&s->one, first->document, &tokens, &n, err);
    for (hashed *h = first + 1; h < end && !status; h++) {
        if (h->document == UINT64_MAX)
            continue;
        status = document_tokens_get(&s->other, h->document, &other, &n_other, err);
        if (status || n != n_other || memcmp(tokens, other, n * s->token_bytes) != 0)
            continue;
        status = s->job->see(s->job->context, h->document, first->document, err);
        h->document = UINT64_MAX;
    }
    return status;
}

tokmap_status duplicates_run(const duplicates_job *job, tokmap_error *err)
{
    tokmap_dataset_info info = TOKMAP_INIT(tokmap_dataset_info);
    tokmap_dataset_get_info(job->ds, &info);
    search s = {.job = job,
                .n_documents = info.n_documents,
                .token_bytes = info.token_bytes,
                .one.ds = job->ds,
                .other.ds = job->ds};
    const uint64_t n_passes = duplicates_n_passes(job, info.n_documents);
    tokmap_status status = TOKMAP_OK;
    for (uint64_t pass = 0; pass < n_passes && !status; pass++) {
        status = fill_table(&s, pass, n_passes, err);
        if (s.n > 1)
            qsort(s.table, s.n, sizeof *s.table, compare_hashed);
        const hashed *const end = s.table + s.n;
        for (hashed *h = s.table; h < end && !status; h++) {
            const hashed *after = h + 1;
            while (after < end && after->hash == h->hash)
                after++;
            if (h->document != UINT64_MAX && after > h + 1)
                status = see_duplicates(&s, h, after, err);
        }
    }
    document_tokens_free(&s.one);
    document_tokens_free(&s.other);
    free(s.table);
    return status;
}
