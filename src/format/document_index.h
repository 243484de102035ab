/* SPDX-License-Identifier: Apache-2.0 */
/* document_index.h - the documents section: where documents end, and which one holds a token.
 *
 *     ends     groups of 64 documents: 64 u32 ends relative to the group's start
 *     levels   level 0: each group's first token, u64; level i+1: every 16th entry of level i
 *     wide     64 u64 for each group that spans 2^32 - 1 tokens or more
 *
 * A lookup goes down the levels, 16 keys (two cache lines) at a time, and then counts within one
 * group: three cache misses at 10^9 documents. Guessing the position makes them less than two,
 * unless the lengths of neighbours differ by orders of magnitude. With 64 documents in a group the
 * levels take 0.13 bytes a document. With 16 keys a node is fetched at once, and all levels except
 * the two lowest stay in the processor's caches. Pure; docs/FORMAT.md section 3.3. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tokmap.h"

enum {
    TOKMAP_I_GROUP_DOCUMENTS = 64,
    TOKMAP_I_GROUP_BYTES = 256,
    TOKMAP_I_WIDE_BYTES = 512,
    TOKMAP_I_NODE_KEYS = 16,
    TOKMAP_I_MAX_LEVELS = 10,
    TOKMAP_I_PIECE_BYTES = TOKMAP_I_WIDE_BYTES /* the most bytes that a lookup needs at once */
};

/* Where the parts of a section are, in bytes from its start. */
typedef struct tokmap_i_documents_layout {
    uint64_t n_groups;
    uint32_t n_levels;
    uint64_t level_offset[TOKMAP_I_MAX_LEVELS];
    uint64_t level_entries[TOKMAP_I_MAX_LEVELS]; /* without padding */
    uint64_t wide_offset;
} tokmap_i_documents_layout;

void tokmap_i_documents_layout_of(uint64_t n_documents, tokmap_i_documents_layout *out);
bool tokmap_i_documents_size_valid(uint64_t n_documents, uint64_t section_bytes);

/* A section in memory. Its content is not trusted. */
typedef struct tokmap_i_documents {
    const uint8_t *bytes;
    uint64_t n_documents, n_tokens, n_wide;
    tokmap_i_documents_layout layout;
} tokmap_i_documents;

/* Where a lookup gets the bytes of a section that is not in memory. */
typedef struct tokmap_i_pieces tokmap_i_pieces;
struct tokmap_i_pieces {
    /* Returns TOKMAP_I_PIECE_BYTES from an offset in the section, or fewer at its end; valid until
     * the next call. NULL: they cannot be read. */
    const uint8_t *(*get)(tokmap_i_pieces *self, uint64_t offset);
};

/* Fills in a view of a section. Its size must be valid. */
void tokmap_i_documents_view(tokmap_i_documents *out, const uint8_t *bytes, uint64_t n_bytes,
                             uint64_t n_documents, uint64_t n_tokens);
/* Returns a document; index < n_documents. `from` NULL: the section is in memory.
 * TOKMAP_ERR_CORRUPT: the entry is impossible, or a piece could not be read. */
tokmap_status tokmap_i_documents_get(const tokmap_i_documents *docs, tokmap_i_pieces *from,
                                     uint64_t index, tokmap_document *out);
/* Fetches what get needs for a document of a section in memory; index < n_documents. */
void tokmap_i_documents_prefetch_get(const tokmap_i_documents *docs, uint64_t index);
/* Fetches what find will most likely need for a token of a section in memory. */
void tokmap_i_documents_prefetch(const tokmap_i_documents *docs, uint64_t token);
/* Returns the document that holds a token; token < n_tokens, and n_documents > 0. `from` and errors
 * as for tokmap_i_documents_get. */
tokmap_status tokmap_i_documents_find(const tokmap_i_documents *docs, tokmap_i_pieces *from,
                                      uint64_t token, tokmap_document *out);

/* Writes where the documents of a group end, counted from the first token of the dataset, and
 * returns how many there are, 1 to 64; 0: damaged, or a piece could not be read. group <
 * layout.n_groups. */
uint32_t tokmap_i_documents_group(const tokmap_i_documents *docs, tokmap_i_pieces *from,
                                  uint64_t group, uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS]);

/* Encodes one group. n_ends is 1 to 64, and ends are relative to its start. Returns whether it is
 * wide: then it fills `wide` (512 bytes) too, and wide_index goes into the record. */
bool tokmap_i_group_encode(const uint64_t *ends, uint32_t n_ends, uint64_t wide_index,
                           uint8_t *record, uint8_t *wide);

/* One group, as read for a check. */
typedef struct tokmap_i_group {
    const uint8_t *record;
    const uint8_t *wide;  /* its wide ends, NULL if it has none */
    uint64_t wide_index;  /* the index that its record must have if it is wide */
    uint64_t start;       /* its entry in level 0 */
    uint32_t n_documents; /* in this group */
} tokmap_i_group;
/* Whether the group is wide: then its record begins with its wide_index, in 8 bytes. */
bool tokmap_i_group_is_wide(const uint8_t *record);
/* Checks a group that must start at *next_start, and moves that to its end. Returns what is wrong;
 * NULL: nothing. */
const char *tokmap_i_group_check(const tokmap_i_group *group, uint64_t *next_start);
