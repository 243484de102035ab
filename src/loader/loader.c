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
    const uint64_t end = MIN(l->samples.end, TOKMAP_I_MAX_SAMPLE);
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

/* The read-ahead thread has checked them too, but some steps ago. */
tokmap_status tokmap_i_loader_check_sizes(tokmap_loader *l, const tokmap_dataset *ds,
                                          const tokmap_sample *at, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    if (!checks_sizes(l))
        return TOKMAP_OK;
    for (size_t k = 0; k < at->n_pieces && !status; k++) {
        const tokmap_piece *p = &at->pieces[k];
        if (!tokmap_i_pages_are_known(&l->sizes, ds, p->first_token, p->n_tokens))
            status = tokmap_i_pages_check((tokmap_i_token_range){ds, p->first_token, p->n_tokens},
                                          false, &l->sizes, err);
    }
    return status;
}

/* Returns room for tokens of row i from a position in the row on. */
static void *place_in_joined(const tokmap_loader *l, uint32_t i, const tokmap_dataset *ds,
                             uint32_t place)
{
    return l->joined + i * ((size_t)l->samples.length + 1) * l->samples.token_bytes +
           (size_t)place * ds->header.token_bytes;
}

/* Finds the tokens of a piece of row i that is not in a map: makes a map, if the piece is in one
 * file and may_map, or copies them. */
static tokmap_status map_or_copy(tokmap_loader *l, uint32_t i, const tokmap_dataset *ds,
                                 const tokmap_piece *p, bool may_map, const void **tokens,
                                 tokmap_error *err)
{
    const tokmap_i_token_range range = {ds, p->first_token, p->n_tokens};
    tokmap_i_token_range rest = range;
    const tokmap_i_token_piece first = tokmap_i_range_next_piece(&rest);
    const uint8_t *map = NULL;
    if (may_map && rest.n_tokens == 0) {
        const tokmap_status status = tokmap_i_token_file_map(ds, first.file, &map, err);
        *tokens = status ? NULL : map + first.first_byte;
        if (status != TOKMAP_IN_PIECES)
            return status;
    }
    void *to = place_in_joined(l, i, ds, p->place);
    *tokens = to;
    return tokmap_i_pages_read(range, to, err);
}

/* Finds the tokens of a piece of row i in a map, or copies them. */
static inline tokmap_status find_piece(tokmap_loader *l, uint32_t i, const tokmap_dataset *ds,
                                       const tokmap_piece *p, bool may_map, const void **tokens,
                                       tokmap_error *err)
{
    *tokens =
        l->io == TOKMAP_IO_COPY ? NULL : tokmap_i_mapped_tokens(ds, p->first_token, p->n_tokens);
    return *tokens ? TOKMAP_OK : map_or_copy(l, i, ds, p, may_map, tokens, err);
}

/* Copies the pieces of row i together. */
static tokmap_status join_pieces(tokmap_loader *l, uint32_t i, const tokmap_dataset *ds,
                                 const tokmap_sample *at, tokmap_error *err)
{
    /* A copy out of the map could raise SIGBUS in the thread of a stage. */
    const bool may_map = l->io != TOKMAP_IO_COPY && atomic_load(&l->user) != TOKMAP_I_LOADER_STAGED;
    tokmap_status status = TOKMAP_OK;
    for (size_t k = 0; k < at->n_pieces && !status; k++) {
        const tokmap_piece *p = &at->pieces[k];
        const void *from = may_map ? tokmap_i_mapped_tokens(ds, p->first_token, p->n_tokens) : NULL;
        void *to = place_in_joined(l, i, ds, p->place);
        if (from)
            memcpy(to, from, p->n_tokens * (size_t)ds->header.token_bytes);
        else
            status = tokmap_i_pages_read((tokmap_i_token_range){ds, p->first_token, p->n_tokens},
                                         to, err);
    }
    l->rows[i].tokens = place_in_joined(l, i, ds, 0);
    return status;
}

/* Keeps the pieces of row i in l->pieces. If the row is handed out as pieces, finds the tokens of
 * each, and returns TOKMAP_IN_PIECES. */
