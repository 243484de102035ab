/* SPDX-License-Identifier: Apache-2.0 */
/* reading.c - chooses how a loader reads its data, and plans rows for the read-ahead thread. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "dataset/token_files.h"
#include "loader/loader.h"
#include "system/platform_memory.h"
#include "base/status.h"

enum {
    ROWS_AHEAD = 256,
    MIN_STEPS = 2,
    MAX_STEPS = 64,
    PLACES = 64,   /* sampled to see whether the data are in memory */
    MOST_RANKS = 8 /* for whole blocks: with more ranks, each machine would mostly read blocks that
                      its own ranks do not use */
};

/* ---- The plan ---- */

static tokmap_status plan_rows(void *context, uint64_t position, uint32_t n_rows,
                               tokmap_i_fetch_row *rows, tokmap_i_fetch_pieces *pieces,
                               tokmap_error *err)
{
    tokmap_i_read_plan *p = context;
    if (position + n_rows > p->end)
        return TOKMAP_END;
    for (uint32_t i = 0; i < n_rows; i++) {
        tokmap_sample at;
        const uint64_t sample = tokmap_i_skips_sample(p->skips, position + i);
        const tokmap_status status = tokmap_i_sampler_locate(&p->sampler, sample, &at, err);
        if (status)
            return status;
        const tokmap_i_loader_source *source = &p->sampler.sources[at.source];
        rows[i] = (tokmap_i_fetch_row){
            .at = at,
            .dataset = source->first_dataset + at.dataset,
            .within = source->windows.ranges[at.dataset].tokens,
            .is_mapped = p->ahead.counts && at.pieces &&
                         tokmap_i_block_ahead_is_mapped(&p->ahead, at.source, at.epoch)};
        if (!tokmap_i_fetch_add_pieces(pieces, at.pieces, at.n_pieces))
            return FAIL_MEMORY(err);
    }
    return TOKMAP_OK;
}

static void read_blocks_ahead(void *context, uint64_t position)
{
    tokmap_i_read_plan *p = context;
    if (position < p->end)
        tokmap_i_block_ahead_advance(&p->ahead, tokmap_i_skips_sample(p->skips, position));
}

/* ---- The choice ---- */

/* Not true of a file that cannot be opened: the row that needs it says why. */
static bool is_cached(const tokmap_dataset *ds, uint64_t token)
{
    const tokmap_i_token_piece p = tokmap_i_first_piece(ds, token, 1);
    tokmap_i_named_file file;
    if (tokmap_i_token_file_borrow(ds, p.file, &file, NULL))
        return false;
    const bool cached = tokmap_i_file_is_cached(file.fd, p.first_byte);
    tokmap_i_token_file_give_back(p.file, &file);
    return cached;
}

static bool is_in_memory(const tokmap_loader *l)
{
    uint64_t n_bytes = 0, random = TOKMAP_I_GOLDEN;
    uint32_t n_cached = 0;
    for (uint32_t d = 0; d < l->n_datasets; d++)
        n_bytes += l->datasets[d]->header.n_tokens * l->datasets[d]->header.token_bytes;
    for (uint32_t i = 0; i < PLACES; i++) {
        uint64_t at = tokmap_i_scale(random = tokmap_i_mix(random + i), n_bytes);
        uint32_t d = 0;
        for (;; d++) {
            const tokmap_i_header *h = &l->datasets[d]->header;
            if (at < h->n_tokens * h->token_bytes)
                break;
            at -= h->n_tokens * h->token_bytes;
        }
        n_cached += is_cached(l->datasets[d], at / l->datasets[d]->header.token_bytes);
    }
    return n_cached >= PLACES - 1;
}

static tokmap_status forced_by_environment(tokmap_io *wanted, tokmap_error *err)
{
    static const char *const names[] = {"auto", "map", "direct", "populate", "read"};
    const char *name = getenv("TOKMAP_IO");
    if (!name || !*name)
        return TOKMAP_OK;
    int i = 0;
    while (i < 5 && strcmp(name, names[i]) != 0)
        i++;
    *wanted = (tokmap_io)i;
    if (i < 5)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "TOKMAP_IO is '%.40s': must be auto, map, direct, populate or read", name);
}

/* ---- The index ---- */

static uint64_t index_bytes(const tokmap_loader *l)
{
    uint64_t n_bytes = 0;
    for (uint32_t d = 0; d < l->n_datasets; d++)
        n_bytes += tokmap_i_section_find(&l->datasets[d]->header, TOKMAP_I_DOCUMENTS)->n_bytes;
    return n_bytes;
}

tokmap_status tokmap_i_loader_leave_index_map(tokmap_loader *l, tokmap_error *err)
{
    const bool within = l->o.windows != TOKMAP_WINDOWS_CONCAT;
    if (l->sampler.index || (!within && !l->parts.wanted))
        return TOKMAP_OK;
    l->sampler.index = tokmap_i_index_cache_open(index_bytes(l));
    l->parts.index = l->sampler.index;
    return l->sampler.index ? TOKMAP_OK : FAIL_MEMORY(err);
}

/* ---- Open, restart, close ---- */

