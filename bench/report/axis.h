/* axis.h - from values to places along an axis, and the marks on it. */
#ifndef TOKMAP_REPORT_AXIS_H
#define TOKMAP_REPORT_AXIS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct report_axis {
    bool log;
    double low, high; /* a logarithmic axis: of the exponents of ten, whole */
} report_axis;

enum {
    REPORT_MAX_TICKS = 64
};

typedef struct report_tick {
    double value, place; /* place: 0 to 1 */
    bool labelled;
} report_tick;

/* Grows with each value that it is shown; values that are not above 0 have no place on it. */
typedef struct report_extent {
    double min, max; /* 0 and 0: nothing yet */
} report_extent;

void report_extend(report_extent *extent, double value);
/* Whole decades. With room, the smallest value is not at the very beginning. */
report_axis report_axis_log(report_extent extent, bool room);
/* From 0, for parts of 1; beyond `most` there is no place. */
report_axis report_axis_parts(double max, double most);
/* 0 to 1; the ends for what is beyond them. */
double report_place(const report_axis *axis, double value);
/* Marks, with labels where they have `label_pixels` each on an axis of `pixels`. */
size_t report_ticks(const report_axis *axis, double pixels, double label_pixels,
                    report_tick ticks[REPORT_MAX_TICKS]);

#endif /* TOKMAP_REPORT_AXIS_H */
