/* SPDX-License-Identifier: Apache-2.0 */
/* crew.h - a few threads that do work in parts. */
#ifndef TOKMAP_CREW_H
#define TOKMAP_CREW_H

#include <stdint.h>

typedef struct tokmap_i_crew tokmap_i_crew;

/* n_threads includes the caller's. If the system cannot start that many, there are fewer. NULL: no
 * memory. */
tokmap_i_crew *tokmap_i_crew_open(uint32_t n_threads);
void tokmap_i_crew_close(tokmap_i_crew *c);
/* Calls work(context, part) for each part below n_parts and returns when all are done. One caller
 * at a time. */
void tokmap_i_crew_run(tokmap_i_crew *c, void (*work)(void *context, uint32_t part), void *context,
                       uint32_t n_parts);

#endif /* TOKMAP_CREW_H */
