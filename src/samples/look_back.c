/* SPDX-License-Identifier: Apache-2.0 */
/* The order is a formula that can be undone, so nothing is read but document boundaries. An epoch
 * that is over had all labels of its windows. Windows are visited one by one only in the epoch that
 * is not over, and in epochs with skipped samples. */
#include "samples/look_back.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "dataset/store.h"
#include "rows/rows_find.h"

/* ---- A dataset of a source ---- */

typedef struct searched_dataset {
    const tokmap_i_samples *samples;
    tokmap_i_sampler *sampler;
    uint32_t source, dataset;
    const tokmap_i_windows *windows;
    const tokmap_dataset *ds;
    const tokmap_i_range *range;
    uint64_t n_windows;        /* of the dataset, without document boundaries */
    tokmap_i_rows_finder rows; /* with best fit */
} searched_dataset;

static tokmap_status open_dataset(searched_dataset *v, const tokmap_i_samples *samples,
                                  tokmap_i_sampler *sampler, uint32_t source, uint32_t dataset,
                                  tokmap_error *err)
{
    if (source >= samples->n_sources || dataset >= samples->sources[source].windows.n_datasets)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "there is no dataset %" PRIu32 " of source %" PRIu32,
                    dataset, source);
    const tokmap_i_windows *w = &samples->sources[source].windows;
    *v = (searched_dataset){
        samples, sampler, source, dataset, w, w->datasets[dataset], &w->ranges[dataset], 0, {0}};
    if (w->rows)
        v->rows = (tokmap_i_rows_finder){.rows = &w->rows[dataset], .reader = sampler->rows};
    v->n_windows =
        (dataset + 1 < w->n_datasets ? w->before[dataset + 1] : w->n_windows) - w->before[dataset];
    const tokmap_status status = tokmap_i_need_index(v->ds, err);
    return status || tokmap_i_mixture_prepare_find(samples->mixture) ? status : FAIL_MEMORY(err);
}

/* Returns the sample at a place of an epoch; UINT64_MAX if there is none below 2^63. */
static uint64_t sample_at(const searched_dataset *v, uint64_t epoch, uint64_t place)
{
    uint64_t number;
    if (__builtin_mul_overflow(epoch, v->sampler->shuffles[v->source].n_windows, &number) ||
        __builtin_add_overflow(number, place, &number))
        return UINT64_MAX;
    const uint64_t sample = tokmap_i_mixture_find(v->samples->mixture, v->source, number);
    return sample < v->samples->end ? sample : UINT64_MAX;
}

/* Returns the sample of a window, without a list of windows; UINT64_MAX: there is none. */
static uint64_t sample_of(const searched_dataset *v, uint64_t epoch, uint64_t window)
{
    tokmap_i_shuffle *shuffle = &v->sampler->shuffles[v->source];
    if (shuffle->by_chunks)
        window = tokmap_i_windows_in_block(v->windows, window);
    return sample_at(v, epoch, tokmap_i_shuffle_place(shuffle, epoch, window));
}

/* ---- Documents, one after the other ---- */

typedef struct document_cursor {
    const searched_dataset *v;
    uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS];
    uint64_t n_groups;     /* groups that were read */
    uint32_t n, i;         /* documents of the group, and the current one */
    uint64_t kept;         /* of the group: the documents of the view */
    bool is_kept, is_used; /* the current document is in the view; and in the range too */
    uint64_t document, begin, end;
    uint64_t before;            /* with a view and windows across documents: its tokens before */
    uint64_t window, n_windows; /* within documents: the first of the document, how many */
} document_cursor;

/* Whether windows are cut from the tokens of a view, one after another. */
static bool counts_by_view(const searched_dataset *v)
{
    return v->range->view && v->windows->kind == TOKMAP_WINDOWS_CONCAT;
}

static tokmap_status next_group(document_cursor *w, tokmap_error *err)
{
    const tokmap_dataset *ds = w->v->ds;
    const tokmap_view *kept = w->v->range->view;
    tokmap_i_view_reader *views = w->v->sampler->views;
    w->kept = UINT64_MAX;
    const tokmap_status status =
        kept ? tokmap_i_view_group(kept, views, w->n_groups, &w->kept, err) : TOKMAP_OK;
    w->n = tokmap_i_documents_group(&ds->documents, tokmap_i_index_cache_of(views->index, ds),
                                    w->n_groups++, w->ends);
    w->i = 0;
    return status;
}

