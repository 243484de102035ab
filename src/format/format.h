/* SPDX-License-Identifier: Apache-2.0 */
/* format.h - the header and the section table of an index file: bytes <-> decoded values.
 *
 * Pure: no files, no allocation. docs/FORMAT.md section 3 is the specification. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/content_hash.h"
#include "format/format_limits.h"
#include "tokmap.h"

enum {
    TOKMAP_I_FORMAT_VERSION = 1,
    TOKMAP_I_HEADER_BYTES = 256,
    TOKMAP_I_SECTION_ENTRY_BYTES = 32,
    TOKMAP_I_SECTION_ALIGNMENT = 64,
    TOKMAP_I_MIN_SECTIONS = 4,
    TOKMAP_I_SUFFIX_BYTES = 16,
    TOKMAP_I_BLOCK_BYTES = 1 << 20,
    /* Files are written in pieces that start and end at multiples of this size, so that the page
     * cache can hold them in huge pages. This saves page faults and TLB misses in a map. */
    TOKMAP_I_WRITE_BYTES = 2 << 20
};

typedef enum tokmap_i_section_kind {
    TOKMAP_I_DOCUMENTS = 1,
    TOKMAP_I_CHECKSUMS = 2,
    TOKMAP_I_INPUTS = 3,
    TOKMAP_I_METADATA = 4,
    TOKMAP_I_META = 5,     /* values of documents; optional; not needed to read tokens */
    TOKMAP_I_SEGMENTS = 6, /* only in a joined dataset */
    TOKMAP_I_SPANS = 7,    /* tokens whose labels never count; optional */
    TOKMAP_I_LAST_SECTION = TOKMAP_I_SPANS
} tokmap_i_section_kind;

typedef struct tokmap_i_section {
    uint32_t kind;
    uint32_t flags;
    uint64_t offset;
    uint64_t n_bytes;
    uint64_t checksum;
} tokmap_i_section;

typedef struct tokmap_i_header {
    uint32_t format_version, lowest_reader;
    uint32_t n_sections;
    uint64_t index_bytes;
    uint8_t dataset_id[16];
    uint64_t n_tokens, n_documents;
    tokmap_i_content_hash tokens_hash, documents_hash;
    uint64_t token_offset;
    uint32_t token_bytes, largest_id;
    uint64_t vocab_size;
    uint32_t eod_id;
    char token_suffix[TOKMAP_I_SUFFIX_BYTES]; /* NUL-terminated */
    uint64_t table_checksum;
    tokmap_i_section sections[TOKMAP_I_MAX_SECTIONS];
} tokmap_i_header;

/* The file that is decoded: its name for messages and its real size. */
typedef struct tokmap_i_index_file {
    const char *name;
    uint64_t n_bytes;
} tokmap_i_index_file;

/* Decodes the header from the first n_bytes of the file (256, or all if it is shorter). Sections
 * stay empty. */
tokmap_status tokmap_i_header_decode(const uint8_t *bytes, size_t n_bytes,
                                     const tokmap_i_index_file *file, tokmap_i_header *header,
                                     tokmap_error *err);
/* Decodes the section table, n_sections * 32 bytes; checks offsets, sizes that follow from counts,
 * and the dataset id. */
tokmap_status tokmap_i_table_decode(const uint8_t *bytes, const tokmap_i_index_file *file,
                                    tokmap_i_header *header, tokmap_error *err);

/* Encodes header and table: 256 + n_sections * 32 bytes, without padding. Computes the dataset id
 * and both checksums. */
void tokmap_i_header_encode(tokmap_i_header *header, uint8_t *bytes);

/* "documents"; "extra" if the kind is not known. */
const char *tokmap_i_section_name(uint32_t kind);
const tokmap_i_section *tokmap_i_section_find(const tokmap_i_header *header,
                                              tokmap_i_section_kind kind);
/* Returns where section number i must start, given the sections before it. */
uint64_t tokmap_i_section_start(const tokmap_i_header *header, uint32_t section_index);
/* Counts the block checksums. For a joined dataset, the section table alone determines the
 * number. */
uint64_t tokmap_i_n_blocks(const tokmap_i_header *header);
/* Whether the suffix is valid: a dot, then letters, digits, '.', '_', '-'; 2 to 15 bytes; not
 * ending in .tmi or .partial. */
int tokmap_i_suffix_valid(const char *suffix);
