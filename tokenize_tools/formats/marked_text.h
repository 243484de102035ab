/* SPDX-License-Identifier: Apache-2.0 */
/* marked_text.h - the text of a record that is a list, with what of it does not count in the loss.
 *
 * Of tokens: 4 bytes for each, the lowest first; bit 31 is set if the token does not count. Of
 * parts: their texts after one another, and a range for each part that counts or has a role. The
 * mark of a range has bit 31 set if its tokens do not count, and in bits 24 to 30 the number of its
 * role, from 1, in the list of the options; 0: it has none. */
#pragma once

#include "formats/reader.h"

#define MARKED_TOKEN ((uint32_t)1 << 31)
#define MARKED_ROLE_SHIFT                                                                          \
    24 /* of the number of the role; ids are below it, where there are roles */
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
