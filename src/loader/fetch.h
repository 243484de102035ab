/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.h - reads the rows of the next steps ahead, in one thread.
 *
 * The order of rows is known, so reading ahead replaces worker processes. There are three ways:
 *   POPULATE  brings in the pages of the map (MADV_WILLNEED several steps ahead, then
 *             MADV_POPULATE_READ, which returns an error where an access would raise SIGBUS); rows
 *             are in the map and not copied
 *   DIRECT    io_uring and O_DIRECT into a ring buffer, past the page cache: for data larger than
 *             memory
 *   READ      the same ring buffer, filled by pread: where the map must not be used or is slow
 * A step that could not be read is tried again when the caller asks for it. If it fails then, the
 * call returns the error, and the next call tries again.
 *
 * The list of datasets must stay as it is, and they open, as long as the fetch. One thread at a
 * time calls it. */
#pragma once

#include "dataset/token_files.h"
#include "tokmap_loader.h"

/* ---- Which rows are read ahead, and how ---- */

/* Tokens first_token .. first_token + n_tokens - 1 of a dataset; they may wrap around in it, or in
 * a part of it. */
typedef struct tokmap_i_fetch_row {
    uint32_t dataset; /* index in the list of the options */
    uint32_t n_tokens;
    uint64_t first_token;
    tokmap_i_extent within;
    const void *tokens; /* set by the fetch; with POPULATE NULL for a row that is not in the map of
                           one file, which was not checked: copy it with tokmap_i_pages_read. NULL
                           also for one of pieces, which were checked */
    size_t first_piece, n_pieces; /* if it is one of pieces, not 0 */
    bool is_mapped;               /* those are in the map already */
} tokmap_i_fetch_row;

/* Of the rows of a step. */
typedef struct tokmap_i_fetch_pieces {
    tokmap_piece *list;
    size_t n, capacity;
} tokmap_i_fetch_pieces;

/* false: no memory. */
bool tokmap_i_fetch_add_pieces(tokmap_i_fetch_pieces *to, const tokmap_piece *pieces, size_t n);

/* Fills in the n_rows rows of a step, from this position on (order/skips.h), and their pieces.
 * Called only in the thread of the fetch, and again for a step that is tried again. A row is inside
 * its dataset, and has 1 to max_tokens tokens.
 * TOKMAP_END: this step and later ones do not exist. */
typedef tokmap_status tokmap_i_fetch_plan(void *context, uint64_t position, uint32_t n_rows,
                                          tokmap_i_fetch_row *rows, tokmap_i_fetch_pieces *pieces,
                                          tokmap_error *err);

typedef struct tokmap_i_fetch_options {
    tokmap_io io; /* POPULATE, DIRECT or READ */
    const tokmap_dataset *const *datasets;
    uint32_t n_datasets;
    uint32_t n_steps;    /* read ahead: 1 to 1024 */
    uint32_t max_rows;   /* of a step; at most 2^26 in n_steps + 1 steps */
    uint32_t max_tokens; /* of a row */
    bool drop_behind;    /* POPULATE, READ: used rows are dropped from the page cache */
    tokmap_i_fetch_plan *plan;
    /* NULL, or called in the same thread before a step is planned, with its first position. It
     * reads in larger pieces than rows, so POPULATE does not request rows one by one. */
    void (*ahead)(void *context, uint64_t position);
    void *context;
} tokmap_i_fetch_options;

/* ---- Fetch ---- */

typedef struct tokmap_i_fetch tokmap_i_fetch;

/* TOKMAP_ERR_UNSUPPORTED: DIRECT does not work here (a file system without O_DIRECT, no io_uring,
 * too many token files, limits); err says why, and another kind may work. TOKMAP_ERR_IO: no thread
 * can be started, for any kind. DIRECT holds a descriptor for each token file, and one more. */
tokmap_status tokmap_i_fetch_open(tokmap_i_fetch **out, const tokmap_i_fetch_options *o,
                                  tokmap_error *err);
/* Waits for reads in flight, not for planned ones. is_child: in a forked child, which does not have
 * the thread, it frees the child's copy and does not affect the parent's fetch. */
void tokmap_i_fetch_close(tokmap_i_fetch *f, bool is_child);

/* Comes before the first call of next. Sets the next steps: step i has n_rows rows (1 to max_rows),
 * beginning at position first + i * stride. Drops what was read ahead, and ends the loan of the
 * last step. Does not wait: a running call of `plan` continues to its end. The first call announces
 * to the system how the data will be read, so close a fetch that this one replaces before it. */
void tokmap_i_fetch_restart(tokmap_i_fetch *f, uint64_t first, uint64_t stride, uint32_t n_rows);
/* Waits for the next step and lends its rows until the next call of next, restart or close. After
 * an error, and at the end, the next call is for the same step. If the step is ready, the only
 * system call is to wake the thread, when a quarter of the look-ahead is free or, with POPULATE,
 * half of the ready steps have been used. */
tokmap_status tokmap_i_fetch_next(tokmap_i_fetch *f, const tokmap_i_fetch_row **rows,
                                  tokmap_error *err);

/* Fills in what the info of a loader says about reading. */
void tokmap_i_fetch_describe(const tokmap_i_fetch *f, tokmap_loader_info *info);
/* The memory of the ring buffer, used or not: n_steps + 1 steps of the longest rows. */
uint64_t tokmap_i_fetch_bytes(const tokmap_i_fetch *f);
