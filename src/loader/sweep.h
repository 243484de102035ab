/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h - reads all data of a loader into the page cache once, in order and in large pieces.
 *
 * Rows in random order are small reads. Where the data fit into memory and a reader has to wait for
 * its rows, reading everything in order at the same time finishes sooner. */
#pragma once

#include "samples/sampler.h"

typedef struct tokmap_i_sweep tokmap_i_sweep;

/* Starts a thread. The sources must not change until close. Returns NULL if it could not be
 * started: then rows are read as before. */
tokmap_i_sweep *tokmap_i_sweep_start(const tokmap_i_source *sources, uint32_t n_sources);
/* Waits for the piece that is being read, and stops. is_child: in a forked child, which does not
 * have the thread. Accepts NULL. */
void tokmap_i_sweep_close(tokmap_i_sweep *s, bool is_child);
