/* SPDX-License-Identifier: Apache-2.0 */
/* reading.c - chooses how a loader reads its data, and plans rows for the read-ahead thread. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/real.h"
#include "dataset/token_files.h"
#include "loader/loader.h"
#include "system/platform_memory.h"

enum {
    ROWS_AHEAD = 256, /* at first, in MIN_STEPS to MAX_STEPS steps */
    MIN_STEPS = 2,
    MAX_STEPS = 64,
    MOST_ROWS_AHEAD = 4096, /* at most, where reading is slow */
    MOST_STEPS = 1024,
    MOST_BYTES_AHEAD = 64 << 20,
    N_WAYS = TOKMAP_IO_COPY + 1,
    PROBES = 64, /* bytes that are probed to see whether the data are in memory */
    /* for whole blocks: with more ranks, each machine would mostly read blocks that its own ranks
     * do not use */
    MOST_RANKS = 8
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
        const tokmap_i_range *range = &source->windows.ranges[at.dataset];
        const tokmap_i_extent none = {0};
        rows[i] = (tokmap_i_fetch_row){
            .at = at,
            .dataset = source->first_dataset + at.dataset,
            .within = range->view ? none : range->tokens, /* rows of a view do not wrap */
            .is_mapped = tokmap_i_block_ahead_is_mapped(&p->ahead, sample, &at)};
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

/* What is known about the data before they are read. */
typedef struct residency {
    uint64_t n_bytes, available; /* size of all datasets; available memory */
    bool fits;
    uint32_t n_cold;     /* probed pages that are not in memory */
    const char *unknown; /* a file whose file system cannot say what is in memory, or NULL */
} residency;

static uint64_t data_bytes(const tokmap_dataset *ds)
{
    return ds->header.n_tokens * ds->header.token_bytes;
}

/* Probes bytes of a file. A file that cannot be opened counts as not in memory: the row that needs
 * it says why. */
static void probe_file(residency *p, const tokmap_dataset *ds, tokmap_i_token_file *of,
                       const uint64_t *offsets, uint32_t n)
{
    tokmap_i_named_file file;
    int n_cold = (int)n;
    if (!tokmap_i_token_file_borrow(ds, of, &file, NULL)) {
        n_cold = tokmap_i_file_count_cold(file.fd, offsets, n);
        tokmap_i_token_file_give_back(of, &file);
    }
    if (n_cold < 0)
        p->unknown = of->path;
    else
        p->n_cold += (uint32_t)n_cold;
}

/* Returns a place in the data: one in each of PROBES parts of equal size. */
static uint64_t find_place(const residency *p, uint32_t i)
{
    const uint64_t n_bytes = p->n_bytes / PROBES;
    return i * n_bytes + tokmap_i_scale(tokmap_i_mix(TOKMAP_I_GOLDEN + i), n_bytes);
}

/* Probes bytes all over the data, each file once. */
static void probe_all_over(residency *p, const tokmap_loader *l)
{
    uint64_t offsets[PROBES], first_byte = 0;
    uint32_t d = 0, n = 0;
    for (uint32_t i = 0; i < PROBES && !p->unknown; i += n) {
        const uint64_t begin = find_place(p, i);
        while (begin - first_byte >= data_bytes(l->datasets[d]))
            first_byte += data_bytes(l->datasets[d++]);
        const tokmap_dataset *ds = l->datasets[d];
        const uint64_t token = (begin - first_byte) / ds->header.token_bytes;
        const tokmap_i_token_piece rest =
            tokmap_i_first_piece(ds, token, ds->header.n_tokens - token);
        for (n = 0; i + n < PROBES && find_place(p, i + n) - begin < rest.n_bytes; n++)
            offsets[n] = rest.first_byte + (find_place(p, i + n) - begin);
        probe_file(p, ds, rest.file, offsets, n);
    }
}

/* Probes bytes all over the data, and one in each dataset, which may be small and on another file
 * system. */
