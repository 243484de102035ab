/* SPDX-License-Identifier: Apache-2.0 */
#include "format/journal_record.h"

#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/le.h"
#include "format/document_index.h"
#include "format/format.h"
#include "format/input_table.h"
#include "tokmap_writer.h"

static const uint8_t header_magic[8] = {0x89, 'T', 'M', 'J', '\r', '\n', 0x1a, '\n'};
static const uint8_t head_magic[8] = {0x89, 'T', 'M', 'R', '\r', '\n', 0x1a, '\n'};
#define BYTE_ORDER_MARK 0x01020304u

/* Byte offsets of fields that are not in the tables, in file order. */
enum {
    AT_BYTE_ORDER = 8,
    AT_HEADER_CHECKSUM = 56
};
enum {
    AT_PREVIOUS = 8,
    AT_FLAGS = 72,
    AT_NEW_SPANS = 76, /* their number, in 4 bytes */
    AT_PAYLOAD_CHECKSUM = 144,
    AT_HEAD_CHECKSUM = 152
};
enum {
    FLAG_INPUT_BEFORE_DOCUMENT = 1,
    FLAG_SPANS = 2
};

#define HEADER_FIELD(at, member) LE_FIELD(tokmap_i_journal_header, at, member)
static const le_field header_fields[] = {HEADER_FIELD(12, version), HEADER_FIELD(16, token_bytes),
                                         HEADER_FIELD(20, eod_id), HEADER_FIELD(24, vocab_size)};

#define FIELD(at, member) LE_FIELD(tokmap_i_checkpoint, at, member)
static const le_field fields[] = {
    FIELD(16, n_tokens),         FIELD(24, n_documents),        FIELD(32, group_start),
    FIELD(40, n_wide),           FIELD(48, n_inputs),           FIELD(56, names_bytes),
    FIELD(64, largest_id),       FIELD(68, note_bytes),         FIELD(80, ends_checksum),
    FIELD(88, block_checksum),   FIELD(96, values_bytes),       FIELD(104, values_checksum),
    FIELD(112, tokens_hash.crc), FIELD(128, documents_hash.crc)};

/* ---- Header ---- */

void tokmap_i_journal_header_encode(tokmap_i_journal_header *h, uint8_t *p)
{
    memset(p, 0, TOKMAP_I_JOURNAL_HEADER_BYTES);
    memcpy(p, header_magic, sizeof header_magic);
    le_put32(p + AT_BYTE_ORDER, BYTE_ORDER_MARK);
    LE_PUT_FIELDS(p, h, header_fields);
    h->checksum = tokmap_i_checksum(p, AT_HEADER_CHECKSUM);
    le_put64(p + AT_HEADER_CHECKSUM, h->checksum);
}

bool tokmap_i_journal_header_decode(const uint8_t *p, tokmap_i_journal_header *h)
{
    *h = (tokmap_i_journal_header){.checksum = le_get64(p + AT_HEADER_CHECKSUM)};
    LE_GET_FIELDS(h, p, header_fields);
    if (memcmp(p, header_magic, sizeof header_magic) != 0 ||
        le_get32(p + AT_BYTE_ORDER) != BYTE_ORDER_MARK ||
        h->checksum != tokmap_i_checksum(p, AT_HEADER_CHECKSUM))
        return false;
    return h->version != TOKMAP_I_JOURNAL_VERSION ||
           ((h->token_bytes == 2 || h->token_bytes == 4) && h->vocab_size <= TOKMAP_I_MAX_VOCAB);
}

/* ---- Records ---- */

static uint64_t whole_blocks(const tokmap_i_journal_header *header, const tokmap_i_checkpoint *c)
{
    return c->n_tokens * header->token_bytes / TOKMAP_I_BLOCK_BYTES;
}

void tokmap_i_record_measure(const tokmap_i_journal_header *header,
                             const tokmap_i_checkpoint *before, const tokmap_i_checkpoint *now,
                             tokmap_i_record_parts *parts)
{
    uint64_t *n = parts->n_bytes;
    n[TOKMAP_I_OPEN_ENDS] = now->n_documents % TOKMAP_I_GROUP_DOCUMENTS * 8;
    n[TOKMAP_I_WIDE_ENDS] = (now->n_wide - before->n_wide) * TOKMAP_I_WIDE_BYTES;
    n[TOKMAP_I_BLOCKS] = (whole_blocks(header, now) - whole_blocks(header, before)) * 8;
    n[TOKMAP_I_NEW_INPUTS] = (now->n_inputs - before->n_inputs) * TOKMAP_I_INPUT_ENTRY_BYTES;
    n[TOKMAP_I_NAMES] = now->names_bytes - before->names_bytes;
    n[TOKMAP_I_NEW_SPANS] = (now->n_spans - before->n_spans) * TOKMAP_I_ADDED_SPAN_BYTES;
    n[TOKMAP_I_NOTE] = now->note_bytes;
}

uint64_t tokmap_i_record_payload_bytes(const tokmap_i_record_parts *parts)
{
    uint64_t sum = 0;
    for (int i = 0; i < TOKMAP_I_RECORD_PARTS; i++)
        sum += parts->n_bytes[i];
    return round_up(sum, TOKMAP_I_RECORD_ALIGNMENT);
}

