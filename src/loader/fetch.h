/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.h - reads the rows of the next steps ahead, in one thread.
 *
 * The order of rows is known, so reading ahead replaces worker processes. There are four ways:
 *   POPULATE faults in the pages of the map (MADV_WILLNEED several steps ahead, then
 *             MADV_POPULATE_READ, which returns an error where an access would raise SIGBUS); rows
 *             are in the map and not copied
 *   DIRECT    io_uring and O_DIRECT into a ring buffer, past the page cache: for data larger than
 *             memory
 *   READ      the same ring buffer, filled by pread: where the map must not be used or is slow
 *   STORE     the same ring buffer, filled by threads that wait for a store (store_reads.h)
 * A step that could not be read is tried again when the caller asks for it. If it fails again, the
 * call returns the error, and the next call tries once more.
 *
 * The list of datasets must not change, and they must stay open, as long as the fetch. One thread
 * at a time calls it. */
#pragma once

#include "loader/fetch_options.h"
#include "tokmap_loader.h"

typedef struct tokmap_i_fetch tokmap_i_fetch;

/* TOKMAP_ERR_UNSUPPORTED: DIRECT does not work here (a file system without O_DIRECT, no io_uring,
 * too many token files, limits); err says why, and another kind may work. TOKMAP_ERR_IO: no thread
 * can be started, for any kind. DIRECT holds one descriptor for each token file and one for
 * io_uring. */
tokmap_status tokmap_i_fetch_open(tokmap_i_fetch **out, const tokmap_i_fetch_options *o,
                                  tokmap_error *err);
/* Waits for reads in flight, not for planned ones. is_child: in a forked child, which does not have
 * the thread, it frees the child's copy and does not affect the parent's fetch. */
void tokmap_i_fetch_close(tokmap_i_fetch *f, bool is_child);

/* Sets the next steps: step i has n_rows rows (1 to max_rows), beginning at position first + i *
 * stride. Must come before the first call of next. Drops what was read ahead, and takes back the
 * last step. Does not wait: a running call of `plan` continues to its end. The first call announces
 * to the system how the data will be read, so close a fetch that this one replaces first. */
void tokmap_i_fetch_restart(tokmap_i_fetch *f, uint64_t first, uint64_t stride, uint32_t n_rows);
/* Waits for the next step and hands out its rows, valid until the next call of next, restart or
 * close. After an error, and at the end, the next call is for the same step. If the step is ready,
 * the only system call is to wake the thread, when a quarter of the look-ahead is free or, with
 * POPULATE, half of the ready steps have been used. */
tokmap_status tokmap_i_fetch_next(tokmap_i_fetch *f, const tokmap_i_fetch_row **rows,
                                  tokmap_error *err);
/* Waits at most so long for what next would wait for. Returns false when the time is up. */
bool tokmap_i_fetch_wait(tokmap_i_fetch *f, uint64_t timeout_ns);

/* Fills in the fields of a loader's info that describe reading. */
void tokmap_i_fetch_describe(const tokmap_i_fetch *f, tokmap_loader_info *info);
/* Whether the caller had to wait for the last step, although the look-ahead had begun long before,
 * because reading the step took longer than reading from memory does. */
bool tokmap_i_fetch_is_late(const tokmap_i_fetch *f);
/* Doubles the look-ahead from the next step on, up to most_steps; or halves it again, if steps did
 * not come faster since it was doubled. */
void tokmap_i_fetch_adapt(tokmap_i_fetch *f);
/* Returns the memory of the ring buffer, used or not: n_steps + 1 steps of the longest rows. */
uint64_t tokmap_i_fetch_bytes(const tokmap_i_fetch *f);