static residency probe_data(const tokmap_loader *l)
{
    residency p = {.available = tokmap_i_memory_available()};
    for (uint32_t d = 0; d < l->n_datasets; d++) {
        if (l->datasets[d]->header.n_tokens > 0 && !p.unknown) {
            const tokmap_i_token_piece piece = tokmap_i_first_piece(l->datasets[d], 0, 1);
            probe_file(&p, l->datasets[d], piece.file, &piece.first_byte, 1);
        }
        p.n_bytes += data_bytes(l->datasets[d]);
    }
    p.fits = p.n_bytes <= p.available - p.available / 8;
    p.n_cold = 0;
    if (!p.unknown && p.n_bytes > 0)
        probe_all_over(&p, l);
    return p;
}

/* Returns the bytes of what block shuffle keeps in memory: of each source the group in use and the
 * next one. */
static double group_bytes(const tokmap_loader *l)
{
    const double group_tokens = (double)(l->group_blocks * l->block_windows) * l->length;
    double n_bytes = 0;
    for (uint32_t k = 0; k < l->n_sources; k++) {
        const tokmap_i_windows *w = &l->sources[k].windows;
        uint64_t all = 0;
        for (uint32_t d = 0; d < w->n_datasets; d++)
            all += data_bytes(w->datasets[d]);
        n_bytes += MIN((double)all, 2 * group_tokens * l->sources[k].token_bytes);
    }
    return n_bytes;
}

/* Whether whole blocks are read: then the rows of a group in random order cost only sequential
 * reads. Without room for two groups, most pages would be dropped before they are used. */
static bool should_read_blocks(const tokmap_loader *l)
{
    if (l->o.shuffle != TOKMAP_SHUFFLE_BLOCK || l->n_ranks > MOST_RANKS)
        return false;
    const uint64_t available = tokmap_i_memory_available(), for_others = available / 8;
    return group_bytes(l) <= (double)(available - for_others);
}

static const char *const io_names[N_WAYS] = {"auto", "map", "direct", "populate", "read", "copy"};

static tokmap_status forced_by_environment(tokmap_io *wanted, const char **by, tokmap_error *err)
{
    const char *name = getenv("TOKMAP_IO");
    if (!name || !*name)
        return TOKMAP_OK;
    uint32_t i = 0;
    while (i < N_WAYS && strcmp(name, io_names[i]) != 0)
        i++;
    *wanted = (tokmap_io)i;
    *by = "TOKMAP_IO";
    if (i < N_WAYS)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "TOKMAP_IO is '%.40s': must be auto, map, direct, populate, read or copy", name);
}

/* Writes the reason: how much of the data is in memory, and whether all of it would fit. */
static void explain(tokmap_loader *l, const residency *p)
{
    char in_memory[48] = "the file system cannot say what is in memory";
    if (!p->unknown)
        snprintf(in_memory, sizeof in_memory, "%" PRIu32 " of %d places are not in memory",
                 p->n_cold, PROBES);
    real_print(l->io_reason, sizeof l->io_reason, "%s; %.1f GiB of data, %.1f GiB of memory%s",
               in_memory, (double)p->n_bytes / (1 << 30), (double)p->available / (1 << 30),
               p->fits ? "" : ": they do not fit");
}

tokmap_status tokmap_i_loader_choose_io(tokmap_loader *l, tokmap_error *err)
{
    tokmap_io wanted = l->o.io;
    const char *by = "io";
    const tokmap_status status = forced_by_environment(&wanted, &by, err);
    if (status)
        return status;
    l->io = wanted;
    l->reads_blocks = should_read_blocks(l);
    snprintf(l->io_reason, sizeof l->io_reason, "chosen by %s%s", by,
             wanted == TOKMAP_IO_MAP ? "; a file that becomes shorter raises SIGBUS" : "");
    if (wanted != TOKMAP_IO_AUTO)
        return TOKMAP_OK;
    const residency p = probe_data(l);
    explain(l, &p);
    l->io = p.fits || l->reads_blocks ? TOKMAP_IO_POPULATE : TOKMAP_IO_DIRECT;
    l->chose_map = !p.unknown && p.n_cold <= 1;
    if (l->chose_map)
        l->io = TOKMAP_IO_MAP;
    l->may_sweep = l->io == TOKMAP_IO_POPULATE && p.fits && !l->reads_blocks && !l->o.drop_behind;
    return TOKMAP_OK;
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
    const bool looks_up = l->o.windows != TOKMAP_WINDOWS_CONCAT || l->has_views;
    if (l->sampler.index || (!looks_up && !l->parts.wanted))
        return TOKMAP_OK;
    tokmap_i_sampler_set_index(&l->sampler, tokmap_i_index_cache_open(index_bytes(l)));
    l->parts.index = l->sampler.index;
    return l->sampler.index ? TOKMAP_OK : FAIL_MEMORY(err);
}

