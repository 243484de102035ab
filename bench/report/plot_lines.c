/* plot_lines.c - values against a size, both on logarithmic axes. */
#include <stdlib.h>
#include <string.h>

#include "report/plot.h"
#include "report/svg.h"

#define LEFT 50.0
#define RIGHT (SVG_WIDTH - 10)
#define PLOT_HEIGHT 190.0
#define LEGEND_INDENT 18.0

typedef struct area {
    report_axis x, y;
    double top, bottom;
} area;

static int by_x(const void *a, const void *b)
{
    const report_row *p = ((const report_item *)a)->row, *q = ((const report_item *)b)->row;
    const double x = report_x(p), y = report_x(q);
    return x < y ? -1 : x > y ? 1 : p->median < q->median ? -1 : p->median > q->median;
}

static svg_point place(const area *a, double x, double y)
{
    return (svg_point){LEFT + (RIGHT - LEFT) * report_place(&a->x, x),
                       a->bottom - (a->bottom - a->top) * report_place(&a->y, y)};
}

/* The one target of all rows that have one, or NULL: then none is drawn. */
static const report_row *common_target(const report_items *rows)
{
    const report_row *found = NULL;
    for (size_t i = 0; i < rows->n; i++) {
        const report_row *row = rows->items[i].row;
        if (row->goal == BENCH_NO_GOAL)
            continue;
        if (found && (found->goal != row->goal || found->target != row->target))
            return NULL;
        found = row;
    }
    return found;
}

/* ---- The legend: each line with its first and last value ---- */

static double put_entry(FILE *out, const report_items *line, unsigned number, double y)
{
    report_line lines[REPORT_MAX_LINES];
    char values[192];
    const report_row *first = line->items[0].row, *last = line->items[line->n - 1].row;
    snprintf(values, sizeof values, line->n > 1 ? "%s \xe2\x80\xa6 %s" : "%s",
             report_format_short(first->median).s, report_format_short(last->median).s);
    const double width = report_text_width(values, strlen(values), SVG_FONT);
    const int n =
        report_wrap(line->items[0].key, SVG_WIDTH - LEGEND_INDENT - width - 14, SVG_FONT, lines);
    for (int i = 0; i < n; i++) {
        y += SVG_LEADING;
        if (!out)
            continue;
        svg_text(out, (svg_point){LEGEND_INDENT, y - 4}, "label", lines[i]);
        if (i == 0) {
            svg_glyph(out, (svg_point){6, y - 8.5}, number, number);
            svg_string(out, (svg_point){SVG_WIDTH, y - 4}, "value", values);
        }
    }
    return y;
}

static double put_target_entry(FILE *out, const report_row *target, double y)
{
    char words[120];
    if (!target)
        return y;
    y += SVG_LEADING;
    if (out) {
        snprintf(words, sizeof words, "target: at %s %s",
                 target->goal == BENCH_AT_MOST ? "most" : "least",
                 report_format_short(target->target).s);
        svg_line(out, (svg_point){0, y - 8.5}, (svg_point){12, y - 8.5}, "target");
        svg_string(out, (svg_point){LEGEND_INDENT, y - 4}, "detail", words);
    }
    return y;
}

/* ---- The plot ---- */

static void draw_frame(FILE *out, const area *a)
{
    report_tick ticks[REPORT_MAX_TICKS];
    size_t n = report_ticks(&a->y, a->bottom - a->top, 26, ticks);
    for (size_t i = 0; i < n; i++) {
        const double y = a->bottom - (a->bottom - a->top) * ticks[i].place;
        if (!ticks[i].labelled)
            continue;
        svg_line(out, (svg_point){LEFT, y}, (svg_point){RIGHT, y}, "grid");
        svg_string(out, (svg_point){LEFT - 6, y + 4}, "tick end",
                   report_format_tick(ticks[i].value).s);
    }
    n = report_ticks(&a->x, RIGHT - LEFT, 52, ticks);
    for (size_t i = 0; i < n; i++) {
        const double x = LEFT + (RIGHT - LEFT) * ticks[i].place;
        if (ticks[i].labelled)
            svg_line(out, (svg_point){x, a->top}, (svg_point){x, a->bottom}, "grid");
    }
    svg_tick_labels(out, &a->x, (svg_point){LEFT, a->bottom + 6}, RIGHT, false);
}

static void draw_line(FILE *out, const area *a, const report_items *line, unsigned number)
{
    fprintf(out, "<path class=\"line c%u\" d=\"", number % 8);
    for (size_t i = 0; i < line->n; i++) {
        const report_row *row = line->items[i].row;
        const svg_point at = place(a, report_x(row), row->median);
        fprintf(out, "%c%.1f %.1f", i ? 'L' : 'M', at.x, at.y);
    }
    fputs("\"/>\n", out);
    for (size_t i = 0; i < line->n; i++) {
        const report_row *row = line->items[i].row;
        const double x = report_x(row);
        svg_group(out, row, row->name);
        if (row->max > row->min)
            svg_line(out, place(a, x, row->min), place(a, x, row->max), "whisker thin");
        svg_glyph(out, place(a, x, row->median), number, number);
        fputs("</g>\n", out);
    }
}

static area measure(const report_items *rows, const report_row *target)
{
    report_extent x = {0, 0}, y = {0, 0};
    for (size_t i = 0; i < rows->n; i++) {
        const report_row *row = rows->items[i].row;
        report_extend(&x, report_x(row));
        report_extend(&y, row->median);
        report_extend(&y, row->min);
        report_extend(&y, row->max);
    }
    if (target)
        report_extend(&y, target->target);
    return (area){.x = report_axis_log(x, false), .y = report_axis_log(y, false)};
}

void report_draw_lines(FILE *out, report_memory *memory, const char *title, report_items rows)
{
    report_items lines[REPORT_MAX_SERIES];
    const report_row *target = common_target(&rows);
    area a = measure(&rows, target);
    unsigned n = 0;
    double y = 0;
    while (rows.n && n < REPORT_MAX_SERIES) {
        lines[n] = report_split(memory, &rows);
        qsort(lines[n].items, lines[n].n, sizeof *lines[n].items, by_x);
        y = put_entry(NULL, &lines[n], n, y);
        n++;
    }
    a.top = put_target_entry(NULL, target, y) + 12;
    a.bottom = a.top + PLOT_HEIGHT;
    svg_begin(out, a.bottom + 22, "lines", title);
    y = 0;
    for (unsigned i = 0; i < n; i++)
        y = put_entry(out, &lines[i], i, y);
    put_target_entry(out, target, y);
    draw_frame(out, &a);
    if (target)
        svg_line(out, (svg_point){LEFT, place(&a, 1, target->target).y},
                 (svg_point){RIGHT, place(&a, 1, target->target).y}, "target");
    for (unsigned i = 0; i < n; i++)
        draw_line(out, &a, &lines[i], i);
    svg_end(out);
}
