/* SPDX-License-Identifier: Apache-2.0 */
/* cell_state.h - what has become of a cell: looks at the files of its datasets, reads only their
 * heads and metadata unless it is asked to verify all of them, and prints nothing. */
#pragma once

#include "plan/cell_metadata.h"
#include "plan/plan_file.h"
#include "tokmap.h"

typedef enum cell_state {
    CELL_ABSENT,
    CELL_UNFINISHED, /* a task packs it, or was interrupted */
    CELL_DONE,       /* all its datasets are complete */
    CELL_FOREIGN,    /* a dataset has its name, but was not packed for this cell of this plan */
    CELL_DAMAGED,    /* a file is damaged or missing */
    CELL_OUTDATED,   /* it was packed before the plan was updated */
    CELL_CHANGED     /* it was done, but one of its inputs is no longer that of the plan */
} cell_state;

typedef struct cell_report {
    cell_state state;
    uint64_t n_tokens, n_documents; /* CELL_DONE: of all its datasets */
    uint64_t done_ns;               /* CELL_DONE: when; since 1970 */
    int exit_code;                  /* CELL_FOREIGN, CELL_DAMAGED: CLI_AGAIN if only this time */
    char why[512];                  /* and one line, which names the file */
} cell_report;

/* verify: reads all files of a cell that is done, and compares their checksums. */
void cell_look(const plan_file *plan, size_t cell, bool verify, cell_report *report);

/* Opens the index of one dataset of a cell, if it is done. Else NULL: the report says why. */
tokmap_dataset *cell_open(const plan_file *plan, size_t cell, const char *split, cell_metadata *m,
                          cell_report *report);

/* Whether the dataset is joined, and all its token files are those of cells of this plan, in their
 * order, and of this split. */
bool cell_is_joined(const plan_file *plan, const char *split, const tokmap_dataset *ds);
