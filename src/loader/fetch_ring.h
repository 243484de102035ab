/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_ring.h - memory for rows that are read ahead, and direct reads into it.
 *
 * A slot holds the rows of a step, each at its own place. The caller may fill places itself. A
 * direct ring reads rows with io_uring, past the page cache: start some, then take the ones that
 * are done, in any order. */
#ifndef TOKMAP_FETCH_RING_H
#define TOKMAP_FETCH_RING_H

#include "dataset/dataset.h"

typedef struct tokmap_i_ring tokmap_i_ring;

typedef struct tokmap_i_ring_options {
    const tokmap_dataset *const *datasets;
    uint32_t n_datasets;
    uint32_t n_slots, max_rows, max_tokens;
    bool direct;
} tokmap_i_ring_options;

/* TOKMAP_ERR_UNSUPPORTED: direct reads do not work here; err says why. Each file is tried. */
tokmap_status tokmap_i_ring_open(tokmap_i_ring **out, const tokmap_i_ring_options *o,
                                 tokmap_error *err);
/* No read may be in flight. In a forked child it does not affect the parent's ring. */
void tokmap_i_ring_close(tokmap_i_ring *r);

/* The place of a row: aligned for any token width, with room for max_tokens of the widest
 * dataset. */
void *tokmap_i_ring_place(const tokmap_i_ring *r, uint32_t slot, uint32_t row);

/* A row to be read into a slot. Its tokens may be in several files, and wrap around to token 0. */
typedef struct tokmap_i_ring_row {
    uint32_t slot, row;
    uint32_t dataset, n_tokens;
    uint64_t first_token;
} tokmap_i_ring_row;

/* Adds a row to the queue. Starts no read: take does. */
void tokmap_i_ring_start(tokmap_i_ring *r, const tokmap_i_ring_row *row);

typedef struct tokmap_i_ring_result {
    uint32_t slot, row;
    tokmap_status status; /* if not TOKMAP_OK, err is filled in */
    const void *tokens;
} tokmap_i_ring_result;

/* Starts as many reads as possible, and returns a row that is done. False: none is done, or with
 * `wait`, none is left. */
bool tokmap_i_ring_take(tokmap_i_ring *r, bool wait, tokmap_i_ring_result *out, tokmap_error *err);
/* Drops the rows whose reads have not started, and waits for the others. */
void tokmap_i_ring_drain(tokmap_i_ring *r);
/* Rows started and not taken. */
uint64_t tokmap_i_ring_n_started(const tokmap_i_ring *r);

/* Memory of all places. */
uint64_t tokmap_i_ring_bytes(const tokmap_i_ring *r);
/* Bytes that a direct ring has read, including those around the rows. For any thread. */
uint64_t tokmap_i_ring_bytes_read(const tokmap_i_ring *r);

#endif /* TOKMAP_FETCH_RING_H */
