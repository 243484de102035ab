/* SPDX-License-Identifier: Apache-2.0 */
#include "format/format.h"

#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"
#include "format/document_index.h"
#include "format/meta_section.h"
#include "format/segments_section.h"
#include "format/spans_section.h"

static const uint8_t magic[8] = {0x89, 'T', 'M', 'I', '\r', '\n', 0x1a, '\n'};
#define BYTE_ORDER_MARK 0x01020304u

/* Byte offsets of header fields, in file order. */
enum {
    AT_MAGIC = 0,
    AT_BYTE_ORDER = 8,
    AT_FORMAT_VERSION = 12,
    AT_LOWEST_READER = 14,
    AT_MUST_UNDERSTAND = 16,
    AT_HEADER_BYTES = 24,
    AT_N_SECTIONS = 28,
    AT_INDEX_BYTES = 32,
    AT_DATASET_ID = 40,
    AT_N_TOKENS = 56,
    AT_N_DOCUMENTS = 64,
    AT_TOKEN_OFFSET = 72,
    AT_TOKEN_BYTES = 80,
    AT_LARGEST_ID = 84,
    AT_VOCAB_SIZE = 88,
    AT_EOD_ID = 96,
    AT_RESERVED_1 = 100,
    AT_TOKEN_SUFFIX = 104,
    AT_TOKENS_HASH = 120,
    AT_DOCUMENTS_HASH = 136,
    AT_RESERVED_2 = 152,
    AT_IGNORABLE = 176,
    AT_TABLE_CHECKSUM = 240,
    AT_HEADER_CHECKSUM = 248
};

/* The fields that are stored as they are in the struct. */
#define FIELD(at, member) LE_FIELD(tokmap_i_header, at, member)
static const le_field fields[] = {FIELD(AT_N_SECTIONS, n_sections),
                                  FIELD(AT_INDEX_BYTES, index_bytes),
                                  FIELD(AT_DATASET_ID, dataset_id),
                                  FIELD(AT_N_TOKENS, n_tokens),
                                  FIELD(AT_N_DOCUMENTS, n_documents),
                                  FIELD(AT_TOKEN_OFFSET, token_offset),
                                  FIELD(AT_TOKEN_BYTES, token_bytes),
                                  FIELD(AT_LARGEST_ID, largest_id),
                                  FIELD(AT_VOCAB_SIZE, vocab_size),
                                  FIELD(AT_EOD_ID, eod_id),
                                  FIELD(AT_TOKEN_SUFFIX, token_suffix),
                                  FIELD(AT_TOKENS_HASH, tokens_hash.crc),
                                  FIELD(AT_DOCUMENTS_HASH, documents_hash.crc)};

#define SECTION_MUST_UNDERSTAND 1u

int tokmap_i_suffix_valid(const char *suffix)
{
    const size_t n = strlen(suffix);
    const char *allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return n >= 2 && n < TOKMAP_I_SUFFIX_BYTES && suffix[0] == '.' &&
           strspn(suffix, allowed) == n && (n < 4 || strcmp(suffix + n - 4, ".tmi") != 0) &&
           (n < 8 || strcmp(suffix + n - 8, ".partial") != 0);
}

/* Checks what is the same in all versions: whether this is an index, is intact, and is not too
 * new. */
