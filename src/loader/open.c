/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - opens a loader: checks the options, makes the mixture and the rows. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/options.h"
#include "loader/loader.h"

#define MAX_LENGTH ((uint32_t)1 << 24)
#define MAX_ROWS ((uint32_t)1 << 24)
#define MAX_DATASETS 65535u
#define ALL_PARTS                                                                                  \
    (TOKMAP_ROW_DOCUMENTS | TOKMAP_ROW_POSITION_IDS | TOKMAP_ROW_DOCUMENT_IDS |                    \
     TOKMAP_ROW_SPAN_MASK)

static const tokmap_i_struct_kind source_kind = {STRUCT_KIND(tokmap_loader_source, weight)};
static const tokmap_i_struct_kind phase_kind = {STRUCT_KIND(tokmap_loader_phase, weights)};
static const tokmap_i_struct_kind skip_kind = {STRUCT_KIND(tokmap_loader_skip, end_sample)};

/* ---- Options ---- */

static tokmap_status check_batch(uint32_t rank, uint32_t n_ranks, uint32_t batch_rows,
                                 tokmap_error *err)
{
    if (batch_rows == 0 || batch_rows > MAX_ROWS)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "batch_rows is %" PRIu32 ": must be 1 to 2^24",
                    batch_rows);
    if (n_ranks > MAX_ROWS || rank >= n_ranks)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "rank is %" PRIu32 " and n_ranks %" PRIu32
                    ": rank must be below n_ranks, which is 1 to 2^24",
                    rank, n_ranks);
    return TOKMAP_OK;
}

static tokmap_status check_arrays(const tokmap_loader_options *o, tokmap_error *err)
{
    if (o->n_sources == 0 || o->n_sources > TOKMAP_I_MIXTURE_SOURCES)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "n_sources is %" PRIu32 ": must be 1 to 65,535",
                    o->n_sources);
    if (!o->sources)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "sources is NULL");
    if (o->n_phases >= TOKMAP_I_MIXTURE_PHASES)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "n_phases is %" PRIu32 ": must be at most 65,534",
                    o->n_phases);
    if (o->n_phases > 0 && !o->phases)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "phases is NULL");
    if (o->n_skips > 0 && !o->skips)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "skips is NULL");
    tokmap_status status = tokmap_i_check_stride(o->source_stride, &source_kind, err);
    if (!status && o->n_phases > 0)
        status = tokmap_i_check_stride(o->phase_stride, &phase_kind, err);
    if (!status && o->n_skips > 0)
        status = tokmap_i_check_stride(o->skip_stride, &skip_kind, err);
    return status ? status : tokmap_i_check_stride(o->row_stride, &tokmap_i_row_kind, err);
}

static tokmap_i_rows_kind rows_kind_of(const tokmap_loader_options *o)
{
    return (tokmap_i_rows_kind){o->sequence_length, MAX(o->align, 1), o->max_documents,
                                o->whole_documents};
}

static tokmap_i_slice slice_of(const tokmap_loader_options *o)
{
    return (tokmap_i_slice){o->cp_rank, MAX(o->cp_size, 1), (tokmap_cp_mode)o->cp_mode,
                            o->sequence_length};
}

static tokmap_status check_best_fit(const tokmap_loader_options *o, tokmap_error *err)
{
    const bool is_set = o->align || o->max_documents || o->whole_documents;
    if (o->windows != TOKMAP_WINDOWS_BEST_FIT)
        return !is_set ? TOKMAP_OK
                       : FAIL(err, TOKMAP_ERR_ARGUMENT,
                              "align, max_documents and whole_documents are only for "
                              "windows of the kind best fit");
    if (o->block_windows)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "block_windows must be 0 with windows of the kind best fit, whose blocks are "
                    "the chunks in which rows were packed");
    const tokmap_i_rows_kind kind = rows_kind_of(o);
    if (o->group_blocks > TOKMAP_I_PERMUTE_MAX / tokmap_i_chunk_rows(o->sequence_length))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "group_blocks is %" PRIu64 ": a group has at most 2^48 rows", o->group_blocks);
    return tokmap_i_rows_check(&kind, err);
}

