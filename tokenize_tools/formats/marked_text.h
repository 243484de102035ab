/* SPDX-License-Identifier: Apache-2.0 */
/* marked_text.h - the text of a record that is a list, with what of it does not count in the loss.
 *
 * Of tokens: 4 bytes for each, the lowest first; bit 31 is set if the token does not count. Of
 * parts: their texts after one another, and a range for each part that counts. */
#pragma once

#include "formats/reader.h"

#define MARKED_TOKEN ((uint32_t)1 << 31)
#define STORED_LIST_NULL INT64_MIN /* an element of a stored list that is null */

typedef struct marked_text { /* start with {0} */
    uint8_t *bytes;          /* freed by the owner */
    size_t n_bytes, capacity;
    text_range *ranges; /* also freed by the owner */
    size_t n_ranges, ranges_capacity;
    char reason[160];
} marked_text;

/* Sets the text and the ranges of the record, whose text is a list: of valid JSON, with 64 readable
 * bytes after it, or is_stored. READER_BAD: the list is not as it must be. */
reader_result marked_text_read(marked_text *m, const reader_options *options, document *d,
                               failure *err);
