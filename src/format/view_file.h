/* SPDX-License-Identifier: Apache-2.0 */
/* view_file.h - the file of a view: a header, a table of chunks, and the chunks, each of which says
 * which of 65,536 documents are kept. Pure. docs/FORMAT.md section 15. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "format/side_header.h"

enum {
    TOKMAP_I_VIEW_ENTRY_BYTES = 40,
    TOKMAP_I_VIEW_CHUNK = 1 << 16,    /* documents */
    TOKMAP_I_VIEW_MOST_LISTED = 4096, /* more kept documents are a bitmap */
    TOKMAP_I_VIEW_BITMAP_BYTES = TOKMAP_I_VIEW_CHUNK / 8,
    TOKMAP_I_VIEW_STEP = 32, /* kept documents from one sample to the next */
    TOKMAP_I_VIEW_MOST_BYTES =
        TOKMAP_I_VIEW_BITMAP_BYTES + 8 * (TOKMAP_I_VIEW_CHUNK / TOKMAP_I_VIEW_STEP)
};

extern const tokmap_i_side_kind tokmap_i_view_kind; /* its header: tokmap_i_view_header */

typedef struct tokmap_i_view_header {
    uint8_t documents_hash[16];
    uint64_t n_documents, n_kept, n_tokens, n_runs, set_hash, n_chunks;
    uint64_t n_bytes; /* of the file */
    uint64_t table_checksum, key;
} tokmap_i_view_header;

/* A chunk, as the table describes it. */
typedef struct tokmap_i_view_chunk {
    uint64_t kept_before, tokens_before, place, checksum;
    uint32_t n_kept;
} tokmap_i_view_chunk;

void tokmap_i_view_chunk_encode(const tokmap_i_view_chunk *c, uint8_t *bytes);
/* Decodes the whole table, whose checksum is compared first. Returns what is wrong; NULL:
 * nothing. */
const char *tokmap_i_view_table_decode(const tokmap_i_view_header *h, const uint8_t *bytes,
                                       tokmap_i_view_chunk *chunks);

/* Returns where the samples are in a chunk, and how many there are. */
static inline uint32_t tokmap_i_view_samples_at(uint32_t n_kept)
{
    return n_kept > TOKMAP_I_VIEW_MOST_LISTED ? (uint32_t)TOKMAP_I_VIEW_BITMAP_BYTES
                                              : (2 * n_kept + 7) / 8 * 8;
}
static inline uint32_t tokmap_i_view_n_samples(uint32_t n_kept)
{
    return (n_kept + TOKMAP_I_VIEW_STEP - 1) / TOKMAP_I_VIEW_STEP;
}
static inline uint32_t tokmap_i_view_chunk_bytes(uint32_t n_kept)
{
    return tokmap_i_view_samples_at(n_kept) + 8 * tokmap_i_view_n_samples(n_kept);
}
/* Compares a chunk with its checksum, and checks its documents. Returns what is wrong; NULL:
 * nothing. n_documents: that the chunk has. */
const char *tokmap_i_view_chunk_check(const tokmap_i_view_chunk *c, const uint8_t *bytes,
                                      uint32_t n_documents);