static tokmap_status check_options(const tokmap_loader_options *o, tokmap_error *err)
{
    tokmap_status status = check_batch(o->rank, MAX(o->n_ranks, 1), o->batch_rows, err);
    if (status)
        return status;
    if (o->sequence_length == 0 || o->sequence_length > MAX_LENGTH)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "sequence_length is %" PRIu32 ": must be 1 to 2^24",
                    o->sequence_length);
    if (o->windows != TOKMAP_WINDOWS_CONCAT && o->windows != TOKMAP_WINDOWS_WITHIN_DOCUMENT &&
        o->windows != TOKMAP_WINDOWS_BEST_FIT)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "windows is %d: must be 0 to 2", (int)o->windows);
    if (o->random_offset && o->windows != TOKMAP_WINDOWS_CONCAT)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "random_offset is not possible with windows that follow documents");
    const tokmap_i_slice slice = slice_of(o);
    status = check_best_fit(o, err);
    if (!status)
        status = tokmap_i_slice_check(&slice, o->align, err);
    if (status)
        return status;
    if (o->row_parts & ~(uint32_t)ALL_PARTS ||
        (o->row_parts & TOKMAP_ROW_SPAN_MASK) == (TOKMAP_ROW_SPAN_MASK ^ TOKMAP_ROW_LOSS_MASK))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "row_parts is %#" PRIx32 ": has unknown bits",
                    o->row_parts);
    status = tokmap_i_check_flag("random_offset", o->random_offset, err);
    if (!status)
        status = tokmap_i_check_flag("view_pieces", o->view_pieces, err);
    if (status)
        return status;
    if (o->view_pieces && o->cp_size > 1)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "view_pieces does not work with cp_size");
    if (o->view_pieces && o->row_stride < SIZE_UP_TO(tokmap_row, n_pieces))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "view_pieces needs a row_stride with n_pieces, at least %zu",
                    SIZE_UP_TO(tokmap_row, n_pieces));
    if (o->shuffle != TOKMAP_SHUFFLE_FULL && o->shuffle != TOKMAP_SHUFFLE_NONE &&
        o->shuffle != TOKMAP_SHUFFLE_BLOCK)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "shuffle is %d: must be 0, 1 or 2", (int)o->shuffle);
    if (o->shuffle != TOKMAP_SHUFFLE_BLOCK && (o->block_windows || o->group_blocks))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "block_windows and group_blocks are only for TOKMAP_SHUFFLE_BLOCK");
    if (o->block_windows > TOKMAP_I_PERMUTE_MAX / TOKMAP_I_GROUP_BLOCKS ||
        o->group_blocks > TOKMAP_I_PERMUTE_MAX / TOKMAP_I_SHUFFLE_BYTES ||
        (o->block_windows > 0 && o->group_blocks > TOKMAP_I_PERMUTE_MAX / o->block_windows))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%" PRIu64 " blocks of %" PRIu64 " windows: a group has at most 2^48 windows, "
                    "a block 2^42, and there are at most 2^28 blocks in a group",
                    o->group_blocks, o->block_windows);
    if ((int)o->io < TOKMAP_IO_AUTO || o->io > TOKMAP_IO_COPY)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "io is %d: must be 0 to 5", (int)o->io);
    if (o->look_ahead > 1024)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "look_ahead is %" PRIu32 ": must be at most 1,024 steps", o->look_ahead);
    status = tokmap_i_check_flag("weigh_tokens", o->weigh_tokens, err);
    return status ? status : tokmap_i_check_flag("drop_behind", o->drop_behind, err);
}

static tokmap_status check_sources(const tokmap_loader_options *o, tokmap_error *err)
{
    for (size_t k = 0; k < o->n_sources; k++) {
        const tokmap_loader_source *s = &o->sources[k];
        if (s->n_datasets == 0 || s->n_datasets > MAX_DATASETS)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "source %zu has %" PRIu32 " datasets: must be 1 to 65,535", k,
                        s->n_datasets);
        if (!s->datasets)
            return FAIL(err, TOKMAP_ERR_ARGUMENT, "source %zu: datasets is NULL", k);
        for (uint32_t d = 0; d < s->n_datasets; d++)
            if (!s->datasets[d])
                return FAIL(err, TOKMAP_ERR_ARGUMENT, "source %zu: dataset %" PRIu32 " is NULL", k,
                            d);
        if (s->masked != 0 && s->masked != 1)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "source %zu: masked is %" PRId32 ": must be 0 or 1", k, s->masked);
        if (s->rows_files && o->windows != TOKMAP_WINDOWS_BEST_FIT)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "source %zu: rows_files are only for windows of the kind best fit", k);
    }
    return TOKMAP_OK;
}

/* ---- Mixture ---- */

