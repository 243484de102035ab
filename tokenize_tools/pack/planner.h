/* SPDX-License-Identifier: Apache-2.0 */
/* planner.h - cuts the inputs of a pack into cells.
 *
 * Cells are filled in the order of the inputs, up to --cell-size bytes as they are stored. An input
 * that does not fit into the rest of a cell is cut where corpus/cutter.h allows it, or else begins
 * a new cell. So the cells depend on the inputs and options alone.
 *
 * When inputs were repaired, a plan can be updated: the cells that read none of them stay the same,
 * so that only the others have to be packed again. */
#ifndef TOKMAP_PACK_PLANNER_H
#define TOKMAP_PACK_PLANNER_H

#include "pack/facts.h"
#include "plan/plan_file.h"

typedef struct pack_planner {
    const pack_parts *parts;
    plan_file *plan;  /* cell_bytes is set; gets inputs and cells */
    uint64_t in_cell; /* bytes as they are stored, so far in the last cell */
    uint64_t n_large; /* inputs, or their parts, that make a cell more than twice --cell-size */
    size_t n_changed, n_touched; /* inputs and cells, by an update */
} pack_planner;

/* Opens each input and finds its format, and the places for the cells. Prints a note for the first
 * inputs that make a cell more than twice --cell-size, because they cannot be cut. Returns an exit
 * code, and prints the error. */
int pack_planner_run(pack_planner *p);
/* The same for a plan that was parsed, in its folder; parts->inputs is ignored. A cell that begins
 * inside an input that has changed begins there at the same byte, or at the first place after
 * it. */
int pack_planner_update(pack_planner *p);

#endif /* TOKMAP_PACK_PLANNER_H */
