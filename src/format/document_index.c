/* SPDX-License-Identifier: Apache-2.0 */
#include "format/document_index.h"

#include "base/base.h"
#include "base/le.h"
#include "format/format_limits.h"

#define WIDE_MARK UINT32_MAX
enum {
    SPAN_OFFSET = 4 * (TOKMAP_I_GROUP_DOCUMENTS - 1),
    NODE_BYTES = 8 * TOKMAP_I_NODE_KEYS,
    GUESS_LEVELS = 2 /* levels above level 0 whose guesses are right more often than not */
};

void tokmap_i_documents_layout_of(uint64_t n_documents, tokmap_i_documents_layout *out)
{
    *out = (tokmap_i_documents_layout){.n_groups = div_up(n_documents, TOKMAP_I_GROUP_DOCUMENTS)};
    uint64_t offset = out->n_groups * TOKMAP_I_GROUP_BYTES;
    uint64_t n_entries = out->n_groups;
    while (n_entries > 0 && out->n_levels < TOKMAP_I_MAX_LEVELS) {
        out->level_offset[out->n_levels] = offset;
        out->level_entries[out->n_levels] = n_entries;
        out->n_levels++;
        offset += round_up(n_entries, TOKMAP_I_NODE_KEYS) * 8;
        n_entries = n_entries <= TOKMAP_I_NODE_KEYS ? 0 : div_up(n_entries, TOKMAP_I_NODE_KEYS);
    }
    out->wide_offset = offset;
}

bool tokmap_i_documents_size_valid(uint64_t n_documents, uint64_t section_bytes)
{
    if (n_documents > TOKMAP_I_MAX_DOCUMENTS)
        return false;
    tokmap_i_documents_layout layout;
    tokmap_i_documents_layout_of(n_documents, &layout);
    if (section_bytes < layout.wide_offset)
        return false;
    const uint64_t wide_bytes = section_bytes - layout.wide_offset;
    return wide_bytes % TOKMAP_I_WIDE_BYTES == 0 &&
           wide_bytes / TOKMAP_I_WIDE_BYTES <= layout.n_groups;
}

void tokmap_i_documents_view(tokmap_i_documents *out, const uint8_t *bytes, uint64_t n_bytes,
                             uint64_t n_documents, uint64_t n_tokens)
{
    out->bytes = bytes;
    out->n_documents = n_documents;
    out->n_tokens = n_tokens;
    tokmap_i_documents_layout_of(n_documents, &out->layout);
    out->n_wide = (n_bytes - out->layout.wide_offset) / TOKMAP_I_WIDE_BYTES;
}

bool tokmap_i_group_is_wide(const uint8_t *record)
{
    return le_get32(record + SPAN_OFFSET) == WIDE_MARK;
}

/* Each lookup is compiled twice: inlined with `from` NULL, for sections in memory, so that the
 * tests of `from` disappear; and out of line, for pieces. */
#define LOOKUP static inline __attribute__((always_inline))
#define APART static __attribute__((noinline))

LOOKUP const uint8_t *piece_at(const tokmap_i_documents *docs, tokmap_i_pieces *from,
                               uint64_t offset)
{
    return from ? from->get(from, offset) : docs->bytes + offset;
}

/* A group's ends, of either width. */
typedef struct group_ends {
    const uint8_t *bytes;
    bool wide;
} group_ends;

LOOKUP bool ends_of_group(const tokmap_i_documents *docs, tokmap_i_pieces *from, uint64_t group,
                          group_ends *out)
{
    const uint8_t *record = piece_at(docs, from, group * TOKMAP_I_GROUP_BYTES);
    if (from && !record)
        return false;
    *out = (group_ends){record, tokmap_i_group_is_wide(record)};
    if (!out->wide)
        return true;
    const uint64_t wide_index = le_get64(record);
    if (wide_index >= docs->n_wide)
        return false;
    out->bytes = piece_at(docs, from, docs->layout.wide_offset + wide_index * TOKMAP_I_WIDE_BYTES);
    return !from || out->bytes;
}

static uint64_t end_at(const group_ends *ends, uint32_t j)
{
    return ends->wide ? le_get64(ends->bytes + 8 * (size_t)j)
                      : le_get32(ends->bytes + 4 * (size_t)j);
}

/* Counts the numbers that are at or below `most`. */
LOOKUP uint32_t count_keys(const uint8_t *keys, uint32_t n_keys, uint64_t most)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_keys; i++)
        n += le_get64(keys + 8 * (size_t)i) <= most;
    return n;
}

/* Counts the ends that are at or below `relative`. Counting all 64 is faster than searching,
 * because there are no branches to predict and the cache lines are fetched together. */
static uint32_t count_ends(const group_ends *ends, uint64_t relative)
{
    uint32_t n = 0;
    if (ends->wide)
        return count_keys(ends->bytes, TOKMAP_I_GROUP_DOCUMENTS, relative);
    if (relative >= WIDE_MARK)
        return TOKMAP_I_GROUP_DOCUMENTS;
    const uint32_t key = (uint32_t)relative;
    for (uint32_t j = 0; j < TOKMAP_I_GROUP_DOCUMENTS; j++)
        n += le_get32(ends->bytes + 4 * (size_t)j) <= key;
    return n;
}

