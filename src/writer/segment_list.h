/* SPDX-License-Identifier: Apache-2.0 */
/* segment_list.h - the token files of a joined dataset, as its index lists them.
 * docs/FORMAT.md section 3.8. */
#ifndef TOKMAP_SEGMENT_LIST_H
#define TOKMAP_SEGMENT_LIST_H

#include "base/bytes.h"
#include "tokmap.h"

typedef struct tokmap_i_segment_list {
    tokmap_i_bytes entries, names; /* as stored */
} tokmap_i_segment_list;

/* The next tokens, up to `end_token`, are in this file. */
typedef struct tokmap_i_new_segment {
    const char *name; /* its path from the folder of the index */
    uint64_t end_token, token_offset;
} tokmap_i_new_segment;

/* index_path: for messages. TOKMAP_ERR_ARGUMENT: the name is too long, or there are too many. */
tokmap_status tokmap_i_segment_list_add(tokmap_i_segment_list *list, const char *index_path,
                                        const tokmap_i_new_segment *segment, tokmap_error *err);
void tokmap_i_segment_list_free(tokmap_i_segment_list *list);

#endif /* TOKMAP_SEGMENT_LIST_H */
