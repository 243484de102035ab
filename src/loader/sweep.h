/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h - reads all data of a loader into the page cache once, in order and in large pieces.
 *
 * Rows in random order are small reads. Where the data fit into memory and a reader has to wait for
 * its rows, reading everything in order at the same time is sooner done. */
#pragma once

#include "loader/sampler.h"

typedef struct tokmap_i_sweep tokmap_i_sweep;

/* Starts a thread. The sources must stay as they are until close. NULL: it could not be started,
 * and rows are read as before. */
tokmap_i_sweep *tokmap_i_sweep_start(const tokmap_i_loader_source *sources, uint32_t n_sources);
/* Waits for the piece that is being read. is_child: in a forked child, which does not have the
 * thread. NULL does nothing. */
void tokmap_i_sweep_close(tokmap_i_sweep *s, bool is_child);
