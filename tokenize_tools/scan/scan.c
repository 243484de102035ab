/* SPDX-License-Identifier: Apache-2.0 */
#include "scan/scan.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "scan/document_tokens.h"
#include "system/platform_thread.h"

enum {
    AT_ONCE = 1024 /* documents that a thread takes */
};

typedef struct scan {
    const scan_job *job;
    uint64_t n_documents;
    tokmap_i_mutex lock; /* of what follows, and of the callbacks */
    uint64_t next;
    tokmap_status status;
    tokmap_error *err;
} scan;

typedef struct seen {
    uint64_t document, n_ngrams;
    size_t first_run, n_runs;
} seen;

/* What one thread has. */
typedef struct worker {
    scan *scan;
    document_tokens tokens;
    size_t n_seen, room;
    seen *seen;         /* of the documents that it took last, those with an n-gram */
    ngrams_found found; /* in all of them */
    uint64_t n_tokens;
} worker;

static tokmap_status scan_document(worker *w, uint64_t number, tokmap_error *err)
{
    const scan_job *job = w->scan->job;
    const void *tokens;
    size_t n;
    const size_t first_run = w->found.n_runs;
    const tokmap_status status = document_tokens_get(&w->tokens, number, &tokens, &n, err);
    if (status)
        return status;
    w->n_tokens += n;
    w->found.n_ngrams = 0;
    for (size_t i = 0; i < job->n_indexes; i++)
        if (!ngrams_scan(job->indexes[i], tokens, n, &w->found))
            return FAIL_MEMORY(err);
    if (w->found.n_ngrams == 0)
        return TOKMAP_OK;
    if (!array_reserve(&w->seen, &w->room, w->n_seen + 1, sizeof *w->seen))
        return FAIL_MEMORY(err);
    w->seen[w->n_seen++] =
        (seen){number, w->found.n_ngrams, first_run, w->found.n_runs - first_run};
    return TOKMAP_OK;
}

/* Hands on what was found, with the lock, and takes the next documents. */
static bool take_next(worker *w, tokmap_status status, const tokmap_error *why, uint64_t *first)
{
    scan *s = w->scan;
    const scan_job *job = s->job;
    tokmap_i_mutex_lock(&s->lock);
    if (status && !s->status) {
        s->status = status;
        *s->err = *why;
    }
    for (size_t i = 0; i < w->n_seen && !s->status; i++) {
        const seen *one = &w->seen[i];
        const ngrams_found found = {one->n_ngrams, w->found.runs + one->first_run, one->n_runs, 0};
        s->status = job->on_match(job->context, one->document, &found, s->err);
    }
    if (w->n_tokens > 0)
        job->on_progress(job->context, w->n_tokens);
    const bool more = !s->status && s->next < s->n_documents;
    *first = s->next;
    s->next += AT_ONCE;
    tokmap_i_mutex_unlock(&s->lock);
    w->n_seen = w->n_tokens = w->found.n_runs = 0;
    return more;
}

static void *work(void *context)
{
    worker w = {.scan = context, .tokens.ds = ((scan *)context)->job->ds};
    tokmap_status status = TOKMAP_OK;
    tokmap_error err;
    uint64_t first;
    while (take_next(&w, status, &err, &first)) {
        const uint64_t end = MIN(first + AT_ONCE, w.scan->n_documents);
        for (uint64_t d = first; d < end && !status; d++)
            status = scan_document(&w, d, &err);
    }
    document_tokens_free(&w.tokens);
    free(w.seen);
    free(w.found.runs);
    return NULL;
}

tokmap_status scan_run(const scan_job *job, tokmap_error *err)
{
    tokmap_dataset_info info = TOKMAP_INIT(tokmap_dataset_info);
    tokmap_dataset_get_info(job->ds, &info);
    scan s = {.job = job, .n_documents = info.n_documents, .err = err};
    tokmap_i_thread threads[64];
    uint32_t n_started = 0;
    tokmap_i_mutex_init(&s.lock);
    while (n_started + 1 < job->n_threads && n_started < 64 &&
           tokmap_i_thread_start(&threads[n_started], work, &s) == 0)
        n_started++;
    work(&s); /* with as many threads as could be started */
    for (uint32_t i = 0; i < n_started; i++)
        tokmap_i_thread_join(threads[i]);
    tokmap_i_mutex_free(&s.lock);
    return s.status;
}
