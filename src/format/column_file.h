/* SPDX-License-Identifier: Apache-2.0 */
/* column_file.h - the file of a late column: a header, then the parts of the column. Pure.
 * docs/FORMAT.md section 14. */
#pragma once

#include "format/meta_section.h"
#include "format/side_header.h"

enum {
    TOKMAP_I_COLUMN_NAME_MAX = 64
};

extern const tokmap_i_side_kind tokmap_i_column_kind; /* its header: tokmap_i_column_header */

typedef struct tokmap_i_column_header {
    tokmap_i_meta_column column; /* placed: its parts are counted from the start of the file */
    uint8_t dataset_id[16];
    uint64_t n_documents;
    uint64_t n_bytes; /* of the file */
    uint64_t checksums[TOKMAP_I_META_PARTS];
} tokmap_i_column_header;

/* Whether a late column can have this name. */
bool tokmap_i_column_name_valid(const char *name);
/* Returns where a part ends, with the zero bytes that belong to it. */
uint64_t tokmap_i_column_part_end(const tokmap_i_meta_column *c, int part);
/* Computes where the parts are, and the size of the file. Returns false if it would be too
 * large. */
bool tokmap_i_column_place(tokmap_i_column_header *h);
