/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - prints the figures for people: a block for each page, in 80 columns or the width of the
 * terminal. A row that has a limit shows its share of it as a bar. */
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/bench.h"
#include "system/process.h"

enum {
    USUAL_COLUMNS = 80,
    BAR_CELLS = 5,
    MAX_CELLS = 12 /* in a line */
};

typedef struct look {
    FILE *out;
    int n_columns;
    bool colour, utf8;
    int name, unit, range;          /* columns of rows that have a line of their own */
    bool bars, goals, missed_cells; /* what was printed, and is explained at the end */
} look;

/* ---- Style ---- */

/* As wide as the terminal, or $COLUMNS, or 80; between 60 and 160. */
static look look_of(FILE *out)
{
    const unsigned n_terminal = process_terminal_columns(out);
    const char *columns = getenv("COLUMNS");
    const long n = n_terminal ? (long)n_terminal : columns ? strtol(columns, NULL, 10) : 0;
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
    setlocale(LC_CTYPE, "");
    return (look){.out = out,
                  .n_columns = n == 0    ? USUAL_COLUMNS
                               : n < 60  ? 60
                               : n > 160 ? 160
                                         : (int)n,
                  .colour = isatty(fileno(out)) && !(no_colour && *no_colour) && terminal &&
                            strcmp(terminal, "dumb") != 0,
                  .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0};
}

/* Returns an empty text if colours are not wanted. */
static const char *style(const look *l, const char *code)
{
    return l->colour ? code : "";
}

/* At most six columns: three digits, with k, M, G for large values, and fewer for tiny ones. */
static cli_text table_number(double value)
{
    static const char *const letters[] = {"", "k", "M", "G", "T"};
    cli_text text;
    int i = 0;
    for (; i < 4 && (value >= 999.5 || value <= -999.5); i++)
        value /= 1000;
    snprintf(text.s, sizeof text.s, "%.*g%s",
             value < 0.001  ? 1
             : value < 0.01 ? 2
                            : 3,
             value, letters[i]);
    return text;
}

static cli_text range_of(const bench_row *row)
{
    cli_text text = {""};
    double least = row->values[0], most = row->values[0];
    for (uint32_t i = 1; i < row->n_values; i++) {
        least = row->values[i] < least ? row->values[i] : least;
        most = row->values[i] > most ? row->values[i] : most;
    }
    if (row->n_values > 1)
        snprintf(text.s, sizeof text.s, "%.20s..%.20s", table_number(least).s,
                 table_number(most).s);
    return text;
}

static void print_bar(look *l, double fraction)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const double cells = (fraction < 0 ? 0 : fraction > 1 ? 1 : fraction) * BAR_CELLS;
    const int whole = (int)(l->utf8 ? cells : cells + 0.5);
    const int part = l->utf8 ? (int)((cells - whole) * 8) : 0;
    l->bars = true;
    fputs(style(l, "\033[36m"), l->out);
    for (int i = 0; i < whole; i++)
        fputs(l->utf8 ? "█" : "#", l->out);
    fputs(eighths[part], l->out);
    for (int i = whole + (part > 0); i < BAR_CELLS; i++)
        fputs(l->utf8 ? " " : ".", l->out);
    fputs(style(l, "\033[0m"), l->out);
    if (fraction < 9.995)
        fprintf(l->out, fraction >= 0.0995 ? "%4.0f%%" : "%4.2g%%", fraction * 100);
    else
        fputs(">999%", l->out);
}

/* ---- Rows with a line of their own ---- */

static int larger_of(int a, size_t b)
{
    return a > (int)b ? a : (int)b;
}

static cli_text goal_of(const bench_row *row)
{
    cli_text text = {""};
    if (row->goal != BENCH_NO_GOAL)
        snprintf(text.s, sizeof text.s, "%s %.20s %s",
                 row->goal == BENCH_AT_LEAST ? ">=" : "<=", table_number(row->target).s,
                 bench_missed(row) ? "NO" : "ok");
    return text;
}

/* Two blanks, name, blank, 6, blank, unit, blank, range; then any further text of the row. */
static void set_widths(look *l, const bench_row *rows, uint32_t n_rows)
{
    int longest = 20, last = 0;
    l->unit = 0;
    l->range = 8;
    for (uint32_t i = 0; i < n_rows; i++) {
        const bench_row *row = &rows[i];
        if (row->line[0])
            continue;
        const size_t goal = strlen(goal_of(row).s);
        l->unit = larger_of(l->unit, strlen(row->unit));
        l->range = larger_of(l->range, strlen(range_of(row).s));
        longest = larger_of(longest, strlen(row->name));
        last = larger_of(last, (row->limit[0] ? 2 + BAR_CELLS + 5 : 0) + (goal ? 2 + goal : 0));
    }
    l->name = l->n_columns - (2 + 1 + 6 + 1 + 1) - l->unit - l->range - last;
    l->name = l->name < 20 ? 20 : l->name > longest ? longest : l->name;
}

