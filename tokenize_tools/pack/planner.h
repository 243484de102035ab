/* SPDX-License-Identifier: Apache-2.0 */
/* planner.h - cuts the inputs of a pack into cells.
 *
 * Cells are filled in the order of the inputs, up to --cell-size bytes as they are stored. An input
 * that does not fit into the rest of a cell is cut where corpus/cutter.h allows it, or else begins
 * a new cell. So the cells depend on the inputs and options alone. */
#ifndef TOKMAP_PACK_PLANNER_H
#define TOKMAP_PACK_PLANNER_H

#include "pack/facts.h"
#include "plan/plan_file.h"

typedef struct pack_planner {
    const pack_parts *parts;
    plan_file *plan; /* cell_bytes is set; gets inputs and cells */
    /* In bytes as they are stored: */
    uint64_t input_bytes, largest_cell;
    uint64_t in_cell; /* so far in the last cell */
    uint64_t n_large; /* inputs, or their parts, that make a cell more than twice --cell-size */
} pack_planner;

/* Opens each input and finds its format, and the places for the cells. Prints a note for the first
 * inputs that make a cell more than twice --cell-size, because they cannot be cut. Returns an exit
 * code, and prints the error. */
int pack_planner_run(pack_planner *p);

#endif /* TOKMAP_PACK_PLANNER_H */
