/* SPDX-License-Identifier: Apache-2.0 */
/* loader.c - the calls of an open loader: next, seek, locate, info. */
#include "loader/loader.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/options.h"
#include "system/platform_thread.h"

enum {
    SIZES_NS = 1000000
};

tokmap_status tokmap_i_loader_check_fork(const tokmap_loader *l, tokmap_error *err)
{
    if (!l)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "the loader is NULL");
    if (!tokmap_i_fork_mark_is_child(&l->fork_mark))
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_FORKED,
                "this loader belongs to the parent process: open another one in the child");
}

/* ---- One thread at a time ---- */

/* Returns the lock of a loader, which const functions may change too. */
static atomic_int *user_of(const tokmap_loader *l)
{
    return (atomic_int *)(uintptr_t)&l->user;
}

tokmap_status tokmap_i_loader_enter(const tokmap_loader *l, tokmap_error *err)
{
    int user = TOKMAP_I_LOADER_FREE;
    tokmap_i_error_clear(err);
    const tokmap_status status = tokmap_i_loader_check_fork(l, err);
    if (status)
        return status;
    if (atomic_compare_exchange_strong_explicit(user_of(l), &user, TOKMAP_I_LOADER_IN_CALL,
                                                memory_order_acquire, memory_order_relaxed))
        return TOKMAP_OK;
    if (user == TOKMAP_I_LOADER_STAGED)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "a stage uses this loader: call the stage instead, or close it first");
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "two threads use this loader at the same time: open one for each of them, or use "
                "a lock");
}

tokmap_status tokmap_i_loader_leave(const tokmap_loader *l, tokmap_status status)
{
    atomic_store_explicit(user_of(l), TOKMAP_I_LOADER_FREE, memory_order_release);
    return status;
}

tokmap_status tokmap_loader_locate(tokmap_loader *l, uint64_t sample, tokmap_sample *out,
                                   tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_sample, source)};
    tokmap_sample full;
    tokmap_status status = tokmap_i_loader_enter(l, err);
    if (status)
        return status;
    const uint64_t end = MIN(l->end, TOKMAP_I_MAX_SAMPLE);
    if (sample < end)
        status = tokmap_i_sampler_locate(&l->sampler, sample, &full, err);
    else
        status =
            FAIL(err, TOKMAP_ERR_ARGUMENT,
                 "there is no sample %" PRIu64 ": the loader has %" PRIu64 " samples", sample, end);
    if (!status)
        status = tokmap_i_give_struct(out, &full, &kind, err);
    return tokmap_i_loader_leave(l, status);
}

/* ---- Rows ---- */

/* Gets tokens of row i that are not in a map yet, from a position in the row on: maps their file,
 * or copies them. */
static tokmap_status map_or_copy(tokmap_loader *l, uint32_t i, tokmap_i_token_range range,
                                 uint32_t place, bool may_map, const void **tokens,
                                 tokmap_error *err)
{
    const tokmap_dataset *ds = range.dataset;
    tokmap_i_token_range rest = range;
    const tokmap_i_token_piece p = tokmap_i_pages_take(&rest);
    const uint8_t *map = NULL;
    tokmap_status status = TOKMAP_IN_PIECES;
    if (may_map && rest.n_tokens == 0)
        status = tokmap_i_token_file_map(ds, p.file, &map, err);
    if (status != TOKMAP_IN_PIECES) {
        *tokens = status ? NULL : map + p.first_byte;
        return status;
    }
    uint8_t *to = l->joined + i * ((size_t)l->length + 1) * l->token_bytes +
                  (size_t)place * ds->header.token_bytes;
    *tokens = to;
    return tokmap_i_pages_read(range, to, err);
}

