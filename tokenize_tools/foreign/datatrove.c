/* SPDX-License-Identifier: Apache-2.0 */
/* datatrove.c - X.ds (tokens only), X.ds.index (u64 document ends in tokens, nothing else)
 * and X.ds.metadata (text: "tokenizer|token size" or only "tokenizer", token count, the same for
 * people). */
#include "foreign/foreign.h"

#include <inttypes.h>
#include <string.h>

#include "base/number.h"

#define MAX_METADATA_BYTES 4096

typedef struct metadata_facts {
    uint32_t token_bytes; /* 0: not stated */
    uint64_t n_tokens;
    bool has_count;
} metadata_facts;

static bool read_metadata(metadata_facts *facts, const foreign_bytes *metadata, failure *err)
{
    char text[MAX_METADATA_BYTES];
    if (metadata->size > sizeof text)
        return fail(err, "has a .metadata of %" PRIu64 " bytes, but it should have three lines",
                    metadata->size);
    size_t n = (size_t)metadata->size;
    if (!foreign_read(metadata, 0, text, n, err))
        return false;
    const char *end = text + n;
    const char *line_end = memchr(text, '\n', n);
    line_end = line_end ? line_end : end;
    const char *bar = line_end; /* the last bar: the name of a tokenizer may contain others */
    while (bar > text && bar[-1] != '|')
        bar--;
    uint64_t token_bytes;
    if (bar > text && number_read_digits(bar, (size_t)(line_end - bar), &token_bytes)) {
        if (token_bytes != 2 && token_bytes != 4)
            return fail(err, "has tokens of %" PRIu64 " bytes; only 2 and 4 can be adopted",
                        token_bytes);
        facts->token_bytes = (uint32_t)token_bytes;
    }
    const char *count = line_end == end ? end : line_end + 1;
    const char *count_end = memchr(count, '\n', (size_t)(end - count));
    facts->has_count = number_read_digits(count, (size_t)((count_end ? count_end : end) - count),
                                          &facts->n_tokens);
    return true;
}

static bool is_size_of(uint64_t n_tokens, uint32_t token_bytes, uint64_t ds_bytes)
{
    return ds_bytes % token_bytes == 0 && ds_bytes / token_bytes == n_tokens;
}

static bool choose_width(foreign_layout *out, const foreign_files *files, uint32_t written,
                         failure *err)
{
    uint64_t ds_bytes = files->tokens->size;
    if (files->token_bytes != 0 && written != 0 && files->token_bytes != written)
        return fail(err, "has tokens of %u bytes by its .metadata, which is not the given --dtype",
                    written);
    out->token_bytes = written != 0 ? written : files->token_bytes;
    if (out->token_bytes == 0 && ds_bytes == 0 && out->n_tokens == 0)
        return fail(err, "is empty, so its token width is unknown; give --dtype u16 "
                         "or --dtype u32");
    if (out->token_bytes == 0)
        out->token_bytes = is_size_of(out->n_tokens, 2, ds_bytes) ? 2 : 4;
    if (!is_size_of(out->n_tokens, out->token_bytes, ds_bytes))
        return fail(err,
                    "does not fit its .index: the documents end at token %" PRIu64
                    ", the file has %" PRIu64 " bytes",
                    out->n_tokens, ds_bytes);
    return true;
}

static bool decode_datatrove(foreign_layout *out, const foreign_files *files, failure *err)
{
    *out = (foreign_layout){.boundaries = FOREIGN_BOUNDARIES_LISTED};
    metadata_facts facts = {0};
    const foreign_bytes *index = files->table;
    if (files->metadata && !read_metadata(&facts, files->metadata, err))
        return false;
    if (index->size % 8 != 0)
        return fail(err, "has a damaged .index: %" PRIu64 " bytes are not a multiple of 8",
                    index->size);
    out->n_table_items = index->size / 8;
    if (out->n_table_items > 0) {
        uint8_t last_end[8];
        if (!foreign_read(index, index->size - 8, last_end, sizeof last_end, err))
            return false;
        out->n_tokens = le_get64(last_end);
    }
    if (!choose_width(out, files, facts.token_bytes, err))
        return false;
    if (facts.has_count && facts.n_tokens != out->n_tokens)
        return fail(err, "has %" PRIu64 " tokens, but its .metadata counts %" PRIu64, out->n_tokens,
                    facts.n_tokens);
    return true;
}

static bool list_documents(const foreign_layout *layout, const foreign_bytes *index,
                           const foreign_sink *sink, failure *err)
{
    foreign_cursor ends = {index, 0, index->size};
    uint64_t previous = 0;
    for (uint64_t i = 0; i < layout->n_table_items; i++) {
        const uint8_t *p = foreign_cursor_next(&ends, 8, err);
        if (!p)
            return false;
        uint64_t end = le_get64(p);
        if (end < previous || end > layout->n_tokens)
            return fail(err,
                        "has a damaged .index: document %" PRIu64 " ends at token %" PRIu64
                        ", the one before at %" PRIu64 ", the file at %" PRIu64,
                        i, end, previous, layout->n_tokens);
        if (!sink->document(sink->user, end - previous))
            return false;
        previous = end;
    }
    if (previous != layout->n_tokens)
        return fail(err, "has a damaged .index: it ends at token %" PRIu64 " of %" PRIu64, previous,
                    layout->n_tokens);
    return true;
}

const foreign_reader foreign_datatrove = {
    .name = "datatrove",
    .help = "X.ds and X.ds.index; FILE is X.ds",
    .table_suffix = ".index",
    .metadata_suffix = ".metadata",
    .loss_suffix = ".loss",
    .decode = decode_datatrove,
    .documents = list_documents,
};
