/* SPDX-License-Identifier: Apache-2.0 */
/* The document index against the naive answer, a scan over all lengths. Shapes are random and
 * chosen; lookups are at every boundary and at random tokens; wide groups are included; no files
 * are used. */
#include <fcntl.h>

#include "support/check.h"
#include "support/must.h"

#include "base/base.h"
#include "base/le.h"
#include "format/document_index.h"
#include "dataset/index_reader.h"
#include "writer/sections.h"

enum {
    MAX_DOCUMENTS = 70000
};

typedef struct section {
    uint64_t *lengths;
    uint64_t n_documents, n_tokens;
    uint8_t *bytes;
    uint64_t n_bytes;
} section;

/* The section by the words of FORMAT.md, not by the index writer. */
static void encode(section *s)
{
    tokmap_i_documents_layout l;
    tokmap_i_documents_layout_of(s->n_documents, &l);
    uint8_t *wide = calloc(l.n_groups + 1, TOKMAP_I_WIDE_BYTES);
    s->bytes = malloc((size_t)l.wide_offset + (l.n_groups + 1) * TOKMAP_I_WIDE_BYTES);
    memset(s->bytes, 0xff, (size_t)l.wide_offset);
    uint64_t start = 0, n_wide = 0;
    for (uint64_t g = 0; g < l.n_groups; g++) {
        uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS], end = 0;
        const uint64_t left = s->n_documents - g * TOKMAP_I_GROUP_DOCUMENTS;
        const uint32_t n = (uint32_t)MIN(left, TOKMAP_I_GROUP_DOCUMENTS);
        for (uint32_t j = 0; j < n; j++)
            ends[j] = end += s->lengths[g * TOKMAP_I_GROUP_DOCUMENTS + j];
        n_wide += tokmap_i_group_encode(ends, n, n_wide, s->bytes + g * TOKMAP_I_GROUP_BYTES,
                                        wide + n_wide * TOKMAP_I_WIDE_BYTES);
        uint64_t entry = g;
        for (uint32_t level = 0; level < l.n_levels; level++) {
            le_put64(s->bytes + l.level_offset[level] + 8 * entry, start);
            if (entry % TOKMAP_I_NODE_KEYS != 0)
                break;
            entry /= TOKMAP_I_NODE_KEYS;
        }
        start += end;
    }
    memcpy(s->bytes + l.wide_offset, wide, (size_t)n_wide * TOKMAP_I_WIDE_BYTES);
    s->n_bytes = l.wide_offset + n_wide * TOKMAP_I_WIDE_BYTES;
    s->n_tokens = start;
    free(wide);
}

/* A section that is only to be had in pieces, each gone when the next one comes; and from the n-th
 * on none can be read. */
typedef struct in_pieces {
    tokmap_i_pieces pieces;
    const section *section;
    uint64_t n_gotten, n_readable;
    uint8_t piece[TOKMAP_I_PIECE_BYTES];
} in_pieces;

static const uint8_t *get_piece(tokmap_i_pieces *self, uint64_t offset)
{
    in_pieces *p = (in_pieces *)self;
    CHECK(offset < p->section->n_bytes);
    memset(p->piece, 0xA5, sizeof p->piece);
    memcpy(p->piece, p->section->bytes + offset,
           MIN(sizeof p->piece, p->section->n_bytes - offset));
    return p->n_gotten++ < p->n_readable ? p->piece : NULL;
}

