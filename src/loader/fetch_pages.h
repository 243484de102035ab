/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_pages.h - ranges of tokens in the page cache: reads them ahead, faults them into the map,
 * drops them. */
#pragma once

#include "dataset/token_files.h"

/* Consecutive tokens of a dataset. They may be in several files, and wrap around `within` it. */
typedef struct tokmap_i_token_range {
    const tokmap_dataset *dataset;
    uint64_t first_token, n_tokens;
    tokmap_i_extent within;
} tokmap_i_token_range;

/* Removes the part in the file of the first token from a range that is not empty, and returns
 * it. */
tokmap_i_token_piece tokmap_i_pages_take(tokmap_i_token_range *r);

/* A token file and the size that it had when it was last asked. */
typedef struct tokmap_i_known_size {
    const tokmap_i_token_file *file; /* NULL: none yet */
    uint64_t n_bytes;
} tokmap_i_known_size;

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
/* Returns TOKMAP_ERR_IO if the file of a range that was faulted in has become too short for it. If
 * *known has the size of this file, the file is not asked again, so it must have been set after the
 * range was faulted in. */
tokmap_status tokmap_i_pages_check(tokmap_i_token_range r, tokmap_i_known_size *known,
                                   tokmap_error *err);
/* Copies the range, without the map. */
tokmap_status tokmap_i_pages_read(tokmap_i_token_range r, void *to, tokmap_error *err);
/* Drops the pages of the range. */
void tokmap_i_pages_forget(tokmap_i_token_range r, bool mapped);
