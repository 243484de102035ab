/* SPDX-License-Identifier: Apache-2.0 */
#include "samples/sampler.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"

bool tokmap_i_sampler_open(tokmap_i_sampler *s, const tokmap_i_mixture *mixture,
                           const tokmap_i_source *sources, uint32_t n_sources)
{
    *s = (tokmap_i_sampler){.mixture = mixture,
                            .sources = sources,
                            .shuffles = malloc(n_sources * sizeof *s->shuffles),
                            .views = calloc(1, sizeof *s->views)};
    uint64_t n_bytes = 0, view_bytes = 0; /* size of rows files, of view files */
    bool in_places = false;               /* a window may have tokens of several places */
    if (sources[0].windows.rows)
        s->rows = calloc(1, sizeof *s->rows);
    for (uint32_t k = 0; s->shuffles && k < n_sources; k++) {
        const tokmap_i_windows *w = &sources[k].windows;
        s->shuffles[k] = sources[k].shuffle;
        view_bytes += tokmap_i_windows_view_bytes(w);
        in_places |= w->has_views || w->has_lists;
        for (uint32_t d = 0; w->rows && d < w->n_datasets; d++)
            if (!w->rows[d].bytes)
                n_bytes += w->rows[d].header.n_bytes;
    }
    in_places &= sources[0].windows.kind == TOKMAP_WINDOWS_CONCAT;
    const uint64_t n_pieces = in_places ? sources[0].windows.length + 1ull : 2; /* 2: it wraps */
    s->pieces = malloc(n_pieces * sizeof *s->pieces);
    s->ranges = in_places ? malloc(n_pieces * sizeof *s->ranges) : NULL;
    return s->shuffles && s->views && s->pieces && (s->ranges || !in_places) &&
           tokmap_i_view_reader_open(s->views, view_bytes) &&
           (!sources[0].windows.rows || (s->rows && tokmap_i_rows_reader_open(s->rows, n_bytes)));
}

void tokmap_i_sampler_close(tokmap_i_sampler *s)
{
    free(s->shuffles);
    tokmap_i_index_cache_close(s->index);
    if (s->rows)
        tokmap_i_rows_reader_close(s->rows);
    if (s->views)
        tokmap_i_view_reader_close(s->views);
    free(s->rows);
    free(s->views);
    free(s->pieces);
    free(s->ranges);
    *s = (tokmap_i_sampler){0};
}

void tokmap_i_sampler_set_index(tokmap_i_sampler *s, tokmap_i_index_cache *index)
{
    s->index = s->views->index = index;
    if (s->rows)
        s->rows->index = index;
}

/* Fills in a sample of rows of documents, whose window is set. */
static tokmap_status locate_row(tokmap_i_sampler *s, const tokmap_i_windows *w, tokmap_sample *out,
                                tokmap_error *err)
{
    out->dataset = tokmap_i_windows_dataset(w, out->window);
    const tokmap_status status = tokmap_i_rows_get(&w->rows[out->dataset], s->rows,
                                                   out->window - w->before[out->dataset], err);
    if (status)
        return status;
    out->pieces = s->rows->pieces;
    out->n_pieces = s->rows->n_pieces;
    out->first_token = out->pieces[0].first_token;
    out->n_tokens = tokmap_i_rows_tokens(&w->rows_kind, &out->pieces[out->n_pieces - 1]);
    return TOKMAP_OK;
}

/* Makes a piece of each range of tokens of a sample. */
static void set_pieces(tokmap_piece *pieces, const tokmap_i_extent *ranges, size_t n,
                       tokmap_sample *out)
{
    uint32_t place = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t n_tokens = (uint32_t)(ranges[i].end - ranges[i].begin);
        pieces[i] = (tokmap_piece){.first_token = ranges[i].begin,
                                   .n_tokens = n_tokens,
                                   .place = place,
                                   .n_inputs = n_tokens,
                                   .continues = 1};
        place += n_tokens;
    }
    pieces[n - 1].n_inputs--;
    pieces[n - 1].continues = 0;
    out->first_token = ranges[0].begin;
    out->n_tokens = place;
    out->n_pieces = n;
}

