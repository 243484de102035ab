/* SPDX-License-Identifier: Apache-2.0 */
/* lane_file.h - the file of a lane: header, about, checksums, then numbers for each token. Pure.
 * docs/FORMAT.md section 16. */
#pragma once

#include "format/column_file.h"

enum {
    TOKMAP_I_LANE_CHECKSUMS_AT = 4096,
    TOKMAP_I_LANE_ABOUT_ROOM = TOKMAP_I_LANE_CHECKSUMS_AT - TOKMAP_I_SIDE_HEADER_BYTES,
    TOKMAP_I_LANE_MOST_BYTES = 65536, /* of the numbers of a token */
    TOKMAP_I_LANE_ALIGNMENT = 4096
};

extern const tokmap_i_side_kind tokmap_i_lane_kind; /* its header: tokmap_i_lane_header */

typedef struct tokmap_i_lane_header {
    uint32_t type, count, goes_with;
    uint8_t tokens_hash[16];
    uint64_t n_tokens;
    uint64_t n_bytes; /* of the file */
    uint64_t hash;    /* of the checksums */
    uint32_t about_bytes;
    uint64_t about_checksum;
    /* What follows from these */
    uint32_t token_bytes; /* size of the numbers of a token */
    uint64_t n_blocks;    /* checksums: one for each MiB of values */
    uint64_t offset;      /* of the first value in the file */
} tokmap_i_lane_header;

/* Returns the size of a number of this type, or 0 if there is no such type. */
uint32_t tokmap_i_lane_number_bytes(uint32_t type);
/* Computes what follows from type, count and n_tokens, and the size of the file. Returns false if a
 * token or the file would be too large, or there is no such type. */
bool tokmap_i_lane_place(tokmap_i_lane_header *h);
/* Returns the size of the checksums, with the zero bytes that follow them. */
static inline uint64_t tokmap_i_lane_checksums_bytes(const tokmap_i_lane_header *h)
{
    return h->offset - TOKMAP_I_LANE_CHECKSUMS_AT;
}
