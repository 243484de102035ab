/* batch_gather.c - the rows of a batch into buffers of the caller. */
#include <inttypes.h>
#include <stdlib.h>

#include "base.h"
#include "gather.h"
#include "status.h"
#include "tokmap_loader.h"

#define ROWS_AT_ONCE 256

static tokmap_status check(const tokmap_batch *b, const tokmap_gather_options *o, unsigned width,
                           tokmap_error *err)
{
    if (!b->rows || (b->token_bytes != 2 && b->token_bytes != 4))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "gather: this batch was never filled");
    if (o->format != TOKMAP_GATHER_TOKENS && o->format != TOKMAP_GATHER_I32 &&
        o->format != TOKMAP_GATHER_I64)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "gather: format is %d: must be 0, 1 or 2",
                    (int)o->format);
    if (o->format == TOKMAP_GATHER_TOKENS && (!o->inputs || o->labels))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "gather: tokens go to inputs, and labels is NULL");
    if (((uintptr_t)o->inputs | (uintptr_t)o->labels) % width != 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "gather: a buffer is not aligned to %u bytes", width);
    if (o->mask_labels != 0 && o->mask_labels != 1)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "gather: mask_labels is %" PRId32 ": must be 0 or 1",
                    o->mask_labels);
    for (uint32_t i = 0; o->mask_labels && i < b->n_rows; i++)
        if (!b->rows[i].loss_mask)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "gather: mask_labels needs a loader with TOKMAP_ROW_LOSS_MASK");
    return TOKMAP_OK;
}

static void *at(void *buffer, size_t row, size_t row_bytes)
{
    return buffer ? (uint8_t *)buffer + row * row_bytes : NULL;
}

tokmap_status tokmap_batch_gather(const tokmap_batch *b, const tokmap_gather_options *options,
                                  tokmap_error *err)
{
    tokmap_gather_options o;
    tokmap_i_gather_row rows[ROWS_AT_ONCE];
    tokmap_i_error_clear(err);
    if (!b || !options ||
        !take_struct(&o, sizeof o, options, SIZE_UP_TO(tokmap_gather_options, labels)))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "gather: an argument is NULL, or struct_size not set");
    const unsigned width = o.format == TOKMAP_GATHER_TOKENS ? b->token_bytes
                           : o.format == TOKMAP_GATHER_I32  ? 4
                                                            : 8;
    const tokmap_status status = check(b, &o, width, err);
    if (status)
        return status;
    const bool whole = o.format == TOKMAP_GATHER_TOKENS;
    const size_t row_bytes = (b->sequence_length + (size_t)whole) * width;
    for (uint32_t first = 0; first < b->n_rows; first += ROWS_AT_ONCE) {
        const uint32_t n = MIN(b->n_rows - first, ROWS_AT_ONCE);
        for (uint32_t i = 0; i < n; i++) {
            const tokmap_row *r = &b->rows[first + i];
            rows[i] = (tokmap_i_gather_row){r->tokens, r->token_bytes, r->n_tokens,
                                            o.mask_labels ? r->loss_mask : NULL};
        }
        tokmap_i_gather_run(&(tokmap_i_gather){.rows = rows,
                                               .n_rows = n,
                                               .n_inputs = b->sequence_length,
                                               .width = width,
                                               .whole = whole,
                                               .inputs = at(o.inputs, first, row_bytes),
                                               .labels = at(o.labels, first, row_bytes),
                                               .pad_id = o.pad_id,
                                               .ignore = o.ignore_index});
    }
    return TOKMAP_OK;
}
