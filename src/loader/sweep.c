/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/sweep.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/base.h"
#include "loader/fetch_pages.h"
#include "system/platform_thread.h"

enum {
    PIECE_BYTES = 16 << 20 /* two pieces are being read at a time */
};

struct tokmap_i_sweep {
    const tokmap_i_source *sources;
    uint32_t n_sources;
    tokmap_i_thread thread;
    atomic_bool stop;
};

/* Waits until all of a piece that was requested has been read, by reading its last token. Returns
 * false if it cannot be read, which the row that needs it will report. */
static bool wait_for(const tokmap_dataset *ds, uint64_t begin, uint64_t end)
{
    uint32_t token;
    return begin == end ||
           !tokmap_i_pages_read((tokmap_i_token_range){ds, end - 1, 1}, &token, NULL);
}

static void sweep_dataset(const tokmap_i_sweep *s, const tokmap_dataset *ds, tokmap_i_extent all)
{
    const uint64_t piece = PIECE_BYTES / ds->header.token_bytes;
    uint64_t before = all.begin, begin = all.begin;
    while (begin < all.end && !atomic_load_explicit(&s->stop, memory_order_relaxed)) {
        const uint64_t end = MIN(all.end, begin + piece);
        tokmap_i_pages_will_need((tokmap_i_token_range){ds, begin, end - begin});
        if (!wait_for(ds, before, begin))
            return;
        before = begin;
        begin = end;
    }
}

static void *run_thread(void *context)
{
    const tokmap_i_sweep *s = context;
    tokmap_i_thread_name("tokmap-sweep");
    for (uint32_t k = 0; k < s->n_sources; k++) {
        const tokmap_i_windows *w = &s->sources[k].windows;
        for (uint32_t d = 0; d < w->n_datasets; d++)
            sweep_dataset(s, w->datasets[d], w->ranges[d].tokens);
    }
    return NULL;
}

tokmap_i_sweep *tokmap_i_sweep_start(const tokmap_i_source *sources, uint32_t n_sources)
{
    tokmap_i_sweep *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->sources = sources;
    s->n_sources = n_sources;
    if (tokmap_i_thread_start(&s->thread, run_thread, s) == 0)
        return s;
    free(s);
    return NULL;
}

void tokmap_i_sweep_close(tokmap_i_sweep *s, bool is_child)
{
    if (!s)
        return;
    atomic_store(&s->stop, true);
    if (!is_child)
        tokmap_i_thread_join(s->thread);
    free(s);
}
