/* plot_dots.c - a line for each distribution, with a mark for each of its percentiles. */
#include <stdlib.h>
#include <string.h>

#include "report/plot.h"
#include "report/svg.h"

enum {
    GAP = 16,
    GLYPH = 14 /* pixels before the text that it belongs to */
};

/* p50, up to p99.8, up to p99.99, max: each has its shape wherever it is. */
static unsigned shape_of(double percentile)
{
    return percentile >= 1 ? 3 : percentile >= 0.998 ? 2 : percentile > 0.5 ? 1 : 0;
}

static report_number percentile_name(double percentile)
{
    report_number name = {"max"};
    if (percentile < 1)
        snprintf(name.s, sizeof name.s, "p%.6g", 100 * percentile);
    return name;
}

static int by_percentile(const void *a, const void *b)
{
    const double x = report_percentile(((const report_item *)a)->row);
    const double y = report_percentile(((const report_item *)b)->row);
    return x < y ? -1 : x > y;
}

/* The percentiles in words, each with its glyph, from y on; with out = NULL only measures. Returns
 * the y below. */
static double put_words(FILE *out, const report_items *d, double y)
{
    double x = 0;
    y += SVG_LEADING;
    for (size_t i = 0; i < d->n; i++) {
        const report_row *row = d->items[i].row;
        const double percentile = report_percentile(row);
        char words[256], aim[96] = "";
        if (row->goal != BENCH_NO_GOAL)
            snprintf(aim, sizeof aim, " (%s %s)",
                     row->goal == BENCH_AT_MOST ? "at most" : "at least",
                     report_format_short(row->target).s);
        snprintf(words, sizeof words, "%s %s%s", percentile_name(percentile).s,
                 report_format_short(row->median).s, aim);
        const double width = report_text_width(words, strlen(words), SVG_SMALL);
        if (x > 0 && x + GLYPH + width > SVG_WIDTH) {
            x = 0;
            y += SVG_LEADING;
        }
        if (out) {
            svg_glyph(out, (svg_point){x + 5, y - 8}, shape_of(percentile), 0);
            svg_string(out, (svg_point){x + GLYPH, y - 4},
                       row->goal && !row->reached ? "detail wrong" : "detail", words);
        }
        x += GLYPH + width + 12;
    }
    return y;
}

static double draw_track(FILE *out, const report_items *d, const report_axis *axis, double y)
{
    const double middle = y + SVG_TRACK / 2;
    svg_track(out, y, axis);
    svg_line(out, (svg_point){SVG_WIDTH * report_place(axis, d->items[0].row->median), middle},
             (svg_point){SVG_WIDTH * report_place(axis, d->items[d->n - 1].row->median), middle},
             "span");
    for (size_t i = 0; i < d->n; i++) {
        const report_row *row = d->items[i].row;
        const double x = SVG_WIDTH * report_place(axis, row->target);
        if (row->goal != BENCH_NO_GOAL)
            svg_line(out, (svg_point){x, y - 3}, (svg_point){x, y + SVG_TRACK + 3}, "target");
    }
    for (size_t i = 0; i < d->n; i++) {
        const report_row *row = d->items[i].row;
        const double x = SVG_WIDTH * report_place(axis, row->median);
        svg_group(out, row, row->name);
        svg_glyph(out,
                  (svg_point){x < 5               ? 5
                              : x > SVG_WIDTH - 5 ? SVG_WIDTH - 5
                                                  : x,
                              middle},
                  shape_of(report_percentile(row)), 0);
        fputs("</g>\n", out);
    }
    return y + SVG_TRACK + GAP;
}

static double label_lines(FILE *out, const char *class, const char *label, double y)
{
    report_line lines[REPORT_MAX_LINES];
    const int n = report_wrap(label, SVG_WIDTH, SVG_FONT, lines);
    for (int i = 0; i < n; i++) {
        y += SVG_LEADING;
        if (out)
            svg_text(out, (svg_point){0, y - 4}, class, lines[i]);
    }
    return y;
}

/* One distribution; among others those that are not ours step back. */
static double draw(FILE *out, const report_items *d, const report_axis *axis, bool any_ours,
                   double y)
{
    const report_item *first = &d->items[0];
    const bool ours = report_is_ours(first->row);
    fputs(any_ours && !ours ? "<g class=\"peers\">\n" : "<g>\n", out);
    y = label_lines(out, ours ? "label strong" : "label", first->key, y);
    y = draw_track(out, d, axis, put_words(out, d, y) + 2);
    fputs("</g>\n", out);
    return y;
}

void report_draw_dots(FILE *out, report_memory *memory, const char *title, report_items rows)
{
    report_extent extent = {0, 0};
    report_items *all = report_alloc(memory, (rows.n + 1) * sizeof *all);
    const bool any_ours = report_any_ours(&rows);
    size_t n = 0;
    double height = SVG_LEADING, y = 0;
    for (size_t i = 0; i < rows.n; i++) {
        report_extend(&extent, rows.items[i].row->median);
        report_extend(&extent, rows.items[i].row->target);
    }
    while (rows.n) {
        all[n] = report_split(memory, &rows);
        qsort(all[n].items, all[n].n, sizeof *all[n].items, by_percentile);
        height = put_words(NULL, &all[n], label_lines(NULL, "", all[n].items[0].key, height));
        height += 2 + SVG_TRACK + GAP;
        n++;
    }
    const report_axis axis = report_axis_log(extent, true);
    svg_begin(out, height, "dots", title);
    for (size_t i = 0; i < n; i++)
        y = draw(out, &all[i], &axis, any_ours, y);
    svg_tick_labels(out, &axis, (svg_point){0, y - GAP + 3}, SVG_WIDTH, false);
    svg_end(out);
}
