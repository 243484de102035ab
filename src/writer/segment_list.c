/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/segment_list.h"

#include "base/status.h"
#include "format/segments_section.h"

tokmap_status tokmap_i_segment_list_add(tokmap_i_segment_list *list, const char *index_path,
                                        const tokmap_i_new_segment *segment, tokmap_error *err)
{
    const size_t name_bytes = strlen(segment->name);
    if (name_bytes > TOKMAP_I_MAX_SEGMENT_NAME)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: the path to a token file has %zu bytes; the limit is %d: '%.200s...'",
                    index_path, name_bytes, TOKMAP_I_MAX_SEGMENT_NAME, segment->name);
    if (list->entries.n_bytes / TOKMAP_I_SEGMENT_ENTRY_BYTES >= TOKMAP_I_MAX_SEGMENTS)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: more than %d token files", index_path,
                    TOKMAP_I_MAX_SEGMENTS);
    uint8_t *entry = tokmap_i_bytes_add(&list->entries, TOKMAP_I_SEGMENT_ENTRY_BYTES);
    uint8_t *name = tokmap_i_bytes_add(&list->names, name_bytes);
    if (!entry || !name)
        return FAIL_MEMORY(err);
    memcpy(name, segment->name, name_bytes);
    store_le64(entry, segment->end_token);
    store_le64(entry + 8, segment->token_offset);
    store_le64(entry + 16, list->names.n_bytes);
    return TOKMAP_OK;
}

void tokmap_i_segment_list_free(tokmap_i_segment_list *list)
{
    free(list->entries.data);
    free(list->names.data);
}
