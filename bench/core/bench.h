/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - what the pages of tokbench share: rounds, rows of figures, the machine.
 *
 * A page measures its systems in turn in each round, and adds a row of figures for each. A ratio is
 * taken within each round, so that a change in the machine's speed does not decide it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/json_out.h"
#include "system/platform_thread.h"
#include "tokmap.h"

enum {
    BENCH_MAX_ROUNDS = 101,
    BENCH_MAX_ROWS = 640,
    BENCH_MAX_STEPS = 8
};

typedef struct bench_options {
    const char *dir;                 /* where test data is made; needs enough space. It is emptied
                                        after each page */
    uint64_t n_rounds;               /* 0: the page's own default */
    uint64_t n_documents;            /* in the large dataset of `lookup`; 0: default */
    uint64_t verify_mib;             /* 0: default */
    uint64_t load_mib;               /* size of the data that are read; 0: default */
    const char *data;                /* the user's dataset for load, cold and stall, or NULL */
    double step_ms[BENCH_MAX_STEPS]; /* for `stall`; */
    uint32_t n_step_ms;              /* 0: default */
    bool all;                        /* all pages were asked for: shorter ones, without what is
                                        not available */
    const char *tokenizer, *pattern; /* for `tokenize` and `pack` */
    const char *text;                /* their input file */
    const char *ids;                 /* `tokenize` writes its ids to it, as u32; NULL: does not */
    uint64_t n_threads;              /* 0: one */
} bench_options;

typedef enum bench_goal {
    BENCH_NO_GOAL,
    BENCH_AT_LEAST,
    BENCH_AT_MOST
} bench_goal;

typedef struct bench_row {
    const char *page;
    char name[80], unit[16];
    double values[BENCH_MAX_ROUNDS];
    uint32_t n_values;
    bench_goal goal;
    double target;
    char limit[80]; /* the row that does the same work in a simple way, or its bound; empty: none */
    double fraction;
    char system[48], group[80], x_unit[16]; /* for charts: see report_rows.py; may be empty */
    double x;                               /* likewise; 0: none */
    char line[80], column[16]; /* if it shares a line of the table with other rows; may be empty */
} bench_row;

typedef struct bench_report {
    const char *page; /* of the rows that are added */
    bench_row rows[BENCH_MAX_ROWS];
    uint32_t n_rows;
    double others_percent, steal_percent; /* of the processors' time during the run */
} bench_report;

#define BENCH_TEXT(n) __attribute__((format(printf, n, (n) + 1)))

/* Prints a message and ends the process. The pages run in a process of their own, and the parent
 * removes the test data. */
_Noreturn void bench_fail(const char *format, ...) BENCH_TEXT(1);
/* Calls bench_fail if a call of the library failed, which has set bench_error. */
extern tokmap_error bench_error;
static inline void bench_check(tokmap_status status)
{
    if (status)
        bench_fail("%s", bench_error.text);
}
/* Calls bench_fail if a call returned an errno value. */
void bench_check_errno(int error, const char *what);
/* Allocates zeros, aligned to pages, all of which are in memory. */
void *bench_memory(size_t n_bytes);
double bench_ns_since(uint64_t start);
/* Keeps the compiler from removing what computes the value, also in a loop that is timed. */
static inline void bench_keep(uint64_t value)
{
    __asm__ volatile("" : : "r"(value));
}

/* Adds a row. Names, lines and groups are formatted as by printf.
 *
 * Never returns NULL: too many rows abort the program, because the pages are our own code. */
BENCH_TEXT(3)
bench_row *bench_add_row(bench_report *report, const char *unit, const char *name, ...);
/* Adds a row that shares a line of the table with others; its name is "line, column". `cell` is its
 * column and its unit. */
BENCH_TEXT(3)
bench_row *bench_add_cell(bench_report *report, const char *const *cell, const char *line, ...);
void bench_add_value(bench_row *row, double value);
/* Adds a row with the ratio a / b of each round. */
BENCH_TEXT(4)
bench_row *bench_add_ratio(bench_report *report, const bench_row *a, const bench_row *b,
                           const char *name, ...);
void bench_set_goal(bench_row *row, bench_goal goal, double target);
/* Sets the limit of a row, after all values were added: the fraction is the median over the rounds
 * of row / limit for rates, and of limit / row for times. One unit of the row is `scale` units of
 * the limit. */
void bench_set_limit(bench_row *row, const bench_row *limit, double scale);
/* Sets where bench/report.py draws the row: with the others of its group. */
BENCH_TEXT(3) void bench_set_group(bench_row *row, const char *system, const char *group, ...);
void bench_set_x(bench_row *row, double x, const char *unit);
/* Returns the number of rounds asked for, or the page's default. */
uint32_t bench_rounds(const bench_options *options, uint32_t usual);

/* Formats a number with three digits, and with k, M, G or T if it is large; then a unit, which may
 * be empty, or a word with a blank before it. */
cli_text bench_short(double value, const char *unit);
void bench_sort(double *values, size_t n);
double bench_median(const bench_row *row);
/* Prints the figures for people: a line for each row. bench/report.py makes tables of the JSON. */
void bench_print_rows(const bench_report *report, FILE *out);
void bench_print_json(const bench_report *report, const char *command, FILE *out);
/* Adds the member "machine" of a result: processor, number of processors, memory, kernel. */
void bench_json_machine(json_out *o);

/* Reads the number after `key` at the beginning of a line of a file of /proc; -1 if no line has
 * it. */
double bench_system_number(const char *path, const char *key);
/* Seconds of all processors since the system started: in all, by other programs without the kernel,
 * and by other virtual machines on the same hardware. */
typedef struct bench_times {
    double all, others, steal;
} bench_times;
bench_times bench_read_times(void);
/* Says that TOKMAP_IO is ignored, and does so. */
void bench_ignore_io(void);
/* Returns pseudo-random numbers, the same on every machine. */
uint64_t bench_random(uint64_t *state);