static tokmap_status next_document(document_cursor *w, tokmap_error *err)
{
    const tokmap_i_range *range = w->v->range;
    const tokmap_status status = w->i == w->n ? next_group(w, err) : TOKMAP_OK;
    if (status)
        return status;
    if (w->n == 0 || w->ends[w->i] < w->end)
        return tokmap_i_index_cache_fail(w->v->sampler->index, w->v->ds, err);
    w->before += w->is_kept ? w->end - w->begin : 0;
    w->begin = w->end;
    w->is_kept = w->kept >> w->i & 1;
    w->is_used =
        w->is_kept && w->document >= range->first_document && w->document < range->end_document;
    w->end = w->ends[w->i++];
    w->document++;
    w->window += w->n_windows;
    w->n_windows = !w->is_used ? 0
                   : w->v->windows->rows
                       ? tokmap_i_rows_pieces(&w->v->windows->rows_kind, w->end - w->begin)
                       : tokmap_i_windows_in(w->end - w->begin, w->v->windows->length);
    return TOKMAP_OK;
}

/* Makes this document the next one. */
static tokmap_status go_to_document(document_cursor *w, const searched_dataset *v,
                                    uint64_t document, tokmap_error *err)
{
    tokmap_i_pieces *from = tokmap_i_index_cache_of(v->sampler->index, v->ds);
    const uint64_t per_count = TOKMAP_I_GROUPS_PER_COUNT * TOKMAP_I_GROUP_DOCUMENTS;
    const uint64_t count = document / per_count;
    tokmap_status status = TOKMAP_OK;
    *w = (document_cursor){
        .v = v, .n_groups = count * TOKMAP_I_GROUPS_PER_COUNT, .document = count * per_count};
    if (count > 0) {
        const uint32_t n =
            tokmap_i_documents_group(&v->ds->documents, from, w->n_groups - 1, w->ends);
        if (n == 0)
            return tokmap_i_index_cache_fail(v->sampler->index, v->ds, err);
        w->end = w->ends[n - 1];
        w->window = v->windows->within ? v->windows->within[v->dataset][count] : 0;
    }
    if (counts_by_view(v))
        status =
            tokmap_i_view_before(v->range->view, v->sampler->views, w->document, &w->before, err);
    while (!status && w->document < document)
        status = next_document(w, err);
    return status;
}

/* Makes the document of a token the next one. */
static tokmap_status go_to_token(document_cursor *w, const searched_dataset *v, uint64_t token,
                                 tokmap_error *err)
{
    tokmap_i_index_cache *index = v->sampler->index;
    tokmap_document d;
    if (tokmap_i_documents_find(&v->ds->documents, tokmap_i_index_cache_of(index, v->ds), token,
                                &d))
        return tokmap_i_index_cache_fail(index, v->ds, err);
    return go_to_document(w, v, d.index, err);
}

/* ---- From tokens to samples ---- */

static void add_sample(tokmap_loader_search *s, uint64_t sample)
{
    if (sample == UINT64_MAX)
        return;
    if (s->n_found < s->max_samples)
        s->samples[s->n_found] = sample;
    s->n_found++;
}

/* Adds the samples of n windows. */
static void add_windows(const searched_dataset *v, tokmap_loader_search *s, uint64_t window,
                        uint64_t n)
{
    const tokmap_i_numbers *list = &v->samples->sources[v->source].window_list;
    for (uint64_t x = 0; list->bytes && n > 0 && x < list->n; x++)
        if (tokmap_i_number_at(list, x) - window < n)
            add_sample(s, sample_at(v, s->epoch, x));
    for (uint64_t i = 0; !list->bytes && i < n; i++)
        add_sample(s, sample_of(v, s->epoch, window + i));
}

/* Windows begin at begin + i L. Adds the samples of windows i >= first that overlap [from, to).
 * Returns the number after the last window. */
