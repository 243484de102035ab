/* expand_job.h - a batch as it crosses the bus, and what is to be made of it.
 *
 * One stretch of memory, the image: the table of rows, the borders of documents, the place of each
 * tile among them, the masks, the tokens. The processor writes it (slot_image.c), the device reads
 * it (cuda/expand.cu), so everything is in the byte order that both have, and no struct has gaps.
 * The image begins at a multiple of 16, and each of its parts at one of 4. */
#ifndef TOKMAP_EXPAND_JOB_H
#define TOKMAP_EXPAND_JOB_H

#include <stdint.h>

enum {
    TOKMAP_I_TILE = 2048, /* inputs that one block makes */
    TOKMAP_I_BLOCK_THREADS = 256,
    TOKMAP_I_ROW_MASKED = 1 /* it has a mask */
};

typedef struct tokmap_i_image_row {
    uint64_t tokens;      /* from the start of the image */
    uint32_t n_tokens;    /* inputs and one more; fewer than L + 1: the rest is filled */
    uint32_t token_bytes; /* 2 or 4; the tokens are aligned to that */
    uint32_t flags;
    uint32_t first_border; /* its first document, among the borders of all rows, */
    uint32_t n_borders;    /* and how many; what a short row lacks counts as one */
    uint32_t mask;         /* from the start of the image: a bit for each of L inputs, in words */
} tokmap_i_image_row;

typedef struct tokmap_i_expand_job {
    uint64_t image; /* addresses, as the device sees them; outputs that are 0 are not wanted */
    uint64_t inputs, labels, position_ids, document_ids, cu_seqlens;
    int64_t ignore;
    uint32_t n_rows, length; /* L */
    uint32_t input_bytes, label_bytes;
    uint32_t pad_id;
    uint32_t row_positions; /* position ids count from the begin of the row */
    uint32_t n_tiles;       /* of a row */
    uint32_t borders;       /* from the start of the image: row * L + position, as int32; 0: not
                              wanted */
    uint32_t tile_borders;  /* likewise, for each tile: which is the last one at or before it */
    uint32_t n_borders;     /* of all rows */
    uint32_t n_cu;          /* entries of cu_seqlens */
    uint32_t reserved;
} tokmap_i_expand_job;

#endif /* TOKMAP_EXPAND_JOB_H */
