/* SPDX-License-Identifier: Apache-2.0 */
/* lane_gather.c - copies the numbers of a lane that go with the rows of a batch. put_tokens is the
 * only place that shifts: docs/FORMAT.md, section 16, says with which token a number goes. */
#include <inttypes.h>

#include "base/base.h"
#include "base/error.h"
#include "loader/gather_whole.h"
#include "loader/loader.h"
#include "system/platform_thread.h"
#include "tokmap_loader.h"

enum {
    ROWS_AT_ONCE = 256
};

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

/* Finds where row i of the last batch is. piece: the number of the first piece of row i in
 * l->located_pieces, which moves on. */
static tokmap_sample locate_row(const tokmap_loader *l, uint32_t i, size_t *piece)
{
    if (l->fetched)
        return l->fetched[i].at;
    tokmap_sample at = l->located[i];
    at.pieces = l->located_pieces.list + *piece;
    *piece += at.n_pieces;
    return at;
}

/* Describes row i of the batch for a lane. */
static lane_row row_of(const tokmap_loader *l, uint32_t lane, uint32_t i, const tokmap_sample *at,
                       tokmap_error *err)
{
    const tokmap_i_lanes *lanes = &l->lanes;
    const uint32_t d = l->samples.sources[at->source].first_dataset + at->dataset;
    return (lane_row){.lane = lanes->lanes[(size_t)lane * lanes->n_datasets + d],
                      .at = at,
                      .read = l->fetched ? l->fetched[(1 + lane) * l->batch_rows + i].tokens : NULL,
                      .may_map = l->io == TOKMAP_IO_MAP || l->io == TOKMAP_IO_POPULATE,
                      .err = err};
}

static tokmap_status gather_row(tokmap_loader *l, lane_row *r, size_t row_bytes)
{
    if (!r->lane || !is_full(l, r->at))
        memset(r->out, 0, row_bytes);
    if (!r->lane)
        return TOKMAP_OK;
    r->status = tokmap_i_loader_check_sizes(l, &r->lane->wide, r->at, r->err);
    if (!r->status)
        (void)tokmap_i_slice_take_parts(&l->slice, r->at->n_tokens - 1, r->at->pieces,
                                        r->at->n_pieces, put_part, r);
    return r->status;
}

/* Returns where the numbers of all columns of a row lie one after another; NULL: nowhere. */
static const uint8_t *find_whole(const tokmap_loader *l, const lane_row *r)
{
    const tokmap_piece *p = r->at->pieces;
    if (!r->lane || r->at->n_pieces != 1 || !is_full(l, r->at) || l->slice.size > 1)
        return NULL;
    const uint32_t skip = r->lane->header.goes_with == TOKMAP_WITH_LABEL;
    const size_t width = r->lane->wide.header.token_bytes;
    if (r->read)
        return r->read + skip * width;
    return r->may_map
               ? tokmap_i_mapped_tokens(&r->lane->wide, p->first_token + skip, l->samples.length)
               : NULL;
}

/* Gathers the rows [first, end), in turns if all of them lie as they are wanted. piece: as for
 * locate_row. */
static tokmap_status gather_rows(tokmap_loader *l, uint32_t lane, uint32_t first, uint32_t end,
                                 size_t *piece, uint8_t *out, tokmap_error *err)
{
    tokmap_i_gather_row rows[ROWS_AT_ONCE];
    const uint32_t width = l->lanes.first[lane]->header.token_bytes;
    const uint32_t n_columns = l->samples.length / l->slice.size;
    const size_t row_bytes = (size_t)n_columns * width, first_piece = *piece;
    tokmap_status status = TOKMAP_OK;
    bool whole = true;
    for (uint32_t i = first; i < end && whole && !status; i++) {
        const tokmap_sample at = locate_row(l, i, piece);
        const lane_row r = row_of(l, lane, i, &at, err);
        const uint8_t *numbers = find_whole(l, &r);
        whole = numbers != NULL;
        rows[i - first] =
            (tokmap_i_gather_row){.tokens = numbers, .token_bytes = width, .n_tokens = n_columns};
        if (whole)
            status = tokmap_i_loader_check_sizes(l, &r.lane->wide, &at, err);
    }
    const tokmap_i_gather g = {.rows = rows,
                               .n_rows = end - first,
                               .n_inputs = n_columns - 1,
                               .width = width,
                               .whole = true,
                               .inputs = out};
    if (status || (whole && tokmap_i_gather_whole(&g)))
        return status;
    *piece = first_piece;
    for (uint32_t i = first; i < end && !status; i++) {
        const tokmap_sample at = locate_row(l, i, piece);
        lane_row r = row_of(l, lane, i, &at, err);
        r.out = out + (i - first) * row_bytes;
        status = gather_row(l, &r, row_bytes);
    }
    return status;
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
    const size_t row_bytes =
        (size_t)l->samples.length / l->slice.size * l->lanes.first[lane]->header.token_bytes;
    const uint64_t since_ns = l->fetch ? 0 : tokmap_i_now_ns();
    size_t piece = 0;
    for (uint32_t i = 0; i < l->batch_rows && !status; i += ROWS_AT_ONCE)
        status = gather_rows(l, lane, i, MIN(l->batch_rows, i + ROWS_AT_ONCE), &piece,
                             (uint8_t *)values + i * row_bytes, err);
    if (status)
        l->sizes_ns = 0; /* a file may be repaired by the next call */
    else if (!l->fetch)
        tokmap_i_loader_add_wait(l, tokmap_i_now_ns() - since_ns, l->batch_rows * row_bytes);
    return tokmap_i_loader_leave(l, status);
}

tokmap_status tokmap_loader_get_lane(const tokmap_loader *l, uint32_t lane, tokmap_lane_info *info)
{
    return l && lane < l->lanes.n ? tokmap_lane_get_info(l->lanes.first[lane], info)
                                  : TOKMAP_ERR_ARGUMENT;
}