static uint64_t add_samples(const searched_dataset *v, tokmap_loader_search *s, uint64_t window,
                            uint64_t first, uint64_t n, uint64_t begin, uint64_t from, uint64_t to)
{
    const uint64_t length = v->windows->length;
    const uint64_t before = from > begin + length ? div_up(from - begin - length, length) : 0;
    const uint64_t i = MAX(before, first), end = to > begin ? div_up(to - begin, length) : 0;
    const uint64_t n_found = MIN(end, n) - MIN(i, MIN(end, n));
    add_windows(v, s, window + i, n_found);
    return i + n_found;
}

/* Finds, with best fit, the tokens and the window of a piece of the document before the next
 * one. */
static tokmap_status find_piece(searched_dataset *v, const document_cursor *w, uint64_t part,
                                uint64_t *n_tokens, uint64_t *window, tokmap_error *err)
{
    const uint64_t length = v->windows->length;
    uint64_t row = 0;
    *n_tokens = MIN(w->end - w->begin - part * length, length + 1);
    const tokmap_status status =
        tokmap_i_rows_find(&v->rows, w->document - 1, part, *n_tokens, &row, err);
    *window = v->windows->before[v->dataset] + row;
    return status;
}

static tokmap_status add_pieces(searched_dataset *v, tokmap_loader_search *s,
                                const document_cursor *w, tokmap_error *err)
{
    const uint64_t length = v->windows->length, to = s->first_token + s->n_tokens;
    const uint64_t into = s->first_token - MIN(s->first_token, w->begin);
    tokmap_status status = TOKMAP_OK;
    for (uint64_t i = into > length ? div_up(into - length, length) : 0;
         i < w->n_windows && w->begin + i * length < to && !status; i++) {
        uint64_t n_tokens, window;
        status = find_piece(v, w, i, &n_tokens, &window, err);
        if (!status && w->begin + i * length + n_tokens > s->first_token)
            add_windows(v, s, window, 1);
    }
    return status;
}

static tokmap_status search_documents(searched_dataset *v, tokmap_loader_search *s,
                                      tokmap_error *err)
{
    const uint64_t to = s->first_token + s->n_tokens, before = v->windows->before[v->dataset];
    document_cursor w = {.v = v};
    tokmap_status status = go_to_token(&w, v, s->first_token, err);
    while (!status && w.end < to && !(status = next_document(&w, err))) {
        if (v->windows->rows)
            status = add_pieces(v, s, &w, err);
        else
            add_samples(v, s, before + w.window, 0, w.n_windows, w.begin, s->first_token, to);
    }
    return status;
}

/* Finds the windows of a view, document by document, and again for windows that wrap around. */
static tokmap_status search_view(searched_dataset *v, tokmap_loader_search *s, tokmap_error *err)
{
    const tokmap_i_extent all = v->range->window_tokens;
    const uint64_t begin = all.begin + tokmap_i_windows_offset(v->windows, s->epoch, s->dataset);
    const uint64_t before = v->windows->before[s->dataset], to = s->first_token + s->n_tokens;
    const uint64_t laps[2] = {0, all.end - all.begin};
    uint64_t next = 0; /* the number after the last window that was found */
    tokmap_status status = TOKMAP_OK;
    for (int i = 0; i < 2 && !status; i++) {
        document_cursor w = {.v = v};
        status = go_to_token(&w, v, s->first_token, err);
        while (!status && w.end < to && !(status = next_document(&w, err))) {
            const uint64_t shift = w.before + laps[i] - w.begin; /* modulo 2^64 */
            const uint64_t a = MAX(s->first_token, w.begin), b = MIN(to, w.end);
            if (w.is_used && a < b)
                next = add_samples(v, s, before, next, v->n_windows, begin, a + shift, b + shift);
        }
    }
    return status;
}

