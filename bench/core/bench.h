/* bench.h - what the pages of tokbench share: a clock, rounds, rows of figures, the machine.
 *
 * A page measures its systems in turn, round by round, and adds a row of figures for each. A
 * ratio is taken within each round, so that a machine whose speed drifts does not decide it. */
#ifndef TOKMAP_BENCH_H
#define TOKMAP_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    BENCH_MAX_ROUNDS = 101,
    BENCH_MAX_ROWS = 640,
    BENCH_MAX_STEPS = 8
};

typedef struct bench_options {
    const char *dir;       /* where data is made; there must be room */
    uint32_t n_rounds;     /* 0: the page's own default */
    uint64_t n_documents;  /* of the large dataset of `lookup`; 0: default */
    uint64_t verify_bytes; /* 0: default */
    uint64_t load_bytes;   /* of the data of limits, load, cold and stall; 0: default */
    const char *data;      /* the caller's own dataset for load, cold and stall, or NULL */
    double step_ms[BENCH_MAX_STEPS]; /* of `stall`; */
    uint32_t n_step_ms;              /* 0: default */
    bool all;                        /* of many pages: each shorter, and without what is not here */
    const char *tokenizer, *pattern; /* of `tokenize` and `pack` */
    const char *text;                /* the file that these work on */
    const char *ids;                 /* `tokenize` writes its ids there, as u32; NULL: nowhere */
    uint32_t n_jobs;                 /* threads; 0: one */
} bench_options;

typedef enum bench_goal {
    BENCH_NO_GOAL,
    BENCH_AT_LEAST,
    BENCH_AT_MOST
} bench_goal;

typedef struct bench_row {
    char page[16], name[80], unit[16];
    double values[BENCH_MAX_ROUNDS];
    uint32_t n_values;
    bench_goal goal;
    double target;
    char limit[80]; /* the row that does the same work plainly, or its bound; empty: none */
    double fraction;
    char system[48], group[80], x_unit[16]; /* for drawings: see report_rows.py; or empty */
    double x;                               /* likewise; 0: none */
    char line[80], column[16]; /* where it shares a line of the table with others; or empty */
} bench_row;

typedef struct bench_report {
    bench_row rows[BENCH_MAX_ROWS];
    uint32_t n_rows;
} bench_report;

uint64_t bench_now_ns(void);
/* Never NULL: rows beyond the last place abort the program, since the pages are ours. */
bench_row *bench_add_row(bench_report *report, const char *page, const char *name,
                         const char *unit);
/* A row that shares a line of the table with others: "line, column" is its name. */
bench_row *bench_add_cell(bench_report *report, const char *page, const char *line,
                          const char *column, const char *unit);
void bench_add_value(bench_row *row, double value);
/* Round by round a / b. */
bench_row *bench_add_ratio(bench_report *report, const bench_row *a, const bench_row *b,
                           const char *name);
void bench_set_goal(bench_row *row, bench_goal goal, double target);
/* Call these when all values are there: the fraction is the median of those of the rounds. `scale`:
 * how many units of the limit one of the row is. */
void bench_set_rate_limit(bench_row *row, const bench_row *limit, double scale);
/* Of times the limit is the smaller. */
void bench_set_time_limit(bench_row *row, const bench_row *limit);
/* Where bench/report.py draws it: beside the others of its group. */
void bench_set_group(bench_row *row, const char *group, const char *system);
void bench_set_x(bench_row *row, double x, const char *unit);
/* The rounds that were asked for, or the page's own number of them. */
uint32_t bench_rounds(const bench_options *options, uint32_t usual);

double bench_median(const bench_row *row);
bool bench_reached(const bench_row *row);
/* For people: lines of 80 columns, or what the terminal has. */
void bench_print_table(const bench_report *report, FILE *out);
int bench_print_json(const bench_report *report, const char *command, FILE *out);

/* Pseudo-random and the same on every machine. */
uint64_t bench_random(uint64_t *state);

/* A dataset whose tokens are a hole in the file, so that its size costs nothing: n_tokens zeros in
 * n_documents documents of random lengths. Returns 0 or says what is wrong. */
int bench_make_sparse(const char *prefix, uint64_t n_tokens, uint64_t n_documents);
/* A dataset of random 16-bit tokens, the same on every machine, in documents of 1,000: n_tokens or
 * fewer than 1,000 more. Returns 0 or says what is wrong. */
int bench_make_random(const char *prefix, uint64_t n_tokens);
void bench_remove(const char *prefix);

#endif /* TOKMAP_BENCH_H */
