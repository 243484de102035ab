/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/block_ahead.h"

#include <stdlib.h>

#include "base/base.h"
#include "loader/fetch_pages.h"

enum {
    MARGIN = 8, /* requests are this many blocks earlier than the group needs */
    SPARSE = 10 /* a view with fewer of the tokens is read range by range */
};

bool tokmap_i_block_ahead_open(tokmap_i_block_ahead *a, tokmap_i_sampler *sampler,
                               uint32_t n_sources)
{
    *a = (tokmap_i_block_ahead){.sampler = sampler,
                                .counts = calloc(n_sources, sizeof *a->counts),
                                .n_asked = calloc(n_sources, sizeof *a->n_asked),
                                .n_mapped = calloc(n_sources, sizeof *a->n_mapped),
                                .n_sources = n_sources};
    return a->counts && a->n_asked && a->n_mapped;
}

void tokmap_i_block_ahead_close(tokmap_i_block_ahead *a)
{
    free(a->counts);
    free(a->n_asked);
    free(a->n_mapped);
    *a = (tokmap_i_block_ahead){0};
}

/* Requests n tokens of a view: all between the first and the last of them, or only these, if the
 * view has few of the tokens of the dataset. */
static void ask_for_ranges(const tokmap_i_block_ahead *a, const tokmap_i_range *range,
                           const tokmap_dataset *ds, uint64_t first, uint64_t n)
{
    tokmap_i_view_reader *views = a->sampler->views;
    if (tokmap_i_view_ranges(range->view, views, first, n, range->served, NULL))
        return;
    if (range->view->header.n_tokens > ds->header.n_tokens / SPARSE) {
        views->ranges[0].end = views->ranges[views->n_ranges - 1].end;
        views->n_ranges = 1;
    }
    for (size_t i = 0; i < views->n_ranges; i++) {
        const tokmap_i_extent r = views->ranges[i];
        tokmap_i_pages_will_need((tokmap_i_token_range){ds, r.begin, r.end - r.begin, {0}});
    }
}

/* Requests n windows in order, all before the end of the source. */
static void ask_for_windows(const tokmap_i_block_ahead *a, uint32_t k, uint64_t epoch,
                            uint64_t first, uint64_t n)
{
    const tokmap_i_windows *w = &a->sampler->sources[k].windows;
    tokmap_sample from, to;
    a->sampler->views->index = a->sampler->index;
    if (n == 0 || tokmap_i_windows_span(w, a->sampler->views, epoch, first, &from, NULL) ||
        tokmap_i_windows_span(w, a->sampler->views, epoch, first + n - 1, &to, NULL))
        return; /* the step reports what is wrong with the index */
    for (uint32_t d = from.dataset; d <= to.dataset; d++) {
        const tokmap_dataset *ds = w->datasets[d];
        const bool by_view = w->ranges[d].view && !w->within;
        const tokmap_i_extent all = by_view ? w->ranges[d].served : w->ranges[d].tokens;
        const uint64_t begin = d == from.dataset ? MIN(from.first_token, all.end) : all.begin;
        const uint64_t end = d == to.dataset ? MIN(to.first_token + to.n_tokens, all.end) : all.end;
        if (end > begin && by_view)
            ask_for_ranges(a, &w->ranges[d], ds, begin, end - begin);
        else if (end > begin)
            tokmap_i_pages_will_need((tokmap_i_token_range){ds, begin, end - begin, {0}});
    }
}

/* Requests the chunks of n rows, which are numbered as blocks are, or faults them into the map.
 * Returns false if one cannot be read; a row that needs it reports why. */
static bool take_chunks(const tokmap_i_block_ahead *a, uint32_t k, uint64_t first, uint64_t n,
                        bool maps)
{
    const tokmap_i_windows *w = &a->sampler->sources[k].windows;
    uint64_t begin, end, n_rows;
    const void *tokens;
    a->sampler->rows->index = a->sampler->index;
    for (; n > 0; first += n_rows, n -= n_rows) {
        const uint64_t window = tokmap_i_windows_of_block(w, first);
        const uint32_t d = tokmap_i_windows_dataset(w, window);
        const tokmap_i_rows *rows = &w->rows[d];
        const uint64_t row = window - w->before[d], chunk = row / w->chunk_rows;
        n_rows = MIN(n, MIN((chunk + 1) * w->chunk_rows, rows->header.n_rows) - row);
        if (tokmap_i_rows_extent(rows, a->sampler->rows, chunk, &begin, &end, NULL))
            return false;
        const tokmap_i_token_range range = {rows->ds, begin, end - MIN(begin, end), {0}};
        if (range.n_tokens == 0)
            continue;
        if (!maps)
            tokmap_i_pages_will_need(range);
        else if (tokmap_i_pages_fault_in(range, &tokens, NULL) || !tokens)
            return false;
    }
    return true;
}

