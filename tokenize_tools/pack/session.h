/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - packs inputs into a dataset and its splits: finds what an interrupted run left,
 * works, and gives the outputs their names. */
#ifndef TOKMAP_PACK_SESSION_H
#define TOKMAP_PACK_SESSION_H

#include <stdio.h>

#include "pack/facts.h"

/* report: gets the report as a JSON object (report.h); NULL: none. Returns an exit code, and prints
 * the error, or the results. */
int pack_session_run(const pack_parts *parts, FILE *report);

/* One run of tokmap pack, from the parsed options to finished datasets. The same. */
int pack_run(const pack_options *options, char **names, size_t n_names);

#endif /* TOKMAP_PACK_SESSION_H */
