/* source_table.h - the sources section: which documents and tokens came from which input. Pure;
 * docs/FORMAT.md section 3.5. */
#ifndef TOKMAP_SOURCE_TABLE_H
#define TOKMAP_SOURCE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format_limits.h"
#include "tokmap.h"

enum {
    TOKMAP_I_SOURCE_HEAD_BYTES = 8,
    TOKMAP_I_SOURCE_ENTRY_BYTES = 40
};

/* A section in memory. Its content is not trusted. */
typedef struct tokmap_i_sources {
    const uint8_t *bytes;
    uint64_t n_bytes;
    uint64_t n_sources;             /* must fit */
    uint64_t n_documents, n_tokens; /* of the dataset */
} tokmap_i_sources;

/* Whether n_sources fit into a section of n_bytes. */
bool tokmap_i_sources_fit(uint64_t n_sources, uint64_t n_bytes);
/* index < n_sources. TOKMAP_ERR_CORRUPT: the entry is impossible. */
tokmap_status tokmap_i_sources_get(const tokmap_i_sources *sources, uint64_t index,
                                   tokmap_source_info *out);
/* NULL if the whole table is valid; else what is wrong. */
const char *tokmap_i_sources_check(const tokmap_i_sources *sources);

typedef struct tokmap_i_source_entry {
    uint64_t end_document, end_token, input_bytes, input_checksum, name_end;
} tokmap_i_source_entry;
void tokmap_i_source_entry_encode(const tokmap_i_source_entry *entry, uint8_t *bytes);

#endif /* TOKMAP_SOURCE_TABLE_H */