/* Finds the tokens of each piece of row i. */
static tokmap_status fill_pieces(tokmap_loader *l, uint32_t i, const tokmap_sample *at,
                                 const tokmap_i_fetch_row *fetched, tokmap_error *err)
{
    const tokmap_dataset *ds = l->sources[at->source].windows.datasets[at->dataset];
    const bool may_map = !fetched && l->io != TOKMAP_IO_COPY;
    const uint8_t *read = fetched ? fetched->tokens : NULL;
    const size_t first = l->pieces.n;
    tokmap_status status = TOKMAP_OK;
    if (!tokmap_i_fetch_add_pieces(&l->pieces, at->pieces, at->n_pieces))
        return FAIL_MEMORY(err);
    for (size_t k = 0; k < at->n_pieces && !status; k++) {
        tokmap_piece *p = &l->pieces.list[first + k];
        const tokmap_i_token_range range = {ds, p->first_token, p->n_tokens, {0}};
        if (read)
            p->tokens = read + (size_t)p->place * ds->header.token_bytes;
        else if (l->io != TOKMAP_IO_COPY)
            p->tokens = tokmap_i_mapped_tokens(ds, p->first_token, p->n_tokens);
        if (!p->tokens)
            status = map_or_copy(l, i, range, p->place, may_map, &p->tokens, err);
        __builtin_prefetch(p->tokens); /* this also loads the address translation of its page */
    }
    l->rows[i].n_pieces = at->n_pieces;
    return status;
}

/* Gets the tokens of a row of a view that are in several ranges: reads or copies them one after
 * another. */
static tokmap_status join_ranges(tokmap_loader *l, uint32_t i, const tokmap_sample *at,
                                 const void **tokens, tokmap_error *err)
{
    const tokmap_dataset *ds = l->sources[at->source].windows.datasets[at->dataset];
    const size_t width = ds->header.token_bytes;
    uint8_t *to = l->joined + i * ((size_t)l->length + 1) * l->token_bytes;
    /* A copy out of the map could raise SIGBUS in the thread of a stage. */
    const bool may_map = l->io != TOKMAP_IO_COPY && atomic_load(&l->user) != TOKMAP_I_LOADER_STAGED;
    tokmap_status status = TOKMAP_OK;
    *tokens = to;
    for (size_t k = 0; k < at->n_pieces && !status; k++) {
        const tokmap_piece *p = &at->pieces[k];
        const tokmap_i_token_range range = {ds, p->first_token, p->n_tokens, {0}};
        const void *from = may_map ? tokmap_i_mapped_tokens(ds, p->first_token, p->n_tokens) : NULL;
        if (from)
            memcpy(to, from, p->n_tokens * width);
        else
            status = tokmap_i_pages_read(range, to, err);
        to += p->n_tokens * width;
    }
    return status;
}

/* Reduces row i to the slice of this rank. ranges: of its tokens, or NULL with best fit. */
static tokmap_status slice_row(tokmap_loader *l, uint32_t i, const tokmap_i_extent *ranges,
                               tokmap_error *err)
{
    tokmap_row *row = &l->rows[i];
    const tokmap_piece whole = {.tokens = row->tokens,
                                .first_token = row->first_token,
                                .n_tokens = row->n_tokens,
                                .n_inputs = row->n_tokens - 1};
    if (row->tokens && !tokmap_i_fetch_add_pieces(&l->pieces, &whole, 1))
        return FAIL_MEMORY(err);
    row->n_pieces += row->tokens != NULL;
    row->tokens = NULL;
    return tokmap_i_slice_row(&l->slice, row, i, ranges, &l->pieces, &l->parts) ? TOKMAP_OK
                                                                                : FAIL_MEMORY(err);
}

/* Sets where the tokens of a sample are in its dataset: two ranges if it wraps around `within`,
 * several with a view. Returns how many. */
