/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/parquet/integers.h"

#include "formats/parquet/thrift.h"
#include "base/le.h"

/* Reads `width` bits, at most 64, from bit number `bit` on; bits after `end` are 0. */
static uint64_t take_bits(const uint8_t *bytes, const uint8_t *end, uint64_t bit, uint32_t width)
{
    const uint8_t *p = bytes + bit / 8;
    const unsigned shift = bit % 8;
    uint64_t n = end - p >= 8 ? le_get64(p) : le_get(p, (size_t)(end - p));
    n >>= shift;
    if (shift + width > 64 && end - p > 8)
        n |= (uint64_t)p[8] << (64 - shift);
    return width < 64 ? n & (((uint64_t)1 << width) - 1) : n;
}

void parquet_runs_begin(parquet_runs *r, uint32_t width, const uint8_t *bytes, size_t n_bytes)
{
    *r = (parquet_runs){.at = bytes, .end = bytes + n_bytes, .width = width};
}

/* Begins a packed run. Some writers end the last one after the byte with the last value. */
static void begin_packed(parquet_runs *r, uint64_t n_groups)
{
    const uint64_t n_bytes = n_groups * r->width, there = (uint64_t)(r->end - r->at);
    r->packed = r->at;
    r->bit = 0;
    r->left = n_bytes <= there ? n_groups * 8 : there * 8 / r->width;
    r->at += n_bytes <= there ? n_bytes : there;
}

static bool begin_run(parquet_runs *r)
{
    uint64_t head;
    if (!thrift_varint(&r->at, r->end, &head) || head >> 1 > UINT32_MAX)
        return false;
    if (head & 1) {
        begin_packed(r, head >> 1);
        return true;
    }
    const size_t n_bytes = (r->width + 7) / 8;
    if ((size_t)(r->end - r->at) < n_bytes)
        return false;
    r->packed = NULL;
    r->value = (uint32_t)le_get(r->at, n_bytes);
    r->at += n_bytes;
    r->left = head >> 1;
    return r->width == 32 || r->value >> r->width == 0;
}

bool parquet_runs_next(parquet_runs *r, uint32_t *value)
{
    while (r->left == 0) {
        if (!begin_run(r))
            return false;
    }
    r->left--;
    if (!r->packed) {
        *value = r->value;
        return true;
    }
    *value = (uint32_t)take_bits(r->packed, r->at, r->bit, r->width);
    r->bit += r->width;
    return true;
}

/* ---- Differences ---- */

#define MAX_BLOCK_VALUES (1 << 24)

bool parquet_delta_begin(parquet_delta *d, const uint8_t *bytes, size_t n_bytes)
{
    uint64_t block_values, first;
    *d = (parquet_delta){.at = bytes, .end = bytes + n_bytes};
    if (!thrift_varint(&d->at, d->end, &block_values) ||
        !thrift_varint(&d->at, d->end, &d->n_miniblocks) ||
        !thrift_varint(&d->at, d->end, &d->left) || !thrift_varint(&d->at, d->end, &first))
        return false;
    if (d->n_miniblocks == 0 || block_values > MAX_BLOCK_VALUES ||
        block_values % d->n_miniblocks != 0)
        return false;
    d->per_miniblock = block_values / d->n_miniblocks;
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

/* Begins a miniblock when its values are needed: at the end, miniblocks without values may be
 * missing. */
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
    d->last += d->least + take_bits(d->packed, d->at, d->in_miniblock * width, width);
    d->in_miniblock++;
    return true;
}

const uint8_t *parquet_delta_end(const parquet_delta *d)
{
    parquet_delta copy = *d;
    /* The first value is in the header. */
    for (uint64_t n = copy.left; n > 1;) {
        if (!begin_miniblock(&copy))
            return NULL;
        n -= n - 1 < copy.per_miniblock ? n - 1 : copy.per_miniblock;
    }
    return copy.at;
}