static tokmap_status check_identity(const uint8_t *p, size_t n_bytes,
                                    const tokmap_i_index_file *file, tokmap_error *err)
{
    if (n_bytes < sizeof magic || memcmp(p, magic, sizeof magic) != 0)
        return FAIL(err, TOKMAP_ERR_NOT_A_DATASET, "%s: not a tokmap index", file->name);
    if (n_bytes < TOKMAP_I_HEADER_BYTES)
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, n_bytes,
                       "%s: damaged: the file has %zu bytes, but its header needs %d", file->name,
                       n_bytes, TOKMAP_I_HEADER_BYTES);
    if (le_get64(p + AT_HEADER_CHECKSUM) != tokmap_i_checksum(p, AT_HEADER_CHECKSUM))
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, AT_HEADER_CHECKSUM,
                       "%s: damaged: the header (bytes 0-255) does not match its checksum",
                       file->name);
    if (le_get32(p + AT_BYTE_ORDER) != BYTE_ORDER_MARK)
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, AT_BYTE_ORDER,
                       "%s: damaged: the byte-order mark is %08" PRIx32 ", not %08x", file->name,
                       le_get32(p + AT_BYTE_ORDER), BYTE_ORDER_MARK);
    const unsigned version = le_get16(p + AT_FORMAT_VERSION);
    const unsigned lowest_reader = le_get16(p + AT_LOWEST_READER);
    if (version == 0 || lowest_reader == 0)
        return FAIL_AT(err, TOKMAP_ERR_VERSION, AT_FORMAT_VERSION,
                       "%s: format %u, for readers of format %u or later: not a released version",
                       file->name, version, lowest_reader);
    if (lowest_reader > TOKMAP_I_FORMAT_VERSION)
        return FAIL_AT(err, TOKMAP_ERR_VERSION, AT_LOWEST_READER,
                       "%s: format %u needs a reader of format %u, this tokmap reads up to %d: use "
                       "a newer tokmap",
                       file->name, version, lowest_reader, TOKMAP_I_FORMAT_VERSION);
    if (le_get32(p + AT_MUST_UNDERSTAND) != 0)
        return FAIL_AT(err, TOKMAP_ERR_VERSION, AT_MUST_UNDERSTAND,
                       "%s: uses features (flags %08" PRIx32
                       ") that this tokmap does not know: use a newer one",
                       file->name, le_get32(p + AT_MUST_UNDERSTAND));
    return TOKMAP_OK;
}

static bool id_fits(uint64_t id, const tokmap_i_header *h)
{
    return (h->token_bytes == 4 || id <= UINT16_MAX) && (h->vocab_size == 0 || id < h->vocab_size);
}

/* Checks each rule for a single field, in file order. *offset becomes the offset of the field that
 * breaks a rule. */
static const char *broken_rule(const uint8_t *p, const tokmap_i_header *h, uint64_t *offset)
{
    const uint32_t w = h->token_bytes;
    const char *suffix = h->token_suffix;
    const size_t suffix_bytes = strnlen(suffix, TOKMAP_I_SUFFIX_BYTES);
    const bool suffix_fits = suffix_bytes < TOKMAP_I_SUFFIX_BYTES &&
                             tokmap_i_suffix_valid(suffix) &&
                             is_zero(suffix + suffix_bytes, TOKMAP_I_SUFFIX_BYTES - suffix_bytes);
    const struct {
        bool holds;
        uint64_t offset;
        const char *what;
    } rules[] = {
        {le_get32(p + AT_HEADER_BYTES) == TOKMAP_I_HEADER_BYTES, AT_HEADER_BYTES, "header size"},
        {h->n_sections >= TOKMAP_I_MIN_SECTIONS && h->n_sections <= TOKMAP_I_MAX_SECTIONS,
         AT_N_SECTIONS, "number of sections"},
        {h->n_tokens <= TOKMAP_I_MAX_TOKENS, AT_N_TOKENS, "number of tokens"},
        {h->n_documents <= TOKMAP_I_MAX_DOCUMENTS, AT_N_DOCUMENTS, "number of documents"},
        {w == 2 || w == 4, AT_TOKEN_BYTES, "token width"},
        {h->token_offset <= TOKMAP_I_MAX_TOKEN_OFFSET && (w == 0 || h->token_offset % w == 0),
         AT_TOKEN_OFFSET, "token offset"},
        {h->vocab_size <= TOKMAP_I_MAX_VOCAB, AT_VOCAB_SIZE, "vocabulary size"},
        {h->n_tokens == 0 ? h->largest_id == 0 : id_fits(h->largest_id, h), AT_LARGEST_ID,
         "largest id"},
        {h->eod_id == TOKMAP_NO_ID || id_fits(h->eod_id, h), AT_EOD_ID, "end-of-document id"},
        {is_zero(p + AT_RESERVED_1, AT_TOKEN_SUFFIX - AT_RESERVED_1), AT_RESERVED_1,
         "reserved field"},
        {suffix_fits, AT_TOKEN_SUFFIX, "token file suffix"},
        {is_zero(p + AT_RESERVED_2, AT_IGNORABLE - AT_RESERVED_2), AT_RESERVED_2, "reserved field"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (!rules[i].holds) {
            *offset = rules[i].offset;
            return rules[i].what;
        }
    }
    return NULL;
}

tokmap_status tokmap_i_header_decode(const uint8_t *bytes, size_t n_bytes,
                                     const tokmap_i_index_file *file, tokmap_i_header *h,
                                     tokmap_error *err)
{
    const tokmap_status status = check_identity(bytes, n_bytes, file, err);
    if (status)
        return status;
    memset(h, 0, sizeof *h);
    h->format_version = le_get16(bytes + AT_FORMAT_VERSION);
    h->lowest_reader = le_get16(bytes + AT_LOWEST_READER);
    LE_GET_FIELDS(h, bytes, fields);
    h->tokens_hash.n_bytes = 4 * h->n_tokens;
    h->documents_hash.n_bytes = 8 * h->n_documents;
    h->table_checksum = le_get64(bytes + AT_TABLE_CHECKSUM);
    uint64_t offset = 0;
    const char *what = broken_rule(bytes, h, &offset);
    if (what)
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, offset,
                       "%s: damaged: the %s at byte %" PRIu64 " of the header is out of range",
                       file->name, what, offset);
    if (h->index_bytes != file->n_bytes)
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, MIN(h->index_bytes, file->n_bytes),
                       "%s: damaged: the file has %" PRIu64
                       " bytes, but its header states %" PRIu64,
                       file->name, file->n_bytes, h->index_bytes);
    const uint64_t table_end =
        TOKMAP_I_HEADER_BYTES + (uint64_t)h->n_sections * TOKMAP_I_SECTION_ENTRY_BYTES;
    if (table_end > file->n_bytes)
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, file->n_bytes,
                       "%s: damaged: the section table does not fit into the file", file->name);
    return TOKMAP_OK;
}

