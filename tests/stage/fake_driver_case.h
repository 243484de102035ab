/* SPDX-License-Identifier: Apache-2.0 */
/* fake_driver_case.h - stages on the fake driver: a small corpus, what each sample must become, and
 * looks at batches that are queued in the caller's streams like the work of a training step. */
#pragma once

#include <signal.h>
#include <stdatomic.h>

#include "stage/fake_driver.h"
#include "stage/stage.h"
#include "stage/stage_case.h"

enum {
    CASE_LENGTH = 6,
    CASE_ROWS = 3,
    CASE_SAMPLES = 4096, /* that the model has */
    CASE_INPUTS = CASE_ROWS * CASE_LENGTH,
    CASE_IGNORE = -100,
    CASE_PAD = 7
};

tokmap_loader *case_loader(uint32_t n_rows);
/* Datasets, which close_corpus closes, and the model: sample by sample, from another loader. */
void case_open(void);

/* ---- Looking at a batch, on the device ---- */

typedef struct case_look {
    tokmap_i_address outputs[TOKMAP_I_STAGE_OUTPUTS];
    uint64_t first_sample;
    uint32_t input_bytes, label_bytes;
} case_look;

extern atomic_uint_fast64_t case_n_looks; /* that were done */

/* ---- A stage ---- */

/* The caller's thread gets a context and a capture mode of its own, and must have them after each
 * call, whatever the stage did; unless putting them back is what failed. */
void case_begin_caller(void);
void case_check_caller(void);
/* Ends the program with a FAIL line unless it is called again within ten minutes. */
void case_watch(void);

typedef struct stage_case {
    tokmap_loader *loader;
    tokmap_stage *stage;
    tokmap_stage_options options;
    uint64_t position; /* of the next batch, as the test expects it */
    atomic_uint n_logs;
    char log[600]; /* the last line */
} stage_case;

/* Tests may put another in its place. */
extern const tokmap_i_driver *case_driver;

tokmap_status case_try_stage(stage_case *c, tokmap_stage_options o, tokmap_error *err);
void case_open_stage(stage_case *c, tokmap_stage_options o);
void case_close_stage(stage_case *c);
/* Queues a look at the batch: all of its outputs are right when the stream comes to it. */
void case_use(const stage_case *c, const tokmap_stage_batch *b, tokmap_i_stream stream);
tokmap_status case_try_next(stage_case *c, tokmap_stage_batch *b, tokmap_i_stream stream,
                            tokmap_error *err);
void case_next(stage_case *c, tokmap_stage_batch *b, tokmap_i_stream stream);
/* With a last look at the batch. */
void case_release(stage_case *c, const tokmap_stage_batch *b, tokmap_i_stream stream);
/* Memory of the caller's for one batch. */
tokmap_stage_batch case_memory(const stage_case *c);
tokmap_status case_try_fill(stage_case *c, const tokmap_stage_batch *memory, tokmap_i_stream stream,
                            tokmap_error *err);

/* To be used in the stream. */
dlpack *case_export(stage_case *c, const tokmap_stage_batch *b, uint32_t output,
                    tokmap_i_stream stream);
/* All that was queued is done, and was right. */
void case_settle(void);
