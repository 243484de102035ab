/* SPDX-License-Identifier: Apache-2.0 */
/* remaining.h - how long a pack will still take, for the line of progress. The text takes the time,
 * and a byte of a compressed file or of a Parquet file stands for more text than one of a plain
 * file; how much more is measured. */
#pragma once

#include "request/inputs.h"

typedef struct pack_remaining { /* start with {0} */
    struct {
        uint64_t total, done, measured, text; /* bytes stored, for this process; text in bytes */
    } kinds[2];                               /* plain and dense files */
    uint64_t started_ns;
    uint64_t which, stored; /* the input and the byte that the work has reached */
} pack_remaining;

/* Adds the inputs to what this process does, without the first `stored` bytes, which were done
 * before. The clock starts at the first call. */
void pack_remaining_expect(pack_remaining *r, const pack_inputs *inputs, uint64_t stored);
/* The next inputs begin, at this byte. */
void pack_remaining_enter(pack_remaining *r, uint64_t stored);
/* The work has reached a byte of these inputs, in input number `which`, after so much more text. */
void pack_remaining_reach(pack_remaining *r, const pack_inputs *inputs, uint64_t which,
                          uint64_t stored, uint64_t text_bytes);
/* Returns the seconds that are left; below 0: not known. */
double pack_remaining_seconds(const pack_remaining *r, uint64_t now_ns);