uint64_t tokmap_i_section_start(const tokmap_i_header *h, uint32_t i)
{
    const uint64_t before =
        i == 0 ? TOKMAP_I_HEADER_BYTES + (uint64_t)h->n_sections * TOKMAP_I_SECTION_ENTRY_BYTES
               : h->sections[i - 1].offset + h->sections[i - 1].n_bytes;
    return round_up(before, TOKMAP_I_SECTION_ALIGNMENT);
}

const tokmap_i_section *tokmap_i_section_find(const tokmap_i_header *h, tokmap_i_section_kind kind)
{
    for (uint32_t i = 0; i < h->n_sections; i++)
        if (h->sections[i].kind == (uint32_t)kind)
            return &h->sections[i];
    return NULL;
}

uint64_t tokmap_i_n_blocks(const tokmap_i_header *h)
{
    if (tokmap_i_section_find(h, TOKMAP_I_SEGMENTS))
        return tokmap_i_section_find(h, TOKMAP_I_CHECKSUMS)->n_bytes / 8;
    return div_up(h->n_tokens * h->token_bytes, TOKMAP_I_BLOCK_BYTES);
}

static const struct {
    const char *name;
    uint32_t flags;
} KINDS[] = {
    [TOKMAP_I_DOCUMENTS] = {"documents", SECTION_MUST_UNDERSTAND},
    [TOKMAP_I_CHECKSUMS] = {"block checksums", SECTION_MUST_UNDERSTAND},
    [TOKMAP_I_INPUTS] = {"inputs", SECTION_MUST_UNDERSTAND},
    [TOKMAP_I_METADATA] = {"metadata", SECTION_MUST_UNDERSTAND},
    [TOKMAP_I_META] = {"values", 0},
    [TOKMAP_I_SEGMENTS] = {"segments", SECTION_MUST_UNDERSTAND},
    [TOKMAP_I_SPANS] = {"spans", SECTION_MUST_UNDERSTAND},
};
_Static_assert(sizeof KINDS / sizeof *KINDS == TOKMAP_I_LAST_SECTION + 1,
               "a kind of sections has no row");