static tokmap_status add_phase(const tokmap_loader *l, const tokmap_loader_options *o,
                               tokmap_i_mixture *m, uint64_t from, const double *weights,
                               tokmap_error *err)
{
    const uint32_t n_sources = o->n_sources;
    uint32_t too_small, *quotas = malloc(n_sources * sizeof *quotas);
    double total = 0, *shares = malloc(n_sources * sizeof *shares); /* shares of samples */
    tokmap_status status = TOKMAP_OK;
    for (uint32_t k = 0; shares && k < n_sources; k++) {
        const tokmap_i_windows *w = &l->sources[k].windows;
        total += weights[k];
        shares[k] = weights[k];
        if (o->weigh_tokens)
            shares[k] /= (double)w->n_labels / (double)w->n_windows;
    }
    if (!quotas || !shares)
        status = FAIL_MEMORY(err);
    else if (tokmap_i_quotas(shares, n_sources, quotas, &too_small))
        status = tokmap_i_mixture_add_phase(m, from, quotas) ? TOKMAP_OK : FAIL_MEMORY(err);
    else if (too_small == UINT32_MAX)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT,
                      "the weights from sample %" PRIu64
                      " on: must be at least 0, with one above 0 and a finite sum",
                      from);
    else
        status = FAIL(err, TOKMAP_ERR_ARGUMENT,
                      "the weights from sample %" PRIu64 " on: source %" PRIu32
                      " has weight %g, less than the smallest share, which is 1 of %" PRIu32
                      " samples: set it to %.3g or more, or 0 to leave it out",
                      from, too_small, weights[too_small], TOKMAP_I_MIXTURE_PERIOD,
                      total / TOKMAP_I_MIXTURE_PERIOD);
    free(quotas);
    free(shares);
    return status;
}

tokmap_status tokmap_i_loader_make_mixture(const tokmap_loader *l, const tokmap_loader_options *o,
                                           tokmap_i_mixture **out, tokmap_error *err)
{
    const uint32_t n = o->n_sources;
    tokmap_i_mixture_source *sources = calloc(n, sizeof *sources);
    double *weights = calloc(n, sizeof *weights);
    for (uint32_t k = 0; sources && weights && k < n; k++) {
        sources[k] =
            (tokmap_i_mixture_source){l->sources[k].windows.n_windows, o->sources[k].max_epochs};
        weights[k] = n == 1 && o->sources[k].weight == 0 ? 1 : o->sources[k].weight;
    }
    tokmap_i_mixture *m =
        sources && weights ? tokmap_i_mixture_new(sources, n, o->n_phases + 1) : NULL;
    tokmap_status status = m ? add_phase(l, o, m, 0, weights, err) : FAIL_MEMORY(err);
    free(sources);
    free(weights);
    *out = m;
    for (size_t i = 0; i < o->n_phases && !status; i++) {
        const tokmap_loader_phase *phase = &o->phases[i];
        const uint64_t before = i ? phase[-1].first_sample : 0;
        if (!phase->weights)
            return FAIL(err, TOKMAP_ERR_ARGUMENT, "phase %zu: weights is NULL", i);
        if (phase->first_sample <= before || phase->first_sample >= TOKMAP_I_MAX_SAMPLE)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "phase %zu: first_sample is %" PRIu64 ": must be above %" PRIu64
                        " and below 2^62",
                        i, phase->first_sample, before);
        status = add_phase(l, o, m, phase->first_sample, phase->weights, err);
    }
    return status;
}

tokmap_status tokmap_i_loader_make_skips(const tokmap_loader_options *o, uint64_t end,
                                         tokmap_i_skips *out, tokmap_error *err)
{
    *out = (tokmap_i_skips){.gaps = calloc((size_t)o->n_skips + 1, sizeof *out->gaps)};
    if (!out->gaps)
        return FAIL_MEMORY(err);
    for (size_t i = 0; i < o->n_skips; i++) {
        const tokmap_loader_skip *skip = &o->skips[i];
        if (skip->end_sample > end)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "skip %zu: samples %" PRIu64 " to %" PRIu64
                        " do not all exist: the loader has %" PRIu64,
                        i, skip->first_sample, skip->end_sample, end);
        if (!tokmap_i_skips_add(out, skip->first_sample, skip->end_sample))
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "skip %zu: from sample %" PRIu64 " up to %" PRIu64
                        ": must have a sample, and begin after the skip before it",
                        i, skip->first_sample, skip->end_sample);
    }
    return TOKMAP_OK;
}

/* ---- Rows ---- */

