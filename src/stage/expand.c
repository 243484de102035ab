/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/expand.h"

#include <stdbool.h>

#include "base/le.h"

static const void *host_address(uint64_t address)
{
    return (const void *)(uintptr_t)address;
}

static void put(uint64_t array, uint32_t width, uint64_t index, int64_t value)
{
    const int32_t narrow = (int32_t)value;
    if (width == 8)
        memcpy((uint8_t *)(uintptr_t)array + index * 8, &value, sizeof value);
    else
        memcpy((uint8_t *)(uintptr_t)array + index * 4, &narrow, sizeof narrow);
}

static uint32_t load_token(const uint8_t *tokens, uint32_t width, uint32_t i)
{
    return width == 4 ? le_get32(tokens + 4 * (size_t)i) : le_get16(tokens + 2 * (size_t)i);
}

static void expand_tokens(const tokmap_i_expand_job *job, uint32_t r)
{
    const tokmap_i_image_row *row = (const tokmap_i_image_row *)host_address(job->image) + r;
    const uint8_t *tokens = host_address(job->image + row->tokens);
    const uint8_t *labels = tokens + (job->labels_at ? job->labels_at : row->token_bytes);
    const uint8_t *mask =
        row->flags & TOKMAP_I_ROW_MASKED ? host_address(job->image + row->mask) : NULL;
    for (uint32_t i = 0; i < job->length; i++) {
        const uint64_t index = (uint64_t)r * job->length + i;
        const bool counts = i + 1 < row->n_tokens && (!mask || (mask[i / 8] >> i % 8 & 1));
        if (job->inputs)
            put(job->inputs, job->input_bytes, index,
                i + 1 < row->n_tokens ? load_token(tokens, row->token_bytes, i) : job->pad_id);
        if (job->labels)
            put(job->labels, job->label_bytes, index,
                counts ? (int64_t)load_token(labels, row->token_bytes, i) : job->ignore);
    }
}

static void expand_ids(const tokmap_i_expand_job *job, uint32_t r)
{
    const tokmap_i_image_row *row = (const tokmap_i_image_row *)host_address(job->image) + r;
    const int32_t *boundaries =
        job->tile_boundaries ? host_address(job->image + job->boundaries) : NULL;
    const int32_t *positions = host_address(job->image + job->positions);
    const int32_t *documents = host_address(job->image + job->documents);
    const int32_t row_begin = (int32_t)(r * job->length);
    int32_t document = 0, begin = 0;
    for (int32_t i = 0; i < (int32_t)job->length; i++) {
        const uint64_t index = (uint64_t)r * job->length + (uint32_t)i;
        const uint32_t next = row->first_boundary + (uint32_t)document + 1;
        if (boundaries && next < row->first_boundary + row->n_boundaries &&
            boundaries[next] == row_begin + i) {
            document++;
            begin = i;
        }
        const bool there = (uint32_t)i + 1 < row->n_tokens;
        if (job->document_ids)
            put(job->document_ids, 4, index, job->documents ? documents[index] : document);
        if (job->position_ids)
            put(job->position_ids, 4, index,
                job->positions ? positions[index]
                : !there       ? 0
                               : i - (job->row_positions ? 0 : begin));
    }
}

void tokmap_i_expand(const tokmap_i_expand_job *job)
{
    const int32_t *boundaries = host_address(job->image + job->boundaries);
    for (uint32_t r = 0; r < job->n_rows; r++) {
        expand_tokens(job, r);
        if (job->document_ids || job->position_ids)
            expand_ids(job, r);
    }
    for (uint32_t i = 0; job->cu_seqlens && i < job->n_cu; i++)
        put(job->cu_seqlens, 4, i, i < job->n_boundaries ? boundaries[i] : (int32_t)job->cu_end);
}
