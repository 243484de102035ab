#include "report/axis.h"

#include <math.h>

void report_extend(report_extent *extent, double value)
{
    if (!(value > 0))
        return;
    extent->min = extent->min > 0 ? fmin(extent->min, value) : value;
    extent->max = fmax(extent->max, value);
}

report_axis report_axis_log(report_extent extent, bool room)
{
    if (!(extent.min > 0))
        extent = (report_extent){1, 1};
    report_axis axis = {true, floor(log10(extent.min) + 1e-9), ceil(log10(extent.max) - 1e-9)};
    if (room && log10(extent.min) - axis.low < 0.12)
        axis.low--;
    if (axis.high <= axis.low)
        axis.high = axis.low + 1;
    return axis;
}

report_axis report_axis_parts(double max, double most)
{
    const double high = ceil(fmax(1.1, max) * 5 - 1e-9) / 5;
    return (report_axis){false, 0, fmin(high, most)};
}

double report_place(const report_axis *axis, double value)
{
    if (axis->log && !(value > 0))
        return 0;
    const double at = axis->log ? log10(value) : value;
    return fmin(fmax((at - axis->low) / (axis->high - axis->low), 0), 1);
}

static size_t log_ticks(const report_axis *axis, double pixels, double label_pixels,
                        report_tick ticks[REPORT_MAX_TICKS])
{
    static const double minor[] = {2, 5};
    const double decade = pixels / (axis->high - axis->low);
    const double step = fmax(1, ceil(label_pixels / decade));
    size_t n = 0;
    for (int k = 0; axis->low + k * step <= axis->high && n + 3 <= REPORT_MAX_TICKS; k++) {
        const double e = axis->low + k * step;
        ticks[n++] = (report_tick){pow(10, e), 0, true};
        for (int i = 0; i < 2 && step == 1 && e < axis->high; i++)
            ticks[n++] = (report_tick){minor[i] * pow(10, e), 0, decade * 0.3 >= label_pixels};
    }
    return n;
}

size_t report_ticks(const report_axis *axis, double pixels, double label_pixels,
                    report_tick ticks[REPORT_MAX_TICKS])
{
    size_t n = 0;
    if (axis->log) {
        n = log_ticks(axis, pixels, label_pixels, ticks);
    } else {
        const double step = axis->high > 3 ? ceil(axis->high / 5) : axis->high > 1.3 ? 0.5 : 0.25;
        for (int k = 0; k * step <= axis->high + 1e-9 && n < REPORT_MAX_TICKS; k++)
            ticks[n++] = (report_tick){k * step, 0, true};
    }
    for (size_t i = 0; i < n; i++)
        ticks[i].place = report_place(axis, ticks[i].value);
    return n;
}