/* Returns the start of a group; UINT64_MAX, which is not a valid start, if it could not be read. */
LOOKUP uint64_t group_start(const tokmap_i_documents *docs, tokmap_i_pieces *from, uint64_t group)
{
    const uint8_t *start = piece_at(docs, from, docs->layout.level_offset[0] + group * 8);
    return from && !start ? UINT64_MAX : le_get64(start);
}

/* Reads document j of a group. In a damaged section it may not be the one that was looked up; the
 * caller checks. */
LOOKUP tokmap_status read_document(const tokmap_i_documents *docs, tokmap_i_pieces *from,
                                   uint64_t group, uint32_t j, tokmap_document *out)
{
    group_ends ends;
    const uint64_t start = group_start(docs, from, group);
    if (start > docs->n_tokens || !ends_of_group(docs, from, group, &ends))
        return TOKMAP_ERR_CORRUPT;
    const uint64_t first = j == 0 ? 0 : end_at(&ends, j - 1);
    const uint64_t end = end_at(&ends, j);
    if (first > end || end > docs->n_tokens - start)
        return TOKMAP_ERR_CORRUPT;
    *out = (tokmap_document){group * TOKMAP_I_GROUP_DOCUMENTS + j, start + first, end - first};
    return TOKMAP_OK;
}

tokmap_status tokmap_i_documents_get(const tokmap_i_documents *docs, tokmap_i_pieces *from,
                                     uint64_t index, tokmap_document *out)
{
    const uint64_t group = index / TOKMAP_I_GROUP_DOCUMENTS;
    const uint32_t j = index % TOKMAP_I_GROUP_DOCUMENTS;
    return from ? read_document(docs, from, group, j, out)
                : read_document(docs, NULL, group, j, out);
}

void tokmap_i_documents_prefetch_get(const tokmap_i_documents *docs, uint64_t index)
{
    const uint64_t group = index / TOKMAP_I_GROUP_DOCUMENTS, j = index % TOKMAP_I_GROUP_DOCUMENTS;
    const uint8_t *record = docs->bytes + group * TOKMAP_I_GROUP_BYTES;
    __builtin_prefetch(docs->bytes + docs->layout.level_offset[0] + 8 * group);
    __builtin_prefetch(record + 4 * j);
    __builtin_prefetch(record + SPAN_OFFSET);
}

/* Fetches what the levels below will most likely need: the tokens from a key to the next one are
 * about evenly spread over the groups between them. */
LOOKUP void fetch_guess(const tokmap_i_documents *docs, uint32_t level, uint64_t entry,
                        const uint8_t *key, uint64_t token)
{
    const uint64_t first = le_get64(key), span = le_get64(key + 8) - first; /* not trusted */
    const uint64_t guess = (entry << 4 * level) + (token - first) / ((span >> 4 * level) + 1);
    const uint64_t group = MIN(guess, docs->layout.n_groups - 1);
    const uint8_t *node = docs->bytes + docs->layout.level_offset[0] + group / 16 * NODE_BYTES;
    const uint8_t *record = docs->bytes + group * TOKMAP_I_GROUP_BYTES;
    for (size_t at = 0; at < TOKMAP_I_GROUP_BYTES; at += 64) {
        __builtin_prefetch(record + at);
        __builtin_prefetch(node + at % NODE_BYTES);
    }
}

/* Goes down to a level: from the entry of the level above to the last entry that is at or below
 * the token. Returns its key; NULL: the section is damaged, or a piece could not be read. */
LOOKUP const uint8_t *go_down(const tokmap_i_documents *docs, tokmap_i_pieces *from, uint32_t level,
                              uint64_t token, uint64_t *entry)
{
    const tokmap_i_documents_layout *l = &docs->layout;
    const uint64_t node = level + 1 == l->n_levels ? 0 : *entry;
    const uint8_t *keys = piece_at(docs, from, l->level_offset[level] + node * NODE_BYTES);
    if (from && !keys)
        return NULL;
    const uint32_t n = count_keys(keys, TOKMAP_I_NODE_KEYS, token);
    *entry = node * TOKMAP_I_NODE_KEYS + n - 1;
    return n == 0 || *entry >= l->level_entries[level] ? NULL : keys + 8 * (size_t)(n - 1);
}

static bool is_guessed(const tokmap_i_documents *docs, uint32_t level)
{
    return level > 0 && level <= GUESS_LEVELS && level + 1 < docs->layout.n_levels;
}

void tokmap_i_documents_prefetch(const tokmap_i_documents *docs, uint64_t token)
{
    uint64_t entry = 0;
    for (uint32_t level = docs->layout.n_levels; level-- > 1;) {
        const uint8_t *key = go_down(docs, NULL, level, token, &entry);
        if (key && is_guessed(docs, level))
            fetch_guess(docs, level, entry, key, token);
        if (!key || is_guessed(docs, level))
            return;
    }
}