static void check_at(const section *s, const tokmap_i_documents *docs, uint64_t token,
                     uint64_t expected)
{
    tokmap_document out, again;
    CHECK_INT(tokmap_i_documents_find(docs, NULL, token, &out), TOKMAP_OK);
    CHECK_EQ(out.index, expected);
    CHECK_EQ(out.n_tokens, s->lengths[expected]);
    CHECK(out.first_token <= token && token - out.first_token < out.n_tokens);

    in_pieces p = {.pieces.get = get_piece, .section = s, .n_readable = UINT64_MAX};
    tokmap_i_documents unmapped = *docs;
    unmapped.bytes = NULL;
    CHECK_INT(tokmap_i_documents_find(&unmapped, &p.pieces, token, &again), TOKMAP_OK);
    CHECK(memcmp(&again, &out, sizeof out) == 0);
    p.n_readable = p.n_gotten * (token % 16) / 16;
    p.n_gotten = 0;
    CHECK_INT(tokmap_i_documents_find(&unmapped, &p.pieces, token, &again), TOKMAP_ERR_CORRUPT);
    CHECK_EQ(p.n_gotten, p.n_readable + 1); /* none is asked for after that */
}

static void check_group(const section *s, const tokmap_i_documents *docs, uint64_t group)
{
    uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS], again[TOKMAP_I_GROUP_DOCUMENTS];
    in_pieces p = {.pieces.get = get_piece, .section = s, .n_readable = UINT64_MAX};
    const uint32_t n = tokmap_i_documents_group(docs, NULL, group, ends);
    CHECK(n > 0);
    CHECK_EQ(tokmap_i_documents_group(docs, &p.pieces, group, again), n);
    CHECK(memcmp(ends, again, n * sizeof *ends) == 0);
    for (p.n_readable = p.n_gotten; p.n_readable-- > 0; p.n_gotten = 0)
        CHECK_EQ(tokmap_i_documents_group(docs, &p.pieces, group, again), 0);
}

static void check_shape(section *s)
{
    encode(s);
    tokmap_i_documents docs;
    CHECK(tokmap_i_documents_size_valid(s->n_documents, s->n_bytes));
    CHECK(!tokmap_i_documents_size_valid(s->n_documents, s->n_bytes + 8));
    tokmap_i_documents_view(&docs, s->bytes, s->n_bytes, s->n_documents, s->n_tokens);
    uint64_t first = 0;
    for (uint64_t i = 0; i < s->n_documents; i++) {
        tokmap_document out;
        CHECK_INT(tokmap_i_documents_get(&docs, NULL, i, &out), TOKMAP_OK);
        CHECK_EQ(out.index, i);
        CHECK_EQ(out.first_token, first);
        CHECK_EQ(out.n_tokens, s->lengths[i]);
        if (s->lengths[i] > 0) {
            check_at(s, &docs, first, i);
            check_at(s, &docs, first + s->lengths[i] - 1, i);
            check_at(s, &docs, first + check_below(s->lengths[i]), i);
        }
        first += s->lengths[i];
    }
    for (uint64_t group = 0; group < docs.layout.n_groups; group++)
        check_group(s, &docs, group);
    free(s->bytes);
}

static uint64_t length_by(int kind, uint64_t i)
{
    switch (kind) {
    case 0:
        return check_below(2000);
    case 1: /* mostly empty */
        return check_below(50) == 0;
    case 2: /* one giant in the middle of small ones */
        return i == 5000 ? 1ull << 33 : 3;
    case 3: /* long runs of nothing */
        return i / 3000 % 2 ? 0 : 7;
    case 4: /* all groups wide */
        return check_below(1u << 28);
    case 5: /* around the boundary of wide */
        return i % 64 == 0 ? UINT32_MAX - 65 + i / 64 % 4 : 1;
    default:
        return 1;
    }
}

TEST(lookups_agree_with_a_scan_over_all_lengths)
{
    static const uint64_t counts[] = {1,    2,    63,   64,   65,    128,   1023,  1024,
                                      1025, 1087, 1088, 1089, 16384, 16385, 16449, MAX_DOCUMENTS};
    section s = {.lengths = malloc(MAX_DOCUMENTS * sizeof(uint64_t))};
    for (int kind = 0; kind < 7; kind++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            s.n_documents = counts[c];
            for (uint64_t i = 0; i < s.n_documents; i++)
                s.lengths[i] = length_by(kind, i);
            check_shape(&s);
        }
    }
    free(s.lengths);
}

