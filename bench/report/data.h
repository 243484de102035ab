/* data.h - result files in memory, checked. What a result file is, says report.h. */
#ifndef TOKMAP_REPORT_DATA_H
#define TOKMAP_REPORT_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bench.h"

/* Everything lives as long as this, and is freed at once. */
typedef struct report_memory {
    struct report_block *blocks;
} report_memory;

/* Zeros. Ends the program with a message when there is no memory. */
void *report_alloc(report_memory *memory, size_t n_bytes);
char *report_text(report_memory *memory, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void report_memory_free(report_memory *memory);

typedef struct report_row {
    const char *page, *name, *unit;
    const char *system, *group, *limit, *x_unit; /* NULL: the file does not say */
    double median, min, max;
    bench_goal goal;
    double target;
    bool reached;
    bool limit_found; /* the row that `limit` names is in the same file */
    double fraction;  /* of the limit; negative: not known */
    double x;         /* 0: not known */
} report_row;

/* "tiktoken: left out: byte-level BPE only (t5, novels)" */
typedef struct report_remark {
    const char *system, *text, *place; /* place: NULL where it is true for all */
} report_remark;

typedef struct report_machine {
    const char *cpu, *kernel, *architecture, *gpu; /* gpu: NULL when the file names none */
    double processors, memory_gib;
} report_machine;

/* A file is one run: only its own figures are compared with each other. */
typedef struct report_run {
    const char *file, *command, *version; /* version: of tokmap, or NULL */
    report_machine machine;
    report_row *rows;
    size_t n_rows;
    report_remark *remarks;
    size_t n_remarks;
} report_run;

/* Strings of the file come without control characters and what else could upset a page's layout.
 * Returns 0, or an exit code after saying on stderr what is wrong with the file. */
int report_read(report_memory *memory, const char *path, report_run *run);

bool report_same_machine(const report_machine *a, const report_machine *b);
/* "AMD EPYC, 2 processors, 23.5 GiB, Linux 6.18 (x86_64)" */
char *report_machine_text(report_memory *memory, const report_machine *machine);

#endif /* TOKMAP_REPORT_DATA_H */
