/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - prints the figures for people: a block for each page, in 80 columns or the width of the
 * terminal. A row that has a limit shows its share of it as a bar. */
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bench.h"
#include "system/process.h"

enum {
    USUAL_COLUMNS = 80,
    BAR_CELLS = 5,
    MAX_CELLS = 12 /* in a line */
};

typedef struct table_text {
    char s[64];
} table_text;

typedef struct look {
    FILE *out;
    int n_columns;
    bool colour, utf8;
} look;

/* ---- Style ---- */

/* Columns of the terminal, or $COLUMNS, or 80; between 60 and 160. */
static int table_columns(FILE *out)
{
    const unsigned n_terminal = process_terminal_columns(out);
    const char *text = getenv("COLUMNS");
    const long n = n_terminal ? (long)n_terminal : text ? strtol(text, NULL, 10) : 0;
    return n == 0 ? USUAL_COLUMNS : n < 60 ? 60 : n > 160 ? 160 : (int)n;
}

static look look_of(FILE *out)
{
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
    setlocale(LC_CTYPE, "");
    return (look){.out = out,
                  .n_columns = table_columns(out),
                  .colour = isatty(fileno(out)) && !(no_colour && *no_colour) && terminal &&
                            strcmp(terminal, "dumb") != 0,
                  .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0};
}

/* Returns an empty text if colours are not wanted. */
static const char *style(const look *l, const char *code)
{
    return l->colour ? code : "";
}

/* Three digits, with k, M, G for large values. */
static table_text table_number(double value)
{
    static const char *const letters[] = {"", "k", "M", "G", "T"};
    table_text text;
    int i = 0;
    while (i < 4 && (value >= 999.5 || value <= -999.5)) {
        value /= 1000;
        i++;
    }
    snprintf(text.s, sizeof text.s, "%.*g%s", value < 0.01 ? 2 : 3, value, letters[i]);
    return text;
}

static table_text range_of(const bench_row *row)
{
    table_text text = {""};
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

static void print_bar(const look *l, double fraction)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const double cells = (fraction < 0 ? 0 : fraction > 1 ? 1 : fraction) * BAR_CELLS;
    const int whole = (int)(l->utf8 ? cells : cells + 0.5);
    const int part = l->utf8 ? (int)((cells - whole) * 8) : 0;
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

static void print_goal(const look *l, const bench_row *row)
{
    const bool reached = bench_reached(row);
    fprintf(l->out, "%s%s %s %s%s", style(l, reached ? "\033[32m" : "\033[1;31m"),
            row->goal == BENCH_AT_LEAST ? ">=" : "<=", table_number(row->target).s,
            reached ? "ok" : "NO", style(l, "\033[0m"));
}

/* ---- Rows with a line of their own ---- */

typedef struct widths {
    int name, unit, range, last;
} widths;

static int larger_of(int a, size_t b)
{
    return a > (int)b ? a : (int)b;
}

/* The width of the text after the range. */
static int last_width(const bench_row *row)
{
    const bool limit = row->limit[0], goal = row->goal != BENCH_NO_GOAL;
    return (limit || goal ? 2 : 0) + (limit ? BAR_CELLS + 5 : 0) + (limit && goal ? 2 : 0) +
           (goal ? (int)strlen(">=  NO") + (int)strlen(table_number(row->target).s) : 0);
}

/* Two blanks, name, blank, 6, blank, unit, blank, range; then any further text of the row. */
static widths widths_of(const look *l, const bench_row *rows, uint32_t n_rows)
{
    widths w = {.range = 8};
    int longest = 20;
    for (uint32_t i = 0; i < n_rows; i++) {
        if (rows[i].line[0])
            continue;
        w.unit = larger_of(w.unit, strlen(rows[i].unit));
        w.range = larger_of(w.range, strlen(range_of(&rows[i]).s));
        longest = larger_of(longest, strlen(rows[i].name));
        if (last_width(&rows[i]) > w.last)
            w.last = last_width(&rows[i]);
    }
    w.name = l->n_columns - (2 + 1 + 6 + 1 + 1) - w.unit - w.range - w.last;
    w.name = w.name < 20 ? 20 : w.name > longest ? longest : w.name;
    return w;
}

static void print_line(const look *l, const bench_row *row, const widths *w)
{
    if ((int)strlen(row->name) > w->name) /* the name has a line of its own, the figures are on
                                             the next one */
        fprintf(l->out, "  %s\n  %-*s", row->name, w->name, "");
    else
        fprintf(l->out, "  %-*s", w->name, row->name);
    const bool more = row->limit[0] || row->goal != BENCH_NO_GOAL;
    const table_text range = range_of(row);
    fprintf(l->out, " %s%6s%s %-*s", style(l, "\033[1m"), table_number(bench_median(row)).s,
            style(l, "\033[0m"), more || range.s[0] ? w->unit : 0, row->unit);
    if (more || range.s[0])
        fprintf(l->out, " %-*s", more ? w->range + 2 : 0, range.s);
    if (row->limit[0])
        print_bar(l, row->fraction);
    if (row->limit[0] && row->goal != BENCH_NO_GOAL)
        fputs("  ", l->out);
    if (row->goal != BENCH_NO_GOAL)
        print_goal(l, row);
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

static void print_cells(const look *l, const bench_row *rows, uint32_t n, int label)
{
    fprintf(l->out, "  %-*s", label, rows->line);
    for (uint32_t i = 0; i < n; i++) {
        const bool missed = rows[i].goal != BENCH_NO_GOAL && !bench_reached(&rows[i]);
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

static void print_head(const look *l, const bench_row *head, uint32_t n, int label)
{
    fprintf(l->out, "  %-*s", label, "");
    for (uint32_t i = 0; i < n; i++)
        fprintf(l->out, "%*s", cell_width(&head[i]), head[i].column);
    fprintf(l->out, "\n  %-*s", label, "");
    for (uint32_t i = 0; i < n; i++)
        fprintf(l->out, "%*s", cell_width(&head[i]), head[i].unit);
    putc('\n', l->out);
}

/* Returns how many rows it has printed. */
static uint32_t print_matrix(const look *l, const bench_row *rows, uint32_t n_rows)
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
            print_head(l, head, n, label);
        }
        print_cells(l, rows + at, n, label);
        at += n;
    }
    return at;
}

/* ---- Table ---- */

static void print_page(const look *l, const bench_row *rows, uint32_t n_rows)
{
    const widths w = widths_of(l, rows, n_rows);
    fprintf(l->out, "%s%s%s\n", style(l, "\033[1m"), rows->page, style(l, "\033[0m"));
    for (uint32_t i = 0; i < n_rows;) {
        if (rows[i].line[0]) {
            i += print_matrix(l, rows + i, n_rows - i);
            continue;
        }
        print_line(l, &rows[i], &w);
        i++;
    }
    putc('\n', l->out);
}

void bench_print_table(const bench_report *report, FILE *out)
{
    const look l = look_of(out);
    uint32_t first = 0;
    for (uint32_t i = 1; i <= report->n_rows; i++) {
        if (i < report->n_rows && strcmp(report->rows[i].page, report->rows[first].page) == 0)
            continue;
        print_page(&l, report->rows + first, i - first);
        first = i;
    }
    fputs("Medians, with the smallest and the largest of the rounds. Bars are shares of a\n"
          "limit that was measured in the same run (--json names it); <= and >= are\n"
          "targets, and ! follows a figure that misses its target.\n",
          out);
}