/* Finds the windows of a list of documents, place by place. */
static tokmap_status search_list(searched_dataset *v, tokmap_loader_search *s, tokmap_error *err)
{
    const tokmap_i_document_list *l = v->range->list;
    tokmap_i_index_cache *index = v->sampler->index;
    tokmap_i_pieces *from = tokmap_i_index_cache_of(index, v->ds);
    const uint64_t to = s->first_token + s->n_tokens;
    uint64_t next = 0; /* the number after the last window that was found */
    tokmap_document d, last;
    tokmap_status status = TOKMAP_OK;
    if (tokmap_i_documents_find(&v->ds->documents, from, s->first_token, &d) ||
        tokmap_i_documents_find(&v->ds->documents, from, to - 1, &last))
        return tokmap_i_index_cache_fail(index, v->ds, err);
    const uint64_t first = d.index;
    for (uint64_t place = 0; place < l->documents.n && !status; place++) {
        const uint64_t document = tokmap_i_number_at(&l->documents, place);
        tokmap_i_extent windows;
        if (document < first || document > last.index)
            continue;
        if (tokmap_i_documents_get(&v->ds->documents, tokmap_i_index_cache_of(index, v->ds),
                                   document, &d))
            return tokmap_i_index_cache_fail(index, v->ds, err);
        const uint64_t a = MAX(s->first_token, d.first_token);
        const uint64_t b = MIN(to, d.first_token + d.n_tokens);
        if (a >= b)
            continue;
        status = tokmap_i_document_list_search(l, index, place, a - d.first_token,
                                               b - d.first_token, &windows, err);
        windows.begin = MAX(windows.begin, next);
        if (!status && windows.begin < windows.end) {
            add_windows(v, s, v->windows->before[v->dataset] + windows.begin,
                        windows.end - windows.begin);
            next = windows.end;
        }
    }
    return status;
}

tokmap_status tokmap_i_look_back_find(const tokmap_i_samples *samples, tokmap_i_sampler *sampler,
                                      tokmap_loader_search *s, tokmap_error *err)
{
    searched_dataset v = {0};
    tokmap_status status = open_dataset(&v, samples, sampler, s->source, s->dataset, err);
    const uint64_t n_tokens = status ? 0 : v.ds->header.n_tokens;
    if (!status && (s->first_token > n_tokens || s->n_tokens > n_tokens - s->first_token))
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: has %" PRIu64 " tokens", v.ds->index_path,
                      n_tokens);
    s->n_found = 0;
    if (!status && s->n_tokens > 0 && v.range->list) {
        status = search_list(&v, s, err);
    } else if (!status && s->n_tokens > 0 && counts_by_view(&v)) {
        status = search_view(&v, s, err);
    } else if (!status && s->n_tokens > 0 && v.windows->kind != TOKMAP_WINDOWS_CONCAT) {
        status = search_documents(&v, s, err);
    } else if (!status && s->n_tokens > 0) {
        const tokmap_i_extent all = v.range->tokens;
        const uint64_t begin = all.begin + tokmap_i_windows_offset(v.windows, s->epoch, s->dataset);
        const uint64_t from = MAX(s->first_token, all.begin), lap = all.end - all.begin;
        const uint64_t to = MIN(s->first_token + s->n_tokens, all.end);
        const uint64_t before = v.windows->before[s->dataset], n = from < to ? v.n_windows : 0;
        const uint64_t next = add_samples(&v, s, before, 0, n, begin, from, to);
        add_samples(&v, s, before, next, n, begin, from + lap, to + lap); /* wrapped around */
    }
    tokmap_i_rows_finder_close(&v.rows);
    return status;
}

/* ---- What was trained on ---- */

/* An epoch of which at least one sample may have been used. */
typedef struct used_epoch {
    uint64_t number;
    bool is_whole; /* all of its samples were used */
} used_epoch;

typedef struct count {
    searched_dataset v;
    uint64_t end_sample;
    used_epoch *epochs; /* ascending; all other epochs were skipped completely */
    size_t n_epochs;
    uint64_t epoch, window; /* the last question to is_used, and its answer */
    bool was_used;
} count;

static bool was_used(count *c, const used_epoch *epoch, uint64_t window)
{
    if (epoch->is_whole)
        return true;
    if (c->epoch == epoch->number && c->window == window)
        return c->was_used;
    const uint64_t sample = sample_of(&c->v, epoch->number, window);
    c->epoch = epoch->number;
    c->window = window;
    c->was_used =
        sample < c->end_sample && tokmap_i_samples_after(c->v.samples, sample, 0) == sample;
    return c->was_used;
}