static tokmap_status keep_pieces(tokmap_loader *l, uint32_t i, const tokmap_dataset *ds,
                                 const tokmap_sample *at, const uint8_t *read, bool may_map,
                                 tokmap_error *err)
{
    const size_t first = l->pieces.n;
    tokmap_status status = TOKMAP_OK;
    if (!tokmap_i_fetch_add_pieces(&l->pieces, at->pieces, at->n_pieces))
        return FAIL_MEMORY(err);
    l->rows[i].n_pieces = at->n_pieces;
    if (l->samples.o.windows != TOKMAP_WINDOWS_BEST_FIT &&
        (at->n_pieces == 1 || !l->samples.o.view_pieces || read ||
         atomic_load(&l->user) == TOKMAP_I_LOADER_STAGED))
        return TOKMAP_OK;
    for (size_t k = first; k < l->pieces.n && !status; k++) {
        tokmap_piece *p = &l->pieces.list[k];
        if (read)
            p->tokens = read + (size_t)p->place * ds->header.token_bytes;
        else
            status = find_piece(l, i, ds, p, may_map, &p->tokens, err);
        __builtin_prefetch(p->tokens); /* this also loads the address translation of its page */
    }
    return status ? status : TOKMAP_IN_PIECES;
}

/* Finds the tokens of row i where they were read, in a map, or in a copy: of the row, or of each of
 * its pieces if it is handed out as pieces. */
static tokmap_status find_tokens(tokmap_loader *l, uint32_t i, const tokmap_dataset *ds,
                                 const tokmap_sample *at, const tokmap_i_fetch_row *fetched,
                                 tokmap_error *err)
{
    const bool may_map = !fetched && l->io != TOKMAP_IO_COPY;
    tokmap_row *row = &l->rows[i];
    const void *read = fetched ? fetched->tokens : NULL;
    if (l->keeps_pieces) {
        const tokmap_status status = keep_pieces(l, i, ds, at, read, may_map, err);
        if (status)
            return status == TOKMAP_IN_PIECES ? TOKMAP_OK : status;
    }
    row->tokens = read;
    return read               ? TOKMAP_OK
           : at->n_pieces > 1 ? join_pieces(l, i, ds, at, err)
                              : find_piece(l, i, ds, at->pieces, may_map, &row->tokens, err);
}

/* Keeps where row i is, for its lanes. Returns false when out of memory. */
static bool keep_located(tokmap_loader *l, uint32_t i, const tokmap_sample *at)
{
    if (i == 0)
        l->located_pieces.n = 0;
    l->located[i] = *at;
    return tokmap_i_fetch_add_pieces(&l->located_pieces, at->pieces, at->n_pieces);
}

