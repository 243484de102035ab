#include "format/source_table.h"

#include "base/base.h"

bool tokmap_i_sources_fit(uint64_t n_sources, uint64_t n_bytes)
{
    return n_bytes >= TOKMAP_I_SOURCE_HEAD_BYTES && n_sources <= TOKMAP_I_MAX_SOURCES &&
           n_sources <= (n_bytes - TOKMAP_I_SOURCE_HEAD_BYTES) / TOKMAP_I_SOURCE_ENTRY_BYTES;
}

static tokmap_i_source_entry entry_at(const tokmap_i_sources *s, uint64_t index)
{
    const uint8_t *p = s->bytes + TOKMAP_I_SOURCE_HEAD_BYTES + index * TOKMAP_I_SOURCE_ENTRY_BYTES;
    return (tokmap_i_source_entry){load_le64(p), load_le64(p + 8), load_le64(p + 16),
                                   load_le64(p + 24), load_le64(p + 32)};
}

static uint64_t names_offset(const tokmap_i_sources *s)
{
    return TOKMAP_I_SOURCE_HEAD_BYTES + s->n_sources * TOKMAP_I_SOURCE_ENTRY_BYTES;
}

tokmap_status tokmap_i_sources_get(const tokmap_i_sources *s, uint64_t index,
                                   tokmap_source_info *out)
{
    const tokmap_i_source_entry none = {0};
    const tokmap_i_source_entry before = index == 0 ? none : entry_at(s, index - 1);
    const tokmap_i_source_entry entry = entry_at(s, index);
    const uint64_t names_bytes = s->n_bytes - names_offset(s);
    if (entry.end_document < before.end_document || entry.end_document > s->n_documents ||
        entry.end_token < before.end_token || entry.end_token > s->n_tokens ||
        entry.name_end < before.name_end || entry.name_end > names_bytes ||
        entry.name_end - before.name_end > TOKMAP_I_MAX_SOURCE_NAME)
        return TOKMAP_ERR_CORRUPT;
    *out = (tokmap_source_info){
        .name = (const char *)s->bytes + names_offset(s) + before.name_end,
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

const char *tokmap_i_sources_check(const tokmap_i_sources *s)
{
    for (uint64_t i = 0; i < s->n_sources; i++) {
        tokmap_source_info source;
        if (tokmap_i_sources_get(s, i, &source))
            return "source ranges or names are out of order";
        if (memchr(source.name, 0, source.name_bytes))
            return "a source name contains a zero byte";
    }
    const tokmap_i_source_entry none = {0};
    const tokmap_i_source_entry last = s->n_sources == 0 ? none : entry_at(s, s->n_sources - 1);
    if (last.name_end != s->n_bytes - names_offset(s))
        return "trailing bytes after the last source name";
    if (s->n_sources > 0 && (last.end_document != s->n_documents || last.end_token != s->n_tokens))
        return "the sources do not cover the dataset";
    return NULL;
}

void tokmap_i_source_entry_encode(const tokmap_i_source_entry *entry, uint8_t *p)
{
    store_le64(p, entry->end_document);
    store_le64(p + 8, entry->end_token);
    store_le64(p + 16, entry->input_bytes);
    store_le64(p + 24, entry->input_checksum);
    store_le64(p + 32, entry->name_end);
}
