/* SPDX-License-Identifier: Apache-2.0 */
/* plan_options.h - from a plan to what a session needs: the options, the tokenizer, the inputs of a
 * cell. All calls return an exit code, and print the error. */
#ifndef TOKMAP_PACK_PLAN_OPTIONS_H
#define TOKMAP_PACK_PLAN_OPTIONS_H

#include "pack/facts.h"
#include "plan/plan_file.h"

/* Enters the folder of the plan, and sets the options that it has. */
int pack_plan_options(const plan_file *plan, pack_options *options);
/* Opens the tokenizer, in the folder of the plan, and compares what options and tokenizer come to
 * with the facts of the plan. Also after a failure the file must be closed. */
int pack_plan_tokenizer(const plan_file *plan, const pack_options *options, pack_tokens *tokens,
                        tokenizer_file *file);

/* ---- Inputs ---- */

typedef struct pack_plan_inputs { /* of all inputs of the plan */
    const plan_file *plan;
    const char **names;
    input_version *versions; /* not known: not compared yet */
    corpus_format *formats;
} pack_plan_inputs;

/* Start with {0}; pack_plan_inputs_free frees it, also after a failure. */
int pack_plan_inputs_begin(pack_plan_inputs *inputs, const plan_file *plan);
/* Compares the inputs of a cell with the plan, as far as they were not compared before. */
int pack_plan_inputs_check(pack_plan_inputs *inputs, size_t cell);
/* The inputs of a cell, after they were compared. */
pack_inputs pack_plan_inputs_of(const pack_plan_inputs *inputs, size_t cell);
void pack_plan_inputs_free(pack_plan_inputs *inputs);

#endif /* TOKMAP_PACK_PLAN_OPTIONS_H */
