/* SPDX-License-Identifier: Apache-2.0 */
/* expand_case.h - random batches, their images, and what the kernel must make of them: a reference
 * that reads like tokmap_stage.h and section 7 of docs/ORDER.md, token by token, from rows. */
#pragma once

#include "support/check.h"

#include "base/base.h"
#include "stage/expand.h"
#include "stage/slot_image.h"
#include "tokmap_stage.h"

enum {
    EXPAND_OUTPUTS = 5,
    EXPAND_ALL = (1 << EXPAND_OUTPUTS) - 1
};

typedef enum cuts {
    CUTS_NONE,
    CUTS_FEW,
    CUTS_SOME,
    CUTS_MOST,
    CUTS_EVERYWHERE, /* each document is one token */
    CUTS_AT_TILES,   /* at begins of tiles and beside them */
    CUTS_AT_WORDS,   /* likewise, of 32 inputs */
    N_CUTS
} cuts;

/* What a batch is to be like. */
typedef struct plan {
    uint32_t n_rows, length;
    uint32_t widths; /* of tokens: 2, 4, or 2 | 4: mixed */
    cuts cuts;
    bool has_short_rows, has_masks;
    uint32_t n_slices; /* of a row; 0: rows are whole */
    uint32_t outputs;  /* TOKMAP_STAGE_... */
    uint32_t input_bytes, label_bytes, pad_id;
    int64_t ignore;
    uint32_t n_cu; /* 0: one more than there are documents */
} plan;

/* What has come up, so that no change of the generator makes the random cases poorer unseen. */
extern struct expand_seen {
    uint32_t widths[2][2]; /* of inputs and labels */
    uint64_t tile_boundaries, documents_of_one, short_rows, one_input, masked;
    uint64_t short_at_tile, last_tiles_of_one, no_documents, row_positions, small_cu, cases;
    uint64_t full_images, refused_images, slices;
} expand_seen;

plan random_plan(void);
/* Does a job whose addresses are the host's; the image has so many bytes. */
typedef void expand_run(const tokmap_i_expand_job *job, size_t image_bytes);
/* Makes a batch and its image, checks the image, and the outputs of each way to expand it. */
void check_plan(const plan *p, expand_run *const *runs, const char *const *names, int n_runs);
