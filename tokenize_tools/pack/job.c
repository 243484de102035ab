/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/job.h"

#include <stdlib.h>

#include <xxhash.h>

#include "base/array.h"
#include "base/base.h"
#include "base/le.h"
#include "base/token_scan.h"

/* Makes tokens of 4 bytes of those of 2 bytes. */
static bool widen(pack_job *job)
{
    if (!array_reserve(&job->tokens, &job->tokens_capacity, 4 * job->n_tokens, 1))
        return false;
    for (size_t i = job->n_tokens; i > 0; i--)
        le_put32(job->tokens + 4 * (i - 1), le_get16(job->tokens + 2 * (i - 1)));
    job->token_bytes = 4;
    return true;
}

/* Adds the ids of a document to the tokens. */
static bool add_ids(pack_job *job, const id_buffer *ids)
{
    const size_t n_bytes = (job->n_tokens + ids->n) * job->token_bytes;
    if (!array_reserve(&job->tokens, &job->tokens_capacity, n_bytes, 1))
        return false;
    const uint32_t largest = tokmap_i_store_ids(job->tokens + job->n_tokens * job->token_bytes,
                                                ids->ids, ids->n, job->token_bytes);
    if (job->token_bytes == 2 && largest > UINT16_MAX)
        return widen(job) && add_ids(job, ids);
    job->n_tokens += ids->n;
    return true;
}

/* end: of the document, in batch.ends. */
static bool encode_document(pack_marks *marks, encoder *e, pack_job *job, pack_text text,
                            size_t end)
{
    marks->ids.n = 0;
    switch (pack_marks_encode(marks, e, text, &marks->ids)) {
    case TOKENIZE_OK:
        job->n_ids += marks->ids.n;
        return add_ids(job, &marks->ids);
    case TOKENIZE_SPECIAL:
    case TOKENIZE_TOO_LONG:
        if (!array_grow(&job->specials, job->n_specials, sizeof *job->specials))
            return false;
        job->specials[job->n_specials++] = end;
        return true;
    case TOKENIZE_NO_MEMORY:
        break;
    }
    return false;
}

/* Chooses the output of a document by the beginning of its text. */
static uint32_t choose_output(const pack_options *o, pack_text text)
{
    const size_t n = MIN(text.n_bytes, PACK_SPLIT_TEXT_BYTES);
    const uint64_t hash = o->n_splits > 0 ? XXH3_64bits(text.bytes, n) : 0;
    for (uint32_t i = 0; i < o->n_splits; i++)
        if (hash < o->splits[i].below)
            return i + 1;
    return 0;
}

bool pack_job_encode(pack_job *job, pack_marks *marks, encoder *e)
{
    const corpus_batch *b = &job->batch;
    const pack_options *o = marks->parts->options;
    const uint32_t token_bytes = pack_token_bytes(marks->parts->tokens, o);
    const uint64_t seen_before = encoder_specials_seen(e);
    size_t begin = 0, n_ranges = 0;
    job->n_specials = job->n_tokens = 0;
    job->n_ids = 0;
    job->token_bytes = o->input.list ? 4 : token_bytes;
    if (!array_reserve(&job->ends, &job->ends_capacity, b->n_ends, sizeof *job->ends) ||
        !array_reserve(&job->lengths, &job->lengths_capacity, b->n_ends, sizeof *job->lengths))
        return false;
    for (size_t i = 0; i < b->n_ends; i++) {
        const pack_text text = {.bytes = b->text + begin,
                                .n_bytes = b->ends[i].at - begin,
                                .ranges = b->ranges ? b->ranges + n_ranges : NULL,
                                .n_ranges = b->ends[i].n_ranges};
        const size_t before = job->n_tokens;
        if (!b->ends[i].input && !encode_document(marks, e, job, text, i))
            return false;
        begin = b->ends[i].at;
        n_ranges += text.n_ranges;
        job->lengths[i] = job->n_tokens - before;
        job->ends[i] = (pack_end){job->n_tokens, encoder_specials_seen(e) - seen_before,
                                  choose_output(o, text)};
    }
    job->specials_seen = encoder_specials_seen(e) - seen_before;
    job->is_stored = !o->input.list && job->token_bytes == token_bytes;
    id_buffer_free_large(&marks->ids);
    return true;
}

size_t pack_job_memory(const pack_job *job)
{
    const corpus_batch *b = &job->batch;
    const pack_reports *r = &job->reports;
    const size_t of_end = sizeof *b->ends + sizeof *job->ends + sizeof *job->lengths;
    const size_t kept = sizeof *job + b->capacity + r->capacity +
                        r->items_capacity * sizeof *r->items +
                        r->moments_capacity * sizeof *r->moments;
    return kept + (job->spilled.is ? 0
                                   : b->values_bytes + b->n_ranges * sizeof *b->ranges +
                                         b->n_ends * of_end + job->tokens_capacity);
}

void pack_job_empty(pack_job *job)
{
    corpus_batch *b = &job->batch;
    pack_reports *r = &job->reports;
    array_free_large(&r->text, &r->capacity, 1);
    array_free_large(&r->items, &r->items_capacity, sizeof *r->items);
    array_free_large(&r->moments, &r->moments_capacity, sizeof *r->moments);
    array_free_large(&job->tokens, &job->tokens_capacity, 1);
    array_free_large(&b->ends, &b->ends_capacity, sizeof *b->ends);
    array_free_large(&b->values, &b->values_capacity, 1);
    array_free_large(&b->ranges, &b->ranges_capacity, sizeof *b->ranges);
    array_free_large(&job->ends, &job->ends_capacity, sizeof *job->ends);
    array_free_large(&job->lengths, &job->lengths_capacity, sizeof *job->lengths);
}

void pack_job_free(pack_job *job)
{
    free(job->tokens);
    free(job->lengths);
    corpus_batch_free(&job->batch);
    free(job->ends);
    free(job->specials);
    free(job->reports.text);
    free(job->reports.items);
    free(job->reports.moments);
}
