/* slot_image.h - writes a batch as the device reads it: expand_job.h. Pure.
 *
 * Memory for an image is taken before any batch is known, for the most borders there may be. Only
 * n_bytes of it are used and copied: tokens follow the borders that the batch has. */
#ifndef TOKMAP_SLOT_IMAGE_H
#define TOKMAP_SLOT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stage/expand_job.h"
#include "tokmap_loader.h"

typedef struct tokmap_i_image_shape {
    uint32_t n_rows, length, token_bytes; /* the widest */
    bool has_masks, has_documents;
    uint32_t max_borders; /* of a batch, with has_documents */
} tokmap_i_image_shape;

/* The most bytes that an image takes; 0: it would be too large for 32-bit places. */
uint64_t tokmap_i_image_bytes(const tokmap_i_image_shape *shape);

typedef struct tokmap_i_image {
    uint8_t *memory; /* aligned to 64 bytes */
    /* Written by the call: */
    uint32_t n_bytes;               /* the part of memory that is used */
    uint32_t borders, tile_borders; /* places; 0: none */
    uint32_t n_borders, longest;    /* documents, and the longest one */
} tokmap_i_image;

/* Everything but the tokens of the rows. False: there are more borders than the shape has room for;
 * n_borders says how many. */
bool tokmap_i_image_begin(tokmap_i_image *image, const tokmap_i_image_shape *shape,
                          const tokmap_row *rows);
/* Where the tokens of a row go, which is the caller's to do. */
uint8_t *tokmap_i_image_tokens(const tokmap_i_image *image, uint32_t row);

/* What is to be made of the image; the caller adds the addresses and what outputs look like. */
tokmap_i_expand_job tokmap_i_image_job(const tokmap_i_image *image,
                                       const tokmap_i_image_shape *shape);

#endif /* TOKMAP_SLOT_IMAGE_H */