/* Allocates memory for batches of n_rows rows, without freeing the old memory. */
static tokmap_status open_rows(tokmap_loader *l, uint32_t n_rows, uint32_t row_parts,
                               tokmap_error *err)
{
    l->batch_rows = n_rows;
    l->rows = calloc(n_rows, sizeof *l->rows);
    l->row_copies =
        l->o.row_stride == sizeof *l->rows ? NULL : malloc((size_t)n_rows * l->o.row_stride);
    l->joined = NULL;
    l->parts = (tokmap_i_row_parts){0};
    const bool joins =
        l->o.random_offset || l->has_joined || l->has_views || l->io == TOKMAP_IO_COPY;
    if (joins)
        l->joined = malloc(n_rows * ((size_t)l->length + 1) * l->token_bytes);
    if (!l->rows || (l->o.row_stride != sizeof *l->rows && !l->row_copies) ||
        (joins && !l->joined) || !tokmap_i_row_parts_open(&l->parts, row_parts, l->length, n_rows))
        return FAIL_MEMORY(err);
    l->parts.index = l->sampler.index;
    return TOKMAP_OK;
}

static void close_rows(tokmap_loader *l)
{
    tokmap_i_loader_close_fetch(l);
    free(l->rows);
    free(l->row_copies);
    free(l->joined);
    tokmap_i_row_parts_close(&l->parts);
}

static tokmap_status set_batch(tokmap_loader *l, uint32_t rank, uint32_t n_ranks,
                               uint32_t batch_rows, tokmap_error *err)
{
    tokmap_status status = check_batch(rank, n_ranks, batch_rows, err);
    if (status)
        return status;
    tokmap_loader old = *l; /* restored after a failure */
    if (batch_rows != old.batch_rows) {
        status = open_rows(l, batch_rows, old.parts.wanted, err);
        l->fetch = NULL; /* its ring is for the old rows */
        if (!status)
            status = tokmap_i_loader_open_fetch(l, err);
        close_rows(status ? l : &old);
    }
    /* frees only what close_rows would free: the thread of the fetch reads the rest */
    if (status) {
        l->batch_rows = old.batch_rows;
        l->rows = old.rows;
        l->row_copies = old.row_copies;
        l->joined = old.joined;
        l->parts = old.parts;
        l->io = old.io;
        l->fetch = old.fetch;
        return status;
    }
    l->rank = rank;
    l->n_ranks = n_ranks;
    tokmap_i_loader_restart_fetch(l);
    tokmap_i_error_clear(err);
    return TOKMAP_OK;
}

tokmap_status tokmap_loader_set_batch(tokmap_loader *l, uint32_t rank, uint32_t n_ranks,
                                      uint32_t batch_rows, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_loader_enter(l, err);
    return status ? status
                  : tokmap_i_loader_leave(l, set_batch(l, rank, MAX(n_ranks, 1), batch_rows, err));
}

tokmap_status tokmap_loader_set_parts(tokmap_loader *l, int32_t *position_ids,
                                      int32_t *document_ids, uint8_t *loss_mask, tokmap_error *err)
{
    tokmap_status status = tokmap_i_loader_enter(l, err);
    if (status)
        return status;
    if (l->slice.size > 1 ||
        !tokmap_i_row_parts_use(&l->parts, l->batch_rows, position_ids, document_ids, loss_mask))
        status = FAIL(err, TOKMAP_ERR_ARGUMENT,
                      "set_parts: needs row_parts for each of its arrays, and no cp_size");
    return tokmap_i_loader_leave(l, status);
}

/* ---- Open and close ---- */

static tokmap_status open_loader(tokmap_loader *l, tokmap_error *err)
{
    const tokmap_loader_options *o = &l->o;
    l->length = o->sequence_length;
    if (o->windows == TOKMAP_WINDOWS_BEST_FIT)
        l->rows_kind = rows_kind_of(o);
    l->slice = slice_of(o);
    l->rank = o->rank;
    l->n_ranks = MAX(o->n_ranks, 1);
    tokmap_status status = tokmap_i_loader_open_sources(l, err);
    if (!status)
        status = tokmap_i_loader_make_mixture(l, o, &l->mixture, err);
    if (!status) {
        l->end = tokmap_i_mixture_end(l->mixture, &l->end_source);
        l->end = l->end > TOKMAP_I_MAX_SAMPLE ? UINT64_MAX : l->end;
        status = tokmap_i_loader_make_skips(o, MIN(l->end, TOKMAP_I_MAX_SAMPLE), &l->skips, err);
    }
    if (!status && !tokmap_i_sampler_open(&l->sampler, l->mixture, l->sources, l->n_sources))
        status = FAIL_MEMORY(err);
    if (!status && l->sampler.pieces) {
        l->ranges = malloc((l->length + 1ull) * sizeof *l->ranges);
        status = l->ranges ? TOKMAP_OK : FAIL_MEMORY(err);
    }
    if (!status)
        status = tokmap_i_loader_choose_io(l, err);
    if (!status)
        status = open_rows(l, o->batch_rows, o->row_parts, err);
    if (!status)
        status = tokmap_i_loader_go_to(l, 0, err);
    return status ? status : tokmap_i_loader_open_io(l, err);
}

