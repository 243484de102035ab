/* SPDX-License-Identifier: Apache-2.0 */
/* expand_job.h - the image of a batch, which is copied to the device, and the job that expands it.
 *
 * The image is one block of memory: the table of rows, the masks, for each tile its first boundary,
 * the boundaries of documents, the tokens. For slices of rows it has position ids and document ids
 * instead, because these depend on the whole row. The processor writes it (slot_image.c) and the
 * device reads it (cuda/expand.cu); both have the same byte order, and no struct has gaps. The
 * image begins at a multiple of 16, and each part at a multiple of 4. */
#pragma once

#include <stdint.h>

enum {
    TOKMAP_I_TILE = 2048, /* inputs per block */
    TOKMAP_I_BLOCK_THREADS = 256,
    TOKMAP_I_ROW_MASKED = 1 /* the row has a mask */
};

typedef struct tokmap_i_image_row {
    uint64_t tokens;      /* from the start of the image */
    uint32_t n_tokens;    /* inputs + 1; if fewer than L + 1, the rest is filled */
    uint32_t token_bytes; /* 2 or 4; the tokens are aligned to that */
    uint32_t flags;
    uint32_t first_boundary; /* index of its first one among those of all rows */
    uint32_t n_boundaries;   /* how many; the missing part of a short row counts as one */
    uint32_t mask;           /* index of its first boundary among the boundaries of all rows */
} tokmap_i_image_row;

typedef struct tokmap_i_expand_job {
    uint64_t image; /* these are device addresses; 0: the output is not wanted */
    uint64_t inputs, labels, position_ids, document_ids, cu_seqlens;
    int64_t ignore;
    uint32_t n_rows, length; /* L */
    uint32_t input_bytes, label_bytes;
    uint32_t pad_id;
    uint32_t row_positions; /* position ids count from the beginning of the row */
    uint32_t n_tiles;       /* of a row */
    /* from the start of the image: row * L + position, as int32; 0: not wanted. For slices, L is
     * the length of whole rows */
    uint32_t boundaries;
    /* likewise, for each tile: index of the last boundary at or before it */
    uint32_t tile_boundaries;
    uint32_t n_boundaries; /* of all rows */
    uint32_t n_cu;         /* number of entries in cu_seqlens */
    uint32_t cu_end;       /* the value of unused entries */
    /* Only for slices, else 0: */
    uint32_t labels_at; /* distance from the tokens of a row to its labels */
    uint32_t positions; /* from the start of the image: position ids of all inputs, as int32 */
    uint32_t documents; /* likewise, document ids of all inputs */
    uint32_t reserved;
} tokmap_i_expand_job;
