/* SPDX-License-Identifier: Apache-2.0 */
/* batch_gather.c - copies the rows of a batch, and lists their documents, into buffers of the
 * caller. */
#include <inttypes.h>

#include "base/base.h"
#include "base/error.h"
#include "base/options.h"
#include "loader/gather_whole.h"
#include "loader/loader.h"
#include "system/platform_thread.h"
#include "tokmap_loader.h"

#define ROWS_AT_ONCE 256
#define LEAST_WAIT_NS 20000

static const tokmap_row *row_at(const tokmap_batch *b, uint32_t i)
{
    return (const void *)((const uint8_t *)b->rows + (size_t)i * b->row_stride);
}

/* Returns the loss mask of a row; NULL also if the caller's rows are too short to have one. */
static const uint8_t *mask_of(const tokmap_batch *b, uint32_t i)
{
    return b->row_stride < SIZE_UP_TO(tokmap_row, loss_mask) ? NULL : row_at(b, i)->loss_mask;
}

typedef struct shape {
    unsigned width; /* bytes of a number; 0: there is no such format */
    bool whole;     /* rows of sequence_length + 1 numbers, in `inputs` alone */
} shape;

static shape shape_of(const tokmap_batch *b, tokmap_gather_format format)
{
    const shape shapes[] = {[TOKMAP_GATHER_TOKENS] = {b->token_bytes, true},
                            [TOKMAP_GATHER_I32] = {4, false},
                            [TOKMAP_GATHER_I64] = {8, false},
                            [TOKMAP_GATHER_ROWS_I32] = {4, true},
                            [TOKMAP_GATHER_ROWS_I64] = {8, true}};
    return (size_t)format < sizeof shapes / sizeof *shapes ? shapes[format] : (shape){0, false};
}

/* Checks that the format can hold the largest id, pad_id and ignore_index. */
static tokmap_status check_values(const tokmap_batch *b, const tokmap_gather_options *o,
                                  unsigned width, tokmap_error *err)
{
    const bool is_signed = o->format != TOKMAP_GATHER_TOKENS;
    const uint64_t most = (UINT64_C(1) << (8 * width - is_signed)) - 1;
    if (b->largest_id > most)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "gather: the data have ids up to %" PRIu32
                    ", which int32 cannot hold: use a format with int64",
                    b->largest_id);
    if (o->inputs && o->pad_id > most)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "gather: pad_id is %" PRIu32 ": must be at most %" PRIu64 " in this format",
                    o->pad_id, most);
    if (o->labels && width == 4 && o->ignore_index != (int32_t)o->ignore_index)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "gather: ignore_index is %" PRId64 ": does not fit into 32 bits",
                    o->ignore_index);
    return TOKMAP_OK;
}

static tokmap_status check_options(const tokmap_batch *b, const tokmap_gather_options *o, shape s,
                                   tokmap_error *err)
{
    if (!b->rows || b->row_stride < SIZE_UP_TO(tokmap_row, first_token) ||
        (b->token_bytes != 2 && b->token_bytes != 4))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "gather: the batch is empty: fill it with tokmap_loader_next first");
    if (o->format == TOKMAP_GATHER_NONE)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "gather: format is not set: set it to TOKMAP_GATHER_I32 or another one");
    if (s.width == 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "gather: format is %d: must be 1 to 5",
                    (int)o->format);
    if (s.whole && (!o->inputs || o->labels || o->mask_labels))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "gather: whole rows need inputs, labels NULL and mask_labels 0");
    if (!o->inputs && !o->labels)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "gather: inputs and labels are both NULL");
    if (((uintptr_t)o->inputs | (uintptr_t)o->labels) % s.width != 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "gather: a buffer is not aligned to %u bytes",
                    s.width);
    tokmap_status status = tokmap_i_check_flag("mask_labels", o->mask_labels, err);
    if (status)
        return status;
    for (uint32_t i = 0; o->mask_labels && i < b->n_rows; i++)
        if (!mask_of(b, i))
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "gather: mask_labels needs a loader with TOKMAP_ROW_LOSS_MASK");
    return check_values(b, o, s.width, err);
}