static uint32_t find_ranges(const tokmap_sample *at, tokmap_i_extent within,
                            tokmap_i_extent *ranges)
{
    const uint64_t end = at->first_token + at->n_tokens;
    for (size_t k = 0; k < at->n_pieces; k++)
        ranges[k] = (tokmap_i_extent){at->pieces[k].first_token,
                                      at->pieces[k].first_token + at->pieces[k].n_tokens};
    if (at->n_pieces > 0)
        return (uint32_t)at->n_pieces;
    ranges[0] = (tokmap_i_extent){at->first_token, MIN(end, within.end)};
    if (end <= within.end)
        return 1;
    ranges[1] = (tokmap_i_extent){within.begin, within.begin + (end - within.end)};
    return 2;
}

/* Whether rows in maps are checked against the sizes of their files. */
static bool checks_sizes(const tokmap_loader *l)
{
    return l->io == TOKMAP_IO_POPULATE || l->chose_map;
}

/* Forgets the sizes that are older than SIZES_NS. Steps of a training are further apart, so each of
 * them asks again. */
static void forget_sizes(tokmap_loader *l)
{
    const uint64_t now_ns = tokmap_i_now_ns();
    if (now_ns - l->sizes_ns < SIZES_NS)
        return;
    l->sizes = (tokmap_i_known_sizes){0};
    l->sizes_ns = now_ns;
}

/* Returns TOKMAP_ERR_IO if a file has become too short for its tokens of a sample. The read-ahead
 * thread has checked them too, but some steps ago. */
static tokmap_status check_sizes(tokmap_loader *l, const tokmap_sample *at, tokmap_error *err)
{
    const tokmap_i_windows *w = &l->sources[at->source].windows;
    const tokmap_dataset *ds = w->datasets[at->dataset];
    tokmap_status status = TOKMAP_OK;
    if (at->n_pieces == 0 &&
        !tokmap_i_pages_are_known(&l->sizes, ds, at->first_token, at->n_tokens))
        return tokmap_i_pages_check((tokmap_i_token_range){ds, at->first_token, at->n_tokens,
                                                           w->ranges[at->dataset].tokens},
                                    false, &l->sizes, err);
    for (size_t k = 0; k < at->n_pieces && !status; k++) {
        const tokmap_piece *p = &at->pieces[k];
        if (!tokmap_i_pages_are_known(&l->sizes, ds, p->first_token, p->n_tokens))
            status =
                tokmap_i_pages_check((tokmap_i_token_range){ds, p->first_token, p->n_tokens, {0}},
                                     false, &l->sizes, err);
    }
    return status;
}

/* Finds the tokens of row i where they were read, in a map, or in a copy. */
static tokmap_status find_tokens(tokmap_loader *l, uint32_t i, const tokmap_sample *at,
                                 const tokmap_i_fetch_row *fetched, const void **tokens,
                                 tokmap_error *err)
{
    const tokmap_i_windows *w = &l->sources[at->source].windows;
    const tokmap_dataset *ds = w->datasets[at->dataset];
    const tokmap_i_extent within = w->ranges[at->dataset].tokens;
    const bool may_map = !fetched && l->io != TOKMAP_IO_COPY;
    *tokens = fetched ? fetched->tokens : NULL;
    if (!*tokens && at->pieces)
        return l->o.view_pieces && atomic_load(&l->user) != TOKMAP_I_LOADER_STAGED
                   ? fill_pieces(l, i, at, fetched, err)
                   : join_ranges(l, i, at, tokens, err);
    if (!*tokens && may_map && at->n_tokens <= within.end - at->first_token)
        *tokens = tokmap_i_mapped_tokens(ds, at->first_token, at->n_tokens);
    return *tokens ? TOKMAP_OK
                   : map_or_copy(l, i,
                                 (tokmap_i_token_range){ds, at->first_token, at->n_tokens, within},
                                 0, may_map, tokens, err);
}

