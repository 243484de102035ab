/* SPDX-License-Identifier: Apache-2.0 */
/* look_ahead.h - how many steps are read ahead: whether reading is slow, and whether more steps
 * help. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tokmap_i_look_ahead {
    uint32_t n_steps;    /* read ahead now */
    uint32_t most_steps; /* the most that it may be; 0: it does not change again */
    double steps_per_ns; /* with half as many; 0: not known */
} tokmap_i_look_ahead;

/* Whether reading n_tokens in n_pieces took longer than copying them in memory, by as much as one
 * read. */
bool tokmap_i_is_slow(uint64_t ns, size_t n_pieces, uint64_t n_tokens);
/* Doubles n_steps, up to most_steps; or halves it again for good, if steps did not come faster
 * since it was doubled. n_taken: steps in `ns` since the last change; with too few, nothing
 * changes. Returns whether n_steps has changed. */
bool tokmap_i_adapt(tokmap_i_look_ahead *a, uint64_t n_taken, uint64_t ns);
/* Returns how many steps of a store are read ahead, at most `most`, if the caller takes a step in
 * step_ns, and 999 of 1,000 steps arrive within slowest_ns. */
uint32_t tokmap_i_steps_ahead(uint64_t step_ns, uint64_t slowest_ns, uint32_t most);
