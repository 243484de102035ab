/* SPDX-License-Identifier: Apache-2.0 */
/* cell_state.h - what has become of a cell: examines the files of its datasets, reads only their
 * heads and metadata unless it is asked to verify everything, and prints nothing. */
#pragma once

#include "plan/cell_metadata.h"
#include "plan/plan_file.h"
#include "tokmap.h"

typedef enum cell_state {
    CELL_ABSENT,
    CELL_UNFINISHED, /* a task packs it, or was interrupted */
    CELL_DONE,       /* all its datasets are complete */
    CELL_FOREIGN,    /* a dataset with its name was not packed for this cell of this plan */
    CELL_DAMAGED,    /* a file is damaged or missing */
    CELL_OUTDATED,   /* it was packed before the plan was updated */
    CELL_CHANGED     /* it was done, but one of its inputs has changed since */
} cell_state;

typedef struct cell_report {
    cell_state state;
    uint64_t n_tokens, n_documents; /* CELL_DONE: of all its datasets */
    uint64_t n_bad;   /* CELL_DONE: documents that were left out because they are bad */
    uint64_t done_ns; /* CELL_DONE: when; since 1970 */
    int exit_code;    /* CELL_FOREIGN, CELL_DAMAGED: CLI_AGAIN if it may work later */
    char why[512];    /* and one line, with the name of the file */
} cell_report;

/* Finds out what has become of a cell. verify: reads all files of a cell that is done, and compares
 * their checksums. */
void cell_check(const plan_file *plan, size_t cell, bool verify, cell_report *report);

/* Opens the index of one dataset of a cell, if the dataset is done. Else returns NULL, with the
 * reason in the report. */
tokmap_dataset *cell_open(const plan_file *plan, size_t cell, const char *split, cell_metadata *m,
                          cell_report *report);

/* Whether the dataset is joined from cells of this plan and split, in their order. */
bool cell_is_joined(const plan_file *plan, const char *split, const tokmap_dataset *ds);