/* Fills in the parts of a row, and reduces it to the slice of this rank. */
static tokmap_status finish_row(tokmap_loader *l, uint32_t i, const tokmap_sample *at,
                                tokmap_error *err)
{
    tokmap_row *row = &l->rows[i];
    const tokmap_i_loader_source *s = &l->sources[row->source];
    const tokmap_dataset *ds = s->windows.datasets[row->dataset];
    tokmap_i_extent two[2], *ranges = l->ranges ? l->ranges : two;
    const uint32_t n_ranges = find_ranges(at, s->windows.ranges[row->dataset].tokens, ranges);
    if (l->parts.wanted != 0 &&
        tokmap_i_row_parts_fill(&l->parts, i, ds, ranges, n_ranges, s->masked, row))
        return tokmap_i_index_cache_fail(l->parts.index, ds, err);
    return l->slice.size == 1 ? TOKMAP_OK : slice_row(l, i, ranges, err);
}

/* Whether a row is finished after all rows of the step are filled: meanwhile what is needed of the
 * index comes from memory. Not if its pieces are known only until the next row is located, nor with
 * slices, whose pieces come row by row. */
static bool is_finished_later(const tokmap_loader *l, const tokmap_row *row)
{
    const tokmap_i_windows *w = &l->sources[row->source].windows;
    return l->parts.wanted != 0 && l->slice.size == 1 && !w->rows &&
           (w->within || !w->ranges[row->dataset].view);
}

static tokmap_status fill_row(tokmap_loader *l, uint32_t i, uint64_t sample,
                              const tokmap_i_fetch_row *fetched, tokmap_error *err)
{
    tokmap_sample located;
    tokmap_status status = TOKMAP_OK;
    if (!fetched)
        status = tokmap_i_sampler_locate(&l->sampler, sample, &located, err);
    /* Not a copy: it would wait for the stores of locate. */
    const tokmap_sample *const at = fetched ? &fetched->at : &located;
    if (!status && checks_sizes(l))
        status = check_sizes(l, at, err);
    if (status)
        return status;
    const tokmap_i_loader_source *s = &l->sources[at->source];
    const tokmap_dataset *ds = s->windows.datasets[at->dataset];
    tokmap_row *row = &l->rows[i];
    /* Every field, so that no compiler clears the whole of it first, which takes longer. */
    *row = (tokmap_row){.tokens = NULL,
                        .n_tokens = at->n_tokens,
                        .token_bytes = s->token_bytes,
                        .source = at->source,
                        .dataset = at->dataset,
                        .epoch = at->epoch,
                        .window = at->window,
                        .first_token = at->first_token,
                        .cu_seqlens = NULL,
                        .n_documents = 0,
                        .longest_document = 0,
                        .position_ids = NULL,
                        .document_ids = NULL,
                        .loss_mask = NULL,
                        .sample = sample,
                        .pieces = NULL,
                        .n_pieces = 0};
    if (s->windows.rows) {
        status = fill_pieces(l, i, at, fetched, err);
        if (!status && l->parts.wanted != 0 &&
            tokmap_i_row_parts_of_pieces(&l->parts, i, ds, at->pieces, at->n_pieces, s->masked,
                                         row))
            status = tokmap_i_index_cache_fail(l->parts.index, ds, err);
        return status || l->slice.size == 1 ? status : slice_row(l, i, NULL, err);
    }
    status = find_tokens(l, i, at, fetched, &row->tokens, err);
    if (status || (l->parts.wanted == 0 && l->slice.size == 1))
        return status;
    if (!is_finished_later(l, row))
        return finish_row(l, i, at, err);
    if (!tokmap_i_index_cache_of(l->parts.index, ds))
        tokmap_i_documents_prefetch(&ds->documents, at->first_token);
    return TOKMAP_OK;
}

const tokmap_i_struct_kind tokmap_i_row_kind = {STRUCT_KIND(tokmap_row, first_token)};

void tokmap_i_copy_rows(uint8_t *to, uint32_t stride, const tokmap_row *rows, uint32_t n_rows)
{
    const size_t n_bytes = MIN(stride, sizeof *rows);
    for (uint32_t i = 0; i < n_rows; i++) {
        memset(to + (size_t)i * stride, 0, stride);
        memcpy(to + (size_t)i * stride, &rows[i], n_bytes);
    }
}

