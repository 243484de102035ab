/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/rows_file.h"

#include "base/base.h"
#include "base/hash.h"
#include "base/le.h"
#include "tokmap_loader.h"

enum {
    CHUNK_TOKENS = 1 << 23,
    LEAST_ROWS = 128
};

#define FIELD(at, member) LE_FIELD(tokmap_i_rows_header, at, member)
static const le_field fields[] = {
    FIELD(12, kind.length),    FIELD(16, kind.align), FIELD(20, kind.most),
    FIELD(24, kind.whole),     FIELD(32, n_tokens),   FIELD(40, n_documents),
    FIELD(48, documents_hash), FIELD(64, n_rows),     FIELD(72, n_labels),
    FIELD(80, n_pieces),       FIELD(88, n_chunks),   FIELD(96, largest_chunk),
    FIELD(104, n_bytes),       FIELD(112, set_hash)};

uint32_t tokmap_i_chunk_rows(uint32_t length)
{
    return MAX(CHUNK_TOKENS / length, LEAST_ROWS);
}

uint32_t tokmap_i_rows_room(const tokmap_i_rows_kind *kind)
{
    return (kind->length + 1) / kind->align;
}

uint32_t tokmap_i_rows_size(const tokmap_i_rows_kind *kind, uint64_t n_tokens)
{
    return (uint32_t)MIN(div_up(n_tokens, kind->align), tokmap_i_rows_room(kind));
}

uint64_t tokmap_i_rows_pieces(const tokmap_i_rows_kind *kind, uint64_t n_tokens)
{
    if (n_tokens < 2)
        return 0;
    if (kind->whole == TOKMAP_WHOLE_DROP)
        return n_tokens <= kind->length + 1ull;
    return kind->whole == TOKMAP_WHOLE_TRUNCATE ? 1 : (n_tokens - 2) / kind->length + 1;
}

/* ---- Header ---- */

static const char *check_sizes(void *header)
{
    const tokmap_i_rows_header *h = header;
    const uint32_t length = h->kind.length, align = h->kind.align;
    if (length == 0 || length > 1 << 24 || align == 0 || length % align != 0 ||
        h->kind.whole > TOKMAP_WHOLE_TRUNCATE)
        return "impossible options of its rows";
    const uint64_t n_chunks = div_up(h->n_rows, tokmap_i_chunk_rows(length));
    return h->n_rows > h->n_tokens || h->n_chunks != n_chunks || h->largest_chunk > h->n_bytes ||
                   h->n_bytes / 8 < n_chunks + TOKMAP_I_SIDE_HEADER_BYTES / 8
               ? "impossible sizes"
               : NULL;
}

const tokmap_i_side_kind tokmap_i_rows_file_kind = {
    .magic = {0x89, 'T', 'M', 'R', '\r', '\n', 0x1A, '\n'},
    .what = "a rows file",
    .again = "make it again with tokmap rows",
    TOKMAP_I_SIDE_FIELDS(fields),
    .size_at = 104,
    .check = check_sizes};

/* ---- Chunks ---- */

uint32_t tokmap_i_chunk_number(const tokmap_i_chunk *c, uint64_t i)
{
    const uint64_t at = i * c->number_bytes;
    const uint8_t *p = c->numbers ? c->numbers + at : c->file->get(c->file, c->at + at);
    if (!p)
        return 0;
    return c->number_bytes == 2 ? le_get16(p) : le_get32(p);
}

uint32_t tokmap_i_chunk_first(const tokmap_i_chunk *c, uint32_t document)
{
    uint32_t first = 0, n = c->n_alone;
    while (n > 0) {
        const uint32_t half = n / 2;
        const bool before = tokmap_i_chunk_number(c, first + half) < document;
        first += before ? half + 1 : 0;
        n = before ? n - half - 1 : half;
    }
    return first;
}

static uint64_t n_numbers(const tokmap_i_chunk *c)
{
    return (uint64_t)c->n_alone + c->n_shared + c->n_pieces;
}

size_t tokmap_i_chunk_bytes(const tokmap_i_chunk *c)
{
    return (size_t)round_up(TOKMAP_I_CHUNK_HEADER_BYTES + n_numbers(c) * c->number_bytes, 8);
}

