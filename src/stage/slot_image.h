/* SPDX-License-Identifier: Apache-2.0 */
/* slot_image.h - writes a batch as the device reads it: expand_job.h. Pure.
 *
 * Memory for an image is allocated before any batch is known, for the maximum number of boundaries.
 * Only n_bytes of it are used and copied, because the tokens follow the actual boundaries. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stage/expand_job.h"
#include "tokmap_loader.h"

typedef struct tokmap_i_image_shape {
    uint32_t n_rows, length, token_bytes; /* token_bytes: the widest */
    bool has_masks, has_documents;
    uint32_t max_boundaries; /* of a batch, with has_documents */
    uint32_t n_slices;       /* slices of each whole row, if rows are slices; else 0 or 1 */
    bool has_position_ids, has_document_ids; /* for slices */
} tokmap_i_image_shape;

/* Returns the maximum size of an image; 0: it would be too large for 32-bit offsets. */
uint64_t tokmap_i_image_bytes(const tokmap_i_image_shape *shape);

typedef struct tokmap_i_image {
    uint8_t *memory; /* aligned to 64 bytes */
    /* Set by tokmap_i_image_begin: */
    uint32_t n_bytes;                                           /* used part of memory */
    uint32_t boundaries, tile_boundaries, positions, documents; /* offsets; 0: none */
    uint32_t n_boundaries, longest; /* longest: tokens in the longest document */
} tokmap_i_image;

/* Writes everything except the tokens. Returns false if there are more boundaries than the shape
 * has room for; n_boundaries is how many. */
bool tokmap_i_image_begin(tokmap_i_image *image, const tokmap_i_image_shape *shape,
                          const tokmap_row *rows);
/* Returns where the caller has to copy the tokens of a row, or with `labels` the labels of a
 * slice. */
uint8_t *tokmap_i_image_tokens(const tokmap_i_image *image, uint32_t row);
uint8_t *tokmap_i_image_labels(const tokmap_i_image *image, const tokmap_i_image_shape *shape,
                               uint32_t row);

/* Makes the job that expands the image. The caller adds the addresses and the format of the
 * outputs. */
tokmap_i_expand_job tokmap_i_image_job(const tokmap_i_image *image,
                                       const tokmap_i_image_shape *shape);