/* ---- Steps ---- */

uint64_t tokmap_i_loader_rows_after(const tokmap_loader *l, uint64_t sample, uint64_t n_rows)
{
    return tokmap_i_skips_sample(&l->skips, tokmap_i_skips_position(&l->skips, sample) + n_rows);
}

/* Corrects, for a step that meets the end or a skip, its first sample, and the first sample of the
 * next step. */
static tokmap_status turn_step(const tokmap_loader *l, uint64_t *first, uint64_t *after,
                               tokmap_error *err)
{
    const uint64_t n_rows = (uint64_t)l->n_ranks * l->batch_rows;
    const uint64_t end = tokmap_i_loader_rows_after(l, l->next_sample, n_rows - 1) + 1;
    if (end > l->end)
        return FAIL(err, TOKMAP_END,
                    "source %" PRIu32 " has no epochs left: the loader has %" PRIu64
                    " samples, and this step needs %" PRIu64,
                    l->end_source, l->end, end);
    if (end > TOKMAP_I_MAX_SAMPLE)
        return FAIL(err, TOKMAP_END, "the loader has reached its last sample, 2^62");
    *first = tokmap_i_loader_rows_after(l, l->next_sample, (uint64_t)l->rank * l->batch_rows);
    *after = tokmap_i_loader_rows_after(l, l->next_sample, n_rows);
    return TOKMAP_OK;
}

/* Fills all rows of a step, which meets a skip if it is `turned`: run by run of consecutive
 * samples. */
static tokmap_status fill_rows(tokmap_loader *l, uint64_t sample, bool turned,
                               const tokmap_i_fetch_row *fetched, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    uint32_t i = 0;
    l->pieces.n = 0;
    if (checks_sizes(l))
        forget_sizes(l);
    do {
        const tokmap_i_gap *gap = turned ? tokmap_i_skips_after(&l->skips, sample) : NULL;
        uint32_t end = l->batch_rows;
        if (gap)
            end = (uint32_t)MIN(l->batch_rows, i + (gap->begin - sample));
        for (; i < end && !status; i++, sample++)
            status = fill_row(l, i, sample, fetched ? &fetched[i] : NULL, err);
        sample = gap ? gap->end : sample;
    } while (i < l->batch_rows && !status);
    for (i = 0; i < l->batch_rows && !status && l->parts.wanted != 0; i++) {
        const tokmap_sample at = {.first_token = l->rows[i].first_token,
                                  .n_tokens = l->rows[i].n_tokens};
        if (is_finished_later(l, &l->rows[i]))
            status = finish_row(l, i, &at, err);
    }
    static const tokmap_piece none; /* for a slice without a token */
    const bool of_pieces =
        l->o.windows == TOKMAP_WINDOWS_BEST_FIT || l->slice.size > 1 || l->pieces.n > 0;
    size_t n_before = 0;
    for (uint32_t k = 0; k < l->batch_rows && of_pieces; k++) {
        tokmap_row *row = &l->rows[k];
        row->pieces = row->n_pieces > 0 ? l->pieces.list + n_before : row->tokens ? NULL : &none;
        n_before += row->n_pieces;
    }
    return status;
}

/* Sets the next sample, and up to which sample no step needs to look at skips and the end. */
static void set_next_sample(tokmap_loader *l, uint64_t sample)
{
    const tokmap_i_gap *gap = tokmap_i_skips_after(&l->skips, sample);
    l->next_sample = sample;
    l->clear_end = gap ? gap->begin - 1 : MIN(l->end, TOKMAP_I_MAX_SAMPLE);
}