const char *tokmap_i_section_name(uint32_t kind)
{
    return kind <= TOKMAP_I_LAST_SECTION ? KINDS[kind].name : "extra";
}

static tokmap_status check_entry(const tokmap_i_header *h, uint32_t i,
                                 const tokmap_i_index_file *file, tokmap_error *err)
{
    const tokmap_i_section *s = &h->sections[i];
    const uint64_t at = TOKMAP_I_HEADER_BYTES + (uint64_t)i * TOKMAP_I_SECTION_ENTRY_BYTES;
    if (s->kind == 0 || (i > 0 && s->kind <= h->sections[i - 1].kind))
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, at,
                       "%s: damaged: section %" PRIu32 " has kind %" PRIu32 ", out of order",
                       file->name, i, s->kind);
    const bool known = s->kind <= TOKMAP_I_LAST_SECTION;
    if ((s->flags & ~SECTION_MUST_UNDERSTAND) || (known && s->flags != KINDS[s->kind].flags))
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, at + 4,
                       "%s: damaged: section %" PRIu32 " has flags %08" PRIx32
                       ", which it must not have",
                       file->name, i, s->flags);
    if (!known && s->flags != 0)
        return FAIL_AT(err, TOKMAP_ERR_VERSION, at,
                       "%s: has a section of kind %" PRIu32
                       " that this tokmap does not know: use a newer one",
                       file->name, s->kind);
    uint64_t end = 0;
    if (s->offset != tokmap_i_section_start(h, i) ||
        __builtin_add_overflow(s->offset, s->n_bytes, &end) || end > file->n_bytes)
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, at + 8,
                       "%s: damaged: section %" PRIu32 " (offset %" PRIu64 ", size %" PRIu64
                       ") is not where it must be in the file",
                       file->name, i, s->offset, s->n_bytes);
    return TOKMAP_OK;
}

static void dataset_id(const tokmap_i_header *h, uint8_t id[16])
{
    uint8_t record[48];
    le_put64(record, h->n_tokens);
    le_put64(record + 8, h->n_documents);
    tokmap_i_content_hash_store(&h->tokens_hash, record + 16);
    tokmap_i_content_hash_store(&h->documents_hash, record + 32);
    tokmap_i_id128(record, sizeof record, id);
}

/* Checks sizes that follow from the counts. All sections except the last three must be present. */
static const char *wrong_size(const tokmap_i_header *h)
{
    const uint64_t documents = tokmap_i_section_find(h, TOKMAP_I_DOCUMENTS)->n_bytes;
    if (!tokmap_i_documents_size_valid(h->n_documents, documents))
        return "documents";
    const uint64_t checksums = tokmap_i_section_find(h, TOKMAP_I_CHECKSUMS)->n_bytes;
    if (checksums % 8 != 0 || checksums / 8 != tokmap_i_n_blocks(h))
        return "block checksums"; /* a joined dataset must have as many as its segments need */
    if (tokmap_i_section_find(h, TOKMAP_I_INPUTS)->n_bytes < 8)
        return "inputs";
    if (tokmap_i_section_find(h, TOKMAP_I_METADATA)->n_bytes > TOKMAP_I_MAX_METADATA_BYTES)
        return "metadata";
    const tokmap_i_section *meta = tokmap_i_section_find(h, TOKMAP_I_META);
    if (meta && meta->n_bytes < TOKMAP_I_META_HEAD_BYTES)
        return "values";
    const tokmap_i_section *segments = tokmap_i_section_find(h, TOKMAP_I_SEGMENTS);
    if (segments && !tokmap_i_segments_size_valid(segments->n_bytes, h->n_tokens))
        return "segments";
    const tokmap_i_section *spans = tokmap_i_section_find(h, TOKMAP_I_SPANS);
    if (spans && spans->n_bytes < TOKMAP_I_SPANS_HEAD_BYTES)
        return "spans";
    return NULL;
}

/* Checks the table as a whole. Kinds ascend without repeats, so the four known ones are present
 * exactly if they come first. */
