/* plot.h - the three kinds of drawings, as SVG inside a page: bars, dots and lines.
 *
 * All are 360 wide, the width of a phone, and as high as it takes: a page sets them side by side
 * where there is room. They have classes for their colours, which belong to the page. Labels stand
 * above what they name, so that they cannot meet whatever their length. */
#ifndef TOKMAP_REPORT_PLOT_H
#define TOKMAP_REPORT_PLOT_H

#include <stdio.h>

#include "report/axis.h"
#include "report/rows.h"

typedef enum report_paint {
    REPORT_PLAIN,
    REPORT_OURS,
    REPORT_PEER
} report_paint;

typedef struct report_bar {
    const char *label, *detail; /* detail: a second text below, or NULL */
    double median, min, max;
    double target; /* 0: none */
    report_paint paint;
} report_bar;

typedef struct report_bars {
    const char *title, *unit;
    const report_bar *bars;
    size_t n_bars;
    report_axis axis;
    bool percent;     /* values are parts of 1 */
    double reference; /* a mark at every bar; 0: none */
} report_bars;

void report_draw_bars(FILE *out, const report_bars *bars);

/* A set of rows whose keys say which belong to one line: values against what report_x() says. At
 * most REPORT_MAX_SERIES lines. */
enum {
    REPORT_MAX_SERIES = 8
};
void report_draw_lines(FILE *out, report_memory *memory, const char *title, report_items rows);
/* A set of rows whose keys say which belong to one distribution. */
void report_draw_dots(FILE *out, report_memory *memory, const char *title, report_items rows);

#endif /* TOKMAP_REPORT_PLOT_H */
