/* fetch_pages.h - ranges of tokens in the page cache: read ahead, bring into the map, drop. */
#ifndef TOKMAP_FETCH_PAGES_H
#define TOKMAP_FETCH_PAGES_H

#include "dataset/token_files.h"

/* Consecutive tokens. */
typedef struct tokmap_i_token_range {
    const tokmap_dataset *dataset;
    uint64_t first_token, n_tokens;
} tokmap_i_token_range;

/* Splits a range that may wrap around to token 0 into one or two that do not; returns how many. */
uint32_t tokmap_i_pages_split(tokmap_i_token_range r, tokmap_i_token_range ranges[2]);

/* Announces how tokens will be read: through the map or by reads, in random order or not. */
void tokmap_i_pages_expect(const tokmap_dataset *ds, bool mapped, bool random);
/* Starts to read what is not in memory. Reports no errors: bring or a read will find them. */
void tokmap_i_pages_will_need(tokmap_i_token_range r);
/* Waits until the range is in the map, and sets *tokens to its place there. TOKMAP_ERR_IO, with the
 * byte, if it cannot be read. Call check afterwards. */
tokmap_status tokmap_i_pages_bring(tokmap_i_token_range r, const void **tokens, tokmap_error *err);
/* TOKMAP_ERR_IO if the file has become too short for the range. *file_bytes is the size of the
 * file, or 0 to have this call set it; it is then valid for other ranges of the file that were
 * brought in before this call. */
tokmap_status tokmap_i_pages_check(tokmap_i_token_range r, uint64_t *file_bytes, tokmap_error *err);
/* Drops the pages of the range. */
void tokmap_i_pages_forget(tokmap_i_token_range r, bool mapped);

#endif /* TOKMAP_FETCH_PAGES_H */