static tokmap_status check_whole(const tokmap_i_header *h, const tokmap_i_index_file *file,
                                 tokmap_error *err)
{
    for (uint32_t kind = TOKMAP_I_DOCUMENTS; kind <= TOKMAP_I_METADATA; kind++)
        if (h->sections[kind - 1].kind != kind)
            return FAIL_AT(err, TOKMAP_ERR_CORRUPT, TOKMAP_I_HEADER_BYTES,
                           "%s: damaged: there is no section of kind %" PRIu32, file->name, kind);
    const tokmap_i_section *last = &h->sections[h->n_sections - 1];
    if (last->offset + last->n_bytes != file->n_bytes)
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, last->offset + last->n_bytes,
                       "%s: damaged: the last section ends at byte %" PRIu64
                       ", the file at byte %" PRIu64,
                       file->name, last->offset + last->n_bytes, file->n_bytes);
    if (tokmap_i_section_find(h, TOKMAP_I_SEGMENTS) &&
        (h->token_offset != 0 || strcmp(h->token_suffix, ".bin") != 0))
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, h->token_offset ? AT_TOKEN_OFFSET : AT_TOKEN_SUFFIX,
                       "%s: damaged: the header of a joined dataset names a token file",
                       file->name);
    const char *what = wrong_size(h);
    if (what)
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, TOKMAP_I_HEADER_BYTES,
                       "%s: damaged: the size of the %s section does not match the counts",
                       file->name, what);
    uint8_t id[16];
    dataset_id(h, id);
    if (memcmp(id, h->dataset_id, sizeof id) != 0)
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, AT_DATASET_ID,
                       "%s: damaged: the dataset id does not match the content", file->name);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_table_decode(const uint8_t *bytes, const tokmap_i_index_file *file,
                                    tokmap_i_header *h, tokmap_error *err)
{
    const size_t table_bytes = (size_t)h->n_sections * TOKMAP_I_SECTION_ENTRY_BYTES;
    if (tokmap_i_checksum(bytes, table_bytes) != h->table_checksum)
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, TOKMAP_I_HEADER_BYTES,
                       "%s: damaged: the section table does not match its checksum", file->name);
    for (uint32_t i = 0; i < h->n_sections; i++) {
        const uint8_t *p = bytes + (size_t)i * TOKMAP_I_SECTION_ENTRY_BYTES;
        h->sections[i] = (tokmap_i_section){le_get32(p), le_get32(p + 4), le_get64(p + 8),
                                            le_get64(p + 16), le_get64(p + 24)};
        const tokmap_status status = check_entry(h, i, file, err);
        if (status)
            return status;
    }
    return check_whole(h, file, err);
}

void tokmap_i_header_encode(tokmap_i_header *h, uint8_t *bytes)
{
    uint8_t *table = bytes + TOKMAP_I_HEADER_BYTES;
    for (uint32_t i = 0; i < h->n_sections; i++) {
        uint8_t *p = table + (size_t)i * TOKMAP_I_SECTION_ENTRY_BYTES;
        const tokmap_i_section *s = &h->sections[i];
        le_put32(p, s->kind);
        le_put32(p + 4, KINDS[s->kind].flags);
        le_put64(p + 8, s->offset);
        le_put64(p + 16, s->n_bytes);
        le_put64(p + 24, s->checksum);
    }
    dataset_id(h, h->dataset_id);
    memset(bytes, 0, TOKMAP_I_HEADER_BYTES);
    memcpy(bytes + AT_MAGIC, magic, sizeof magic);
    le_put32(bytes + AT_BYTE_ORDER, BYTE_ORDER_MARK);
    le_put16(bytes + AT_FORMAT_VERSION, (uint16_t)h->format_version);
    le_put16(bytes + AT_LOWEST_READER, (uint16_t)h->lowest_reader);
    le_put32(bytes + AT_HEADER_BYTES, TOKMAP_I_HEADER_BYTES);
    LE_PUT_FIELDS(bytes, h, fields);
    le_put64(bytes + AT_TABLE_CHECKSUM,
             tokmap_i_checksum(table, (size_t)h->n_sections * TOKMAP_I_SECTION_ENTRY_BYTES));
    le_put64(bytes + AT_HEADER_CHECKSUM, tokmap_i_checksum(bytes, AT_HEADER_CHECKSUM));
}
