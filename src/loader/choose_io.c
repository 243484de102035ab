/* SPDX-License-Identifier: Apache-2.0 */
/* choose_io.c - chooses how a loader reads its data. */
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
    N_WAYS = TOKMAP_IO_COPY + 1,
    PROBES = 64 /* bytes that are probed to see whether the data are in memory */
};

/* What is known about the data before they are read. */
typedef struct residency {
    uint64_t n_bytes, available; /* size of all datasets and their lanes; available memory */
    bool fits;
    uint32_t n_cold;     /* probed pages that are not in memory */
    const char *unknown; /* a file whose file system cannot say what is in memory, or NULL */
} residency;

static uint64_t data_bytes(const tokmap_dataset *ds)
{
    return ds->header.n_tokens * ds->header.token_bytes;
}

/* Returns the bytes of a dataset, or of a lane, that are read; 0: it is not read. */
static uint64_t read_bytes(const tokmap_loader *l, uint32_t d)
{
    return tokmap_i_lanes_reads(&l->lanes, d) ? data_bytes(l->lanes.read[d]) : 0;
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
        while (begin - first_byte >= read_bytes(l, d))
            first_byte += read_bytes(l, d++);
        const tokmap_dataset *ds = l->lanes.read[d];
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
    for (uint32_t d = 0; d < l->lanes.n_datasets * (1 + l->lanes.n); d++) {
        if (read_bytes(l, d) > 0 && !p.unknown) {
            const tokmap_i_token_piece piece = tokmap_i_first_piece(l->lanes.read[d], 0, 1);
            probe_file(&p, l->lanes.read[d], piece.file, &piece.first_byte, 1);
        }
        p.n_bytes += read_bytes(l, d);
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
    const double group_tokens =
        (double)(l->samples.group_blocks * l->samples.block_windows) * l->samples.length;
    double n_bytes = 0;
    for (uint32_t k = 0; k < l->samples.n_sources; k++) {
        const tokmap_i_windows *w = &l->samples.sources[k].windows;
        uint64_t all = 0;
        for (uint32_t d = 0; d < w->n_datasets; d++)
            all += data_bytes(w->datasets[d]);
        n_bytes += MIN((double)all, 2 * group_tokens * l->samples.sources[k].token_bytes);
    }
    return n_bytes;
}

/* Whether whole blocks are read: then the rows of a group in random order cost only sequential
 * reads. Without room for two groups, most pages would be dropped before they are used. */
static bool should_read_blocks(const tokmap_loader *l)
{
    if (l->samples.o.shuffle != TOKMAP_SHUFFLE_BLOCK || l->n_ranks > TOKMAP_I_MOST_RANKS ||
        l->samples.has_document_lists) /* the documents of a block are not next to each other */
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
    const bool is_small = p->n_bytes < UINT64_C(1) << 30;
    if (!p->unknown && (p->n_cold == 0 || p->n_cold == PROBES))
        snprintf(in_memory, sizeof in_memory, "%s in memory", p->n_cold ? "none" : "all");
    else if (!p->unknown)
        snprintf(in_memory, sizeof in_memory, "%" PRIu32 " of %d places in memory",
                 PROBES - p->n_cold, PROBES);
    real_print(l->io_reason, sizeof l->io_reason, "%s; %.1f %s of data, %.1f GiB of memory%s",
               in_memory, (double)p->n_bytes / (1 << (is_small ? 20 : 30)),
               is_small ? "MiB" : "GiB", (double)p->available / (1 << 30),
               p->fits ? "" : ": they do not fit");
}

/* Returns the path of a dataset that is in a store; NULL: there is none. */
static const char *find_in_store(const tokmap_loader *l)
{
    for (uint32_t d = 0; d < l->samples.n_datasets; d++)
        if (l->samples.datasets[d]->store)
            return l->samples.datasets[d]->index_path;
    return NULL;
}

static tokmap_status choose_store(tokmap_loader *l, const char *path, tokmap_io wanted,
                                  const char *by, tokmap_error *err)
{
    l->io = TOKMAP_IO_STORE;
    snprintf(l->io_reason, sizeof l->io_reason, "%.80s is in a store%s", path,
             l->samples.o.verify_blocks ? "; blocks are compared with their checksums"
                                        : "; rows are not compared with checksums");
    if (wanted == TOKMAP_IO_AUTO)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s is '%s', but %.300s is in a store: leave it out", by,
                io_names[wanted], path);
}

tokmap_status tokmap_i_loader_choose_io(tokmap_loader *l, tokmap_error *err)
{
    tokmap_io wanted = l->samples.o.io;
    const char *by = "io", *in_store = find_in_store(l);
    const tokmap_status status = forced_by_environment(&wanted, &by, err);
    if (status)
        return status;
    if (in_store)
        return choose_store(l, in_store, wanted, by, err);
    if (l->samples.o.verify_blocks)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "verify_blocks is for datasets in a store: tokmap verify checks files");
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
    l->may_sweep =
        l->io == TOKMAP_IO_POPULATE && p.fits && !l->reads_blocks && !l->samples.o.drop_behind;
    return TOKMAP_OK;
}
