/* SPDX-License-Identifier: Apache-2.0 */
#include "format/lane_file.h"

#include "base/base.h"
#include "base/le.h"
#include "format/format.h"
#include "tokmap.h"

#define FIELD(at, member) LE_FIELD(tokmap_i_lane_header, at, member)
static const le_field fields[] = {
    FIELD(12, type),        FIELD(16, count),       FIELD(20, goes_with),
    FIELD(24, tokens_hash), FIELD(40, n_tokens),    FIELD(48, n_bytes),
    FIELD(56, hash),        FIELD(64, about_bytes), FIELD(72, about_checksum)};

uint32_t tokmap_i_lane_number_bytes(uint32_t type)
{
    static const uint8_t n_bytes[] = {
        [TOKMAP_LANE_U8] = 1,      [TOKMAP_LANE_I8] = 1,     [TOKMAP_LANE_U16] = 2,
        [TOKMAP_LANE_I16] = 2,     [TOKMAP_LANE_U32] = 4,    [TOKMAP_LANE_I32] = 4,
        [TOKMAP_LANE_F16] = 2,     [TOKMAP_LANE_BF16] = 2,   [TOKMAP_LANE_F32] = 4,
        [TOKMAP_LANE_F8_E4M3] = 1, [TOKMAP_LANE_F8_E5M2] = 1};
    return type < sizeof n_bytes ? n_bytes[type] : 0;
}

bool tokmap_i_lane_place(tokmap_i_lane_header *h)
{
    const uint32_t number_bytes = tokmap_i_lane_number_bytes(h->type);
    uint64_t value_bytes;
    if (number_bytes == 0 || h->count == 0 || h->count > TOKMAP_I_LANE_MOST_BYTES / number_bytes ||
        h->n_tokens > TOKMAP_I_MAX_TOKENS)
        return false;
    h->token_bytes = h->count * number_bytes;
    if (__builtin_mul_overflow(h->n_tokens, h->token_bytes, &value_bytes) ||
        value_bytes > UINT64_C(1) << 61)
        return false;
    h->n_blocks = div_up(value_bytes, TOKMAP_I_BLOCK_BYTES);
    h->offset = TOKMAP_I_LANE_CHECKSUMS_AT + round_up(8 * h->n_blocks, TOKMAP_I_LANE_ALIGNMENT);
    h->n_bytes = h->offset + value_bytes;
    return true;
}

static const char *check_sizes(void *header)
{
    tokmap_i_lane_header *h = header;
    const uint64_t n_bytes = h->n_bytes;
    if (!tokmap_i_lane_place(h) || h->n_bytes != n_bytes || h->goes_with > TOKMAP_WITH_INPUT ||
        h->about_bytes > TOKMAP_I_LANE_ABOUT_ROOM)
        return "impossible type or sizes";
    return NULL;
}

const tokmap_i_side_kind tokmap_i_lane_kind = {
    .magic = {0x89, 'T', 'M', 'L', '\r', '\n', 0x1A, '\n'},
    .what = "a lane",
    .again = "write the lane again",
    TOKMAP_I_SIDE_FIELDS(fields),
    .size_at = 48,
    .check = check_sizes};
