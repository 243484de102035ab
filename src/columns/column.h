/* SPDX-License-Identifier: Apache-2.0 */
/* column.h - a column of values by its name: that of the index, or a late column in a file of its
 * own. docs/FORMAT.md section 14. */
#pragma once

#include "base/hash.h"
#include "base/progress.h"
#include "dataset/side_file.h"
#include "dataset/token_files.h"
#include "format/column_file.h"

struct tokmap_column {
    const tokmap_dataset *ds;
    const tokmap_i_meta *meta; /* of the dataset, or `late` */
    uint32_t index;            /* in meta */
    /* covers all that the column depends on: that of its header, or of the section in the index */
    uint64_t checksum;

    /* A late column: */
    tokmap_i_side file; /* path NULL: not late. Mapped at late->section */
    uint64_t checksums[TOKMAP_I_META_PARTS];
    tokmap_i_meta *late;
    char name[TOKMAP_I_COLUMN_NAME_MAX + 1];
};

#define TOKMAP_I_DAMAGED_COLUMN "%s: damaged: does not match its checksum: add the column again"

/* Reads all that the column depends on, and compares it with its checksums. progress: in bytes, of
 * which there are tokmap_i_column_bytes; or NULL. */
tokmap_status tokmap_i_column_check(const tokmap_column *c, tokmap_i_progress *progress,
                                    tokmap_error *err);
uint64_t tokmap_i_column_bytes(const tokmap_column *c);

static inline const tokmap_i_meta_column *tokmap_i_column_of(const tokmap_column *c)
{
    return &c->meta->columns[c->index];
}