/* ---- Open, restart, close ---- */

static tokmap_status try_fetch(tokmap_loader *l, tokmap_error *err)
{
    const uint64_t row_bytes = (l->length + 1ull) * l->token_bytes;
    const uint64_t most_rows = MIN(MOST_ROWS_AHEAD, MOST_BYTES_AHEAD / row_bytes);
    uint32_t n_steps = l->o.look_ahead, most_steps = n_steps;
    if (n_steps == 0) {
        n_steps = (uint32_t)MAX(MIN_STEPS, MIN(div_up(ROWS_AHEAD, l->batch_rows), MAX_STEPS));
        most_steps = (uint32_t)MAX(n_steps, MIN(most_rows / l->batch_rows, MOST_STEPS));
    }
    const tokmap_i_fetch_options o = {
        .io = l->io,
        .datasets = l->datasets,
        .n_datasets = l->n_datasets,
        .n_steps = n_steps,
        .most_steps = l->io == TOKMAP_IO_DIRECT ? 0 : most_steps, /* it starts all anyway */
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
    if (l->io == TOKMAP_IO_MAP || l->io == TOKMAP_IO_COPY)
        return TOKMAP_OK;
    if (l->io == TOKMAP_IO_POPULATE ||
        (l->io == TOKMAP_IO_DIRECT &&
         (l->o.windows == TOKMAP_WINDOWS_BEST_FIT || l->sampler.pieces)))
        l->io = by_pages; /* also because a row of many documents is many small reads */
    tokmap_error why;
    const tokmap_status status = try_fetch(l, &why);
    if (status != TOKMAP_ERR_UNSUPPORTED) {
        if (status && err)
            *err = why;
        return status;
    }
    snprintf(l->io_reason, sizeof l->io_reason, "direct cannot be used: %.130s", why.text);
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

tokmap_status tokmap_i_loader_open_io(tokmap_loader *l, tokmap_error *err)
{
    tokmap_i_read_plan *p = &l->plan;
    if (l->io == TOKMAP_IO_MAP)
        return TOKMAP_OK;
    if (l->io == TOKMAP_IO_COPY)
        return tokmap_i_loader_leave_index_map(l, err);
    p->skips = &l->skips;
    p->end = tokmap_i_skips_position(&l->skips, MIN(l->end, TOKMAP_I_MAX_SAMPLE));
    if (!tokmap_i_sampler_open(&p->sampler, l->mixture, l->sources, l->n_sources) ||
        (l->reads_blocks && !tokmap_i_block_ahead_open(&p->ahead, &p->sampler, l->n_sources)))
        return FAIL_MEMORY(err);
    tokmap_status status = tokmap_i_loader_leave_index_map(l, err);
    if (!status && (l->o.windows != TOKMAP_WINDOWS_CONCAT || l->has_views)) {
        tokmap_i_sampler_set_index(&p->sampler, tokmap_i_index_cache_open(index_bytes(l)));
        if (!p->sampler.index)
            status = FAIL_MEMORY(err);
    }
    if (!status)
        status = tokmap_i_loader_open_fetch(l, err);
    /* Before the thread of the fetch has anything to do. */
    /* Each of several ranks would fault in the rows of all. Where rows have pieces, that is still
     * less work than a call for each piece. */
    p->ahead.maps = l->io == TOKMAP_IO_POPULATE && l->reads_blocks && !l->o.drop_behind &&
                    (l->n_ranks == 1 || l->o.windows == TOKMAP_WINDOWS_BEST_FIT);
    if (!status)
        tokmap_i_loader_restart_fetch(l);
    return status;
}

void tokmap_i_loader_help_fetch(tokmap_loader *l)
{
    if (l->may_sweep && l->n_ranks <= MOST_RANKS)
        l->sweep = tokmap_i_sweep_start(l->sources, l->n_sources);
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
