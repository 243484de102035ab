/* report.h - what tokmap pack says of its work when it is done, on stderr, in the dataset and
 * in the file of --report. */
#ifndef TOKMAP_PACK_REPORT_H
#define TOKMAP_PACK_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "system/output_file.h"
#include "pack/plan.h"
#include "pack/progress.h"

typedef struct pack_report {
    const pack_plan_parts *plan;
    const pack_counts *counts;
    const pack_outputs *outputs;
    const char *bad_documents; /* the file that they are in, or NULL */
    bool resumed;
    double seconds; /* of this run */
} pack_report;

/* What was left out or changed, a line each. */
void pack_report_notes(const pack_report *r);
/* The metadata of output `which`: JSON, malloced. It depends on inputs and options alone. NULL: out
 * of memory. */
char *pack_report_metadata(const pack_report *r, size_t which, size_t *n_bytes);
/* Writes the file of --report, which was begun before, and places it. Returns an exit code, with a
 * message. */
int pack_report_write(const pack_report *r, output_file *file);

#endif /* TOKMAP_PACK_REPORT_H */
