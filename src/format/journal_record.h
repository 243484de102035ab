/* SPDX-License-Identifier: Apache-2.0 */
/* journal_record.h - the journal of an unfinished dataset: header and records, bytes <-> values.
 *
 * A record states how much of the files was written at a checkpoint. It holds what is new since the
 * previous record and not stored in any other file. Pure: no files, no allocation. docs/FORMAT.md
 * section 9. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/content_hash.h"

enum {
    TOKMAP_I_JOURNAL_VERSION = 2,
    TOKMAP_I_JOURNAL_HEADER_BYTES = 64,
    TOKMAP_I_RECORD_HEAD_BYTES = 160,
    TOKMAP_I_ADDED_SPAN_BYTES = 16, /* u64 first token, u64 number of tokens * 256 + role */
    TOKMAP_I_RECORD_ALIGNMENT = 8   /* record heads start at multiples of it */
};

/* The end of messages about files that cannot be continued. */
#define TOKMAP_I_CANNOT_RESUME                                                                     \
    ": the unfinished dataset cannot be resumed; discard it to start over"

typedef struct tokmap_i_journal_header {
    uint32_t version, token_bytes, eod_id;
    uint64_t vocab_size;
    uint64_t checksum;
} tokmap_i_journal_header;

/* The head of a record. Counts are totals since the beginning. */
typedef struct tokmap_i_checkpoint {
    uint64_t sequence; /* 1 for the first; not stored: it follows from the position in the file */
    uint64_t n_tokens, n_documents;
    uint64_t group_start; /* first token of the group of documents that is being filled */
    uint64_t n_wide;      /* groups with wide ends */
    uint64_t n_inputs, names_bytes;
    uint32_t largest_id, note_bytes;
    bool input_before_document, has_spans;
    uint64_t n_spans;
    uint64_t ends_checksum;  /* checksum of the documents section so far */
    uint64_t block_checksum; /* checksum of the token bytes after the last whole block */
    uint64_t values_bytes;   /* size of the file of values; 0: documents have no values */
    uint64_t values_checksum;
    tokmap_i_content_hash tokens_hash;
    tokmap_i_content_hash documents_hash; /* hash of the lengths of documents in full groups */
    uint64_t checksum;                    /* checksum of the head; the next record repeats it */
} tokmap_i_checkpoint;

/* The parts of the payload, in file order. All except the first and the last hold what is new since
 * the previous checkpoint. */
typedef enum tokmap_i_record_part {
    TOKMAP_I_OPEN_ENDS, /* u64, ends in the group that is being filled, relative to its start */
    TOKMAP_I_WIDE_ENDS, /* this and the next parts as the index stores them */
    TOKMAP_I_BLOCKS,
    TOKMAP_I_NEW_INPUTS,
    TOKMAP_I_NAMES,
    TOKMAP_I_NEW_SPANS, /* TOKMAP_I_ADDED_SPAN_BYTES each */
    TOKMAP_I_NOTE,
    TOKMAP_I_RECORD_PARTS
} tokmap_i_record_part;

typedef struct tokmap_i_record_parts {
    const uint8_t *data[TOKMAP_I_RECORD_PARTS];
    uint64_t n_bytes[TOKMAP_I_RECORD_PARTS];
} tokmap_i_record_parts;

/* Computes header->checksum. */
void tokmap_i_journal_header_encode(tokmap_i_journal_header *header, uint8_t *bytes);
/* Decodes a header. Returns false if these 64 bytes are not a sound header. If it is of a later
 * version, only header->version is set. */
bool tokmap_i_journal_header_decode(const uint8_t *bytes, tokmap_i_journal_header *header);

/* Fills in the sizes of the parts of `now`, which follow from the counts. For the first record,
 * `before` is all zero. */
void tokmap_i_record_measure(const tokmap_i_journal_header *header,
                             const tokmap_i_checkpoint *before, const tokmap_i_checkpoint *now,
                             tokmap_i_record_parts *parts);
/* Returns the bytes of all parts, padded up to the next head. */
uint64_t tokmap_i_record_payload_bytes(const tokmap_i_record_parts *parts);
/* Writes head and payload. Computes now->checksum. previous: the checksum of the previous record,
 * or of the header. */
void tokmap_i_record_encode(tokmap_i_checkpoint *now, uint64_t previous,
                            const tokmap_i_record_parts *parts, uint8_t *bytes);

/* Whether these bytes are the head of a record: magic and checksum. */
bool tokmap_i_record_is_head(const uint8_t *bytes);
/* Decodes a head. Returns what is wrong; NULL if it can follow `before`. */
const char *tokmap_i_record_head_decode(const uint8_t *bytes, const tokmap_i_journal_header *header,
                                        const tokmap_i_checkpoint *before,
                                        tokmap_i_checkpoint *now);
/* Whether this is the payload of that head. A torn payload is not. */
bool tokmap_i_record_is_payload(const uint8_t *head, const uint8_t *payload, uint64_t n_bytes);
/* Points the measured parts into the payload. Returns what is wrong; NULL if it is sound. */
const char *tokmap_i_record_payload_decode(const uint8_t *payload, const tokmap_i_checkpoint *now,
                                           tokmap_i_record_parts *parts);