/* Whether all samples of the epoch are before the end, and none of them is skipped. */
static bool is_whole(const count *c, uint64_t epoch)
{
    const tokmap_i_samples *samples = c->v.samples;
    const uint64_t n = c->v.windows->n_windows;
    const uint64_t first = tokmap_i_mixture_find(samples->mixture, c->v.source, epoch * n);
    const uint64_t last = tokmap_i_mixture_find(samples->mixture, c->v.source, epoch * n + n - 1);
    return last < c->end_sample && tokmap_i_skips_position(&samples->skips, last + 1) -
                                           tokmap_i_skips_position(&samples->skips, first) ==
                                       last + 1 - first;
}

/* Adds the epochs up to `end` that are not listed yet, from number `first` on. */
static bool add_epochs(count *c, uint64_t first, uint64_t end)
{
    if (c->n_epochs > 0)
        first = MAX(first, c->epochs[c->n_epochs - 1].number + 1);
    if (first >= end)
        return true;
    if (!array_resize((array_elements *)&c->epochs, c->n_epochs + end - first, sizeof(used_epoch)))
        return false;
    for (; first < end; first++)
        c->epochs[c->n_epochs++] = (used_epoch){first, is_whole(c, first)};
    return true;
}

/* Lists the epochs between skips. An epoch that is skipped completely takes no time. */
static tokmap_status find_epochs(count *c, tokmap_error *err)
{
    const tokmap_i_samples *samples = c->v.samples;
    const uint64_t n = c->v.windows->n_windows;
    uint64_t begin = 0, *counts = malloc(samples->n_sources * sizeof *counts);
    bool added = counts != NULL;
    for (size_t i = 0; added && begin < c->end_sample; i++) {
        const tokmap_i_gap *gap = i < samples->skips.n_gaps ? &samples->skips.gaps[i] : NULL;
        const uint64_t end = gap ? MIN(gap->begin, c->end_sample) : c->end_sample;
        tokmap_i_mixture_counts(samples->mixture, begin, counts);
        const uint64_t first = counts[c->v.source] / n;
        tokmap_i_mixture_counts(samples->mixture, end, counts);
        added = add_epochs(c, first, div_up(counts[c->v.source], n));
        begin = gap ? gap->end : end;
    }
    free(counts);
    return added ? TOKMAP_OK : FAIL_MEMORY(err);
}

/* Windows of a dataset, or of one document: window number `window` of the source and the n - 1
 * after it. The first begins at token `begin`. Its labels are the tokens after that. */
typedef struct run {
    uint64_t window, n, begin;
} run;

/* Counts the labels among the tokens [from, to), in windows that were used. */
static uint64_t count_used(count *c, const used_epoch *epoch, run r, uint64_t from, uint64_t to)
{
    const uint64_t length = c->v.windows->length;
    uint64_t n = 0, end;
    to = MIN(to, r.begin + r.n * length + 1);
    for (uint64_t at = MAX(from, r.begin + 1); at < to; at = end) {
        const uint64_t i = (at - 1 - r.begin) / length;
        end = epoch->is_whole ? to : MIN(to, r.begin + (i + 1) * length + 1);
        n += was_used(c, epoch, r.window + i) ? end - at : 0;
    }
    return n;
}

/* Counts the labels among the tokens [from, to) of the document before the next one. */
static uint64_t count_tokens(count *c, const document_cursor *w, uint64_t from, uint64_t to)
{
    const tokmap_i_windows *windows = c->v.windows;
    const tokmap_i_extent all = c->v.range->window_tokens;
    const uint64_t lap = all.end - all.begin, first = windows->before[c->v.dataset];
    const uint64_t n_laps = windows->random_offset ? 2 : 1; /* windows wrap around */
    uint64_t n = 0;
    run r = {first, c->v.n_windows, 0};
    if (windows->within)
        r = (run){first + w->window, w->n_windows, w->begin};
    const size_t n_epochs = w->is_used ? c->n_epochs : 0;
    if (counts_by_view(&c->v)) {
        from = w->before + (from - w->begin);
        to = w->before + (to - w->begin);
    }
    for (size_t k = 0; k < n_epochs; k++) {
        const used_epoch *epoch = &c->epochs[k];
        if (!windows->within)
            r.begin = all.begin + tokmap_i_windows_offset(windows, epoch->number, c->v.dataset);
        for (uint64_t i = 0; i < n_laps; i++)
            n += count_used(c, epoch, r, from + i * lap, to + i * lap);
    }
    return n;
}

