/* SPDX-License-Identifier: Apache-2.0 */
/* task_number.h - which task a process does, and of how many: --task. */
#ifndef TOKMAP_PACK_TASK_NUMBER_H
#define TOKMAP_PACK_TASK_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define PACK_MAX_TASKS ((uint64_t)1 << 32)

typedef struct pack_task_number {
    uint64_t i, n; /* i < n */
} pack_task_number;

/* "I/N", or "auto": from the variables of Slurm, Open MPI or PMI. Returns an exit code, and prints
 * the error. */
int pack_task_number_parse(pack_task_number *task, const char *text);
/* The things [*first, *end) of n_things that the task does. */
void pack_task_share(const pack_task_number *task, size_t n_things, size_t *first, size_t *end);

#endif /* TOKMAP_PACK_TASK_NUMBER_H */
