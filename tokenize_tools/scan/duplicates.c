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
    uint64_t hash; /* of a duplicate: the first document with its tokens */
    uint64_t document : 63, is_duplicate : 1;
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

/* Hashes all documents, and keeps the ones whose hash is in the range of a pass. */
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
        s->table[s->n++] = (hashed){.hash = hash, .document = d};
    }
    return status;
}

static int compare_documents(const void *a, const void *b)
{
    const hashed *x = a, *y = b;
    return (x->document > y->document) - (x->document < y->document);
}

static int compare_hashed(const void *a, const void *b)
{
    const hashed *x = a, *y = b;
    return x->hash != y->hash ? x->hash < y->hash ? -1 : 1 : compare_documents(a, b);
}

/* Marks the later documents of the same hash that have the same tokens as a document. */
static tokmap_status mark_duplicates(search *s, hashed *first, const hashed *end, tokmap_error *err)
{
    const void *tokens, *other;
    size_t n, n_other;
    tokmap_status status = document_tokens_get(&s->one, first->document, &tokens, &n, err);
    for (hashed *h = first + 1; h < end && !status; h++) {
        if (h->is_duplicate)
            continue;
        status = document_tokens_get(&s->other, h->document, &other, &n_other, err);
        if (status || n != n_other || memcmp(tokens, other, n * s->token_bytes) != 0)
            continue;
        h->hash = first->document;
        h->is_duplicate = true;
    }
    return status;
}

/* Finds the duplicates in the table. */
static tokmap_status search_table(search *s, tokmap_error *err)
{
    hashed *const end = s->table + s->n, *after;
    tokmap_status status = TOKMAP_OK;
    if (s->n > 1)
        qsort(s->table, s->n, sizeof *s->table, compare_hashed);
    for (hashed *group = s->table; group < end && !status; group = after) {
        for (after = group + 1; after < end && after->hash == group->hash;)
            after++;
        for (hashed *h = group; h < after - 1 && !status; h++)
            if (!h->is_duplicate)
                status = mark_duplicates(s, h, after, err);
    }
    return status;
}

/* Tells the caller of the duplicates in the table, in the order of their numbers. */
static tokmap_status see_duplicates(search *s, tokmap_error *err)
{
    size_t n = 0;
    tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; i < s->n; i++)
        if (s->table[i].is_duplicate)
            s->table[n++] = s->table[i];
    if (n > 1)
        qsort(s->table, n, sizeof *s->table, compare_documents);
    for (size_t i = 0; i < n && !status; i++)
        status = s->job->on_duplicate(s->job->context, s->table[i].document, s->table[i].hash, err);
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
        if (!status)
            status = search_table(&s, err);
        if (!status)
            status = see_duplicates(&s, err);
    }
    document_tokens_free(&s.one);
    document_tokens_free(&s.other);
    free(s.table);
    return status;
}