tokmap_status tokmap_i_loader_take_options(tokmap_loader_options *o,
                                           const tokmap_loader_options *options, tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_loader_options, group_blocks)};
    *o = (tokmap_loader_options){0};
    tokmap_loader_options given;
    tokmap_status status = tokmap_i_take_options(&given, options, &kind, err);
    if (!status)
        status = tokmap_i_check_flag("mixed_tokenizers", given.mixed_tokenizers, err);
    if (!status && options->struct_size < SIZE_UP_TO(tokmap_loader_options, mixed_tokenizers))
        given.mixed_tokenizers = 1; /* the program was built before the option */
    if (!status)
        status = check_arrays(&given, err);
    if (status)
        return status;
    tokmap_loader_source *sources = calloc(given.n_sources, sizeof *sources);
    const size_t weights_bytes = given.n_sources * sizeof(double); /* they follow the phases */
    tokmap_loader_phase *phases = calloc(given.n_phases + 1, sizeof *phases + weights_bytes);
    double *weights = (double *)(phases + given.n_phases + 1);
    tokmap_loader_skip *skips = calloc((size_t)given.n_skips + 1, sizeof *skips);
    *o = given;
    o->sources = sources;
    o->phases = phases;
    o->skips = skips;
    status = sources && phases && skips ? TOKMAP_OK : FAIL_MEMORY(err);
    for (size_t k = 0; k < given.n_sources && !status; k++)
        status =
            tokmap_i_take_known(&sources[k], (const uint8_t *)given.sources + k * o->source_stride,
                                o->source_stride, &source_kind, err);
    for (size_t i = 0; i < given.n_phases && !status; i++) {
        status =
            tokmap_i_take_known(&phases[i], (const uint8_t *)given.phases + i * o->phase_stride,
                                o->phase_stride, &phase_kind, err);
        if (!status && phases[i].weights)
            phases[i].weights =
                memcpy(weights + i * given.n_sources, phases[i].weights, weights_bytes);
    }
    for (size_t i = 0; i < given.n_skips && !status; i++)
        status = tokmap_i_take_known(&skips[i], (const uint8_t *)given.skips + i * o->skip_stride,
                                     o->skip_stride, &skip_kind, err);
    return status;
}

void tokmap_i_loader_free_options(tokmap_loader_options *o)
{
    free((void *)(uintptr_t)o->sources);
    free((void *)(uintptr_t)o->phases);
    free((void *)(uintptr_t)o->skips);
}

tokmap_status tokmap_loader_open(tokmap_loader **out, const tokmap_loader_options *options,
                                 tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!out)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "tokmap_loader_open: out is NULL");
    *out = NULL;
    tokmap_loader *l = calloc(1, sizeof *l);
    if (!l)
        return FAIL_MEMORY(err);
    tokmap_i_fork_mark_set(&l->fork_mark);
    tokmap_status status = tokmap_i_loader_take_options(&l->o, options, err);
    if (!status)
        status = check_options(&l->o, err);
    if (!status)
        status = check_sources(&l->o, err);
    if (!status)
        status = open_loader(l, err);
    if (status) {
        tokmap_loader_close(l);
        return status;
    }
    tokmap_i_error_clear(err); /* a way of reading may have failed before another one worked */
    *out = l;
    return TOKMAP_OK;
}

void tokmap_loader_close(tokmap_loader *l)
{
    if (!l)
        return;
    close_rows(l);
    tokmap_i_loader_close_io(l);
    tokmap_i_loader_close_sources(l);
    free(l->pieces.list);
    free(l->ranges);
    tokmap_i_sampler_close(&l->sampler);
    tokmap_i_mixture_free(l->mixture);
    free(l->skips.gaps);
    tokmap_i_loader_free_options(&l->o);
    tokmap_i_fork_mark_free(&l->fork_mark);
    free(l);
}
