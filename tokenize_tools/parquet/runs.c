/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/runs.h"

#include "parquet/thrift.h"
#include "text/little_endian.h"

static uint64_t load_some(const uint8_t *p, const uint8_t *end)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < 8 && p + i < end; i++)
        n |= (uint64_t)p[i] << (8 * i);
    return n;
}

uint64_t parquet_bits(const uint8_t *bytes, const uint8_t *end, uint64_t bit, uint32_t width)
{
    const uint8_t *p = bytes + bit / 8;
    const unsigned shift = bit % 8;
    uint64_t n = end - p >= 8 ? le_get64(p) : load_some(p, end);
    n >>= shift;
    if (shift + width > 64 && end - p > 8)
        n |= (uint64_t)p[8] << (64 - shift);
    return width < 64 ? n & (((uint64_t)1 << width) - 1) : n;
}

void parquet_runs_begin(parquet_runs *r, uint32_t width, const uint8_t *bytes, size_t n_bytes)
{
    *r = (parquet_runs){.at = bytes, .end = bytes + n_bytes, .width = width};
}

/* The last packed run of some writers is cut after the byte with the last value. */
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
    r->value = (uint32_t)load_some(r->at, r->at + n_bytes);
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
    *value = (uint32_t)parquet_bits(r->packed, r->at, r->bit, r->width);
    r->bit += r->width;
    return true;
}