static tokmap_status fill_row(tokmap_loader *l, uint32_t i, uint64_t sample,
                              const tokmap_i_fetch_row *fetched, tokmap_error *err)
{
    tokmap_sample located;
    tokmap_status status = TOKMAP_OK;
    if (!fetched)
        status = tokmap_i_sampler_locate(&l->sampler, sample, &located, err);
    if (status)
        return status;
    if (l->located && !fetched && !keep_located(l, i, &located))
        return FAIL_MEMORY(err);
    /* A pointer, because copying would stall on the stores of locate. */
    const tokmap_sample *const at = fetched ? &fetched->at : &located;
    const tokmap_i_source *s = &l->samples.sources[at->source];
    const tokmap_dataset *ds = s->windows.datasets[at->dataset];
    /* Every field, so that no compiler clears the whole of it first, which takes longer. */
    l->rows[i] = (tokmap_row){.tokens = NULL,
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
    if (checks_sizes(l))
        status = tokmap_i_loader_check_sizes(l, ds, at, err);
    if (!status)
        status = find_tokens(l, i, ds, at, fetched, err);
    /* the index is needed when all rows are filled, so meanwhile it comes from memory */
    if (!status && l->parts.wanted && !s->windows.rows &&
        !tokmap_i_index_cache_of(l->parts.index, ds))
        tokmap_i_documents_prefetch(&ds->documents, at->first_token);
    return status;
}

/* Fills in the parts of a row, and reduces it to the slice of this rank. pieces: row->n_pieces of
 * them, of the whole row. */
static tokmap_status finish_row(tokmap_loader *l, uint32_t i, const tokmap_piece *pieces,
                                tokmap_error *err)
{
    tokmap_row *row = &l->rows[i];
    const tokmap_i_source *s = &l->samples.sources[row->source];
    const tokmap_dataset *ds = s->windows.datasets[row->dataset];
    if (l->parts.wanted &&
        tokmap_i_row_parts_fill(&l->parts, i, ds, pieces, row->n_pieces, s->windows.rows != NULL,
                                s->masked ? NULL : tokmap_i_source_roles(s), row))
        return tokmap_i_index_cache_fail(l->parts.index, ds, err);
    if (l->slice.size > 1)
        return tokmap_i_slice_row(&l->slice, row, i, pieces, &l->slices, &l->parts)
                   ? TOKMAP_OK
                   : FAIL_MEMORY(err);
    row->pieces = row->tokens ? NULL : pieces;
    row->n_pieces = row->tokens ? 0 : row->n_pieces;
    return TOKMAP_OK;
}

/* Finishes all rows of a step, whose pieces are in l->pieces. */
static tokmap_status finish_rows(tokmap_loader *l, tokmap_error *err)
{
    static const tokmap_piece none; /* for a row without a token */
    const tokmap_piece *pieces = l->pieces.list ? l->pieces.list : &none;
    tokmap_status status = TOKMAP_OK;
    l->slices.n = 0;
    for (uint32_t i = 0; i < l->batch_rows && !status; i++) {
        const size_t n_pieces = l->rows[i].n_pieces;
        status = finish_row(l, i, pieces, err);
        pieces += n_pieces;
    }
    pieces = l->slices.list ? l->slices.list : &none;
    for (uint32_t i = 0; i < l->batch_rows && l->slice.size > 1 && !status; i++) {
        l->rows[i].pieces = l->rows[i].n_pieces > 0 ? pieces : &none;
        pieces += l->rows[i].n_pieces;
    }
    return status;
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

/* Sets the first sample of this step and of the next one where the step crosses a skip or the
 * end. */
static tokmap_status adjust_step(const tokmap_loader *l, uint64_t *first, uint64_t *after,
                                 tokmap_error *err)
{
    const uint64_t n_rows = (uint64_t)l->n_ranks * l->batch_rows;
    const uint64_t end = tokmap_i_samples_after(&l->samples, l->next_sample, n_rows - 1) + 1;
    if (end > l->samples.end)
        return FAIL(err, TOKMAP_END,
                    "source %" PRIu32 " has no epochs left: the loader has %" PRIu64
                    " samples, and this step needs %" PRIu64,
                    l->samples.end_source, l->samples.end, end);
    if (end > TOKMAP_I_MAX_SAMPLE)
        return FAIL(err, TOKMAP_END, "the loader has reached its last sample, 2^62");
    *first = tokmap_i_samples_after(&l->samples, l->next_sample, (uint64_t)l->rank * l->batch_rows);
    *after = tokmap_i_samples_after(&l->samples, l->next_sample, n_rows);
    return TOKMAP_OK;
}

/* Fills all rows of a step: a run of consecutive samples, or several if it crosses_skip. */
static tokmap_status fill_rows(tokmap_loader *l, uint64_t sample, bool crosses_skip,
                               const tokmap_i_fetch_row *fetched, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    uint32_t i = 0;
    l->pieces.n = 0;
    if (checks_sizes(l))
        forget_sizes(l);
    do {
        const tokmap_i_gap *gap =
            crosses_skip ? tokmap_i_skips_after(&l->samples.skips, sample) : NULL;
        uint32_t end = l->batch_rows;
        if (gap)
            end = (uint32_t)MIN(l->batch_rows, i + (gap->begin - sample));
        for (; i < end && !status; i++, sample++)
            status = fill_row(l, i, sample, fetched ? &fetched[i] : NULL, err);
        sample = gap ? gap->end : sample;
    } while (i < l->batch_rows && !status);
    return status || !l->keeps_pieces ? status : finish_rows(l, err);
}

/* Sets the next sample, and up to which sample no step needs to look at skips and the end. */
static void set_next_sample(tokmap_loader *l, uint64_t sample)
{
    const tokmap_i_gap *gap = tokmap_i_skips_after(&l->samples.skips, sample);
    l->next_sample = sample;
    l->clear_end = gap ? gap->begin - 1 : MIN(l->samples.end, TOKMAP_I_MAX_SAMPLE);
}

tokmap_status tokmap_i_loader_next(tokmap_loader *l, tokmap_batch *batch, tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_batch, step_sample)};
    uint64_t after = l->next_sample + (uint64_t)l->n_ranks * l->batch_rows;
    uint64_t first = l->next_sample + (uint64_t)l->rank * l->batch_rows;
    const bool crosses_skip = after > l->clear_end;
    tokmap_status status = tokmap_i_check_struct(batch, &kind, err);
    if (!status && crosses_skip)
        status = adjust_step(l, &first, &after, err);
    const tokmap_i_fetch_row *fetched = NULL;
    if (!status && l->fetch)
        status = tokmap_i_fetch_next(l->fetch, &fetched, err);
    l->fetched = fetched;
    l->has_batch = false;
    if (fetched && tokmap_i_fetch_is_late(l->fetch))
        tokmap_i_loader_speed_up_reading(l);
    if (!status)
        status = fill_rows(l, first, crosses_skip, fetched, err);
    if (status && fetched) /* the next call tries the same step */
        tokmap_i_loader_restart_fetch(l);
    if (status) {
        l->sizes_ns = 0; /* a file may be repaired by then */
        return status;
    }
    const tokmap_batch full = {.rows = l->rows,
                               .n_rows = l->batch_rows,
                               .row_stride = sizeof *l->rows,
                               .sequence_length = l->samples.length / l->slice.size,
                               .token_bytes = l->samples.token_bytes,
                               .largest_id = l->samples.largest_id,
                               .first_sample = first,
                               .step_sample = l->next_sample};
    if (crosses_skip)
        set_next_sample(l, after);
    else
        l->next_sample = after;
    l->has_batch = true;
    return tokmap_i_give_struct(batch, &full, &kind, err);
}

