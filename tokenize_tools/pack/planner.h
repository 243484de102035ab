/* SPDX-License-Identifier: Apache-2.0 */
/* planner.h - plans of packs: cuts the inputs into cells, and makes of a plan what a session needs.
 * All calls return an exit code, and print the error.
 *
 * Cells are filled in the order of the inputs, up to --cell-size bytes as they are stored. An input
 * that does not fit into the rest of a cell is cut where corpus/cutter.h allows it, or else begins
 * a new cell. So the cells depend on the inputs and options alone.
 *
 * When inputs have changed, or are to be left out, a plan can be updated: the cells that read none
 * of them stay the same, so that only the others have to be packed again. */
#pragma once

#include "request/fingerprint.h"
#include "plan/plan_file.h"

/* ---- Cells ---- */

typedef struct pack_planner {
    const pack_options *options;
    const pack_inputs *inputs; /* NULL: of an update */
    plan_file *plan;           /* cell_bytes is set; gets inputs and cells */
    uint64_t in_cell;          /* bytes as they are stored, so far in the last cell */
    uint64_t n_large; /* inputs, or their parts, that make a cell more than twice --cell-size */
    size_t n_skipped, n_changed, n_touched; /* inputs left out, inputs and cells that an update
                                               changes */
    size_t n_other; /* inputs that may have another format or other columns */
} pack_planner;

/* Opens each input and finds its format, and the places for the cells. Prints a note for the first
 * inputs that make a cell more than twice --cell-size, because they cannot be cut. */
int pack_planner_run(pack_planner *p);
/* Leaves inputs out of a plan that was parsed, in its folder. A name is that of the plan, or
 * another path to the same file. */
int pack_planner_skip(pack_planner *p, const char *const *names, size_t n_names);
/* Takes the inputs that have changed as they are now. A cell that begins inside one begins there at
 * the same byte, or at the first place after it, or with the next input. Refuses text beside
 * records, which a plan of all inputs would refuse. */
int pack_planner_update(pack_planner *p);

/* ---- Sessions ---- */

/* Enters the folder of the plan, and sets the options that it has. */
int pack_plan_options(const plan_file *plan, pack_options *options);
/* Opens the tokenizer, in the folder of the plan, and compares what options and tokenizer come to
 * with the fingerprint of the plan. Also after a failure the file must be closed. */
int pack_plan_tokenizer(const plan_file *plan, const pack_options *options, pack_tokens *tokens,
                        tokenizer_file *file);

typedef struct pack_plan_inputs { /* of all inputs of the plan */
    const plan_file *plan;
    const char **names;
    input_version *versions; /* not known: not compared yet */
    corpus_format *formats;
} pack_plan_inputs;

/* Compares an input with the plan, in its folder. 0: it is the same; 1: it has changed, and `why`
 * names it; -1: it is gone, or cannot be seen. Prints nothing. */
int pack_plan_input_look(const plan_input *then, failure *why);

/* Start with {0}; pack_plan_inputs_free frees it, also after a failure. */
int pack_plan_inputs_begin(pack_plan_inputs *inputs, const plan_file *plan);
/* Compares the inputs of a cell with the plan, as far as they were not compared before. */
int pack_plan_inputs_check(pack_plan_inputs *inputs, size_t cell);
/* The inputs of a cell, after they were compared. */
pack_inputs pack_plan_inputs_of(const pack_plan_inputs *inputs, size_t cell);
void pack_plan_inputs_free(pack_plan_inputs *inputs);
