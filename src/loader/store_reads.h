/* SPDX-License-Identifier: Apache-2.0 */
/* store_reads.h - rows of a store, read at the same time by threads that wait for them.
 *
 * A request takes a tenth of a second or more, so many are under way. Start rows, and take the ones
 * that are done, in any order, as of a direct ring (fetch_ring.h). Each thread takes the rows of a
 * step, or of several if more steps wait than threads, and calls the source with all their ranges.
 * So no step waits for the slowest request of another one. Rows of datasets on a disk are read here
 * too, if a loader has both. */
#pragma once

#include "loader/fetch_ring.h"

typedef struct tokmap_i_store_reads tokmap_i_store_reads;

/* n_slots: of the fetch. TOKMAP_ERR_IO: no thread can be started. */
tokmap_status tokmap_i_store_reads_open(tokmap_i_store_reads **out, const tokmap_i_fetch_options *o,
                                        uint32_t n_slots, tokmap_error *err);
/* Drops all rows. is_child: in a forked child, which does not have the threads. */
void tokmap_i_store_reads_close(tokmap_i_store_reads *r, bool is_child);

/* Adds a row of a dataset to the queue, to be read to this place. `tokens` stays as it is until the
 * row is taken or dropped. */
void tokmap_i_store_reads_start(tokmap_i_store_reads *r, uint32_t slot, uint32_t row,
                                const tokmap_i_fetch_row *tokens, const tokmap_dataset *ds,
                                void *to);
/* Lets the threads begin with the rows in the queue. */
void tokmap_i_store_reads_go(tokmap_i_store_reads *r);
/* Returns a row that is done. Waits for one until tokmap_i_now_ns() is until_ns, 0: not at all,
 * UINT64_MAX: for ever. Returns false if none is done then, if none is left, or if
 * tokmap_i_store_reads_interrupt was called. */
bool tokmap_i_store_reads_take(tokmap_i_store_reads *r, uint64_t until_ns,
                               tokmap_i_ring_result *out, tokmap_error *err);
/* Makes a `take` that waits, or the next one, return. Any thread may call it. */
void tokmap_i_store_reads_interrupt(tokmap_i_store_reads *r);
/* Drops the rows whose reads have not begun, cancels the others, and waits for them. */
void tokmap_i_store_reads_drain(tokmap_i_store_reads *r);
/* Counts the rows that were started and not taken. */
uint64_t tokmap_i_store_reads_n_started(tokmap_i_store_reads *r);
/* Returns the bytes that were asked for. Any thread may call it. */
uint64_t tokmap_i_store_reads_bytes(const tokmap_i_store_reads *r);
