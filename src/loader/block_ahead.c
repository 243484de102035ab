/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/block_ahead.h"

#include <stdlib.h>

#include "base/base.h"
#include "loader/fetch_pages.h"

enum {
    MARGIN = 8, /* requests are this many blocks earlier than the group needs */
    SPARSE = 10 /* a view with fewer of the tokens is read range by range */
};

#define NEVER UINT64_MAX /* both ends of what is in the map, once a block could not be mapped */

bool tokmap_i_block_ahead_open(tokmap_i_block_ahead *a, tokmap_i_sampler *sampler,
                               uint32_t n_sources)
{
    *a = (tokmap_i_block_ahead){.sampler = sampler,
                                .counts = calloc(n_sources, sizeof *a->counts),
                                .n_asked = calloc(n_sources, sizeof *a->n_asked),
                                .mapped = calloc(n_sources, sizeof *a->mapped),
                                .n_sources = n_sources};
    return a->counts && a->n_asked && a->mapped;
}

void tokmap_i_block_ahead_close(tokmap_i_block_ahead *a)
{
    free(a->counts);
    free(a->n_asked);
    free(a->mapped);
    *a = (tokmap_i_block_ahead){0};
}

/* Requests tokens, or faults them into the map. Returns false if they cannot be read; a row that
 * needs them reports why. */
static bool take_tokens(tokmap_i_token_range r, bool maps)
{
    const void *tokens;
    if (!maps)
        tokmap_i_pages_will_need(r);
    while (maps && r.n_tokens > 0) {
        tokmap_i_token_range rest = r;
        r.n_tokens = tokmap_i_range_next_piece(&rest).n_tokens; /* in one file */
        if (tokmap_i_pages_fault_in(r, &tokens, NULL) || !tokens)
            return false;
        r = rest;
    }
    return true;
}

/* Takes n tokens of a view: as one range from the first of them to the last, unless the view has
 * few of the tokens of the dataset. */
static bool take_ranges(const tokmap_i_block_ahead *a, const tokmap_i_range *range,
                        const tokmap_dataset *ds, uint64_t first, uint64_t n, bool maps)
{
    tokmap_i_view_reader *views = a->sampler->views;
    bool ok = true;
    if (tokmap_i_view_ranges(range->view, views, first, n, range->window_tokens, NULL))
        return false;
    if (range->view->header.n_tokens > ds->header.n_tokens / SPARSE) {
        views->ranges[0].end = views->ranges[views->n_ranges - 1].end;
        views->n_ranges = 1;
    }
    for (size_t i = 0; i < views->n_ranges && ok; i++) {
        const tokmap_i_extent r = views->ranges[i];
        ok = take_tokens((tokmap_i_token_range){ds, r.begin, r.end - r.begin}, maps);
    }
    return ok;
}

/* Takes n windows in order, all before the end of the source. */
static bool take_windows(const tokmap_i_block_ahead *a, uint32_t k, uint64_t epoch, uint64_t first,
                         uint64_t n, bool maps)
{
    const tokmap_i_windows *w = &a->sampler->sources[k].windows;
    tokmap_sample from, to;
    bool ok = true;
    if (n == 0)
        return true;
    if (tokmap_i_windows_span(w, a->sampler->views, epoch, first, &from, NULL) ||
        tokmap_i_windows_span(w, a->sampler->views, epoch, first + n - 1, &to, NULL))
        return false; /* the step reports what is wrong with the index */
    for (uint32_t d = from.dataset; d <= to.dataset && ok; d++) {
        const tokmap_dataset *ds = w->datasets[d];
        const bool by_view = w->ranges[d].view && !w->within;
        const tokmap_i_extent all = by_view ? w->ranges[d].window_tokens : w->ranges[d].tokens;
        const uint64_t begin = d == from.dataset ? MIN(from.first_token, all.end) : all.begin;
        const uint64_t end = d == to.dataset ? MIN(to.first_token + to.n_tokens, all.end) : all.end;
        if (end > begin && by_view)
            ok = take_ranges(a, &w->ranges[d], ds, begin, end - begin, maps);
        else if (end > begin)
            ok = take_tokens((tokmap_i_token_range){ds, begin, end - begin}, maps);
    }
    return ok;
}

/* Takes the chunks of n rows, which are numbered as blocks are. */
static bool take_chunks(const tokmap_i_block_ahead *a, uint32_t k, uint64_t first, uint64_t n,
                        bool maps)
{
    const tokmap_i_windows *w = &a->sampler->sources[k].windows;
    uint64_t begin, end, n_rows;
    bool ok = true;
    for (; n > 0 && ok; first += n_rows, n -= n_rows) {
        const uint64_t window = tokmap_i_windows_of_block(w, first);
        const uint32_t d = tokmap_i_windows_dataset(w, window);
        const tokmap_i_rows *rows = &w->rows[d];
        const uint64_t row = window - w->before[d], chunk = row / w->chunk_rows;
        n_rows = MIN(n, MIN((chunk + 1) * w->chunk_rows, rows->header.n_rows) - row);
        if (tokmap_i_rows_extent(rows, a->sampler->rows, chunk, &begin, &end, NULL))
            return false;
        const tokmap_i_token_range range = {rows->ds, begin, end - MIN(begin, end)};
        ok = take_tokens(range, maps);
    }
    return ok;
}

