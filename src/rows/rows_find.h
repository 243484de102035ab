/* SPDX-License-Identifier: Apache-2.0 */
/* rows_find.h - finds the row of a piece of a document. */
#pragma once

#include "rows/rows.h"

/* Starts as {rows, reader}. Keeps the rows of one chunk, so pieces in order are quick to find. */
typedef struct tokmap_i_rows_finder {
    const tokmap_i_rows *rows;
    tokmap_i_rows_reader *reader;
    uint64_t chunk; /* the chunk that is loaded */
    /* for each of its documents, from its first one on: 1 + its shared row, or 0; or NULL */
    uint32_t *shared_in;
    uint64_t n_documents;
} tokmap_i_rows_finder;

void tokmap_i_rows_finder_close(tokmap_i_rows_finder *f);
/* Finds the row of part number `part`, of n_tokens, of a document. */
tokmap_status tokmap_i_rows_find(tokmap_i_rows_finder *f, uint64_t document, uint64_t part,
                                 uint64_t n_tokens, uint64_t *row, tokmap_error *err);
