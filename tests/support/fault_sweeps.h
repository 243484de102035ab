/* SPDX-License-Identifier: Apache-2.0 */
/* fault_sweeps.h - repeats a run, each time with the next of its calls failing. The test defines
 * run_once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "support/faults.h"
#include "tokmap.h"

typedef struct sweep {
    fault_mode mode;
    unsigned calls;
    int errno_value;
    bool invisible; /* the run must succeed */
} sweep;

enum {
    N_SWEEPS = 6,
    N_MEMORY_SWEEPS = 2
};
extern const sweep sweeps_of_calls[N_SWEEPS], sweeps_of_memory[N_MEMORY_SWEEPS];

/* Defined by the test: one run with the fault at call n; false: there are fewer calls. */
typedef struct scenario scenario;
bool run_once(const scenario *s, const sweep *sw, uint64_t n, const char *what);
/* How many calls it has. */
uint64_t sweep_all(const scenario *s, const sweep *sw);

/* A run between begin_swept and end_swept leaves nothing open, and its status is one that may be.
 * The latter tells whether the fault fired. */
typedef struct swept {
    uint64_t n_files;
    int64_t n_live;
} swept;

swept begin_swept(const sweep *sw, uint64_t n);
bool end_swept(const sweep *sw, const swept *before, tokmap_status status, const tokmap_error *err,
               const char *what);
