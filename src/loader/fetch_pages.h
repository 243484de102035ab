/* fetch_pages.h - the page cache and a range of tokens: asked for ahead, brought into the map, let
 * go. */
#ifndef TOKMAP_FETCH_PAGES_H
#define TOKMAP_FETCH_PAGES_H

#include "dataset/dataset.h"

/* Tokens that stand one behind the other. */
typedef struct tokmap_i_token_range {
    const tokmap_dataset *dataset;
    uint64_t first_token, n_tokens;
} tokmap_i_token_range;

/* A range that may go on at token 0 as one or two that do not; returns how many. */
uint32_t tokmap_i_pages_split(tokmap_i_token_range r, tokmap_i_token_range ranges[2]);

/* Says how tokens will be asked for: by a map or by reads, in random order or no longer so. */
void tokmap_i_pages_expect(const tokmap_dataset *ds, bool mapped, bool random);
/* Begins to read what is not in memory. Never an error: that is for bring or a read to find. */
void tokmap_i_pages_will_need(tokmap_i_token_range r);
/* Waits until the range is in the map, and sets *tokens to its place there. TOKMAP_ERR_IO, with the
 * byte, where it cannot be read. Afterwards check it: */
tokmap_status tokmap_i_pages_bring(tokmap_i_token_range r, const void **tokens, tokmap_error *err);
/* TOKMAP_ERR_IO where the file has become shorter than the range. *file_bytes is the size of its
 * file, or 0: then it is asked for, and good for other ranges that were brought before the call. */
tokmap_status tokmap_i_pages_check(tokmap_i_token_range r, uint64_t *file_bytes, tokmap_error *err);
/* Lets the pages go that the range touches. */
void tokmap_i_pages_forget(tokmap_i_token_range r, bool mapped);

#endif /* TOKMAP_FETCH_PAGES_H */