/* Fills in a row for the gather. */
static tokmap_status take_row(const tokmap_batch *b, uint32_t i, bool whole, bool masks,
                              tokmap_i_gather_row *out, tokmap_error *err)
{
    const tokmap_row *r = row_at(b, i);
    const bool has_pieces = b->row_stride >= SIZE_UP_TO(tokmap_row, n_pieces) && r->pieces;
    *out = (tokmap_i_gather_row){r->tokens,
                                 r->token_bytes,
                                 r->n_tokens,
                                 masks ? mask_of(b, i) : NULL,
                                 has_pieces ? r->pieces : NULL,
                                 has_pieces ? r->n_pieces : 0};
    if (!r->tokens && !has_pieces)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "gather: row %" PRIu32 " has no tokens", i);
    for (size_t k = 0; whole && k + 1 < out->n_pieces; k++)
        if (out->pieces[k].n_tokens > out->pieces[k].n_inputs)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "gather: whole rows of slices would not have all labels: ask for inputs "
                        "and labels");
    return TOKMAP_OK;
}

static void *row_pointer(void *buffer, size_t row, size_t row_bytes)
{
    return buffer ? (uint8_t *)buffer + row * row_bytes : NULL;
}

void tokmap_i_loader_add_wait(tokmap_loader *l, uint64_t ns, uint64_t n_bytes)
{
    const bool waited = ns > LEAST_WAIT_NS + n_bytes;
    l->n_waits += waited;
    l->waited_ns += waited ? ns : 0;
    tokmap_i_latency_add(&l->waits, waited ? ns : 0);
}

tokmap_status tokmap_batch_gather(const tokmap_batch *b, const tokmap_gather_options *options,
                                  tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_gather_options, labels)};
    tokmap_gather_options o;
    tokmap_i_gather_row rows[ROWS_AT_ONCE];
    tokmap_i_error_clear(err);
    if (!b)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "gather: batch is NULL");
    tokmap_status status = tokmap_i_take_options(&o, options, &kind, err);
    if (!status)
        status = tokmap_i_take_ignore_index(o.has_ignore_index, &o.ignore_index, err);
    const shape s = shape_of(b, o.format);
    if (!status)
        status = check_options(b, &o, s, err);
    if (status)
        return status;
    const size_t row_bytes = (b->sequence_length + (size_t)s.whole) * s.width;
    const bool is_timed = o.loader && !o.loader->fetch;
    const uint64_t since_ns = is_timed ? tokmap_i_now_ns() : 0;
    for (uint32_t first = 0; first < b->n_rows; first += ROWS_AT_ONCE) {
        const uint32_t n = MIN(b->n_rows - first, ROWS_AT_ONCE);
        for (uint32_t i = 0; i < n && !status; i++)
            status = take_row(b, first + i, s.whole, o.mask_labels != 0, &rows[i], err);
        if (status)
            return status;
        const tokmap_i_gather g = {.rows = rows,
                                   .n_rows = n,
                                   .n_inputs = b->sequence_length,
                                   .width = s.width,
                                   .whole = s.whole,
                                   .inputs = row_pointer(o.inputs, first, row_bytes),
                                   .labels = row_pointer(o.labels, first, row_bytes),
                                   .pad_id = o.pad_id,
                                   .ignore = o.ignore_index};
        if (!tokmap_i_gather_whole(&g))
            tokmap_i_gather_run(&g);
    }
    if (is_timed)
        tokmap_i_loader_add_wait(o.loader, tokmap_i_now_ns() - since_ns,
                                 b->n_rows * row_bytes * (1 + (o.inputs && o.labels)));
    return TOKMAP_OK;
}

size_t tokmap_batch_cu_seqlens(const tokmap_batch *b, uint32_t sequence_length, int32_t *cu_seqlens,
                               uint32_t *longest)
{
    static const int32_t first = 0; /* after the last row */
    size_t n = 0;
    uint64_t last = 0, most = 0;
    if (!b || b->row_stride < SIZE_UP_TO(tokmap_row, n_documents) ||
        (uint64_t)b->n_rows * sequence_length > INT32_MAX)
        return 0;
    for (uint32_t i = 0; i <= b->n_rows; i++) {
        const tokmap_row *row = i < b->n_rows ? row_at(b, i) : NULL;
        const int32_t *ends = row ? row->cu_seqlens : &first;
        const uint32_t n_ends = row ? row->n_documents + 1 : 1;
        if (!ends)
            return 0;
        for (uint32_t k = 0; k < n_ends && (uint32_t)ends[k] < sequence_length; k++) {
            const uint64_t at = (uint64_t)i * sequence_length + (uint32_t)ends[k];
            most = MAX(most, at - last);
            last = at;
            if (cu_seqlens)
                cu_seqlens[n] = (int32_t)at;
            n++;
        }
    }
    if (longest)
        *longest = (uint32_t)most;
    return n;
}
