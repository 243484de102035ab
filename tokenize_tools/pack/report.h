/* report.h - the results of tokmap pack: notes on stderr, the metadata of the dataset, and the file
 * of --report. */
#ifndef TOKMAP_PACK_REPORT_H
#define TOKMAP_PACK_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "system/output_file.h"
#include "pack/facts.h"
#include "pack/progress.h"

typedef struct pack_report {
    const pack_parts *parts;
    const pack_counts *counts;
    const pack_outputs *outputs;
    const char *bad_documents; /* the file with the bad documents, or NULL */
    bool resumed;
    double seconds; /* of this run */
} pack_report;

/* Prints what was left out or changed, one line each. */
void pack_report_notes(const pack_report *r);
/* The metadata of output `which`: malloced JSON, which depends only on inputs and options. NULL:
 * out of memory. */
char *pack_report_metadata(const pack_report *r, size_t which, size_t *n_bytes);
/* Writes the file of --report, which was begun before, and gives it its name. Returns an exit code,
 * and prints the error. */
int pack_report_write(const pack_report *r, output_file *file);

#endif /* TOKMAP_PACK_REPORT_H */
