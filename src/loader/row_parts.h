/* SPDX-License-Identifier: Apache-2.0 */
/* row_parts.h - the parts of rows beside tokens: where documents start, position and document ids,
 * the loss mask. All of them follow from the document index: docs/ORDER.md, section 7. */
#pragma once

#include "dataset/index_cache.h"
#include "dataset/token_files.h"
#include "tokmap_loader.h"

typedef struct tokmap_i_row_parts {
    uint32_t wanted; /* TOKMAP_ROW_... */
    uint32_t length; /* inputs of a row */
    size_t n_bytes;  /* of the memory that begins with cu_seqlens */
    int32_t *cu_seqlens;
    int32_t *position_ids, *document_ids; /* in the same memory, or arrays of the caller */
    uint8_t *loss_mask;                   /* likewise */
    tokmap_i_index_cache *index;          /* owned by the caller; NULL: use the map */
} tokmap_i_row_parts;

/* Allocates memory for n_rows rows. Returns false when out of memory. */
bool tokmap_i_row_parts_open(tokmap_i_row_parts *p, uint32_t wanted, uint32_t length,
                             uint32_t n_rows);
/* Chooses the arrays that are filled in from now on: the caller's, or for NULL the memory of p,
 * which is for n_rows rows. Returns false if an array is given for a part that is not wanted. */
bool tokmap_i_row_parts_use(tokmap_i_row_parts *p, uint32_t n_rows, int32_t *position_ids,
                            int32_t *document_ids, uint8_t *loss_mask);
void tokmap_i_row_parts_close(tokmap_i_row_parts *p);

/* Fills in the wanted parts, at least one, of row number i, whose position is set. by_documents:
 * each piece is a document of its own, and labels begin with its second token; else each piece but
 * the last ends with a document. trained: the roles whose labels count; NULL: no label counts.
 * After an error, tokmap_i_index_cache_fail fills in the details. */
tokmap_status tokmap_i_row_parts_fill(tokmap_i_row_parts *p, uint32_t i, const tokmap_dataset *ds,
                                      const tokmap_piece *pieces, size_t n_pieces,
                                      bool by_documents, const tokmap_i_roles *trained,
                                      tokmap_row *row);

/* Fills in ids: position ids count up from 0 in each document, document ids from one document to
 * the next. cu[0 .. n_documents] ends with the number of inputs. Either may be NULL. */
void tokmap_i_fill_ids(int32_t *positions, int32_t *documents, const int32_t *cu,
                       uint32_t n_documents);
/* The same as tokmap_i_fill_ids, but without vector code: the reference in tests. */
void tokmap_i_fill_ids_scalar(int32_t *positions, int32_t *documents, const int32_t *cu,
                              uint32_t n_documents);
