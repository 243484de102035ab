/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - packs inputs into a dataset and its splits: finds what an interrupted run left,
 * works, and gives the outputs their names. */
#pragma once

#include "request/fingerprint.h"
#include "cli/json_out.h"

/* report: gets the report as its next value (report.h), if it has a file. Returns an exit code, and
 * prints the error, or the results. */
int pack_session_run(const pack_parts *parts, json_out *report);

/* Prints what a run would do, and an estimate of its size, from the beginnings of inputs that were
 * looked at; writes nothing. The same. */
int pack_dry_run(const pack_parts *parts, pack_inputs *inputs);
/* Prints what each input is, or what it needs, if not all fit into one run. Returns the exit
 * code that the run would have. */
int pack_dry_run_refused(const pack_parts *parts);

/* One run of tokmap pack, from the parsed options to finished datasets. The same. */
int pack_run(pack_options *options, char **names, size_t n_names);
