/* SPDX-License-Identifier: Apache-2.0 */
/* lane_gather.c - copies the numbers of a lane that go with the rows of a batch. put_tokens is the
 * only place that shifts: docs/FORMAT.md, section 16, says with which token a number goes. */
#include <inttypes.h>

#include "base/base.h"
#include "base/error.h"
#include "loader/loader.h"
#include "system/platform_thread.h"
#include "tokmap_loader.h"

/* A row of a lane that is being gathered. */
typedef struct lane_row {
    const tokmap_lane *lane;
    const tokmap_sample *at;
    const uint8_t *read; /* where its numbers were read, as whole rows have them; or NULL */
    bool may_map;
    uint8_t *out; /* of the row */
    tokmap_status status;
    tokmap_error *err;
} lane_row;

/* A part of the columns of a whole row, and which columns it has in `out`. */
typedef struct lane_part {
    uint32_t from, n, to;
} lane_part;

/* Finds a range in the map of its file; NULL: it is not in one. */
static tokmap_status find_in_map(tokmap_i_token_range range, const uint8_t **out, tokmap_error *err)
{
    const tokmap_dataset *wide = range.dataset;
    const uint8_t *map;
    *out = tokmap_i_mapped_tokens(wide, range.first_token, range.n_tokens);
    const tokmap_i_token_piece piece = tokmap_i_range_next_piece(&range);
    if (*out || range.n_tokens > 0)
        return TOKMAP_OK;
    const tokmap_status status = tokmap_i_token_file_map(wide, piece.file, &map, err);
    *out = status ? NULL : map + piece.first_byte;
    return status == TOKMAP_IN_PIECES ? TOKMAP_OK : status;
}

/* Writes the numbers of n tokens to the columns of a whole row from `column` on, as far as the part
 * has them. read: where they were read, or NULL. */
static tokmap_status put(const lane_row *r, const lane_part *part, uint64_t first_token, uint32_t n,
                         uint32_t column, const uint8_t *read)
{
    const tokmap_dataset *wide = &r->lane->wide;
    const size_t width = wide->header.token_bytes;
    const uint32_t begin = MAX(column, part->from), end = MIN(column + n, part->from + part->n);
    if (begin >= end)
        return TOKMAP_OK;
    const uint8_t *from = read ? read + (begin - column) * width : NULL;
    uint8_t *to = r->out + (part->to + begin - part->from) * width;
    const tokmap_i_token_range range = {wide, first_token + (begin - column), end - begin};
    if (!from && r->may_map) {
        const tokmap_status status = find_in_map(range, &from, r->err);
        if (status)
            return status;
    }
    if (!from)
        return tokmap_i_pages_read(range, to, r->err);
    memcpy(to, from, (end - begin) * width);
    return TOKMAP_OK;
}

/* Writes the numbers of the tokens of a piece, where those stand as inputs or as labels. is_label:
 * its first token is a label too, because the piece before it continues. */
static tokmap_status put_tokens(const lane_row *r, const lane_part *part, const tokmap_piece *p,
                                bool is_label)
{
    const size_t width = r->lane->wide.header.token_bytes;
    const uint8_t *read = r->read ? r->read + p->place * width : NULL;
    const uint32_t skip = !is_label;
    if (r->lane->header.goes_with == TOKMAP_WITH_INPUT)
        return put(r, part, p->first_token, p->n_inputs, p->place, read);
    return put(r, part, p->first_token + skip, p->n_tokens - skip, p->place + skip - 1,
               read ? read + skip * width : NULL);
}

static bool put_part(void *context, uint32_t from, uint32_t n, uint32_t place)
{
    lane_row *r = context;
    const lane_part part = {from, n, place};
    for (size_t k = 0; k < r->at->n_pieces && !r->status; k++)
        r->status =
            put_tokens(r, &part, &r->at->pieces[k], k > 0 && r->at->pieces[k - 1].continues);
    return !r->status;
}

/* Whether each column of the row has a number. */
static bool is_full(const tokmap_loader *l, const tokmap_sample *at)
{
    return l->samples.o.windows != TOKMAP_WINDOWS_BEST_FIT && at->n_tokens == l->samples.length + 1;
}

static tokmap_status gather_row(tokmap_loader *l, uint32_t lane, uint32_t i, uint8_t *out,
                                tokmap_error *err)
{
    const tokmap_i_lanes *lanes = &l->lanes;
    const tokmap_i_fetch_row *fetched = l->fetched ? &l->fetched[i] : NULL;
    const size_t width = tokmap_i_lanes_first(lanes, lane)->header.token_bytes;
    tokmap_sample located;
    lane_row r = {.at = fetched ? &fetched->at : &located,
                  .read = fetched ? fetched[(1 + lane) * l->batch_rows].tokens : NULL,
                  .may_map = l->io == TOKMAP_IO_MAP || l->io == TOKMAP_IO_POPULATE,
                  .out = out,
                  .err = err};
    if (!fetched)
        r.status = tokmap_i_sampler_locate(&l->sampler, l->rows[i].sample, &located, err);
    if (r.status)
        return r.status;
    const uint32_t d = l->samples.sources[r.at->source].first_dataset + r.at->dataset;
    r.lane = lanes->lanes[(size_t)lane * lanes->n_datasets + d];
    if (!r.lane || !is_full(l, r.at))
        memset(out, 0, l->samples.length / l->slice.size * width);
    if (!r.lane)
        return TOKMAP_OK;
    r.status = tokmap_i_loader_check_sizes(l, &r.lane->wide, r.at, err);
    if (!r.status)
        (void)tokmap_i_slice_take_parts(&l->slice, r.at->n_tokens - 1, r.at->pieces, r.at->n_pieces,
                                        put_part, &r);
    return r.status;
}

tokmap_status tokmap_loader_gather_lane(tokmap_loader *l, uint32_t lane, void *values,
                                        tokmap_error *err)
{
    tokmap_status status = tokmap_i_loader_enter(l, err);
    if (status)
        return status;
    if (lane >= l->lanes.n)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "there is no lane %" PRIu32 ": there are %" PRIu32,
                      lane, l->lanes.n);
    else if (!values)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "tokmap_loader_gather_lane: values is NULL");
    else if (!l->has_batch)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT,
                      "gather_lane: there is no batch: call tokmap_loader_next first");
    if (status)
        return tokmap_i_loader_leave(l, status);
    const size_t row_bytes = (size_t)l->samples.length / l->slice.size *
                             tokmap_i_lanes_first(&l->lanes, lane)->header.token_bytes;
    const uint64_t since_ns = l->fetch ? 0 : tokmap_i_now_ns();
    for (uint32_t i = 0; i < l->batch_rows && !status; i++)
        status = gather_row(l, lane, i, (uint8_t *)values + i * row_bytes, err);
    if (!status && !l->fetch)
        tokmap_i_loader_add_wait(l, tokmap_i_now_ns() - since_ns, l->batch_rows * row_bytes);
    return tokmap_i_loader_leave(l, status);
}

tokmap_status tokmap_loader_get_lane(const tokmap_loader *l, uint32_t lane, tokmap_lane_info *info)
{
    return l && lane < l->lanes.n
               ? tokmap_lane_get_info(tokmap_i_lanes_first(&l->lanes, lane), info)
               : TOKMAP_ERR_ARGUMENT;
}
