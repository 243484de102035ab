/* page.h - a report as one HTML page and as Markdown, from runs that were read. */
#ifndef TOKMAP_REPORT_PAGE_H
#define TOKMAP_REPORT_PAGE_H

#include <stdio.h>

#include "report/data.h"

/* Runs of one machine, in the order in which they were given. */
typedef struct report_part {
    report_machine machine;
    const report_run **runs;
    size_t n_runs;
} report_part;

typedef struct report_parts {
    report_part *parts;
    size_t n_parts;
} report_parts;

/* Needs nothing from outside: no script, no font, no picture. Well-formed as XML too. */
void report_put_page(FILE *out, report_memory *memory, const report_parts *parts);
/* A table for each run. */
void report_put_markdown_tables(FILE *out, report_memory *memory, const report_parts *parts);

/* ---- What these two are made of ---- */

/* The drawings; n is the number of the part, from 1, for the names of places in the page. */
void report_put_sections(FILE *out, report_memory *memory, const report_part *part, size_t n);
/* The tables with every figure. */
void report_put_tables(FILE *out, report_memory *memory, const report_part *part, size_t n);
/* Links to the sections. */
void report_put_section_links(FILE *out, size_t n);
/* The style sheet, between its tags. */
void report_put_style(FILE *out);

/* "at least 0.8 x", or "" */
const char *report_target_text(report_memory *memory, const report_row *row);
/* "66.8 % of memcpy", or "" */
const char *report_limit_text(report_memory *memory, const report_row *row);
/* Each remark once, with all its places: "left out: no .model (gpt2, novels; gpt2, tldr)". */
typedef void report_remark_use(FILE *out, const char *system, const char *text);
void report_each_remark(FILE *out, report_memory *memory, const report_run *run,
                        report_remark_use *use);
#endif /* TOKMAP_REPORT_PAGE_H */