void tokmap_i_record_encode(tokmap_i_checkpoint *now, uint64_t previous,
                            const tokmap_i_record_parts *parts, uint8_t *p)
{
    uint8_t *payload = p + TOKMAP_I_RECORD_HEAD_BYTES;
    uint8_t *end = payload;
    for (int i = 0; i < TOKMAP_I_RECORD_PARTS; i++) {
        if (parts->n_bytes[i] > 0)
            memcpy(end, parts->data[i], (size_t)parts->n_bytes[i]);
        end += parts->n_bytes[i];
    }
    while ((end - payload) % TOKMAP_I_RECORD_ALIGNMENT != 0)
        *end++ = 0;
    memset(p, 0, TOKMAP_I_RECORD_HEAD_BYTES);
    memcpy(p, head_magic, sizeof head_magic);
    le_put64(p + AT_PREVIOUS, previous);
    LE_PUT_FIELDS(p, now, fields);
    le_put32(p + AT_FLAGS, (now->input_before_document ? FLAG_INPUT_BEFORE_DOCUMENT : 0) |
                               (now->has_spans ? FLAG_SPANS : 0));
    le_put32(p + AT_NEW_SPANS,
             (uint32_t)(parts->n_bytes[TOKMAP_I_NEW_SPANS] / TOKMAP_I_ADDED_SPAN_BYTES));
    le_put64(p + AT_PAYLOAD_CHECKSUM, tokmap_i_checksum(payload, (size_t)(end - payload)));
    now->checksum = tokmap_i_checksum(p, AT_HEAD_CHECKSUM);
    le_put64(p + AT_HEAD_CHECKSUM, now->checksum);
}

bool tokmap_i_record_is_head(const uint8_t *p)
{
    return memcmp(p, head_magic, sizeof head_magic) == 0 &&
           le_get64(p + AT_HEAD_CHECKSUM) == tokmap_i_checksum(p, AT_HEAD_CHECKSUM);
}

const char *tokmap_i_record_head_decode(const uint8_t *p, const tokmap_i_journal_header *header,
                                        const tokmap_i_checkpoint *before, tokmap_i_checkpoint *now)
{
    const uint32_t flags = le_get32(p + AT_FLAGS);
    const uint64_t previous = before->sequence == 0 ? header->checksum : before->checksum;
    *now = (tokmap_i_checkpoint){
        .sequence = before->sequence + 1,
        .input_before_document = (flags & FLAG_INPUT_BEFORE_DOCUMENT) != 0,
        .has_spans = (flags & FLAG_SPANS) != 0,
        .n_spans = before->n_spans + le_get32(p + AT_NEW_SPANS),
        .checksum = le_get64(p + AT_HEAD_CHECKSUM),
    };
    LE_GET_FIELDS(now, p, fields);
    const uint64_t n_grouped = now->n_documents - now->n_documents % TOKMAP_I_GROUP_DOCUMENTS;
    now->tokens_hash.n_bytes = 4 * now->n_tokens;
    now->documents_hash.n_bytes = 8 * n_grouped;
    if (le_get64(p + AT_PREVIOUS) != previous)
        return "this record does not follow the previous one";
    const bool possible =
        now->n_tokens <= TOKMAP_I_MAX_TOKENS && now->n_documents <= TOKMAP_I_MAX_DOCUMENTS &&
        now->group_start <= now->n_tokens && now->n_inputs <= TOKMAP_I_MAX_INPUTS &&
        now->n_wide <= now->n_documents / TOKMAP_I_GROUP_DOCUMENTS &&
        now->note_bytes <= TOKMAP_MAX_NOTE_BYTES && (now->has_spans || now->n_spans == 0) &&
        (before->sequence == 0 || now->has_spans == before->has_spans);
    if ((flags & ~(uint32_t)(FLAG_INPUT_BEFORE_DOCUMENT | FLAG_SPANS)) != 0 || !possible)
        return "a record has impossible counts";
    /* Names are at most as long as the limit, and values began before the first document ended. */
    const bool follows =
        now->n_tokens >= before->n_tokens && now->n_documents >= before->n_documents &&
        now->group_start >= before->group_start && now->n_wide >= before->n_wide &&
        now->n_inputs >= before->n_inputs && now->names_bytes >= before->names_bytes &&
        now->values_bytes >= before->values_bytes &&
        (now->values_bytes == 0 || before->values_bytes > 0 || before->n_documents == 0) &&
        now->names_bytes - before->names_bytes <=
            (now->n_inputs - before->n_inputs) * TOKMAP_I_MAX_INPUT_NAME;
    return follows ? NULL : "a count in a record is lower than in the previous one";
}

bool tokmap_i_record_is_payload(const uint8_t *head, const uint8_t *payload, uint64_t n_bytes)
{
    return le_get64(head + AT_PAYLOAD_CHECKSUM) == tokmap_i_checksum(payload, (size_t)n_bytes);
}

const char *tokmap_i_record_payload_decode(const uint8_t *payload, const tokmap_i_checkpoint *now,
                                           tokmap_i_record_parts *parts)
{
    uint64_t end = 0;
    for (int i = 0; i < TOKMAP_I_RECORD_PARTS; i++) {
        parts->data[i] = payload;
        payload += parts->n_bytes[i];
    }
    const uint8_t *ends = parts->data[TOKMAP_I_OPEN_ENDS];
    for (uint64_t i = 0; i < parts->n_bytes[TOKMAP_I_OPEN_ENDS]; i += 8) {
        if (le_get64(ends + i) < end)
            return "document ends in a record are not in ascending order";
        end = le_get64(ends + i);
    }
    return end <= now->n_tokens - now->group_start
               ? NULL
               : "a document in a record ends after the last token";
}