void tokmap_i_chunk_view(tokmap_i_chunk *c, const uint8_t *bytes)
{
    *c = (tokmap_i_chunk){.numbers = bytes + TOKMAP_I_CHUNK_HEADER_BYTES,
                          .number = le_get64(bytes + 8),
                          .first_document = le_get64(bytes + 16),
                          .first_part = le_get64(bytes + 24),
                          .n_alone = le_get32(bytes + 32),
                          .n_shared = le_get32(bytes + 36),
                          .n_pieces = le_get32(bytes + 40),
                          .number_bytes = le_get32(bytes + 44)};
}

const char *tokmap_i_chunk_check(tokmap_i_chunk *c, const uint8_t *bytes, size_t n_bytes)
{
    if (le_get64(bytes) != tokmap_i_checksum(bytes + 8, n_bytes - 8))
        return "does not match its checksum";
    tokmap_i_chunk_view(c, bytes);
    const bool has_width = c->number_bytes == 2 || c->number_bytes == 4;
    return has_width && tokmap_i_chunk_bytes(c) == n_bytes ? NULL : "has an impossible size";
}

size_t tokmap_i_chunk_most(const tokmap_i_packed *p)
{
    return TOKMAP_I_CHUNK_HEADER_BYTES + 8 + ((size_t)p->n_pieces + p->n_rows) * 4;
}

/* Writes the pieces of a row in their order. */
static void put_numbers(const tokmap_i_packed *p, const tokmap_i_chunk *c, uint32_t *starts,
                        uint8_t *numbers)
{
    const uint64_t first = p->pieces[0].document, width = c->number_bytes;
    uint32_t n_alone = 0, n_pieces = 0;
    memset(starts, 0, ((size_t)c->n_shared + 1) * sizeof *starts);
    for (uint32_t i = 0; i < p->n_pieces; i++)
        if (p->pieces[i].size < p->room)
            starts[p->pieces[i].row - c->n_alone]++;
    for (uint32_t r = 0; r < c->n_shared; r++) {
        const uint32_t n = starts[r];
        le_put(numbers + (c->n_alone + r) * width, n_pieces, width);
        starts[r] = n_pieces;
        n_pieces += n;
    }
    for (uint32_t i = 0; i < p->n_pieces; i++) {
        uint64_t at = n_alone;
        if (p->pieces[i].size < p->room)
            at = (uint64_t)c->n_alone + c->n_shared + starts[p->pieces[i].row - c->n_alone]++;
        else
            n_alone++;
        le_put(numbers + at * width, p->pieces[i].document - first, width);
    }
}

size_t tokmap_i_chunk_encode(const tokmap_i_packed *p, uint32_t *starts, uint8_t *bytes)
{
    const uint64_t span = p->pieces[p->n_pieces - 1].document - p->pieces[0].document;
    tokmap_i_chunk c = {.number_bytes = 2};
    for (uint32_t i = 0; i < p->n_pieces; i++)
        c.n_alone += p->pieces[i].size == p->room;
    c.n_shared = p->n_rows - c.n_alone;
    c.n_pieces = p->n_pieces - c.n_alone;
    if (span > UINT32_MAX)
        return 0;
    if (span > UINT16_MAX || c.n_pieces > UINT16_MAX + 1)
        c.number_bytes = 4;
    const size_t n_bytes = tokmap_i_chunk_bytes(&c);
    memset(bytes + n_bytes - 8, 0, 8); /* what follows the last number */
    le_put64(bytes + 8, p->number);
    le_put64(bytes + 16, p->pieces[0].document);
    le_put64(bytes + 24, p->pieces[0].part);
    le_put32(bytes + 32, c.n_alone);
    le_put32(bytes + 36, c.n_shared);
    le_put32(bytes + 40, c.n_pieces);
    le_put32(bytes + 44, c.number_bytes);
    put_numbers(p, &c, starts, bytes + TOKMAP_I_CHUNK_HEADER_BYTES);
    le_put64(bytes, tokmap_i_checksum(bytes + 8, n_bytes - 8));
    return n_bytes;
}