static void print_line(look *l, const bench_row *row)
{
    const bool is_long = (int)strlen(row->name) > l->name; /* it has a line of its own */
    fprintf(l->out, "  %s%s%-*s", is_long ? row->name : "", is_long ? "\n  " : "", l->name,
            is_long ? "" : row->name);
    const bool more = row->limit[0] || row->goal != BENCH_NO_GOAL;
    const cli_text range = range_of(row);
    fprintf(l->out, " %s%6s%s %-*s", style(l, "\033[1m"), table_number(bench_median(row)).s,
            style(l, "\033[0m"), more || range.s[0] ? l->unit : 0, row->unit);
    if (more || range.s[0])
        fprintf(l->out, " %-*s", more ? l->range + 2 : 0, range.s);
    if (row->limit[0])
        print_bar(l, row->fraction);
    if (row->goal != BENCH_NO_GOAL) {
        l->goals = true;
        fprintf(l->out, "%s%s%s%s", row->limit[0] ? "  " : "",
                style(l, bench_missed(row) ? "\033[1;31m" : "\033[32m"), goal_of(row).s,
                style(l, "\033[0m"));
    }
    putc('\n', l->out);
}

/* ---- Rows that share a line ---- */

static uint32_t line_length(const bench_row *rows, uint32_t n_rows)
{
    uint32_t i = 1;
    while (i < n_rows && i < MAX_CELLS && strcmp(rows[i].line, rows[0].line) == 0)
        i++;
    return i;
}

static int cell_width(const bench_row *row)
{
    return larger_of(larger_of(6, strlen(row->column)), strlen(row->unit)) + 1;
}

static bool same_columns(const bench_row *a, const bench_row *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(a[i].column, b[i].column) != 0 || strcmp(a[i].unit, b[i].unit) != 0)
            return false;
    return true;
}

static void print_cells(look *l, const bench_row *rows, uint32_t n, int label)
{
    fprintf(l->out, "  %-*s", label, rows->line);
    for (uint32_t i = 0; i < n; i++) {
        const bool missed = bench_missed(&rows[i]);
        l->missed_cells |= missed;
        fprintf(l->out, "%s %*s%s%s", style(l, missed ? "\033[1;31m" : ""),
                cell_width(&rows[i]) - 1 - missed, table_number(bench_median(&rows[i])).s,
                missed ? "!" : "", style(l, missed ? "\033[0m" : ""));
    }
    for (uint32_t i = 0; i < n; i++) {
        if (rows[i].limit[0]) {
            fputs("  ", l->out);
            print_bar(l, rows[i].fraction);
        }
    }
    putc('\n', l->out);
}

/* Returns how many rows it has printed. */
static uint32_t print_matrix(look *l, const bench_row *rows, uint32_t n_rows)
{
    const bench_row *head = NULL;
    uint32_t at = 0;
    int label = 0;
    for (uint32_t i = 0; i < n_rows && rows[i].line[0]; i++)
        label = larger_of(label, strlen(rows[i].line));
    while (at < n_rows && rows[at].line[0]) {
        const uint32_t n = line_length(rows + at, n_rows - at);
        if (!head || !same_columns(head, rows + at, n)) {
            head = rows + at;
            for (int units = 0; units < 2; units++) {
                fprintf(l->out, "  %-*s", label, "");
                for (uint32_t i = 0; i < n; i++)
                    fprintf(l->out, "%*s", cell_width(&head[i]),
                            units ? head[i].unit : head[i].column);
                putc('\n', l->out);
            }
        }
        print_cells(l, rows + at, n, label);
        at += n;
    }
    return at;
}

/* ---- Table ---- */

static void print_page(look *l, const bench_row *rows, uint32_t n_rows)
{
    set_widths(l, rows, n_rows);
    fprintf(l->out, "%s%s%s\n", style(l, "\033[1m"), rows->page, style(l, "\033[0m"));
    for (uint32_t i = 0; i < n_rows;) {
        if (rows[i].line[0])
            i += print_matrix(l, rows + i, n_rows - i);
        else
            print_line(l, &rows[i++]);
    }
    putc('\n', l->out);
}

void bench_print_table(const bench_report *report, FILE *out)
{
    look l = look_of(out);
    for (uint32_t first = 0, end; first < report->n_rows; first = end) {
        for (end = first; end < report->n_rows; end++)
            if (report->rows[end].page != report->rows[first].page)
                break;
        print_page(&l, report->rows + first, end - first);
    }
    fputs("Medians, with the smallest and the largest of the rounds. k, M, G, T: 10^3 to\n"
          "10^12.\n",
          out);
    if (l.bars)
        fprintf(out,
                "%s 60%%: of a plain way of doing the same work, measured in the same run\n"
                "(--json names it). Of a time, 60%%: the plain way needs 60%% of it.\n",
                l.utf8 ? "███  " : "###..");
    if (l.goals)
        fputs(">= 10 ok, <= 10 NO: a target, and whether it is reached.\n", out);
    if (l.missed_cells)
        fputs("10!: misses its target.\n", out);
    if (report->others_percent >= 5 || report->steal_percent >= 1)
        fprintf(out,
                "The machine was busy: other programs took %.3g%% of the processors' time,\n"
                "other virtual machines %.3g%%. Figures may be too low.\n",
                report->others_percent, report->steal_percent);
}
