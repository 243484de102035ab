/* rows.h - what a row is a figure of, and which rows belong together. */
#ifndef TOKMAP_REPORT_ROWS_H
#define TOKMAP_REPORT_ROWS_H

#include "report/data.h"

bool report_is_rate(const report_row *row); /* the unit ends in "/s" */
bool report_is_ours(const report_row *row); /* its system is one of tokmap's */
/* Seconds in one of its unit; 0: the unit is no time. */
double report_time_unit(const report_row *row);
bool report_on_gpu(const report_row *row);
/* 0.5 for p50, 0.999 for p99.9, 1 for max; 0: the name has no such word, or it is no time. */
double report_percentile(const report_row *row);
/* What stands on the horizontal axis: "x", or 1e9 where the name has "10^9 tokens". 0: nothing. */
double report_x(const report_row *row);
const char *report_x_unit(const report_row *row);
/* Whether its fraction of a limit can be drawn, which goes to *fraction: the row has one, or is
 * itself the ratio of two that is to reach a part of 1 ("gathered / memcpy", at least 0.9). */
bool report_fraction(const report_row *row, double *fraction);

/* ---- Rows that belong together ---- */

typedef struct report_item {
    const report_row *row;
    const char *key;
} report_item;

typedef struct report_items {
    report_item *items;
    size_t n;
} report_items;

typedef bool report_choice(const report_row *row);
typedef const char *report_key(report_memory *memory, const report_row *row);

report_items report_choose(report_memory *memory, const report_run *run, report_choice *choice);
void report_set_keys(report_memory *memory, report_items *items, report_key *key);
/* The items that have the key of the first one, in their order; they are taken out of `items`. */
report_items report_split(report_memory *memory, report_items *items);
bool report_any_ours(const report_items *items);
/* Whether each key is there once. */
bool report_all_differ(const report_items *items);

report_key report_key_page_unit;  /* a set of bars */
report_key report_key_page;       /* a set of bars that are all parts of 1 */
report_key report_key_group;      /* "group", or "" */
report_key report_key_x;          /* "1024 tokens a row", of "x", or "" */
report_key report_key_place;      /* "1024 tokens" at the end of the name, or of "x", or "" */
report_key report_key_title_unit; /* "group" or the page, and the unit: a set of lines */
report_key report_key_line;       /* the name without its parts that begin with a digit */
/* The system, where the row has a group; else the name without the word for the percentile. */
report_key report_key_distribution;
/* The name without ", 1024 tokens" at its end. */
const char *report_short_name(report_memory *memory, const report_row *row);

#endif /* TOKMAP_REPORT_ROWS_H */
