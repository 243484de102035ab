/* SPDX-License-Identifier: Apache-2.0 */
/* reading.c - reads in the way that choose_io.c chose: plans rows for the read-ahead thread. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "loader/loader.h"

enum {
    ROWS_AHEAD = 256, /* at first, in MIN_STEPS to MAX_STEPS steps */
    MIN_STEPS = 2,
    MAX_STEPS = 64,
    MOST_ROWS_AHEAD = 4096, /* at most, where reading is slow */
    MOST_STEPS = 1024,
    MOST_BYTES_AHEAD = 64 << 20,
    MOST_BYTES_OF_LANES = 256 << 20, /* at first, of rows with lanes */
    MOST_BYTES_OF_STORE = 256 << 20
};

/* ---- The plan ---- */

static tokmap_status plan_rows(void *context, uint64_t position, uint32_t n_rows,
                               tokmap_i_fetch_row *rows, tokmap_i_fetch_pieces *pieces,
                               tokmap_error *err)
{
    tokmap_i_read_plan *p = context;
    n_rows /= 1 + p->lanes->n;
    if (position + n_rows > p->end)
        return TOKMAP_END;
    for (uint32_t i = 0; i < n_rows; i++) {
        tokmap_sample at;
        const uint64_t sample = tokmap_i_skips_sample(p->skips, position + i);
        const tokmap_status status = tokmap_i_sampler_locate(&p->sampler, sample, &at, err);
        if (status)
            return status;
        const tokmap_i_source *source = &p->sampler.sources[at.source];
        rows[i] = (tokmap_i_fetch_row){.at = at,
                                       .dataset = source->first_dataset + at.dataset,
                                       .is_mapped =
                                           tokmap_i_block_ahead_is_mapped(&p->ahead, sample, &at)};
        if (!tokmap_i_fetch_add_pieces(pieces, at.pieces, at.n_pieces))
            return FAIL_MEMORY(err);
    }
    return tokmap_i_lanes_plan(p->lanes, n_rows, rows, pieces) ? TOKMAP_OK : FAIL_MEMORY(err);
}

static void read_blocks_ahead(void *context, uint64_t position)
{
    tokmap_i_read_plan *p = context;
    if (position < p->end)
        tokmap_i_block_ahead_advance(&p->ahead, tokmap_i_skips_sample(p->skips, position));
}

/* ---- The index ---- */

static uint64_t index_bytes(const tokmap_loader *l)
{
    uint64_t n_bytes = 0;
    for (uint32_t d = 0; d < l->samples.n_datasets; d++)
        n_bytes +=
            tokmap_i_section_find(&l->samples.datasets[d]->header, TOKMAP_I_DOCUMENTS)->n_bytes;
    return n_bytes;
}

/* Whether finding a sample looks up documents. */
static bool samples_look_up(const tokmap_i_samples *samples)
{
    return samples->o.windows != TOKMAP_WINDOWS_CONCAT || samples->has_views ||
           samples->has_document_lists;
}

tokmap_status tokmap_i_loader_leave_index_map(tokmap_loader *l, tokmap_error *err)
{
    if (l->sampler.index || (!samples_look_up(&l->samples) && !l->parts.wanted))
        return TOKMAP_OK;
    tokmap_i_sampler_set_index(&l->sampler, tokmap_i_index_cache_open(index_bytes(l)));
    l->parts.index = l->sampler.index;
    return l->sampler.index ? TOKMAP_OK : FAIL_MEMORY(err);
}

/* ---- Open, restart, close ---- */

static tokmap_status try_fetch(tokmap_loader *l, tokmap_error *err)
{
    const uint64_t lanes_bytes = tokmap_i_lanes_token_bytes(&l->lanes);
    const uint64_t row_bytes = (l->samples.length + 1ull) * (l->samples.token_bytes + lanes_bytes);
    const uint64_t most_rows = MIN(MOST_ROWS_AHEAD, MOST_BYTES_AHEAD / row_bytes);
    uint32_t n_steps = l->samples.o.look_ahead, most_steps = n_steps;
    if (n_steps == 0) {
        const uint64_t n_rows =
            lanes_bytes ? MIN(ROWS_AHEAD, MOST_BYTES_OF_LANES / row_bytes) : ROWS_AHEAD;
        n_steps = (uint32_t)MAX(MIN_STEPS, MIN(div_up(n_rows, l->batch_rows), MAX_STEPS));
        most_steps = (uint32_t)MAX(n_steps, MIN(most_rows / l->batch_rows, MOST_STEPS));
    }
    const uint32_t first_steps = l->io == TOKMAP_IO_STORE && !l->samples.o.look_ahead ? n_steps : 0;
    if (first_steps) {
        const uint64_t n_rows = MIN(MOST_ROWS_AHEAD, MOST_BYTES_OF_STORE / row_bytes);
        n_steps = (uint32_t)MAX(n_steps, MIN(n_rows / l->batch_rows, MOST_STEPS));
    }
    const tokmap_i_fetch_options o = {
        .io = l->io,
        .datasets = l->lanes.read,
        .n_datasets = l->lanes.n_datasets * (1 + l->lanes.n),
        .n_groups = 1 + l->lanes.n,
        .n_steps = n_steps,
        .first_steps = first_steps,
        .verifies = l->samples.o.verify_blocks != 0,
        .most_steps = l->io == TOKMAP_IO_DIRECT || l->io == TOKMAP_IO_STORE
                          ? 0
                          : most_steps, /* it starts all anyway */
        .max_rows = l->batch_rows * (1 + l->lanes.n),
        .max_tokens = l->samples.length + 1,
        .drop_behind = l->samples.o.drop_behind,
        .plan = plan_rows,
        .ahead = l->io != TOKMAP_IO_DIRECT && l->io != TOKMAP_IO_STORE && l->plan.ahead.counts
                     ? read_blocks_ahead
                     : NULL,
        .context = &l->plan,
    };
    return tokmap_i_fetch_open(&l->fetch, &o, err);
}