/* Finds where the tokens of a window are in the dataset that are in several places, because of a
 * view or because the window wraps around. */
static tokmap_status find_pieces(tokmap_i_sampler *s, const tokmap_i_windows *w, tokmap_sample *out,
                                 tokmap_error *err)
{
    const tokmap_i_range *range = &w->ranges[out->dataset];
    const tokmap_i_extent all = range->tokens;
    const uint64_t first = out->first_token, n = out->n_tokens;
    if (range->view && !w->within) {
        const tokmap_status status =
            tokmap_i_view_ranges(range->view, s->views, first, n, range->window_tokens, err);
        if (!status)
            set_pieces(s->pieces, s->views->ranges, s->views->n_ranges, out);
        return status;
    }
    set_pieces(
        s->pieces,
        (const tokmap_i_extent[]){{first, all.end}, {all.begin, all.begin + first + n - all.end}},
        2, out);
    return TOKMAP_OK;
}

/* Finds the tokens of a window of a list of documents. */
static tokmap_status locate_in_list(tokmap_i_sampler *s, const tokmap_i_windows *w,
                                    tokmap_sample *out, tokmap_error *err)
{
    size_t n;
    const tokmap_status status =
        tokmap_i_document_list_window(w->ranges[out->dataset].list, s->index,
                                      out->window - w->before[out->dataset], s->ranges, &n, err);
    if (!status)
        set_pieces(s->pieces, s->ranges, n, out);
    return status;
}

/* Locates a window that is a row of documents, or that a list has. *found: whether it did; else the
 * window is located as any other. */
static tokmap_status look_up(tokmap_i_sampler *s, const tokmap_i_source *source, tokmap_sample *out,
                             bool *found, tokmap_error *err)
{
    const tokmap_i_windows *w = &source->windows;
    *found = true;
    if (source->window_list.bytes)
        out->window = tokmap_i_number_at(&source->window_list, out->window);
    if (out->window >= w->n_windows)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: its list of windows has %" PRIu64 ", but there are %" PRIu64
                    " windows: it was changed",
                    w->datasets[0]->index_path, out->window, w->n_windows);
    if (w->rows)
        return locate_row(s, w, out, err);
    out->dataset = tokmap_i_windows_dataset(w, out->window);
    *found = w->ranges[out->dataset].list != NULL;
    return *found ? locate_in_list(s, w, out, err) : TOKMAP_OK;
}

tokmap_status tokmap_i_sampler_locate(tokmap_i_sampler *s, uint64_t sample, tokmap_sample *out,
                                      tokmap_error *err)
{
    tokmap_i_mixture_sample at;
    tokmap_i_mixture_at(s->mixture, sample, &at);
    const tokmap_i_source *source = &s->sources[at.source];
    const tokmap_i_windows *w = &source->windows;
    uint64_t window = tokmap_i_shuffle_window(&s->shuffles[at.source], at.epoch, at.place);
    if (source->shuffle.by_chunks)
        window = tokmap_i_windows_of_block(w, window);
    *out = (tokmap_sample){.source = at.source,
                           .epoch = at.epoch,
                           .window = window,
                           .pieces = s->pieces,
                           .n_pieces = 1};
    bool found = false;
    tokmap_status status = source->looks_up ? look_up(s, source, out, &found, err) : TOKMAP_OK;
    if (found || status)
        return status;
    status = tokmap_i_windows_span(w, s->views, at.epoch, out->window, out, err);
    const tokmap_i_range *range = &w->ranges[out->dataset];
    if (status || (range->view && !w->within) ||
        out->n_tokens > range->tokens.end - out->first_token)
        return status ? status : find_pieces(s, w, out, err);
    s->pieces[0] = (tokmap_piece){
        .first_token = out->first_token, .n_tokens = out->n_tokens, .n_inputs = out->n_tokens - 1};
    return TOKMAP_OK;
}
