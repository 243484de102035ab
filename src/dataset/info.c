/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - describes an open dataset: its documents, their values, inputs and metadata. */
#include <string.h>

#include "base/base.h"
#include "base/error.h"
#include "base/options.h"
#include "dataset/store.h"

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
        .n_spans = ds->spans.n_spans,
        .spans_role = ds->spans.role,
        .spans_hash = ds->spans.hash,
    };
    memcpy(full.dataset_id, h->dataset_id, sizeof full.dataset_id);
    return tokmap_i_give_struct(info, &full, &kind, NULL);
}

tokmap_status tokmap_dataset_document(const tokmap_dataset *ds, uint64_t index,
                                      tokmap_document *out)
{
    if (!ds || !out || index >= ds->header.n_documents)
        return TOKMAP_ERR_ARGUMENT;
    const tokmap_status status = tokmap_i_need_index(ds, NULL);
    return status ? status : tokmap_i_documents_get(&ds->documents, NULL, index, out);
}

tokmap_status tokmap_dataset_find_document(const tokmap_dataset *ds, uint64_t token,
                                           tokmap_document *out)
{
    if (!ds || !out || token >= ds->header.n_tokens || ds->header.n_documents == 0)
        return TOKMAP_ERR_ARGUMENT;
    const tokmap_status status = tokmap_i_need_index(ds, NULL);
    return status ? status : tokmap_i_documents_find(&ds->documents, NULL, token, out);
}

tokmap_status tokmap_dataset_get_segment(const tokmap_dataset *ds, uint64_t index,
                                         tokmap_segment_info *info)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_segment_info, token_offset)};
    if (!ds || !ds->is_joined || index >= ds->n_files)
        return TOKMAP_ERR_ARGUMENT;
    const tokmap_i_token_file *file = &ds->files[index];
    const char *path = file->path + ds->folder_bytes;
    const tokmap_segment_info full = {
        .path = path,
        .path_bytes = strlen(path),
        .first_token = file->first_token,
        .n_tokens = file->n_tokens,
        .token_offset = file->token_offset,
    };
    return tokmap_i_give_struct(info, &full, &kind, NULL);
}

tokmap_status tokmap_dataset_get_input(const tokmap_dataset *ds, uint64_t index,
                                       tokmap_input_info *info)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_input_info, name)};
    tokmap_input_info full;
    if (!ds || index >= ds->inputs.n_inputs)
        return TOKMAP_ERR_ARGUMENT;
    tokmap_status status = tokmap_i_need_index(ds, NULL);
    if (!status)
        status = tokmap_i_inputs_get(&ds->inputs, index, &full);
    return status ? status : tokmap_i_give_struct(info, &full, &kind, NULL);
}

const char *tokmap_dataset_metadata(const tokmap_dataset *ds, size_t *n_bytes)
{
    if (!ds || !n_bytes || tokmap_i_need_index(ds, NULL))
        return NULL;
    const tokmap_i_section *s = tokmap_i_section_find(&ds->header, TOKMAP_I_METADATA);
    *n_bytes = (size_t)s->n_bytes;
    return (const char *)ds->index_map + s->offset;
}

tokmap_status tokmap_dataset_get_spans(const tokmap_dataset *ds, uint64_t first, uint64_t n_tokens,
                                       tokmap_span *spans, size_t n_most, size_t *n_found)
{
    if (!ds || !n_found || (!spans && n_most > 0) || first > ds->header.n_tokens ||
        n_tokens > ds->header.n_tokens - first)
        return TOKMAP_ERR_ARGUMENT;
    *n_found = 0;
    if (ds->spans.n_spans == 0)
        return TOKMAP_OK;
    tokmap_i_span_cursor c = {&ds->spans, NULL, 0, 0, 0};
    tokmap_span span;
    tokmap_status status = tokmap_i_need_index(ds, NULL);
    if (!status)
        status = tokmap_i_spans_seek(&c, first);
    while (!status && !(status = tokmap_i_spans_next(&c, &span)) &&
           span.first_token < first + n_tokens) {
        if (*n_found < n_most)
            spans[*n_found] = span;
        ++*n_found;
    }
    return status == TOKMAP_END ? TOKMAP_OK : status;
}

/* ---- Values of documents ---- */

bool tokmap_i_find_column(const tokmap_dataset *ds, const char *name, uint32_t *index)
{
    const uint32_t n_columns = ds->meta ? ds->meta->n_columns : 0;
    for (*index = 0; *index < n_columns; ++*index) {
        const tokmap_i_meta_column *c = &ds->meta->columns[*index];
        if (c->name_bytes == strlen(name) && memcmp(c->name, name, c->name_bytes) == 0)
            return true;
    }
    return false;
}

static const void *part_at(const tokmap_i_meta *m, const tokmap_i_meta_column *c,
                           tokmap_i_meta_part part)
{
    return c->has[part] ? m->section + c->at[part] : NULL;
}

tokmap_status tokmap_i_give_column(const tokmap_i_meta *m, uint32_t column, const char *path,
                                   tokmap_meta_column *out)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_meta_column, name)};
    const tokmap_i_meta_column *c = &m->columns[column];
    const void *values = part_at(m, c, TOKMAP_I_META_VALUES);
    const tokmap_meta_column full = {
        .name = c->name,
        .name_bytes = c->name_bytes,
        .type = tokmap_i_meta_value_type(c),
        .code_bytes = c->code_bytes,
        .n_nulls = c->n_nulls,
        .n_strings = c->n_strings,
        .validity = part_at(m, c, TOKMAP_I_META_VALIDITY),
        .values = c->code_bytes > 0 ? NULL : values,
        .codes = c->code_bytes > 0 ? values : NULL,
        .offsets = part_at(m, c, TOKMAP_I_META_OFFSETS),
        .text = part_at(m, c, TOKMAP_I_META_TEXT),
        .text_bytes = c->text_bytes,
        .number_bytes = c->number_bytes,
        .path = path,
    };
    return tokmap_i_give_struct(out, &full, &kind, NULL);
}

tokmap_status tokmap_dataset_get_meta_column(const tokmap_dataset *ds, uint32_t column,
                                             tokmap_meta_column *out)
{
    if (!ds || !ds->meta || column >= ds->meta->n_columns)
        return TOKMAP_ERR_ARGUMENT;
    const tokmap_status status = tokmap_i_need_index(ds, NULL);
    return status ? status : tokmap_i_give_column(ds->meta, column, NULL, out);
}

tokmap_status tokmap_dataset_get_meta(const tokmap_dataset *ds, uint32_t column, uint64_t document,
                                      tokmap_value *out)
{
    if (!ds || !out || !ds->meta || column >= ds->meta->n_columns ||
        document >= ds->header.n_documents)
        return TOKMAP_ERR_ARGUMENT;
    const tokmap_status status = tokmap_i_need_index(ds, NULL);
    return status ? status : tokmap_i_meta_get(ds->meta, column, document, out);
}
