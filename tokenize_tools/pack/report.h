/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - the results of tokmap pack: notes on stderr, the metadata of the dataset, and the file
 * of --report. */
#pragma once

#include <stddef.h>

#include "pack/work.h"
#include "system/memory_file.h"
#include "system/output_file.h"
#include "cli/json_out.h"

/* Prints what was left out or changed, one line each. */
void pack_report_notes(const pack_work *w);
/* Makes the metadata of output `which`: malloced JSON, which depends only on inputs and options.
 * NULL: out of memory. */
char *pack_report_metadata(const pack_work *w, size_t which, size_t *n_bytes);
/* Prints an object, the next value. Returns an exit code, and prints the error. */
int pack_report_print(json_out *o, const pack_work *w);

/* ---- The file of --report ---- */

typedef struct pack_report_file {
    output_file out;
    memory_file text;
    json_out json; /* to print the report to; its file is NULL if there is no --report */
} pack_report_file;

/* Creates the file before the work, so that hours of work do not end with a report that cannot be
 * written. Returns an exit code, and prints the error. */
int pack_report_begin(pack_report_file *file, const pack_options *options);
/* Writes the file if `code` is CLI_OK, else returns `code`. Called after a successful begin. */
int pack_report_end(pack_report_file *file, int code);
