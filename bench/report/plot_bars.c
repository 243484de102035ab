/* plot_bars.c - a bar for each row: the median, and the smallest and largest value. */
#include <math.h>
#include <string.h>

#include "report/plot.h"
#include "report/svg.h"

enum {
    GAP = 13 /* between a bar and the next label */
};

typedef struct labels {
    report_line label[REPORT_MAX_LINES], detail[REPORT_MAX_LINES];
    int n_label, n_detail;
    report_number value;
} labels;

static labels place_labels(const report_bars *bars, const report_bar *bar)
{
    labels l = {.value = bars->percent ? report_format_percent(bar->median)
                                       : report_format_short(bar->median)};
    const double value_width = report_text_width(l.value.s, strlen(l.value.s), SVG_FONT);
    l.n_label = report_wrap(bar->label, SVG_WIDTH - value_width - 14, SVG_FONT, l.label);
    if (bar->detail)
        l.n_detail = report_wrap(bar->detail, SVG_WIDTH, SVG_SMALL, l.detail);
    return l;
}

static double height_of(const labels *l)
{
    return SVG_LEADING * (l->n_label + l->n_detail) + 2 + SVG_TRACK + GAP;
}

/* A mark across the track, a little longer than that. */
static void draw_mark(FILE *out, const report_bars *bars, double value, double y, const char *class)
{
    const double x = fmin(fmax(SVG_WIDTH * report_place(&bars->axis, value), 1), SVG_WIDTH - 1);
    if (value > 0)
        svg_line(out, (svg_point){x, y - 3}, (svg_point){x, y + SVG_TRACK + 3}, class);
}

static void draw_whisker(FILE *out, const report_bars *bars, const report_bar *bar, double y)
{
    static const char *const classes[] = {"halo", "whisker"}; /* to be seen on a bar, too */
    const double from = SVG_WIDTH * report_place(&bars->axis, bar->min);
    const double to = SVG_WIDTH * report_place(&bars->axis, bar->max);
    const double middle = y + SVG_TRACK / 2;
    for (int i = 0; i < 2 && bar->max > bar->min; i++)
        fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fH%.1fM%.1f %.1fv6M%.1f %.1fv6\"/>\n",
                classes[i], from, middle, to, from, middle - 3, to, middle - 3);
}

static double draw_bar(FILE *out, const report_bars *bars, const report_bar *bar, double y)
{
    static const char *const paints[] = {
        [REPORT_PLAIN] = "plain", [REPORT_OURS] = "ours", [REPORT_PEER] = "peer"};
    const labels l = place_labels(bars, bar);
    const report_row figure = {
        .unit = bars->unit, .median = bar->median, .min = bar->min, .max = bar->max};
    svg_group(out, &figure, bar->label);
    for (int i = 0; i < l.n_label; i++) {
        y += SVG_LEADING;
        svg_text(out, (svg_point){0, y - 4}, bar->paint == REPORT_OURS ? "label strong" : "label",
                 l.label[i]);
        if (i == 0)
            svg_string(out, (svg_point){SVG_WIDTH, y - 4}, "value", l.value.s);
    }
    for (int i = 0; i < l.n_detail; i++) {
        y += SVG_LEADING;
        svg_text(out, (svg_point){0, y - 4}, "detail", l.detail[i]);
    }
    y += 2;
    svg_track(out, y, &bars->axis);
    fprintf(out, "<rect class=\"bar %s\" x=\"0\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\"/>\n",
            paints[bar->paint], y, SVG_WIDTH * report_place(&bars->axis, bar->median), SVG_TRACK);
    if (!bars->axis.log && bar->median > bars->axis.high) /* longer than there is place for */
        fprintf(out, "<path class=\"cut\" d=\"M%.1f %.1fl5 -14M%.1f %.1fl5 -14\"/>\n",
                SVG_WIDTH - 22, y + SVG_TRACK + 2, SVG_WIDTH - 16, y + SVG_TRACK + 2);
    draw_whisker(out, bars, bar, y);
    draw_mark(out, bars, bars->reference, y, "reference");
    draw_mark(out, bars, bar->target, y, "target");
    fputs("</g>\n", out);
    return y + SVG_TRACK + GAP;
}

void report_draw_bars(FILE *out, const report_bars *bars)
{
    double height = SVG_LEADING, y = 0;
    for (size_t i = 0; i < bars->n_bars; i++) {
        const labels l = place_labels(bars, &bars->bars[i]);
        height += height_of(&l);
    }
    svg_begin(out, height, "bars", bars->title);
    for (size_t i = 0; i < bars->n_bars; i++)
        y = draw_bar(out, bars, &bars->bars[i], y);
    svg_tick_labels(out, &bars->axis, (svg_point){0, y - GAP + 3}, SVG_WIDTH, bars->percent);
    svg_end(out);
}
