/* SPDX-License-Identifier: Apache-2.0 */
/* journal_plans.h - what the tests of resumable writers share: work that follows from a number, in
 * steps, with the number of the step in the note of each checkpoint. */
#pragma once

#include "support/bad_days.h"
#include "support/check.h"

extern char prefix[600]; /* of the dataset at hand */

enum {
    N_SUFFIXES = 8
};
extern const char *const all_suffixes[N_SUFFIXES];

void remove_all_of(const char *of);

/* ---- Work ---- */

typedef struct plan {
    uint64_t seed;
    uint32_t n_steps;
    uint32_t most_tokens; /* in a step */
    uint64_t vocab_size;
    uint32_t n_columns; /* of values, up to 3 */
} plan;

/* Tells the writer which columns of values there are. */
tokmap_status set_columns(const plan *p, tokmap_writer *w, tokmap_error *err);
/* What a step does follows from its number alone; whether a document is open, from the ones
 * before it: every fourth step closes documents, and only those end inputs. */
tokmap_status step(const plan *p, tokmap_writer *w, uint32_t i, tokmap_error *err);

/* ---- Notes ---- */

/* The step to go on with. The whole note must be what was written. */
uint32_t read_note(const plan *p, const void *note, size_t n_bytes);

/* ---- Runs ---- */

typedef struct run {
    const plan *plan;
    tokmap_unfinished unfinished;
    bool replace, plain; /* plain: not resumable */
    uint64_t resume_checkpoint;
    uint32_t checkpoint_every; /* steps; 0: never */
    uint32_t stop_at;          /* close there without finish; 0: finish */
    /* Results: */
    uint32_t started_at; /* step */
    uint64_t resumed_from;
    volatile uint64_t *n_checkpoints; /* when set, counts those that are made; may be shared */
    bool complete;                    /* was so already */
} run;

tokmap_status open_run(run *r, tokmap_writer **w, tokmap_error *err);
tokmap_status make_checkpoint(const run *r, tokmap_writer *w, uint32_t next_step,
                              tokmap_error *err);
tokmap_status play(const run *r, tokmap_writer *w, tokmap_error *err);
tokmap_status run_plan(run *r, tokmap_error *err);
run run_well(run r);

/* ---- Files ---- */

typedef struct files {
    file_bytes f[N_SUFFIXES]; /* data is NULL where there is none */
} files;

files load_files(const char *of);
void store_files(const files *all);
void free_files(files *all);
/* P.bin and P.tmi of a plan that is not interrupted and makes no checkpoints. */
files uninterrupted(const plan *p);
void expect_files(const files *all, const char *what);

/* ---- A small work for many runs ---- */

extern const plan SMALL;

void start(void);
const char *file_of(const char *suffix);
/* A plan that was left after stop_at steps, and its files. */
files leave(const plan *p, uint32_t checkpoint_every, uint32_t stop_at);
void expect_refused(run r, tokmap_status wanted, const char *words);
