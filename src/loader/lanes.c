/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/lanes.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"

/* ---- Open ---- */

static tokmap_status check_names(const tokmap_loader_options *o, tokmap_error *err)
{
    if (o->n_lanes > TOKMAP_I_MOST_LANES || (o->n_lanes > 0 && !o->lanes))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "n_lanes is %" PRIu64 ": must be at most %d names",
                    o->n_lanes, TOKMAP_I_MOST_LANES);
    for (uint64_t i = 0; i < o->n_lanes; i++) {
        if (!o->lanes[i])
            return FAIL(err, TOKMAP_ERR_ARGUMENT, "lane %" PRIu64 ": its name is NULL", i);
        for (uint64_t k = 0; k < i; k++)
            if (strcmp(o->lanes[i], o->lanes[k]) == 0)
                return FAIL(err, TOKMAP_ERR_ARGUMENT, "the lane '%.100s' is named twice",
                            o->lanes[i]);
    }
    for (uint32_t k = 0; k < o->n_sources; k++)
        if (o->sources[k].lacks_lanes >> o->n_lanes)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "source %" PRIu32 ": lacks_lanes sets bits for lanes that do not exist", k);
    return TOKMAP_OK;
}

static tokmap_status check_kind(const tokmap_lane *first, const tokmap_lane *lane,
                                tokmap_error *err)
{
    const tokmap_i_lane_header *a = &first->header, *b = &lane->header;
    if (a->type == b->type && a->count == b->count && a->goes_with == b->goes_with)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_MISMATCH,
                "%s: its lane '%s' has another type, count or goes_with than that of %s",
                lane->ds->index_path, lane->name, first->ds->index_path);
}

tokmap_status tokmap_i_lanes_open(tokmap_i_lanes *l, const tokmap_i_samples *samples,
                                  tokmap_error *err)
{
    const tokmap_loader_options *o = &samples->o;
    const uint32_t n = l->n_datasets = samples->n_datasets;
    tokmap_status status = check_names(o, err);
    if (status)
        return status;
    l->read = samples->datasets;
    if (o->n_lanes == 0)
        return TOKMAP_OK;
    l->lanes = calloc((size_t)o->n_lanes * n, sizeof *l->lanes);
    l->own_read = malloc((size_t)(1 + o->n_lanes) * n * sizeof *l->own_read);
    if (!l->lanes || !l->own_read)
        return FAIL_MEMORY(err);
    l->read = l->own_read;
    l->n = (uint32_t)o->n_lanes;
    for (uint32_t i = 0; i < 1 + l->n; i++)
        memcpy(l->own_read + (size_t)i * n, samples->datasets, n * sizeof *l->own_read);
    for (uint32_t i = 0; i < l->n; i++) {
        for (uint32_t k = 0; k < samples->n_sources && !status; k++) {
            const tokmap_i_source *s = &samples->sources[k];
            const bool lacks = o->sources[k].lacks_lanes >> i & 1;
            for (uint32_t d = 0; d < s->windows.n_datasets && !lacks && !status; d++) {
                const size_t at = (size_t)i * n + s->first_dataset + d;
                status = tokmap_lane_open(&l->lanes[at], s->windows.datasets[d], o->lanes[i], err);
                if (!l->first[i])
                    l->first[i] = l->lanes[at];
                if (!status)
                    status = check_kind(l->first[i], l->lanes[at], err);
                if (!status)
                    l->own_read[n + at] = &l->lanes[at]->wide;
            }
        }
        if (!status && !l->first[i])
            status =
                FAIL(err, TOKMAP_ERR_ARGUMENT, "every source lacks the lane '%.100s'", o->lanes[i]);
    }
    return status;
}

void tokmap_i_lanes_close(tokmap_i_lanes *l)
{
    for (size_t i = 0; l->lanes && i < (size_t)l->n * l->n_datasets; i++)
        tokmap_lane_close(l->lanes[i]);
    free(l->lanes);
    free(l->own_read);
}

uint64_t tokmap_i_lanes_bytes(const tokmap_i_lanes *l)
{
    const size_t n = (size_t)l->n * l->n_datasets;
    uint64_t n_bytes = n * sizeof *l->lanes + (l->n ? (n + l->n_datasets) * sizeof *l->read : 0);
    for (size_t i = 0; i < n; i++)
        if (l->lanes[i])
            n_bytes +=
                sizeof *l->lanes[i] + l->lanes[i]->wide.n_files * sizeof(tokmap_i_token_file);
    return n_bytes;
}

uint64_t tokmap_i_lanes_token_bytes(const tokmap_i_lanes *l)
{
    uint64_t n_bytes = 0;
    for (uint32_t i = 0; i < l->n; i++)
        n_bytes += l->first[i]->header.token_bytes;
    return n_bytes;
}

bool tokmap_i_lanes_reads(const tokmap_i_lanes *l, uint32_t d)
{
    return d < l->n_datasets || l->lanes[d - l->n_datasets];
}

/* ---- Read ahead ---- */

bool tokmap_i_lanes_plan(const tokmap_i_lanes *l, uint32_t n_rows, tokmap_i_fetch_row *rows,
                         tokmap_i_fetch_pieces *pieces)
{
    for (uint32_t i = 0; i < l->n; i++) {
        size_t first = 0; /* pieces of the tokens of a row, in the list */
        for (uint32_t r = 0; r < n_rows; r++) {
            tokmap_i_fetch_row *row = &rows[(1 + i) * n_rows + r];
            const size_t n_pieces = rows[r].at.n_pieces;
            const tokmap_piece *of_tokens = pieces->list + first;
            *row = rows[r];
            row->dataset += (1 + i) * l->n_datasets;
            row->is_mapped = false;
            first += n_pieces;
            if (!tokmap_i_lanes_reads(l, row->dataset)) {
                row->at.n_pieces = 0;
                row->at.n_tokens = 0;
                row->tokens = NULL;
                continue;
            }
            for (size_t k = 0; k < n_pieces; k++) { /* one by one, because the list may move */
                const tokmap_piece piece = of_tokens[k];
                if (!tokmap_i_fetch_add_pieces(pieces, &piece, 1))
                    return false;
                of_tokens = pieces->list + first - n_pieces;
            }
        }
    }
    return true;
}
