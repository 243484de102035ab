/* SPDX-License-Identifier: Apache-2.0 */
#include "format/view_file.h"

#include "base/base.h"
#include "base/hash.h"
#include "base/le.h"
#include "format/format_limits.h"

#define FIELD(at, member) LE_FIELD(tokmap_i_view_header, at, member)
static const le_field fields[] = {
    FIELD(16, documents_hash), FIELD(32, n_documents), FIELD(40, n_kept),   FIELD(48, n_tokens),
    FIELD(56, n_runs),         FIELD(64, set_hash),    FIELD(72, n_chunks), FIELD(80, n_bytes),
    FIELD(88, table_checksum), FIELD(96, key)};

static const char *check_counts(void *header)
{
    const tokmap_i_view_header *h = header;
    return h->n_documents > TOKMAP_I_MAX_DOCUMENTS || h->n_kept > h->n_documents ||
                   h->n_runs > h->n_kept || h->n_tokens >= TOKMAP_I_MAX_TOKENS ||
                   h->n_chunks != div_up(h->n_documents, TOKMAP_I_VIEW_CHUNK)
               ? "impossible counts"
               : NULL;
}

const tokmap_i_side_kind tokmap_i_view_kind = {
    .magic = {0x89, 'T', 'M', 'W', '\r', '\n', 0x1A, '\n'},
    .what = "a view",
    .again = "make the view again",
    TOKMAP_I_SIDE_FIELDS(fields),
    .size_at = 80,
    .check = check_counts};

/* ---- The table ---- */

void tokmap_i_view_chunk_encode(const tokmap_i_view_chunk *c, uint8_t *bytes)
{
    le_put64(bytes, c->kept_before);
    le_put64(bytes + 8, c->tokens_before);
    le_put64(bytes + 16, c->place);
    le_put64(bytes + 24, c->n_kept); /* also writes the reserved zero */
    le_put64(bytes + 32, c->checksum);
}

const char *tokmap_i_view_table_decode(const tokmap_i_view_header *h, const uint8_t *bytes,
                                       tokmap_i_view_chunk *chunks)
{
    const uint64_t table_bytes = h->n_chunks * TOKMAP_I_VIEW_ENTRY_BYTES;
    uint64_t kept = 0, tokens = 0, place = TOKMAP_I_SIDE_HEADER_BYTES + table_bytes;
    if (tokmap_i_checksum(bytes, (size_t)table_bytes) != h->table_checksum)
        return "the table of chunks does not match its checksum";
    for (uint64_t i = 0; i < h->n_chunks; i++, bytes += TOKMAP_I_VIEW_ENTRY_BYTES) {
        tokmap_i_view_chunk *c = &chunks[i];
        *c = (tokmap_i_view_chunk){le_get64(bytes), le_get64(bytes + 8), le_get64(bytes + 16),
                                   le_get64(bytes + 32), le_get32(bytes + 24)};
        if (c->kept_before != kept || c->tokens_before < tokens || c->tokens_before > h->n_tokens ||
            (kept == 0 && c->tokens_before != 0) || c->place != place ||
            c->n_kept > TOKMAP_I_VIEW_CHUNK || le_get32(bytes + 28) != 0)
            return "impossible chunks";
        kept += c->n_kept;
        tokens = c->tokens_before;
        place += tokmap_i_view_chunk_bytes(c->n_kept);
    }
    return kept == h->n_kept && place == h->n_bytes ? NULL : "impossible sizes";
}

/* ---- Chunks ---- */

/* Whether kept document number i of a chunk, if it has a sample, is in it. */
static bool is_sampled(const uint8_t *samples, uint32_t i, uint32_t document)
{
    return i % TOKMAP_I_VIEW_STEP != 0 ||
           (le_get64(samples + 8 * (size_t)(i / TOKMAP_I_VIEW_STEP)) & 0xffff) == document;
}

static bool bitmap_fits(const tokmap_i_view_chunk *c, const uint8_t *bytes, const uint8_t *samples,
                        uint32_t n_documents)
{
    uint32_t n = 0;
    for (uint32_t first = 0; first < TOKMAP_I_VIEW_CHUNK; first += 64)
        for (uint64_t word = le_get64(bytes + first / 8); word != 0; word &= word - 1) {
            const uint32_t d = first + (uint32_t)__builtin_ctzll(word);
            if (n == c->n_kept || d >= n_documents || !is_sampled(samples, n, d))
                return false;
            n++;
        }
    return n == c->n_kept;
}

static bool list_fits(const tokmap_i_view_chunk *c, const uint8_t *bytes, const uint8_t *samples,
                      uint32_t n_documents)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < c->n_kept; i++) {
        const uint32_t d = le_get16(bytes + 2 * (size_t)i);
        if (d >= n_documents || (i > 0 && d <= last) || !is_sampled(samples, i, d))
            return false;
        last = d;
    }
    const uint8_t *end = bytes + 2 * (size_t)c->n_kept;
    return is_zero(end, (size_t)(samples - end));
}

const char *tokmap_i_view_chunk_check(const tokmap_i_view_chunk *c, const uint8_t *bytes,
                                      uint32_t n_documents)
{
    const uint32_t n_samples = tokmap_i_view_n_samples(c->n_kept);
    const uint8_t *samples = bytes + tokmap_i_view_samples_at(c->n_kept);
    if (tokmap_i_checksum(bytes, tokmap_i_view_chunk_bytes(c->n_kept)) != c->checksum)
        return "does not match its checksum";
    bool sound = c->n_kept > TOKMAP_I_VIEW_MOST_LISTED ? bitmap_fits(c, bytes, samples, n_documents)
                                                       : list_fits(c, bytes, samples, n_documents);
    uint64_t last = 0;
    for (uint32_t i = 0; i < n_samples; i++) {
        const uint64_t n_tokens = le_get64(samples + 8 * (size_t)i) >> 16;
        sound &= i == 0 ? n_tokens == 0 : n_tokens >= last;
        last = n_tokens;
    }
    return sound ? NULL : "has impossible documents";
}
