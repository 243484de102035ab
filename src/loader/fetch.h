/* fetch.h - reads the rows of the next steps before they are asked for, in one thread.
 *
 * The order is known, so look-ahead is all that workers would be for. Three ways:
 *   POPULATE  the pages of the map are brought in (MADV_WILLNEED several steps ahead, then
 *             MADV_POPULATE_READ, which says what failed where touching would be SIGBUS); the rows
 *             are in the map, nothing is copied
 *   DIRECT    io_uring and O_DIRECT into a ring of our own, past the page cache: for data that is
 *             larger than memory
 *   READ      the same ring, filled by pread: where the map must not be touched or is slow
 * A step that could not be read is tried once more when it is asked for; what fails then is an
 * error of that step, and asking again tries again.
 *
 * The datasets stay open as long as the fetch. One thread at a time calls it. */
#ifndef TOKMAP_FETCH_H
#define TOKMAP_FETCH_H

#include "dataset/dataset.h"
#include "loader/latency.h"

typedef enum tokmap_i_fetch_kind {
    TOKMAP_I_FETCH_POPULATE,
    TOKMAP_I_FETCH_DIRECT,
    TOKMAP_I_FETCH_READ
} tokmap_i_fetch_kind;

/* Tokens first_token .. first_token + n_tokens - 1 of a dataset; they may go on at its token 0. */
typedef struct tokmap_i_fetch_row {
    uint32_t dataset; /* in the list of the options */
    uint32_t n_tokens;
    uint64_t first_token;
    const void *tokens; /* set by the fetch; with POPULATE NULL for a row that goes on at token 0,
                           of which nothing was checked: copy it with tokmap_dataset_read */
} tokmap_i_fetch_row;

/* Which rows a step has: n_rows of them, of which the first is sample `sample`. Called by the
 * thread of the fetch alone; once more for a step that is tried again. No row is longer than its
 * dataset. TOKMAP_END: there is no such step, nor any after it. */
typedef tokmap_status tokmap_i_fetch_plan(void *context, uint64_t sample, uint32_t n_rows,
                                          tokmap_i_fetch_row *rows, tokmap_error *err);

typedef struct tokmap_i_fetch_options {
    tokmap_i_fetch_kind kind;
    const tokmap_dataset *const *datasets;
    uint32_t n_datasets;
    uint32_t n_steps;    /* ahead of the one that is lent: 1 to 1024 */
    uint32_t max_rows;   /* of a step; of n_steps + 1 together 2^26 at most */
    uint32_t max_tokens; /* of a row */
    bool drop_behind;    /* POPULATE, READ: rows that were handed out leave the page cache */
    tokmap_i_fetch_plan *plan;
    /* NULL, or called before a step is planned, with its first sample, in the same thread: has rows
     * read in larger pieces than they are, so POPULATE does not ask for them one by one. */
    void (*ahead)(void *context, uint64_t sample);
    void *context;
} tokmap_i_fetch_options;

typedef struct tokmap_i_fetch tokmap_i_fetch;

/* TOKMAP_ERR_UNSUPPORTED: DIRECT does not work here (a file system without O_DIRECT, no io_uring,
 * limits), and err says why: another kind may. TOKMAP_ERR_IO: no thread can be started, for any
 * kind. DIRECT holds a descriptor for each dataset that has tokens, and one more. */
tokmap_status tokmap_i_fetch_open(tokmap_i_fetch **out, const tokmap_i_fetch_options *o,
                                  tokmap_error *err);
/* Waits for reads that are under way, not for those that are planned. */
void tokmap_i_fetch_close(tokmap_i_fetch *f);
/* In place of close in a forked child, where the thread is not: frees the child's copy, and leaves
 * the parent's fetch alone. */
void tokmap_i_fetch_abandon(tokmap_i_fetch *f);

/* The steps from here on: step number i has n_rows rows (1 to max_rows) from sample first + i *
 * stride on. Drops what was read ahead; nothing is lent any more. Does not wait: a plan that is
 * being asked for is asked to its end. The first call tells the system how the data will be read: a
 * fetch of the same data that this one replaces is closed before. */
void tokmap_i_fetch_restart(tokmap_i_fetch *f, uint64_t first, uint64_t stride, uint32_t n_rows);
/* Lends the rows of the next step until the next call of next, restart or close; waits for them.
 * After an error, and at the end, the same step is next. When the step is ready there is no system
 * call but to wake the thread, when a quarter of the look-ahead is to be filled again or, with
 * POPULATE, half of the steps that were ready are gone. */
tokmap_status tokmap_i_fetch_next(tokmap_i_fetch *f, const tokmap_i_fetch_row **rows,
                                  tokmap_error *err);

typedef struct tokmap_i_fetch_counts {
    uint64_t bytes_read; /* asked of the system, with DIRECT and READ */
    uint64_t n_waits, ns_waited;
    const tokmap_i_latency *waits; /* of all calls of next; it goes on changing */
} tokmap_i_fetch_counts;
tokmap_i_fetch_counts tokmap_i_fetch_get_counts(const tokmap_i_fetch *f);
/* Memory of the ring, used or not: room for n_steps + 1 steps of the longest rows. */
uint64_t tokmap_i_fetch_bytes(const tokmap_i_fetch *f);

#endif /* TOKMAP_FETCH_H */