static void ask_for_block(tokmap_i_block_ahead *a, uint32_t k, uint64_t epoch, uint64_t place)
{
    const tokmap_i_windows *w = &a->sampler->sources[k].windows;
    const tokmap_i_block b = tokmap_i_shuffle_block(&a->sampler->shuffles[k], epoch, place);
    if (w->rows) {
        take_chunks(a, k, b.first_window, b.n_windows, false);
        return;
    }
    const uint64_t n = MIN(b.n_windows, w->n_windows - b.first_window);
    ask_for_windows(a, k, epoch, b.first_window, n);
    ask_for_windows(a, k, epoch, 0, b.n_windows - n);
}

/* Faults in the oldest block that was requested and is not in the map: blocks of the group that is
 * in use first, and others once they had the time to be read. */
static void map_block(tokmap_i_block_ahead *a, uint32_t k, uint64_t end, uint64_t margin)
{
    const uint64_t i = a->n_mapped[k];
    const tokmap_i_shuffle *s = &a->sampler->shuffles[k];
    const uint64_t n_blocks = div_up(s->n_windows, s->block_windows);
    if (i >= a->n_asked[k] || (i >= end && i + margin >= a->n_asked[k]))
        return;
    const tokmap_i_block b =
        tokmap_i_shuffle_block(&a->sampler->shuffles[k], i / n_blocks, i % n_blocks);
    a->n_mapped[k] += take_chunks(a, k, b.first_window, b.n_windows, true);
}

/* Returns the block after a group, counted over all epochs. */
static uint64_t end_of_group(const tokmap_i_shuffle *s, uint64_t epoch, uint64_t place)
{
    const uint64_t n_blocks = div_up(s->n_windows, s->block_windows);
    const uint64_t group = place / s->block_windows / s->group_blocks;
    return epoch * n_blocks + MIN((group + 1) * s->group_blocks, n_blocks);
}

bool tokmap_i_block_ahead_is_mapped(const tokmap_i_block_ahead *a, uint32_t source, uint64_t epoch)
{
    const tokmap_i_shuffle *s = &a->sampler->shuffles[source];
    return a->maps && a->n_mapped[source] >= end_of_group(s, epoch, a->sampler->rows->place);
}

void tokmap_i_block_ahead_advance(tokmap_i_block_ahead *a, uint64_t sample)
{
    tokmap_i_mixture_counts(a->sampler->mixture, sample, a->counts);
    for (uint32_t k = 0; k < a->n_sources; k++) {
        const tokmap_i_shuffle *s = &a->sampler->shuffles[k];
        const uint64_t n_blocks = div_up(s->n_windows, s->block_windows);
        const uint64_t epoch = a->counts[k] / s->n_windows;
        const uint64_t block = a->counts[k] % s->n_windows / s->block_windows;
        const uint64_t begin = epoch * n_blocks + block / s->group_blocks * s->group_blocks;
        const uint64_t margin = s->by_chunks ? div_up(s->group_blocks, MARGIN) : MARGIN;
        const uint64_t end = epoch * n_blocks + block + s->group_blocks + margin;
        if (a->n_asked[k] < begin || a->n_asked[k] > end) /* the position has jumped */
            a->n_asked[k] = a->n_mapped[k] = begin;
        a->n_mapped[k] = MAX(a->n_mapped[k], begin);
        for (; a->n_asked[k] < end; a->n_asked[k]++)
            ask_for_block(a, k, a->n_asked[k] / n_blocks, a->n_asked[k] % n_blocks);
        if (a->maps)
            map_block(a, k, end_of_group(s, epoch, a->counts[k] % s->n_windows), margin);
    }
}