tokmap_status tokmap_loader_next(tokmap_loader *l, tokmap_batch *batch, tokmap_error *err)
{
    tokmap_status status = tokmap_i_loader_enter(l, err);
    if (status)
        return status;
    status = tokmap_i_loader_next(l, batch, err);
    if (!status && l->row_copies) {
        tokmap_i_copy_rows(l->row_copies, l->samples.o.row_stride, l->rows, l->batch_rows);
        batch->rows = (const tokmap_row *)(void *)l->row_copies;
        batch->row_stride = l->samples.o.row_stride;
    }
    return tokmap_i_loader_leave(l, status);
}

tokmap_status tokmap_loader_wait(tokmap_loader *l, uint64_t timeout_ns, tokmap_error *err)
{
    uint64_t first, after;
    const tokmap_status status = tokmap_i_loader_enter(l, err);
    if (status)
        return status;
    const bool has_step = adjust_step(l, &first, &after, NULL) == TOKMAP_OK;
    const bool is_there = !has_step || !l->fetch || tokmap_i_fetch_wait(l->fetch, timeout_ns);
    return tokmap_i_loader_leave(l, is_there ? TOKMAP_OK : TOKMAP_NOT_READY);
}

tokmap_status tokmap_i_loader_go_to(tokmap_loader *l, uint64_t sample, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_samples_check(&l->samples, sample, err);
    if (status)
        return status;
    set_next_sample(l, tokmap_i_samples_after(&l->samples, sample, 0));
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
    uint64_t source_bytes = sizeof *l->samples.sources + sizeof *l->sampler.shuffles;
    if (p->sampler.shuffles)
        source_bytes += sizeof *p->sampler.shuffles;
    if (p->ahead.counts)
        source_bytes += 3 * sizeof *p->ahead.counts;
    uint64_t n_bytes = sizeof *l + n_rows * sizeof *l->rows + l->samples.n_sources * source_bytes +
                       l->samples.n_datasets * sizeof *l->samples.datasets;
    n_bytes += l->located ? n_rows * sizeof *l->located : 0;
    n_bytes += l->located_pieces.capacity * sizeof *l->located_pieces.list;
    n_bytes += l->row_copies ? n_rows * l->samples.o.row_stride : 0;
    n_bytes += (l->pieces.capacity + l->slices.capacity) * sizeof *l->pieces.list;
    n_bytes += l->joined ? n_rows * (l->samples.length + 1ull) * l->samples.token_bytes : 0;
    n_bytes += l->parts.n_bytes + tokmap_i_lanes_bytes(&l->lanes);
    n_bytes += tokmap_i_mixture_bytes(l->samples.mixture) +
               l->samples.skips.n_gaps * sizeof *l->samples.skips.gaps;
    n_bytes += l->samples.n_sources * sizeof *l->samples.o.sources +
               l->samples.o.n_skips * sizeof *l->samples.o.skips +
               l->samples.o.n_phases *
                   (sizeof *l->samples.o.phases + l->samples.n_sources * sizeof(double));
    for (uint32_t k = 0; k < l->samples.n_sources; k++) {
        const tokmap_i_windows *w = &l->samples.sources[k].windows;
        n_bytes += tokmap_i_numbers_bytes(&l->samples.sources[k].window_list,
                                          l->samples.sources[k].own_window_list);
        n_bytes += l->samples.sources[k].own_roles ? sizeof *l->samples.sources->own_roles : 0;
        n_bytes += w->n_datasets *
                   (sizeof *w->before + sizeof *l->samples.sources->order_ids + sizeof *w->ranges);
        for (uint32_t d = 0; w->has_lists && d < w->n_datasets; d++)
            if (w->ranges[d].list)
                n_bytes += tokmap_i_document_list_bytes(w->ranges[d].list);
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
    tokmap_loader_info full = {.n_sources = l->samples.n_sources,
                               .n_samples = l->samples.end,
                               .resident_bytes = bytes_of_loader(l),
                               .io = l->io,
                               .io_reason = l->io_reason,
                               .n_waits = l->n_waits,
                               .waited_ns = l->waited_ns,
                               .wait_p50_ns = tokmap_i_latency_percentile(&l->waits, 500),
                               .wait_p99_ns = tokmap_i_latency_percentile(&l->waits, 990),
                               .wait_p999_ns = tokmap_i_latency_percentile(&l->waits, 999),
                               .wait_max_ns = l->waits.max_ns,
                               .direct_failed = l->direct_failed};
    if (l->fetch)
        tokmap_i_fetch_describe(l->fetch, &full);
    return tokmap_i_give_struct(info, &full, &kind, NULL);
}

tokmap_status tokmap_loader_get_source(const tokmap_loader *l, size_t source,
                                       tokmap_loader_source_info *info)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_loader_source_info, n_windows)};
    if (!l || source >= l->samples.n_sources)
        return TOKMAP_ERR_ARGUMENT;
    const tokmap_status status = tokmap_i_loader_enter(l, NULL);
    if (status)
        return status;
    const uint64_t next_sample = l->next_sample;
    tokmap_i_loader_leave(l, TOKMAP_OK);
    uint64_t *counts = malloc(l->samples.n_sources * sizeof *counts);
    if (!counts)
        return TOKMAP_ERR_MEMORY;
    tokmap_i_mixture_counts(l->samples.mixture, next_sample, counts);
    const tokmap_i_mixture_phase first = tokmap_i_mixture_get_phase(l->samples.mixture, 0);
    const tokmap_loader_source_info full = {.n_windows =
                                                l->samples.sources[source].shuffle.n_windows,
                                            .quota = first.quotas[source],
                                            .period = first.period,
                                            .n_samples_before = counts[source]};
    free(counts);
    return tokmap_i_give_struct(info, &full, &kind, NULL);
}
