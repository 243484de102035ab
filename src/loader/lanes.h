/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.h - lanes, which are numbers beside tokens, read ahead and gathered beside rows.
 *
 * A lane is read as a dataset of wider tokens (dataset/lane.h): each row of a step is read once for
 * the tokens, and once for each lane. */
#pragma once

#include "dataset/lane.h"
#include "loader/fetch_options.h"
#include "samples/samples.h"

enum {
    TOKMAP_I_MOST_LANES = 16
};

typedef struct tokmap_i_lanes {
    uint32_t n, n_datasets;
    const tokmap_lane *first[TOKMAP_I_MOST_LANES]; /* of each lane that of the first dataset */
    /* For each lane one for each dataset of all sources; NULL: its source lacks it. */
    tokmap_lane **lanes;
    /* The datasets of all sources, then for each lane what is read in place of each dataset; the
     * dataset itself if its source lacks the lane. */
    tokmap_dataset *const *read;
    tokmap_dataset **own_read; /* its memory; NULL: without lanes it is that of the samples */
} tokmap_i_lanes;

/* Opens the lanes that the options of the samples name. Close them even after an error. */
tokmap_status tokmap_i_lanes_open(tokmap_i_lanes *l, const tokmap_i_samples *samples,
                                  tokmap_error *err);
void tokmap_i_lanes_close(tokmap_i_lanes *l);

/* Returns the memory of the lanes. */
uint64_t tokmap_i_lanes_bytes(const tokmap_i_lanes *l);
/* Returns the bytes that all lanes have of a token. */
uint64_t tokmap_i_lanes_token_bytes(const tokmap_i_lanes *l);
/* Whether entry d of `read` is read, and not a dataset whose source lacks the lane. */
bool tokmap_i_lanes_reads(const tokmap_i_lanes *l, uint32_t d);
/* Adds the rows of each lane to the n_rows rows of a step, and their pieces. Returns false when out
 * of memory. */
bool tokmap_i_lanes_plan(const tokmap_i_lanes *l, uint32_t n_rows, tokmap_i_fetch_row *rows,
                         tokmap_i_fetch_pieces *pieces);
