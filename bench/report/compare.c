/* compare.c - `tokbench compare A.json B.json`: two runs on one machine, row by row. */
#include <stdlib.h>
#include <string.h>

#include "core/bench.h"
#include "cli/cli.h"
#include "report/data.h"
#include "report/rows.h"
#include "core/table.h"

enum {
    OTHER_MACHINE = 3
};

static const char help[] =
    "Usage: tokbench compare A.json B.json\n"
    "\n"
    "Compares two results of `tokbench --json` from one machine. Of each row that both have: both\n"
    "medians, how many times A's median B's is, and between what that would be with the smallest\n"
    "and the largest of each. Where that leaves out 1, the line says what B is.\n"
    "\n"
    "Exit status: 0 done, 1 no row is in both, 2 wrong usage, 3 a file cannot be read or is no\n"
    "result, or the runs are of different machines, whose figures say nothing about each other.\n";

typedef struct pair {
    const report_row *a, *b;
    double ratio, least, most;
} pair;

static const report_row *find(const report_run *run, const report_row *like)
{
    for (size_t i = 0; i < run->n_rows; i++) {
        const report_row *row = &run->rows[i];
        if (strcmp(row->name, like->name) == 0 && strcmp(row->page, like->page) == 0 &&
            strcmp(row->unit, like->unit) == 0)
            return row;
    }
    return NULL;
}

/* Faster or slower is known of rates and times; of others, which is more. */
static const char *verdict(const pair *p)
{
    if (p->least <= 1 && p->most >= 1)
        return "";
    const bool more = p->least > 1;
    if (report_is_rate(p->a))
        return more ? "faster" : "slower";
    if (report_time_unit(p->a) > 0)
        return more ? "slower" : "faster";
    return more ? "more" : "less";
}

static void print_pair(const pair *p, int name_columns)
{
    const bool wide = (int)strlen(p->a->name) > name_columns;
    printf(wide ? "  %s\n  %-*s" : "  %.0s%-*s", wide ? p->a->name : "", name_columns,
           wide ? "" : p->a->name);
    printf(" %6s -> %6s %-10s %6.3g x  %.3g..%.3g", table_number(p->a->median).s,
           table_number(p->b->median).s, p->a->unit, p->ratio, p->least, p->most);
    printf("%s%s\n", *verdict(p) ? "  " : "", verdict(p));
}

/* Rows without a ratio (a median of 0) are left out. */
static bool make_pair(const report_row *a, const report_row *b, pair *p)
{
    if (!b || a->median <= 0 || b->median <= 0 || a->min <= 0 || b->min <= 0)
        return false;
    *p = (pair){a, b, b->median / a->median, b->min / a->max, b->max / a->min};
    return true;
}

static int print_pairs(const report_run *a, const report_run *b)
{
    const int name_columns = table_columns(stdout) - 54;
    const char *page = "";
    size_t n_both = 0, n_differ = 0;
    for (size_t i = 0; i < a->n_rows; i++) {
        pair p;
        if (!make_pair(&a->rows[i], find(b, &a->rows[i]), &p))
            continue;
        if (strcmp(page, p.a->page) != 0)
            printf("%s%s\n", n_both ? "\n" : "", page = p.a->page);
        print_pair(&p, name_columns);
        n_both++;
        n_differ += *verdict(&p) != 0;
    }
    if (n_both == 0) {
        cli_warn("no row is in both");
        return 1;
    }
    printf("\n%zu rows compared, %zu differ by more than their rounds do", n_both, n_differ);
    printf("; not compared: %zu of A, %zu of B\n", a->n_rows - n_both, b->n_rows - n_both);
    return fflush(stdout) ? 1 : 0;
}

static int compare(report_memory *memory, char **paths)
{
    report_run a, b;
    int code = report_read(memory, paths[0], &a);
    if (!code)
        code = report_read(memory, paths[1], &b);
    if (code)
        return code;
    if (!report_same_machine(&a.machine, &b.machine)) {
        cli_warn("different machines, whose figures say nothing about each other:");
        cli_warn("  A: %s", report_machine_text(memory, &a.machine));
        cli_warn("  B: %s", report_machine_text(memory, &b.machine));
        return OTHER_MACHINE;
    }
    if (strcmp(a.command, b.command) != 0) {
        cli_warn("the runs were not asked for the same:");
        cli_warn("  A: %s", a.command);
        cli_warn("  B: %s", b.command);
    }
    return print_pairs(&a, &b);
}

int bench_compare(int argc, char **argv)
{
    cli_begin("tokbench", "compare");
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return fflush(stdout) ? 1 : 0;
    }
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-')
            return cli_usage("unknown option %s", argv[i]);
    }
    if (argc != 3)
        return cli_usage("takes two result files");
    report_memory memory = {NULL};
    const int code = compare(&memory, argv + 1);
    report_memory_free(&memory);
    return code;
}
