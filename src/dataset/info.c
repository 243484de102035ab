/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - what an open dataset is, its documents, inputs and metadata. */
#include <string.h>

#include "base/base.h"
#include "base/status.h"
#include "dataset/dataset.h"

tokmap_status tokmap_dataset_get_info(const tokmap_dataset *ds, tokmap_dataset_info *info)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_dataset_info, n_tokens)};
    if (!ds)
        return TOKMAP_ERR_ARGUMENT;
    const tokmap_i_header *h = &ds->header;
    tokmap_dataset_info full = {
        .n_tokens = h->n_tokens,
        .n_documents = h->n_documents,
        .n_inputs = ds->inputs.n_inputs,
        .vocab_size = h->vocab_size,
        .token_offset = h->token_offset,
        .token_file_bytes = ds->token_file_bytes,
        .index_bytes = h->index_bytes,
        .documents_bytes = tokmap_i_section_find(h, TOKMAP_I_DOCUMENTS)->n_bytes,
        .token_bytes = h->token_bytes,
        .largest_id = h->largest_id,
        .eod_id = h->eod_id,
        .format_version = h->format_version,
        .lowest_reader = h->lowest_reader,
        .index_path = ds->index_names[0],
        .token_path = ds->is_joined ? NULL : ds->token_path,
        .n_meta_columns = ds->meta ? ds->meta->n_columns : 0,
        .n_segments = ds->is_joined ? ds->n_files : 0,
    };
    memcpy(full.dataset_id, h->dataset_id, sizeof full.dataset_id);
    return tokmap_i_give_struct(info, &full, &kind, NULL);
}

tokmap_status tokmap_dataset_document(const tokmap_dataset *ds, uint64_t index,
                                      tokmap_document *out)
{
    if (!ds || !out || index >= ds->header.n_documents)
        return TOKMAP_ERR_ARGUMENT;
    return tokmap_i_documents_get(&ds->documents, index, out);
}

tokmap_status tokmap_dataset_find_document(const tokmap_dataset *ds, uint64_t token,
                                           tokmap_document *out)
{
    if (!ds || !out || token >= ds->header.n_tokens || ds->header.n_documents == 0)
        return TOKMAP_ERR_ARGUMENT;
    return tokmap_i_documents_find(&ds->documents, NULL, token, out);
}

tokmap_status tokmap_dataset_get_input(const tokmap_dataset *ds, uint64_t index,
                                       tokmap_input_info *info)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_input_info, name)};
    tokmap_input_info full;
    if (!ds || index >= ds->inputs.n_inputs)
        return TOKMAP_ERR_ARGUMENT;
    const tokmap_status status = tokmap_i_inputs_get(&ds->inputs, index, &full);
    return status ? status : tokmap_i_give_struct(info, &full, &kind, NULL);
}

const char *tokmap_dataset_metadata(const tokmap_dataset *ds, size_t *n_bytes)
{
    if (!ds || !n_bytes)
        return NULL;
    const tokmap_i_section *s = tokmap_i_section_find(&ds->header, TOKMAP_I_METADATA);
    *n_bytes = (size_t)s->n_bytes;
    return (const char *)ds->index_map + s->offset;
}
