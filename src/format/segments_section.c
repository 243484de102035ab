/* SPDX-License-Identifier: Apache-2.0 */
#include "format/segments_section.h"

#include "base/base.h"
#include "base/le.h"

typedef struct entry {
    uint64_t end_token, token_offset, name_end;
} entry;

static entry entry_at(const tokmap_i_segments *s, uint64_t index)
{
    const uint8_t *p =
        s->bytes + TOKMAP_I_SEGMENTS_HEAD_BYTES + index * TOKMAP_I_SEGMENT_ENTRY_BYTES;
    return (entry){le_get64(p), le_get64(p + 8), le_get64(p + 16)};
}

static entry entry_before(const tokmap_i_segments *s, uint64_t index)
{
    const entry none = {0};
    return index == 0 ? none : entry_at(s, index - 1);
}

static const uint8_t *names_of(const tokmap_i_segments *s)
{
    return s->bytes + s->n_bytes - s->names_bytes;
}

static const char *check_entry(const tokmap_i_segments *s, uint64_t index)
{
    const entry before = entry_before(s, index), e = entry_at(s, index);
    if (e.end_token <= before.end_token || e.end_token > s->n_tokens)
        return "segments are empty or out of order";
    if (e.token_offset > TOKMAP_I_MAX_TOKEN_OFFSET || e.token_offset % s->token_bytes != 0)
        return "the token offset of a segment is out of range";
    if (e.name_end <= before.name_end || e.name_end > s->names_bytes ||
        e.name_end - before.name_end > TOKMAP_I_MAX_SEGMENT_NAME)
        return "the name of a segment is empty or too long";
    const uint8_t *name = names_of(s) + before.name_end;
    if (name[0] == '/')
        return "the name of a segment is not a path from the folder of the index";
    if (memchr(name, 0, (size_t)(e.name_end - before.name_end)))
        return "the name of a segment contains a zero byte";
    return NULL;
}

bool tokmap_i_segments_size_valid(uint64_t n_bytes, uint64_t n_segments)
{
    const uint64_t most = MIN(n_segments, TOKMAP_I_MAX_SEGMENTS);
    return n_bytes >= TOKMAP_I_SEGMENTS_HEAD_BYTES &&
           n_bytes - TOKMAP_I_SEGMENTS_HEAD_BYTES <=
               most * (TOKMAP_I_SEGMENT_ENTRY_BYTES + TOKMAP_I_MAX_SEGMENT_NAME);
}

const char *tokmap_i_segments_check(tokmap_i_segments *s, uint64_t *at)
{
    *at = 0;
    s->n_segments = le_get64(s->bytes);
    const uint64_t room = s->n_bytes - TOKMAP_I_SEGMENTS_HEAD_BYTES;
    if (s->n_segments > TOKMAP_I_MAX_SEGMENTS ||
        s->n_segments > room / TOKMAP_I_SEGMENT_ENTRY_BYTES)
        return "the segments do not fit into their section";
    s->names_bytes = room - s->n_segments * TOKMAP_I_SEGMENT_ENTRY_BYTES;
    for (uint64_t i = 0; i < s->n_segments; i++) {
        const char *problem = check_entry(s, i);
        *at = TOKMAP_I_SEGMENTS_HEAD_BYTES + i * TOKMAP_I_SEGMENT_ENTRY_BYTES;
        if (problem)
            return problem;
    }
    const entry last = entry_before(s, s->n_segments);
    if (last.end_token != s->n_tokens)
        return "the segments do not cover the tokens";
    return last.name_end == s->names_bytes ? NULL : "bytes after the last name of a segment";
}

tokmap_i_segment tokmap_i_segments_get(const tokmap_i_segments *s, uint64_t index)
{
    const entry before = entry_before(s, index), e = entry_at(s, index);
    return (tokmap_i_segment){
        .name = (const char *)names_of(s) + before.name_end,
        .name_bytes = (size_t)(e.name_end - before.name_end),
        .first_token = before.end_token,
        .n_tokens = e.end_token - before.end_token,
        .token_offset = e.token_offset,
    };
}
