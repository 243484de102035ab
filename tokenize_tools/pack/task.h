/* SPDX-License-Identifier: Apache-2.0 */
/* task.h - packs a share of the cells of a plan: each into a dataset of its own, by a session like
 * that of a plain pack. */
#pragma once

#include "request/options.h"

typedef struct pack_task_number { /* which task a process does, and of how many */
    uint64_t i, n;                /* i < n */
} pack_task_number;

typedef struct pack_task_options {
    pack_options *options; /* those that do not decide what is written; gets the others */
    const char *plan;      /* its path */
    pack_task_number task;
    bool verify; /* cells that are done are verified, and packed again if damaged */
} pack_task_options;

/* Cells that are done are skipped, and those that other processes pack are left to them. Before
 * anything is written, the cells, their inputs and the tokenizer are compared with the plan.
 * Returns CLI_OK if all cells of the task are done; CLI_AGAIN also if others still pack some.
 * Prints the error, or the results. */
int pack_task_run(const pack_task_options *options);

/* ---- --task ---- */

/* "I/N", or "auto": from the variables of Slurm, Open MPI or PMI. Returns an exit code, and prints
 * the error. */
int pack_task_number_parse(pack_task_number *task, const char *text);
