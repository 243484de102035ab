/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_ring.h - memory for rows that are read ahead, and direct reads into it.
 *
 * A slot holds the rows of a step, each at its own place. The caller may fill in places itself. A
 * direct ring reads rows with io_uring, past the page cache: start some, then take the ones that
 * are done, in any order. */
#pragma once

#include "loader/fetch_options.h"

typedef struct tokmap_i_ring tokmap_i_ring;

/* Opens a direct ring for DIRECT, with n_steps + 1 slots. TOKMAP_ERR_UNSUPPORTED: direct reads do
 * not work here; err says why. Each file is tried. */
tokmap_status tokmap_i_ring_open(tokmap_i_ring **out, const tokmap_i_fetch_options *o,
                                 tokmap_error *err);
/* Closes a ring. No read may be in flight. In a forked child it does not affect the parent's
 * ring. */
void tokmap_i_ring_close(tokmap_i_ring *r);

/* Returns the place of a row: aligned for any token width, with room for max_tokens of the widest
 * dataset of its group. */
void *tokmap_i_ring_place(const tokmap_i_ring *r, uint32_t slot, uint32_t row);

/* Adds a row to the queue, to be read into row number `row` of a slot. Starts no read: take
 * does. */
void tokmap_i_ring_start(tokmap_i_ring *r, uint32_t slot, uint32_t row,
                         const tokmap_i_fetch_row *tokens);

typedef struct tokmap_i_ring_result {
    uint32_t slot, row;
    tokmap_status status; /* if not TOKMAP_OK, err is filled in */
    const void *tokens;
} tokmap_i_ring_result;

/* Starts as many reads as possible, and returns a row that is done. Returns false if none is done,
 * or with `wait`, if none is left. */
bool tokmap_i_ring_take(tokmap_i_ring *r, bool wait, tokmap_i_ring_result *out, tokmap_error *err);
/* Drops the rows whose reads have not started, and waits for the others. */
void tokmap_i_ring_drain(tokmap_i_ring *r);
/* Counts the rows that were started and not taken. */
uint64_t tokmap_i_ring_n_started(const tokmap_i_ring *r);

/* Returns the memory of all places. */
uint64_t tokmap_i_ring_bytes(const tokmap_i_ring *r);
/* Returns the bytes that a direct ring has read, including the bytes around the rows. Any thread
 * may call it. */
uint64_t tokmap_i_ring_bytes_read(const tokmap_i_ring *r);
