/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - opens a loader: its samples, its rows, its way of reading. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/options.h"
#include "loader/loader.h"

#define MAX_ROWS ((uint32_t)1 << 24)
#define ALL_PARTS                                                                                  \
    (TOKMAP_ROW_DOCUMENTS | TOKMAP_ROW_POSITION_IDS | TOKMAP_ROW_DOCUMENT_IDS |                    \
     TOKMAP_ROW_SPAN_MASK)

/* ---- Options ---- */

void tokmap_loader_options_init(tokmap_loader_options *out, size_t size)
{
    static const tokmap_loader_options full = TOKMAP_LOADER_OPTIONS_INIT;
    tokmap_i_init_struct(out, size, &full, sizeof full);
}

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

static tokmap_i_slice slice_of(const tokmap_loader_options *o)
{
    return (tokmap_i_slice){o->cp_rank, MAX(o->cp_size, 1), o->cp_mode, o->sequence_length};
}

static tokmap_status check_options(const tokmap_loader_options *o, tokmap_error *err)
{
    tokmap_status status = check_batch(o->rank, MAX(o->n_ranks, 1), o->batch_rows, err);
    if (status)
        return status;
    const tokmap_i_slice slice = slice_of(o);
    status = tokmap_i_check_stride(o->row_stride, &tokmap_i_row_kind, err);
    if (!status)
        status = tokmap_i_slice_check(&slice, o->align, err);
    if (status)
        return status;
    if (o->row_parts & ~(uint32_t)ALL_PARTS ||
        (o->row_parts & TOKMAP_ROW_SPAN_MASK) == (TOKMAP_ROW_SPAN_MASK ^ TOKMAP_ROW_LOSS_MASK))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "row_parts is %#" PRIx32 ": has unknown bits",
                    o->row_parts);
    status = tokmap_i_check_flag("view_pieces", o->view_pieces, err);
    if (!status)
        status = tokmap_i_check_flag("verify_blocks", o->verify_blocks, err);
    if (status)
        return status;
    if (o->view_pieces && o->cp_size > 1)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "view_pieces does not work with cp_size");
    if (o->view_pieces && o->row_stride < SIZE_UP_TO(tokmap_row, n_pieces))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "view_pieces needs a row_stride with n_pieces, at least %zu",
                    SIZE_UP_TO(tokmap_row, n_pieces));
    if ((int)o->io < TOKMAP_IO_AUTO || o->io > TOKMAP_IO_COPY)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "io is %d: must be 0 to 5", (int)o->io);
    if (o->look_ahead > 1024)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "look_ahead is %" PRIu32 ": must be at most 1,024 steps", o->look_ahead);
    return tokmap_i_check_flag("drop_behind", o->drop_behind, err);
}

/* ---- Rows ---- */

/* Allocates memory for batches of n_rows rows, without freeing the old memory. */
static tokmap_status open_rows(tokmap_loader *l, uint32_t n_rows, uint32_t row_parts,
                               tokmap_error *err)
{
    l->batch_rows = n_rows;
    l->rows = calloc(n_rows, sizeof *l->rows);
    l->row_copies = l->samples.o.row_stride == sizeof *l->rows
                        ? NULL
                        : malloc((size_t)n_rows * l->samples.o.row_stride);
    l->joined = NULL;
    l->located = l->lanes.n > 0 ? malloc(n_rows * sizeof *l->located) : NULL;
    l->parts = (tokmap_i_row_parts){0};
    const bool joins = l->samples.o.random_offset || l->samples.has_joined ||
                       l->samples.has_views || l->samples.has_document_lists ||
                       l->io == TOKMAP_IO_COPY;
    if (joins)
        l->joined = malloc(n_rows * ((size_t)l->samples.length + 1) * l->samples.token_bytes);
    if (!l->rows || (l->samples.o.row_stride != sizeof *l->rows && !l->row_copies) ||
        (joins && !l->joined) || (l->lanes.n > 0 && !l->located) ||
        !tokmap_i_row_parts_open(&l->parts, row_parts, l->samples.length, n_rows))
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
    free(l->located);
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
        l->located = old.located;
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
    const tokmap_loader_options *o = &l->samples.o;
    l->slice = slice_of(o);
    l->keeps_pieces = o->row_parts || l->slice.size > 1 || o->view_pieces ||
                      o->windows == TOKMAP_WINDOWS_BEST_FIT;
    l->rank = o->rank;
    l->n_ranks = MAX(o->n_ranks, 1);
    tokmap_status status = tokmap_i_samples_open(&l->samples, err);
    if (!status && !tokmap_i_sampler_open(&l->sampler, l->samples.mixture, l->samples.sources,
                                          l->samples.n_sources))
        status = FAIL_MEMORY(err);
    if (!status)
        status = tokmap_i_lanes_open(&l->lanes, &l->samples, err);
    if (!status)
        status = tokmap_i_loader_choose_io(l, err);
    if (!status)
        status = open_rows(l, o->batch_rows, o->row_parts, err);
    if (!status)
        status = tokmap_i_loader_go_to(l, 0, err);
    return status ? status : tokmap_i_loader_open_io(l, err);
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
    tokmap_status status = tokmap_i_samples_take_options(&l->samples.o, options, err);
    if (!status)
        status = check_options(&l->samples.o, err);
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
    tokmap_i_lanes_close(&l->lanes);
    free(l->pieces.list);
    free(l->slices.list);
    free(l->located_pieces.list);
    tokmap_i_sampler_close(&l->sampler);
    tokmap_i_samples_close(&l->samples);
    tokmap_i_fork_mark_free(&l->fork_mark);
    free(l);
}
