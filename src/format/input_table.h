/* SPDX-License-Identifier: Apache-2.0 */
/* input_table.h - the inputs section: which documents and tokens came from which input file.
 * Pure; docs/FORMAT.md section 3.5. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "format/format_limits.h"
#include "tokmap.h"

enum {
    TOKMAP_I_INPUT_HEAD_BYTES = 8,
    TOKMAP_I_INPUT_ENTRY_BYTES = 40
};

/* A section in memory. Its content is not trusted. */
typedef struct tokmap_i_inputs {
    const uint8_t *bytes;
    uint64_t n_bytes;
    uint64_t n_inputs;              /* must fit into the section */
    uint64_t n_documents, n_tokens; /* of the dataset */
} tokmap_i_inputs;

/* Whether n_inputs fit into a section of n_bytes. */
bool tokmap_i_inputs_fit(uint64_t n_inputs, uint64_t n_bytes);
/* Returns an entry; index < n_inputs. TOKMAP_ERR_CORRUPT: the entry is impossible. */
tokmap_status tokmap_i_inputs_get(const tokmap_i_inputs *inputs, uint64_t index,
                                  tokmap_input_info *out);
/* Checks the whole table. Returns what is wrong; NULL: nothing. */
const char *tokmap_i_inputs_check(const tokmap_i_inputs *inputs);

typedef struct tokmap_i_input_entry {
    uint64_t end_document, end_token, input_bytes, input_checksum, name_end;
} tokmap_i_input_entry;
void tokmap_i_input_entry_encode(const tokmap_i_input_entry *entry, uint8_t *bytes);
