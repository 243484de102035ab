/* SPDX-License-Identifier: Apache-2.0 */
/* cell_work.h - what an earlier process has left of a cell, and how a task goes on from there. */
#ifndef TOKMAP_PACK_CELL_WORK_H
#define TOKMAP_PACK_CELL_WORK_H

#include "pack/resume.h"
#include "plan/cell_state.h"

typedef struct cell_work {
    cell_report report;
    bool has_note; /* of an unfinished cell: */
    pack_note note;
    bool discard; /* unfinished work that is not of this cell is discarded, with --force */
} cell_work;

/* Looks at the cell; CELL_FOREIGN also if unfinished work is of another plan or cell. Prints
 * nothing. */
void cell_work_look(cell_work *work, const plan_file *plan, size_t cell, bool verify);
/* What may be packed again. */
typedef enum cell_replace {
    REPLACE_NONE,
    REPLACE_DAMAGED, /* cells are verified */
    REPLACE_ALL      /* and foreign ones */
} cell_replace;
/* The same for a task. CLI_DATASET with a message if the cell is foreign or damaged and may not be
 * replaced. */
int cell_work_find(cell_work *work, const plan_file *plan, size_t cell, cell_replace replace);
/* Whether nothing lies beside a cell that is done. */
bool cell_work_is_clear(const plan_file *plan, size_t cell);
/* Removes what a process has left beside a cell that is done, if it was killed at the end. Returns
 * an exit code, and prints the error. */
int cell_work_clear(const plan_file *plan, size_t cell, const pack_tokens *tokens);

#endif /* TOKMAP_PACK_CELL_WORK_H */
