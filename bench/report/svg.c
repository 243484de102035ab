#include "report/svg.h"

#include <stdlib.h>
#include <string.h>

enum {
    TICK_LABEL_PIXELS = 52
};

void svg_begin(FILE *out, double height, const char *kind, const char *label)
{
    fprintf(
        out,
        "<svg class=\"%s\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\" "
        "aria-label=\"",
        kind, SVG_WIDTH, height, SVG_WIDTH, height);
    report_put_html(out, label);
    fputs("\">\n", out);
}

void svg_end(FILE *out)
{
    fputs("</svg>\n", out);
}

void svg_group(FILE *out, const report_row *figure, const char *name)
{
    fputs("<g><title>", out);
    report_put_html(out, name);
    fprintf(out, ": %s (%s) ", report_format(figure->median).s,
            report_format_range(figure->min, figure->max).s);
    report_put_html(out, figure->unit);
    fputs("</title>\n", out);
}

void svg_text(FILE *out, svg_point at, const char *class, report_line text)
{
    char *copy = strndup(text.s, text.n_bytes);
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, at.x, at.y);
    report_put_html(out, copy ? copy : "");
    fprintf(out, "%s</text>\n", text.cut ? "&#8230;" : "");
    free(copy);
}

void svg_string(FILE *out, svg_point at, const char *class, const char *text)
{
    svg_text(out, at, class, (report_line){text, strlen(text), false});
}

void svg_line(FILE *out, svg_point from, svg_point to, const char *class)
{
    fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", class, from.x, from.y, to.x,
            to.y);
}

void svg_track(FILE *out, double y, const report_axis *axis)
{
    report_tick ticks[REPORT_MAX_TICKS];
    const size_t n = report_ticks(axis, SVG_WIDTH, TICK_LABEL_PIXELS, ticks);
    fprintf(out,
            "<rect class=\"track\" x=\"0\" y=\"%.1f\" width=\"%.0f\" height=\"%.0f\"/>\n"
            "<path class=\"grid\" d=\"",
            y, SVG_WIDTH, SVG_TRACK);
    for (size_t i = 0; i < n; i++)
        if (ticks[i].place > 0 && ticks[i].place < 1)
            fprintf(out, "M%.1f %.1fv%.0f", SVG_WIDTH * ticks[i].place, y, SVG_TRACK);
    fputs("\"/>\n", out);
}

typedef struct tick_label {
    report_number text;
    double x, half; /* of its width */
} tick_label;

static tick_label place_label(const report_tick *tick, svg_point from, double to, bool percent)
{
    tick_label label = {.text = percent ? report_format_percent(tick->value)
                                        : report_format_tick(tick->value)};
    label.half = report_text_width(label.text.s, strlen(label.text.s), SVG_SMALL) / 2;
    label.x = from.x + (to - from.x) * tick->place;
    if (label.x < label.half)
        label.x = label.half;
    if (label.x > SVG_WIDTH - label.half)
        label.x = SVG_WIDTH - label.half;
    return label;
}

static bool apart(const tick_label *left, const tick_label *right)
{
    return left->x + left->half + 4 <= right->x - right->half;
}

/* The first and the last stay, and of the others those that have room. */
void svg_tick_labels(FILE *out, const report_axis *axis, svg_point from, double to, bool percent)
{
    report_tick ticks[REPORT_MAX_TICKS];
    size_t n = report_ticks(axis, to - from.x, TICK_LABEL_PIXELS, ticks);
    while (n && !ticks[n - 1].labelled)
        n--;
    if (n == 0)
        return;
    const tick_label last = place_label(&ticks[n - 1], from, to, percent);
    tick_label before = {.x = -SVG_WIDTH};
    for (size_t i = 0; i < n; i++) {
        const tick_label label = place_label(&ticks[i], from, to, percent);
        const bool fits = i + 1 == n || (apart(&before, &label) && apart(&label, &last));
        if (!ticks[i].labelled || !fits)
            continue;
        svg_string(out, (svg_point){label.x, from.y + SVG_SMALL}, "tick", label.text.s);
        before = label;
    }
}

void svg_glyph(FILE *out, svg_point at, unsigned shape, unsigned colour)
{
    static const char *const shapes[] = {
        "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",                        /* disc */
        "m0 -5l5 5l-5 5l-5 -5z",                                      /* diamond */
        "m-3.5 -3.5h7v7h-7z",                                         /* square */
        "m0 -5l4.8 8.5h-9.6z",                                        /* triangle */
        "m0 5l4.8 -8.5h-9.6z",                                        /* triangle, downwards */
        "m-1.3 -5h2.6v10h-2.6z",                                      /* upright */
        "m-5 -1.3h3.7v-3.7h2.6v3.7h3.7v2.6h-3.7v3.7h-2.6v-3.7h-3.7z", /* cross */
        "m-5 -1.5h10v3h-10z"};                                        /* level */
    fprintf(out, "<path class=\"glyph c%u\" d=\"M%.1f %.1f%s\"/>\n", colour % 8, at.x, at.y,
            shapes[shape % 8]);
}