static tokmap_status try_fetch(tokmap_loader *l, tokmap_error *err)
{
    const uint32_t usual = (uint32_t)div_up(ROWS_AHEAD, l->batch_rows);
    const tokmap_i_fetch_options o = {
        .io = l->io,
        .datasets = l->datasets,
        .n_datasets = l->n_datasets,
        .n_steps = l->o.look_ahead ? l->o.look_ahead : MAX(MIN_STEPS, MIN(usual, MAX_STEPS)),
        .max_rows = l->batch_rows,
        .max_tokens = l->length + 1,
        .drop_behind = l->o.drop_behind,
        .plan = plan_rows,
        .ahead = l->io != TOKMAP_IO_DIRECT && l->plan.ahead.counts ? read_blocks_ahead : NULL,
        .context = &l->plan,
    };
    return tokmap_i_fetch_open(&l->fetch, &o, err);
}

tokmap_status tokmap_i_loader_open_fetch(tokmap_loader *l, tokmap_error *err)
{
    tokmap_io by_pages = TOKMAP_IO_POPULATE;
    for (uint32_t d = 0; d < l->n_datasets; d++)
        if (l->datasets[d]->n_files > TOKMAP_I_MOST_MAPS)
            by_pages = TOKMAP_IO_READ; /* POPULATE would read most rows only when they are needed */
    if (l->io == TOKMAP_IO_MAP)
        return TOKMAP_OK;
    if (l->io == TOKMAP_IO_POPULATE ||
        (l->io == TOKMAP_IO_DIRECT && l->o.windows == TOKMAP_WINDOWS_BEST_FIT))
        l->io = by_pages; /* also because a row of many documents is many small reads */
    const tokmap_status status = try_fetch(l, err);
    if (status != TOKMAP_ERR_UNSUPPORTED)
        return status;
    l->io = by_pages; /* works on every system */
    return try_fetch(l, err);
}

void tokmap_i_loader_restart_fetch(tokmap_loader *l)
{
    if (l->fetch)
        tokmap_i_fetch_restart(l->fetch,
                               tokmap_i_skips_position(&l->skips, l->next_sample) +
                                   (uint64_t)l->rank * l->batch_rows,
                               (uint64_t)l->n_ranks * l->batch_rows, l->batch_rows);
}

void tokmap_i_loader_close_fetch(tokmap_loader *l)
{
    tokmap_i_fetch_close(l->fetch, tokmap_i_fork_mark_is_child(&l->fork_mark));
    l->fetch = NULL;
}

tokmap_status tokmap_i_loader_open_io(tokmap_loader *l, tokmap_io wanted, tokmap_error *err)
{
    /* Then the rows of a group in random order cost only sequential reads. */
    const bool by_blocks = l->o.shuffle == TOKMAP_SHUFFLE_BLOCK && l->n_ranks <= MOST_RANKS;
    tokmap_i_read_plan *p = &l->plan;
    tokmap_status status = forced_by_environment(&wanted, err);
    if (status)
        return status;
    l->io = TOKMAP_IO_MAP;
    if (wanted == TOKMAP_IO_MAP || (wanted == TOKMAP_IO_AUTO && is_in_memory(l)))
        return TOKMAP_OK;
    p->skips = &l->skips;
    p->end = tokmap_i_skips_position(&l->skips, MIN(l->end, TOKMAP_I_MAX_SAMPLE));
    if (!tokmap_i_sampler_open(&p->sampler, l->mixture, l->sources, l->n_sources) ||
        (by_blocks && !tokmap_i_block_ahead_open(&p->ahead, &p->sampler, l->n_sources)))
        return FAIL_MEMORY(err);
    l->io = wanted;
    if (wanted == TOKMAP_IO_AUTO) {
        uint64_t n_left = p->ahead.counts ? UINT64_MAX : tokmap_i_memory_available();
        l->io = TOKMAP_IO_POPULATE;
        n_left -= n_left / 8;
        for (uint32_t d = 0; d < l->n_datasets; d++) {
            const tokmap_i_header *h = &l->datasets[d]->header;
            if (h->n_tokens * h->token_bytes > n_left)
                l->io = TOKMAP_IO_DIRECT; /* by rows, and the data are larger than memory */
            n_left -= MIN(n_left, h->n_tokens * h->token_bytes);
        }
    }
    status = tokmap_i_loader_leave_index_map(l, err);
    if (!status && l->o.windows != TOKMAP_WINDOWS_CONCAT) {
        p->sampler.index = tokmap_i_index_cache_open(index_bytes(l)); /* of that thread */
        if (!p->sampler.index)
            status = FAIL_MEMORY(err);
    }
    if (!status)
        status = tokmap_i_loader_open_fetch(l, err);
    /* Before the thread of the fetch has anything to do. */
    p->ahead.maps =
        l->io == TOKMAP_IO_POPULATE && l->o.windows == TOKMAP_WINDOWS_BEST_FIT && !l->o.drop_behind;
    if (!status)
        tokmap_i_loader_restart_fetch(l);
    return status;
}

void tokmap_i_loader_close_io(tokmap_loader *l)
{
    tokmap_i_sampler_close(&l->plan.sampler);
    tokmap_i_block_ahead_close(&l->plan.ahead);
}
