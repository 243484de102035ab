/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/delta.h"

#include "parquet/runs.h"
#include "parquet/thrift.h"

enum {
    MAX_BLOCK_VALUES = 1 << 24
};

bool parquet_delta_begin(parquet_delta *d, const uint8_t *bytes, size_t n_bytes)
{
    uint64_t block_values, first;
    *d = (parquet_delta){.at = bytes, .end = bytes + n_bytes};
    if (!thrift_varint(&d->at, d->end, &block_values) ||
        !thrift_varint(&d->at, d->end, &d->n_miniblocks) ||
        !thrift_varint(&d->at, d->end, &d->n_values) || !thrift_varint(&d->at, d->end, &first))
        return false;
    if (d->n_miniblocks == 0 || block_values > MAX_BLOCK_VALUES ||
        block_values % d->n_miniblocks != 0)
        return false;
    d->per_miniblock = block_values / d->n_miniblocks;
    d->left = d->n_values;
    d->last = (uint64_t)thrift_zigzag(first);
    return d->per_miniblock > 0 && d->per_miniblock % 8 == 0;
}

static bool begin_block(parquet_delta *d)
{
    uint64_t least;
    if (!thrift_varint(&d->at, d->end, &least) || (uint64_t)(d->end - d->at) < d->n_miniblocks)
        return false;
    d->least = (uint64_t)thrift_zigzag(least);
    d->widths = d->at;
    d->at += d->n_miniblocks;
    d->miniblock = 0;
    return true;
}

/* Miniblocks without values may be missing at the end, so they are read only when they are
 * needed. */
static bool begin_miniblock(parquet_delta *d)
{
    if (d->widths)
        d->miniblock++;
    if ((!d->widths || d->miniblock == d->n_miniblocks) && !begin_block(d))
        return false;
    const uint8_t width = d->widths[d->miniblock];
    const uint64_t n_bytes = d->per_miniblock / 8 * width;
    if (width > 64 || n_bytes > (uint64_t)(d->end - d->at))
        return false;
    d->packed = d->at;
    d->at += n_bytes;
    d->in_miniblock = 0;
    return true;
}

bool parquet_delta_next(parquet_delta *d, uint64_t *value)
{
    if (d->left == 0)
        return false;
    *value = d->last;
    if (--d->left == 0)
        return true;
    if ((!d->packed || d->in_miniblock == d->per_miniblock) && !begin_miniblock(d))
        return false;
    const uint8_t width = d->widths[d->miniblock];
    d->last += d->least + parquet_bits(d->packed, d->at, d->in_miniblock * width, width);
    d->in_miniblock++;
    return true;
}

const uint8_t *parquet_delta_end(const parquet_delta *d)
{
    parquet_delta copy = *d;
    /* The first value is in the header. */
    for (uint64_t n = copy.n_values; n > 1;) {
        if (!begin_miniblock(&copy))
            return NULL;
        n -= n - 1 < copy.per_miniblock ? n - 1 : copy.per_miniblock;
    }
    return copy.at;
}
