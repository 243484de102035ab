/* SPDX-License-Identifier: Apache-2.0 */
/* gather_whole.h - copies whole rows whose numbers stay as they are. Pure. */
#pragma once

#include "loader/gather.h"

/* Copies the rows. Returns false, and does nothing, if they must be widened or filled, or if
 * tokmap_i_gather_run is faster. */
bool tokmap_i_gather_whole(const tokmap_i_gather *g);
/* For tests: with these instructions, which the machine must have. */
bool tokmap_i_gather_whole_by(const tokmap_i_gather *g, tokmap_i_gather_level level);
