/* SPDX-License-Identifier: Apache-2.0 */
/* spill.h - keeps the tokens of jobs that are far ahead in a file, so that they need no memory.
 *
 * The file lies beside the output and has no name, so a killed run leaves nothing. No run depends
 * on it: where there is none, or it is full, or a write fails, jobs stay in memory. Threads may
 * call all of these at the same time, each with a job of its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pack/job.h"

typedef struct pack_spill pack_spill;

/* Makes the file in the folder of this path, for at most so many bytes, and at most an eighth of
 * the free space. NULL: there is none. */
pack_spill *pack_spill_open(const char *beside, uint64_t most_bytes);
/* Moves what an encoded job holds to the file. False: the job is as it was. */
bool pack_spill_put(pack_spill *s, pack_job *job);
/* Moves it back. Returns 0 or an errno value; EBADMSG: the file does not hold what was written. */
int pack_spill_get(pack_spill *s, pack_job *job);
/* How many bytes were written in all. */
uint64_t pack_spill_written(pack_spill *s);
void pack_spill_close(pack_spill *s);