LOOKUP tokmap_status find_document(const tokmap_i_documents *docs, tokmap_i_pieces *from,
                                   uint64_t token, tokmap_document *out)
{
    uint64_t entry = 0;
    for (uint32_t level = docs->layout.n_levels; level-- > 0;) {
        const uint8_t *key = go_down(docs, from, level, token, &entry);
        if (!key)
            return TOKMAP_ERR_CORRUPT;
        if (!from && is_guessed(docs, level))
            fetch_guess(docs, level, entry, key, token);
    }
    group_ends ends;
    const uint64_t start = group_start(docs, from, entry);
    if (start > token || !ends_of_group(docs, from, entry, &ends))
        return TOKMAP_ERR_CORRUPT;
    const uint32_t j = count_ends(&ends, token - start);
    if (j >= TOKMAP_I_GROUP_DOCUMENTS || entry * TOKMAP_I_GROUP_DOCUMENTS + j >= docs->n_documents)
        return TOKMAP_ERR_CORRUPT;
    const tokmap_status status = read_document(docs, from, entry, j, out);
    if (!status && token - out->first_token >= out->n_tokens)
        return TOKMAP_ERR_CORRUPT;
    return status;
}

APART tokmap_status find_in_pieces(const tokmap_i_documents *docs, tokmap_i_pieces *from,
                                   uint64_t token, tokmap_document *out)
{
    return find_document(docs, from, token, out);
}

tokmap_status tokmap_i_documents_find(const tokmap_i_documents *docs, tokmap_i_pieces *from,
                                      uint64_t token, tokmap_document *out)
{
    return from ? find_in_pieces(docs, from, token, out) : find_document(docs, NULL, token, out);
}

LOOKUP uint32_t group_ends_of(const tokmap_i_documents *docs, tokmap_i_pieces *from, uint64_t group,
                              uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS])
{
    const uint64_t n_left = docs->n_documents - group * TOKMAP_I_GROUP_DOCUMENTS;
    const uint32_t n = (uint32_t)MIN(n_left, TOKMAP_I_GROUP_DOCUMENTS);
    const uint64_t start = group_start(docs, from, group);
    group_ends stored;
    if (start > docs->n_tokens || !ends_of_group(docs, from, group, &stored))
        return 0;
    uint64_t last = 0;
    for (uint32_t j = 0; j < n; j++) {
        const uint64_t end = end_at(&stored, j);
        if (end < last || end > docs->n_tokens - start)
            return 0;
        ends[j] = start + end;
        last = end;
    }
    return n;
}

APART uint32_t group_in_pieces(const tokmap_i_documents *docs, tokmap_i_pieces *from,
                               uint64_t group, uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS])
{
    return group_ends_of(docs, from, group, ends);
}

uint32_t tokmap_i_documents_group(const tokmap_i_documents *docs, tokmap_i_pieces *from,
                                  uint64_t group, uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS])
{
    return from ? group_in_pieces(docs, from, group, ends) : group_ends_of(docs, NULL, group, ends);
}

bool tokmap_i_group_encode(const uint64_t *ends, uint32_t n_ends, uint64_t wide_index,
                           uint8_t *record, uint8_t *wide)
{
    const uint64_t span = ends[n_ends - 1];
    memset(record, 0, TOKMAP_I_GROUP_BYTES);
    if (span < WIDE_MARK) {
        for (uint32_t j = 0; j < TOKMAP_I_GROUP_DOCUMENTS; j++)
            le_put32(record + 4 * (size_t)j, (uint32_t)ends[MIN(j, n_ends - 1)]);
        return false;
    }
    le_put64(record, wide_index);
    le_put32(record + SPAN_OFFSET, WIDE_MARK);
    for (uint32_t j = 0; j < TOKMAP_I_GROUP_DOCUMENTS; j++)
        le_put64(wide + 8 * (size_t)j, ends[MIN(j, n_ends - 1)]);
    return true;
}

const char *tokmap_i_group_check(const tokmap_i_group *group, uint64_t *next_start)
{
    group_ends ends = {group->record, tokmap_i_group_is_wide(group->record)};
    if (ends.wide) {
        if (!group->wide || le_get64(group->record) != group->wide_index)
            return "a wide group does not point to its wide ends";
        if (!is_zero(group->record + 8, SPAN_OFFSET - 8))
            return "unused bytes in the record of a wide group are not zero";
        ends.bytes = group->wide;
    }
    if (group->start != *next_start)
        return "a group does not start where the previous one ends";
    uint64_t last = 0;
    for (uint32_t j = 0; j < TOKMAP_I_GROUP_DOCUMENTS; j++) {
        const uint64_t end = end_at(&ends, j);
        if (j < group->n_documents ? end < last : end != last)
            return "document ends are not in ascending order";
        last = end;
    }
    if (ends.wide && last < WIDE_MARK)
        return "a group has wide ends but does not need them";
    if (__builtin_add_overflow(*next_start, last, next_start))
        return "document ends overflow";
    return NULL;
}