/* Takes block number i, counted over all epochs. */
static bool take_block(const tokmap_i_block_ahead *a, uint32_t k, uint64_t i, bool maps)
{
    const tokmap_i_windows *w = &a->sampler->sources[k].windows;
    tokmap_i_shuffle *s = &a->sampler->shuffles[k];
    const uint64_t n_blocks = div_up(s->n_windows, s->block_windows), epoch = i / n_blocks;
    const tokmap_i_block b = tokmap_i_shuffle_block(s, epoch, i % n_blocks);
    if (w->rows)
        return take_chunks(a, k, b.first_window, b.n_windows, maps);
    const uint64_t n = MIN(b.n_windows, w->n_windows - b.first_window);
    return take_windows(a, k, epoch, b.first_window, n, maps) &&
           take_windows(a, k, epoch, 0, b.n_windows - n, maps);
}

/* Faults blocks that were requested into the map, in their order. From the group in use it takes
 * one more than twice the number requested since the last call, and from later groups all that were
 * requested at least `margin` before. */
static void map_blocks(tokmap_i_block_ahead *a, uint32_t k, uint64_t group_end, uint64_t n_new,
                       uint64_t margin)
{
    tokmap_i_extent *const m = &a->mapped[k];
    const uint64_t limit = m->end < group_end
                               ? MIN(MIN(m->end + 1 + 2 * n_new, group_end), a->n_asked[k])
                               : a->n_asked[k] - MIN(margin, a->n_asked[k]);
    while (m->end < limit) {
        if (take_block(a, k, m->end, true))
            m->end++;
        else
            *m = (tokmap_i_extent){NEVER, NEVER};
    }
}

/* Returns the blocks of the group of a place, counted over all epochs. */
static tokmap_i_extent find_group(const tokmap_i_shuffle *s, uint64_t epoch, uint64_t place)
{
    const uint64_t n_blocks = div_up(s->n_windows, s->block_windows);
    const uint64_t begin = place / s->block_windows / s->group_blocks * s->group_blocks;
    return (tokmap_i_extent){epoch * n_blocks + begin,
                             epoch * n_blocks + MIN(begin + s->group_blocks, n_blocks)};
}

bool tokmap_i_block_ahead_is_mapped(const tokmap_i_block_ahead *a, uint64_t sample,
                                    const tokmap_sample *row)
{
    tokmap_i_mixture_sample at;
    if (!a->maps)
        return false;
    tokmap_i_mixture_at(a->sampler->mixture, sample, &at);
    const tokmap_i_extent group = find_group(&a->sampler->shuffles[at.source], at.epoch, at.place);
    const bool wraps =
        row->n_pieces > 0 && row->pieces[row->n_pieces - 1].first_token < row->first_token;
    return a->mapped[at.source].begin <= group.begin && group.end <= a->mapped[at.source].end &&
           (!wraps || a->sampler->sources[at.source].windows.rows);
}

void tokmap_i_block_ahead_advance(tokmap_i_block_ahead *a, uint64_t sample)
{
    tokmap_i_mixture_counts(a->sampler->mixture, sample, a->counts);
    for (uint32_t k = 0; k < a->n_sources; k++) {
        const tokmap_i_shuffle *s = &a->sampler->shuffles[k];
        const uint64_t epoch = a->counts[k] / s->n_windows, place = a->counts[k] % s->n_windows;
        const tokmap_i_extent group = find_group(s, epoch, place);
        const uint64_t block =
            epoch * div_up(s->n_windows, s->block_windows) + place / s->block_windows;
        const uint64_t margin = s->by_chunks ? div_up(s->group_blocks, MARGIN) : MARGIN;
        const uint64_t end = block + s->group_blocks + margin;
        /* It is the first call, or the position has jumped. */
        const bool begins = a->n_asked[k] <= group.begin || a->n_asked[k] > end;
        if (begins)
            a->n_asked[k] = group.begin;
        if (a->mapped[k].begin != NEVER && (begins || a->mapped[k].end < group.begin))
            a->mapped[k] = (tokmap_i_extent){group.begin, group.begin};
        const uint64_t n_new = begins ? 0 : end - a->n_asked[k];
        for (; a->n_asked[k] < end; a->n_asked[k]++)
            take_block(a, k, a->n_asked[k], false);
        if (a->maps)
            map_blocks(a, k, group.end, n_new, margin);
    }
}