/* Counts the labels in spans of roles that are not trained, among the tokens [from, to). With best
 * fit, counts all these tokens. */
static tokmap_status count_masked(count *c, const document_cursor *w, uint64_t from, uint64_t to,
                                  uint64_t *n, tokmap_error *err)
{
    const tokmap_dataset *ds = c->v.ds;
    const tokmap_i_roles *trained = tokmap_i_source_roles(&c->v.samples->sources[c->v.source]);
    tokmap_i_index_cache *index = c->v.sampler->index;
    tokmap_i_span_cursor at = {.spans = &ds->spans};
    tokmap_span span;
    *n = 0;
    if (ds->spans.n_spans == 0)
        return TOKMAP_OK;
    at.from = tokmap_i_index_cache_spans(index, ds);
    tokmap_status status = tokmap_i_spans_seek(&at, from);
    while (!status && !(status = tokmap_i_spans_next(&at, &span)) && span.first_token < to) {
        const uint64_t begin = MAX(span.first_token, from);
        from = MIN(span.first_token + span.n_tokens, to);
        if (from <= begin)
            status = TOKMAP_ERR_CORRUPT;
        else if (!tokmap_i_roles_have(trained, span.role))
            *n += c->v.windows->rows ? from - begin : count_tokens(c, w, begin, from);
    }
    return !status || status == TOKMAP_END ? TOKMAP_OK : tokmap_i_index_cache_fail(index, ds, err);
}

/* Counts the labels of the document before the next one that counted in the loss. */
static tokmap_status count_document(count *c, const document_cursor *w, uint64_t *n,
                                    tokmap_error *err)
{
    uint64_t n_masked;
    const tokmap_status status = count_masked(c, w, w->begin, w->end, &n_masked, err);
    *n = count_tokens(c, w, w->begin, w->end) - n_masked;
    return status;
}

/* The same as count_document, with best fit. */
static tokmap_status count_pieces(count *c, const document_cursor *w, uint64_t *n,
                                  tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    *n = 0;
    for (uint64_t part = 0; part < w->n_windows && !status; part++) {
        const uint64_t first = w->begin + part * c->v.windows->length;
        uint64_t n_tokens, window, n_epochs = 0, n_masked = 0;
        status = find_piece(&c->v, w, part, &n_tokens, &window, err);
        for (size_t k = 0; k < c->n_epochs && !status; k++)
            n_epochs += was_used(c, &c->epochs[k], window);
        if (!status)
            status = count_masked(c, w, first + 1, first + n_tokens, &n_masked, err);
        *n += n_epochs * (n_tokens - 1 - n_masked);
    }
    return status;
}

tokmap_status tokmap_i_look_back_count(const tokmap_i_samples *samples, tokmap_i_sampler *sampler,
                                       const tokmap_loader_labels *o, tokmap_error *err)
{
    count c = {.end_sample = o->end_sample, .epoch = UINT64_MAX};
    document_cursor w;
    tokmap_status status = tokmap_i_samples_check(samples, o->end_sample, err);
    if (!status)
        status = open_dataset(&c.v, samples, sampler, o->source, o->dataset, err);
    if (!status && tokmap_i_source_has_list(&samples->sources[o->source]))
        status = FAIL(err, TOKMAP_ERR_ARGUMENT,
                      "%s: labels are not counted in a source that has a list of documents or of "
                      "windows",
                      c.v.ds->index_path);
    if (status)
        return status;
    const uint64_t n_documents = c.v.ds->header.n_documents;
    if (o->first_document > n_documents || o->n_documents > n_documents - o->first_document)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: %" PRIu64 " documents are known",
                    c.v.ds->index_path, n_documents);
    if (o->n_documents == 0)
        return TOKMAP_OK;
    status = find_epochs(&c, err);
    if (!status)
        status = go_to_document(&w, &c.v, o->first_document, err);
    for (uint64_t i = 0; i < o->n_documents && !status; i++) {
        status = next_document(&w, err);
        if (!status && c.v.windows->rows)
            status = count_pieces(&c, &w, &o->labels[i], err);
        else if (!status)
            status = count_document(&c, &w, &o->labels[i], err);
    }
    tokmap_i_rows_finder_close(&c.v.rows);
    free(c.epochs);
    return status;
}
