/* svg.h - the few shapes that the drawings are made of. Coordinates in pixels. */
#ifndef TOKMAP_REPORT_SVG_H
#define TOKMAP_REPORT_SVG_H

#include "report/axis.h"
#include "report/write.h"

#define SVG_WIDTH 360.0
#define SVG_FONT 13.0
#define SVG_SMALL 11.5
#define SVG_LEADING 16.0 /* from one line of text to the next */
#define SVG_TRACK 10.0   /* height of a bar and of what it lies on */

typedef struct svg_point {
    double x, y;
} svg_point;

/* `label` is what a screen reader says. */
void svg_begin(FILE *out, double height, const char *kind, const char *label);
void svg_end(FILE *out);
/* A group whose tooltip is "NAME: MEDIAN (MIN .. MAX) UNIT". */
void svg_group(FILE *out, const report_row *figure, const char *name);
/* The classes: "label", "detail", "value" (ends at x), "tick", "wrong". */
void svg_text(FILE *out, svg_point at, const char *class, report_line text);
void svg_string(FILE *out, svg_point at, const char *class, const char *text);
void svg_line(FILE *out, svg_point from, svg_point to, const char *class);
/* What a bar or dots lie on, from x = 0 to SVG_WIDTH, with the marks of the axis. */
void svg_track(FILE *out, double y, const report_axis *axis);
/* The labels of a horizontal axis, centred below y, the outer ones kept within from .. to. */
void svg_tick_labels(FILE *out, const report_axis *axis, svg_point from, double to, bool percent);
/* One of eight shapes around a point. */
void svg_glyph(FILE *out, svg_point at, unsigned shape, unsigned colour);

#endif /* TOKMAP_REPORT_SVG_H */