tokmap_status tokmap_i_loader_next(tokmap_loader *l, tokmap_batch *batch, tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_batch, step_sample)};
    uint64_t after = l->next_sample + (uint64_t)l->n_ranks * l->batch_rows;
    uint64_t first = l->next_sample + (uint64_t)l->rank * l->batch_rows;
    const bool turned = after > l->clear_end;
    tokmap_status status = tokmap_i_check_struct(batch, &kind, err);
    if (!status && turned)
        status = turn_step(l, &first, &after, err);
    const tokmap_i_fetch_row *fetched = NULL;
    if (!status && l->fetch)
        status = tokmap_i_fetch_next(l->fetch, &fetched, err);
    if (fetched && tokmap_i_fetch_is_late(l->fetch))
        tokmap_i_loader_help_fetch(l);
    if (!status)
        status = fill_rows(l, first, turned, fetched, err);
    if (status && fetched) /* the next call tries the same step */
        tokmap_i_loader_restart_fetch(l);
    if (status) {
        l->sizes_ns = 0; /* a file may be repaired by then */
        return status;
    }
    const tokmap_batch full = {.rows = l->rows,
                               .n_rows = l->batch_rows,
                               .row_stride = sizeof *l->rows,
                               .sequence_length = l->length / l->slice.size,
                               .token_bytes = l->token_bytes,
                               .largest_id = l->largest_id,
                               .first_sample = first,
                               .step_sample = l->next_sample};
    if (turned)
        set_next_sample(l, after);
    else
        l->next_sample = after;
    return tokmap_i_give_struct(batch, &full, &kind, err);
}

tokmap_status tokmap_loader_next(tokmap_loader *l, tokmap_batch *batch, tokmap_error *err)
{
    tokmap_status status = tokmap_i_loader_enter(l, err);
    if (status)
        return status;
    status = tokmap_i_loader_next(l, batch, err);
    if (!status && l->row_copies) {
        tokmap_i_copy_rows(l->row_copies, l->o.row_stride, l->rows, l->batch_rows);
        batch->rows = (const tokmap_row *)(void *)l->row_copies;
        batch->row_stride = l->o.row_stride;
    }
    return tokmap_i_loader_leave(l, status);
}

tokmap_status tokmap_i_loader_check_sample(const tokmap_loader *l, uint64_t sample,
                                           tokmap_error *err)
{
    if (sample <= MIN(l->end, TOKMAP_I_MAX_SAMPLE))
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "cannot continue at sample %" PRIu64 ": the loader has %" PRIu64 " samples", sample,
                MIN(l->end, TOKMAP_I_MAX_SAMPLE));
}

tokmap_status tokmap_i_loader_go_to(tokmap_loader *l, uint64_t sample, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_loader_check_sample(l, sample, err);
    if (status)
        return status;
    set_next_sample(l, tokmap_i_loader_rows_after(l, sample, 0));
    tokmap_i_loader_restart_fetch(l);
    return TOKMAP_OK;
}

tokmap_status tokmap_loader_seek(tokmap_loader *l, uint64_t sample, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_loader_enter(l, err);
    return status ? status : tokmap_i_loader_leave(l, tokmap_i_loader_go_to(l, sample, err));
}

uint64_t tokmap_loader_position(const tokmap_loader *l)
{
    return l ? l->next_sample : 0;
}

/* ---- Info ---- */