TEST(a_document_costs_at_most_4_25_bytes)
{
    for (uint64_t n = 1000000; n <= 1ull << 40; n *= 3) {
        tokmap_i_documents_layout l;
        tokmap_i_documents_layout_of(n, &l);
        CHECK((double)l.wide_offset / (double)n <= 4.25);
        CHECK(l.n_levels < TOKMAP_I_MAX_LEVELS);
        CHECK(l.level_entries[l.n_levels - 1] <= TOKMAP_I_NODE_KEYS);
    }
}

/* Ends of documents that span more than 2^32 tokens, written by the library to a file of holes. */
static void write_wide(const char *prefix, const section *s)
{
    char path[1100];
    tokmap_error err;
    tokmap_i_index_writer *w;
    tokmap_i_header header = {.token_bytes = 2, .eod_id = TOKMAP_NO_ID, .token_suffix = ".bin"};
    snprintf(path, sizeof path, "%s.tmi", prefix);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    CHECK_INT(tokmap_i_index_writer_open(&w, path, fd, &err), TOKMAP_OK);
    for (uint64_t i = 0; i < s->n_documents; i++) {
        header.n_tokens += s->lengths[i];
        CHECK_INT(tokmap_i_index_writer_document(w, header.n_tokens, &err), TOKMAP_OK);
    }
    for (uint64_t i = 0; i < tokmap_i_n_blocks(&header); i++)
        CHECK_INT(tokmap_i_index_writer_block(w, 0, &err), TOKMAP_OK);
    CHECK_INT(tokmap_i_index_writer_finish(w, &header, "{}", 2, &err), TOKMAP_OK);
    tokmap_i_index_writer_close(w);
    snprintf(path, sizeof path, "%s.bin", prefix);
    FILE *f = fopen(path, "wb");
    CHECK(f && ftruncate(fileno(f), (off_t)(2 * header.n_tokens)) == 0 && fclose(f) == 0);
}

static tokmap_status compare_ends(void *context, const uint64_t *ends, uint32_t n_ends,
                                  tokmap_error *err)
{
    (void)err;
    uint64_t **expected = context;
    for (uint32_t i = 0; i < n_ends; i++)
        CHECK_EQ(ends[i], *(*expected)++);
    return TOKMAP_OK;
}

TEST(wide_groups_that_the_library_writes_are_read_back)
{
    enum {
        N = 400
    };
    uint64_t lengths[N], ends[N], first = 0;
    section s = {.lengths = lengths, .n_documents = N};
    for (uint64_t i = 0; i < N; i++)
        lengths[i] = i == 70 || i == 200 ? 1ull << 33 : i % 64 == 3 ? UINT32_MAX - 70 + i / 64 : i;
    write_wide(check_path("w"), &s);
    tokmap_error err;
    tokmap_dataset *ds = must_open(check_path("w"));
    for (uint64_t i = 0; i < N; first = ends[i++]) {
        tokmap_document doc;
        ends[i] = first + lengths[i];
        CHECK_INT(tokmap_dataset_document(ds, i, &doc), TOKMAP_OK);
        CHECK(doc.first_token == first && doc.n_tokens == lengths[i]);
        if (lengths[i] > 0) {
            CHECK_INT(tokmap_dataset_find_document(ds, ends[i] - 1, &doc), TOKMAP_OK);
            CHECK_EQ(doc.index, i);
        }
    }
    tokmap_i_index_reader reader;
    uint64_t *expected = ends;
    CHECK_INT(tokmap_i_index_reader_open(&reader, ds, &err), TOKMAP_OK);
    CHECK_INT(tokmap_i_index_reader_documents(&reader, compare_ends, &expected, &err), TOKMAP_OK);
    CHECK(expected == ends + N);
    tokmap_i_index_reader_close(&reader);
    tokmap_dataset_close(ds);
}