tokmap_status tokmap_i_loader_open_fetch(tokmap_loader *l, tokmap_error *err)
{
    tokmap_io by_pages = TOKMAP_IO_POPULATE;
    for (uint32_t d = 0; d < l->samples.n_datasets; d++)
        if (l->samples.datasets[d]->n_files > TOKMAP_I_MOST_MAPS)
            by_pages = TOKMAP_IO_READ; /* POPULATE would read most rows only when they are needed */
    if (l->io == TOKMAP_IO_MAP || l->io == TOKMAP_IO_COPY)
        return TOKMAP_OK;
    if (l->io == TOKMAP_IO_POPULATE ||
        (l->io == TOKMAP_IO_DIRECT &&
         (l->samples.o.windows == TOKMAP_WINDOWS_BEST_FIT || l->samples.has_document_lists ||
          (l->samples.has_views && l->samples.o.windows == TOKMAP_WINDOWS_CONCAT))))
        l->io = by_pages; /* also because a row of many documents is many small reads */
    tokmap_error why;
    const tokmap_status status = try_fetch(l, &why);
    if (status != TOKMAP_ERR_UNSUPPORTED) {
        if (status && err)
            *err = why;
        return status;
    }
    snprintf(l->io_reason, sizeof l->io_reason, "direct cannot be used: %.130s", why.text);
    l->direct_failed = true;
    l->io = by_pages; /* works on every system */
    return try_fetch(l, err);
}

void tokmap_i_loader_restart_fetch(tokmap_loader *l)
{
    l->has_batch = false;
    l->fetched = NULL;
    if (l->fetch)
        tokmap_i_fetch_restart(l->fetch,
                               tokmap_i_skips_position(&l->samples.skips, l->next_sample) +
                                   (uint64_t)l->rank * l->batch_rows,
                               (uint64_t)l->n_ranks * l->batch_rows,
                               l->batch_rows * (1 + l->lanes.n));
}

void tokmap_i_loader_close_fetch(tokmap_loader *l)
{
    tokmap_i_fetch_close(l->fetch, tokmap_i_fork_mark_is_child(&l->fork_mark));
    l->fetch = NULL;
}

tokmap_status tokmap_i_loader_open_io(tokmap_loader *l, tokmap_error *err)
{
    tokmap_i_read_plan *p = &l->plan;
    if (l->io == TOKMAP_IO_MAP)
        return TOKMAP_OK;
    if (l->io == TOKMAP_IO_COPY)
        return tokmap_i_loader_leave_index_map(l, err);
    p->skips = &l->samples.skips;
    p->lanes = &l->lanes;
    p->end = tokmap_i_skips_position(&l->samples.skips, MIN(l->samples.end, TOKMAP_I_MAX_SAMPLE));
    if (!tokmap_i_sampler_open(&p->sampler, l->samples.mixture, l->samples.sources,
                               l->samples.n_sources) ||
        (l->reads_blocks &&
         !tokmap_i_block_ahead_open(&p->ahead, &p->sampler, l->samples.n_sources)))
        return FAIL_MEMORY(err);
    tokmap_status status = tokmap_i_loader_leave_index_map(l, err);
    if (!status && samples_look_up(&l->samples)) {
        tokmap_i_sampler_set_index(&p->sampler, tokmap_i_index_cache_open(index_bytes(l)));
        if (!p->sampler.index)
            status = FAIL_MEMORY(err);
    }
    if (!status)
        status = tokmap_i_loader_open_fetch(l, err);
    /* Set before the thread starts work. With several ranks, each would fault in the rows of all,
     * which pays only where a row has many pieces. */
    p->ahead.maps = l->io == TOKMAP_IO_POPULATE && l->reads_blocks && !l->samples.o.drop_behind &&
                    (l->n_ranks == 1 || l->samples.o.windows == TOKMAP_WINDOWS_BEST_FIT);
    if (!status)
        tokmap_i_loader_restart_fetch(l);
    return status;
}

void tokmap_i_loader_speed_up_reading(tokmap_loader *l)
{
    if (l->may_sweep && l->n_ranks <= TOKMAP_I_MOST_RANKS)
        l->sweep = tokmap_i_sweep_start(l->samples.sources, l->samples.n_sources);
    else if (!l->sweep)
        tokmap_i_fetch_adapt(l->fetch);
    l->may_sweep = false;
}

void tokmap_i_loader_close_io(tokmap_loader *l)
{
    tokmap_i_sweep_close(l->sweep, tokmap_i_fork_mark_is_child(&l->fork_mark));
    tokmap_i_sampler_close(&l->plan.sampler);
    tokmap_i_block_ahead_close(&l->plan.ahead);
}