static uint64_t bytes_of_loader(const tokmap_loader *l)
{
    const tokmap_i_read_plan *p = &l->plan;
    const uint64_t n_rows = l->batch_rows;
    uint64_t source_bytes = sizeof *l->sources + sizeof *l->sampler.shuffles;
    if (p->sampler.shuffles)
        source_bytes += sizeof *p->sampler.shuffles;
    if (p->ahead.counts)
        source_bytes += 3 * sizeof *p->ahead.counts;
    uint64_t n_bytes = sizeof *l + n_rows * sizeof *l->rows + l->n_sources * source_bytes +
                       l->n_datasets * sizeof *l->datasets;
    n_bytes += l->row_copies ? n_rows * l->o.row_stride : 0;
    n_bytes += l->pieces.capacity * sizeof *l->pieces.list;
    n_bytes += l->joined ? n_rows * (l->length + 1ull) * l->token_bytes : 0;
    n_bytes += l->ranges ? (l->length + 1ull) * sizeof *l->ranges : 0;
    n_bytes += l->parts.n_bytes;
    n_bytes += tokmap_i_mixture_bytes(l->mixture) + l->skips.n_gaps * sizeof *l->skips.gaps;
    n_bytes += l->n_sources * sizeof *l->o.sources + l->o.n_skips * sizeof *l->o.skips +
               l->o.n_phases * (sizeof *l->o.phases + l->n_sources * sizeof(double));
    for (uint32_t k = 0; k < l->n_sources; k++) {
        const tokmap_i_windows *w = &l->sources[k].windows;
        n_bytes +=
            w->n_datasets * (sizeof *w->before + sizeof *l->sources->order_ids + sizeof *w->ranges);
        for (uint32_t d = 0; w->within && d < w->n_datasets; d++)
            n_bytes += sizeof *w->within + div_up(w->datasets[d]->documents.layout.n_groups,
                                                  TOKMAP_I_GROUPS_PER_COUNT) *
                                               sizeof *w->within[d];
        for (uint32_t d = 0; w->rows && d < w->n_datasets; d++)
            n_bytes +=
                sizeof *w->rows + 2 * sizeof *w->before +
                (w->rows[d].bytes ? w->rows[d].header.n_bytes : w->rows[d].header.n_chunks / 8 + 1);
    }
    n_bytes += tokmap_i_index_cache_bytes(p->sampler.index);
    n_bytes += tokmap_i_index_cache_bytes(l->sampler.index);
    n_bytes += tokmap_i_rows_reader_bytes(p->sampler.rows);
    n_bytes += tokmap_i_rows_reader_bytes(l->sampler.rows);
    return n_bytes + (l->fetch ? tokmap_i_fetch_bytes(l->fetch) : 0);
}

tokmap_status tokmap_loader_get_info(const tokmap_loader *l, tokmap_loader_info *info)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_loader_info, n_sources)};
    const tokmap_status status = tokmap_i_loader_check_fork(l, NULL);
    if (status)
        return status;
    tokmap_loader_info full = {.n_sources = l->n_sources,
                               .n_samples = l->end,
                               .resident_bytes = bytes_of_loader(l),
                               .io = l->io,
                               .io_reason = l->io_reason,
                               .n_waits = l->n_waits,
                               .ns_waited = l->ns_waited,
                               .wait_p50_ns = tokmap_i_latency_percentile(&l->waits, 500),
                               .wait_p99_ns = tokmap_i_latency_percentile(&l->waits, 990),
                               .wait_p999_ns = tokmap_i_latency_percentile(&l->waits, 999),
                               .wait_max_ns = l->waits.max_ns};
    if (l->fetch)
        tokmap_i_fetch_describe(l->fetch, &full);
    return tokmap_i_give_struct(info, &full, &kind, NULL);
}

tokmap_status tokmap_loader_get_source(const tokmap_loader *l, size_t source,
                                       tokmap_loader_source_info *info)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_loader_source_info, n_windows)};
    if (!l || source >= l->n_sources)
        return TOKMAP_ERR_ARGUMENT;
    const tokmap_status status = tokmap_i_loader_enter(l, NULL);
    if (status)
        return status;
    const uint64_t next_sample = l->next_sample;
    tokmap_i_loader_leave(l, TOKMAP_OK);
    uint64_t *counts = malloc(l->n_sources * sizeof *counts);
    if (!counts)
        return TOKMAP_ERR_MEMORY;
    tokmap_i_mixture_counts(l->mixture, next_sample, counts);
    const tokmap_i_mixture_phase first = tokmap_i_mixture_get_phase(l->mixture, 0);
    const tokmap_loader_source_info full = {.n_windows = l->sources[source].windows.n_windows,
                                            .quota = first.quotas[source],
                                            .period = first.period,
                                            .n_samples_before = counts[source]};
    free(counts);
    return tokmap_i_give_struct(info, &full, &kind, NULL);
}
