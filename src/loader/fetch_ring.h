/* fetch_ring.h - memory for rows that are read ahead, and reads into it past the page cache.
 *
 * A slot holds the rows of a step, each at a place of its own. Whoever wants to fill a place
 * himself asks for the place; a ring that is direct has rows read by io_uring: start some, then
 * take what is done, in whatever order it is. */
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

/* TOKMAP_ERR_UNSUPPORTED: it cannot be direct here, and err says why. Found out by reading. */
tokmap_status tokmap_i_ring_open(tokmap_i_ring **out, const tokmap_i_ring_options *o,
                                 tokmap_error *err);
/* No read may be under way. In a forked child: leaves the parent's alone. */
void tokmap_i_ring_close(tokmap_i_ring *r);

/* A place, aligned for any token width, for max_tokens of the widest dataset. */
void *tokmap_i_ring_place(const tokmap_i_ring *r, uint32_t slot, uint32_t row);

/* A row of a slot to be read: these tokens of a dataset; they may go on at its token 0. */
typedef struct tokmap_i_ring_row {
    uint32_t slot, row;
    uint32_t dataset, n_tokens;
    uint64_t first_token;
} tokmap_i_ring_row;

/* Puts it into the queue. Begins no read: take does. */
void tokmap_i_ring_start(tokmap_i_ring *r, const tokmap_i_ring_row *row);

typedef struct tokmap_i_ring_result {
    uint32_t slot, row;
    tokmap_status status; /* else err has been filled */
    const void *tokens;
} tokmap_i_ring_result;

/* Begins what can be, and hands out a row that is done. False: none is; `wait`: none is left. */
bool tokmap_i_ring_take(tokmap_i_ring *r, bool wait, tokmap_i_ring_result *out, tokmap_error *err);
/* Forgets the rows whose reads have not begun, and waits for the others. */
void tokmap_i_ring_drain(tokmap_i_ring *r);
/* Rows that were started and not taken. */
uint64_t tokmap_i_ring_n_started(const tokmap_i_ring *r);

/* Memory of all places. */
uint64_t tokmap_i_ring_bytes(const tokmap_i_ring *r);
/* Read by a ring that is direct, whatever of it was asked for. Any thread. */
uint64_t tokmap_i_ring_bytes_read(const tokmap_i_ring *r);

#endif /* TOKMAP_FETCH_RING_H */
