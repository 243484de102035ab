/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_pages.h - ranges of tokens in the page cache: reads them ahead, faults them into the map,
 * drops them. */
#pragma once

#include "dataset/token_files.h"
#include "order/order_key.h"

/* Consecutive tokens of a dataset. They may be in several files. */
typedef struct tokmap_i_token_range {
    const tokmap_dataset *dataset;
    uint64_t first_token, n_tokens;
} tokmap_i_token_range;

/* Removes the part in the file of the first token from a range that is not empty, and returns
 * it. */
tokmap_i_token_piece tokmap_i_range_next_piece(tokmap_i_token_range *r);

#define TOKMAP_I_KNOWN_BITS 8

/* A token file and the size that it had when it was last asked. */
typedef struct tokmap_i_known_size {
    const tokmap_i_token_file *file; /* NULL: none yet */
    uint64_t n_bytes;
} tokmap_i_known_size;

typedef struct tokmap_i_known_sizes {
    tokmap_i_known_size at[1 << TOKMAP_I_KNOWN_BITS]; /* a file has one place, which it may share */
} tokmap_i_known_sizes;

/* Returns the place of a file. */
static inline tokmap_i_known_size *tokmap_i_known_size_of(tokmap_i_known_sizes *known,
                                                          const tokmap_i_token_file *file)
{
    return &known->at[(uintptr_t)file * TOKMAP_I_GOLDEN >> (64 - TOKMAP_I_KNOWN_BITS)];
}

/* Whether the file of the first token is known to be long enough for these tokens. */
static inline bool tokmap_i_pages_are_known(tokmap_i_known_sizes *known, const tokmap_dataset *ds,
                                            uint64_t first, uint64_t n_tokens)
{
    const tokmap_i_token_file *file = tokmap_i_file_of_token(ds, first);
    const tokmap_i_known_size *k = tokmap_i_known_size_of(known, file);
    const uint64_t end = first - file->first_token + n_tokens;
    return k->file == file && file->token_offset + end * ds->header.token_bytes <= k->n_bytes;
}

/* Starts to read what is not in memory. Reports no errors: faulting in or reading will find
 * them. */
void tokmap_i_pages_will_need(tokmap_i_token_range r);
/* Waits until the range is in the map, and sets *tokens to its address there; to NULL, without
 * waiting, if it is not in the map of one file. TOKMAP_ERR_IO, with the byte, if it cannot be read.
 * Call check afterwards. */
tokmap_status tokmap_i_pages_fault_in(tokmap_i_token_range r, const void **tokens,
                                      tokmap_error *err);
/* Returns the address of a range that was faulted in; NULL: it is not in the map of one file. */
const void *tokmap_i_pages_in_map(tokmap_i_token_range r);
/* Returns TOKMAP_ERR_IO if the file of a range has become too short for it. Only the part of the
 * range in its first file is checked. A file whose size is known is not asked again, so `known`
 * must have been cleared after the range was faulted in. asks_server: the size is what a file
 * server says now; else what the system last heard of it, and a file of a dataset with more than
 * TOKMAP_I_MOST_FDS files is not asked, because it would have to be opened again. */
tokmap_status tokmap_i_pages_check(tokmap_i_token_range r, bool asks_server,
                                   tokmap_i_known_sizes *known, tokmap_error *err);
/* Copies the range, without the map. */
tokmap_status tokmap_i_pages_read(tokmap_i_token_range r, void *to, tokmap_error *err);
/* Drops the pages of the range. */
void tokmap_i_pages_forget(tokmap_i_token_range r, bool mapped);
