/* SPDX-License-Identifier: Apache-2.0 */
/* segments_section.h - the segments section of a joined dataset: which files hold the tokens.
 * Pure; docs/FORMAT.md section 3.8. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format_limits.h"

enum {
    TOKMAP_I_SEGMENTS_HEAD_BYTES = 8,
    TOKMAP_I_SEGMENT_ENTRY_BYTES = 24
};

/* A section in memory. */
typedef struct tokmap_i_segments {
    const uint8_t *bytes;
    uint64_t n_bytes; /* at least TOKMAP_I_SEGMENTS_HEAD_BYTES */
    uint64_t n_tokens;
    uint32_t token_bytes;
    uint64_t n_segments, names_bytes; /* set by check */
} tokmap_i_segments;

typedef struct tokmap_i_segment {
    const char *name; /* not terminated */
    size_t name_bytes;
    uint64_t first_token, n_tokens;
    uint64_t token_offset;
} tokmap_i_segment;

/* Whether at most n_segments segments can fill a section of this size. A sparse file can have any
 * size. */
bool tokmap_i_segments_size_valid(uint64_t n_bytes, uint64_t n_segments);
/* Checks the whole section. Returns what is wrong, and sets *at to the wrong byte of the section;
 * NULL: nothing. */
const char *tokmap_i_segments_check(tokmap_i_segments *segments, uint64_t *at);
/* Returns a segment of a section that was checked; index < n_segments. */
tokmap_i_segment tokmap_i_segments_get(const tokmap_i_segments *segments, uint64_t index);
