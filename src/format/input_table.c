/* SPDX-License-Identifier: Apache-2.0 */
#include "format/input_table.h"

#include "base/le.h"

bool tokmap_i_inputs_fit(uint64_t n_inputs, uint64_t n_bytes)
{
    return n_bytes >= TOKMAP_I_INPUT_HEAD_BYTES && n_inputs <= TOKMAP_I_MAX_INPUTS &&
           n_inputs <= (n_bytes - TOKMAP_I_INPUT_HEAD_BYTES) / TOKMAP_I_INPUT_ENTRY_BYTES;
}

static tokmap_i_input_entry entry_at(const tokmap_i_inputs *t, uint64_t index)
{
    const uint8_t *p = t->bytes + TOKMAP_I_INPUT_HEAD_BYTES + index * TOKMAP_I_INPUT_ENTRY_BYTES;
    return (tokmap_i_input_entry){le_get64(p), le_get64(p + 8), le_get64(p + 16), le_get64(p + 24),
                                  le_get64(p + 32)};
}

static uint64_t names_offset(const tokmap_i_inputs *t)
{
    return TOKMAP_I_INPUT_HEAD_BYTES + t->n_inputs * TOKMAP_I_INPUT_ENTRY_BYTES;
}

tokmap_status tokmap_i_inputs_get(const tokmap_i_inputs *t, uint64_t index, tokmap_input_info *out)
{
    const tokmap_i_input_entry none = {0};
    const tokmap_i_input_entry before = index == 0 ? none : entry_at(t, index - 1);
    const tokmap_i_input_entry entry = entry_at(t, index);
    const uint64_t names_bytes = t->n_bytes - names_offset(t);
    if (entry.end_document < before.end_document || entry.end_document > t->n_documents ||
        entry.end_token < before.end_token || entry.end_token > t->n_tokens ||
        entry.name_end < before.name_end || entry.name_end > names_bytes ||
        entry.name_end - before.name_end > TOKMAP_I_MAX_INPUT_NAME)
        return TOKMAP_ERR_CORRUPT;
    *out = (tokmap_input_info){
        .name = (const char *)t->bytes + names_offset(t) + before.name_end,
        .name_bytes = (size_t)(entry.name_end - before.name_end),
        .first_document = before.end_document,
        .n_documents = entry.end_document - before.end_document,
        .first_token = before.end_token,
        .n_tokens = entry.end_token - before.end_token,
        .input_bytes = entry.input_bytes,
        .input_checksum = entry.input_checksum,
    };
    return TOKMAP_OK;
}

const char *tokmap_i_inputs_check(const tokmap_i_inputs *t)
{
    for (uint64_t i = 0; i < t->n_inputs; i++) {
        tokmap_input_info input;
        if (tokmap_i_inputs_get(t, i, &input))
            return "input ranges or names are out of order";
        if (memchr(input.name, 0, input.name_bytes))
            return "an input name contains a zero byte";
    }
    const tokmap_i_input_entry none = {0};
    const tokmap_i_input_entry last = t->n_inputs == 0 ? none : entry_at(t, t->n_inputs - 1);
    if (last.name_end != t->n_bytes - names_offset(t))
        return "trailing bytes after the last input name";
    if (t->n_inputs > 0 && (last.end_document != t->n_documents || last.end_token != t->n_tokens))
        return "the inputs do not cover the dataset";
    return NULL;
}

void tokmap_i_input_entry_encode(const tokmap_i_input_entry *entry, uint8_t *p)
{
    le_put64(p, entry->end_document);
    le_put64(p + 8, entry->end_token);
    le_put64(p + 16, entry->input_bytes);
    le_put64(p + 24, entry->input_checksum);
    le_put64(p + 32, entry->name_end);
}
