/* SPDX-License-Identifier: Apache-2.0 */
/* rows_find.h - from a piece of a document to the row that has it. */
#pragma once

#include "rows/rows.h"

/* Starts as {rows, reader}. Knows the rows of one chunk, so pieces in order are quick to find. */
typedef struct tokmap_i_rows_finder {
    const tokmap_i_rows *rows;
    tokmap_i_rows_reader *reader;
    uint64_t chunk; /* the one that is known */
    uint32_t
        *shared_in; /* of its documents, from its first one on: 1 + a shared row, or 0; or NULL */
    uint64_t n_documents;
} tokmap_i_rows_finder;

void tokmap_i_rows_finder_close(tokmap_i_rows_finder *f);
/* The row of a part, of n_tokens, of a document that has such parts. */
tokmap_status tokmap_i_rows_find(tokmap_i_rows_finder *f, uint64_t document, uint64_t part,
                                 uint64_t n_tokens, uint64_t *row, tokmap_error *err);
