#include "gpubench.h"

#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rows_fd = -1;

bool rows_open(const char *path)
{
    rows_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (rows_fd < 0)
        perror(path);
    return rows_fd >= 0;
}

figure row_of(const char *unit, const char *name, ...)
{
    figure r = {0};
    va_list args;
    va_start(args, name);
    vsnprintf(r.name, sizeof r.name, name, args);
    va_end(args);
    snprintf(r.unit, sizeof r.unit, "%s", unit);
    return r;
}

void row_add(figure *r, double value)
{
    if (isfinite(value) && r->n_values < MAX_VALUES)
        r->values[r->n_values++] = value;
}

void row_place(figure *r, const char *group, const char *system)
{
    snprintf(r->group, sizeof r->group, "%s", group);
    snprintf(r->system, sizeof r->system, "%s", system);
}

void row_x(figure *r, double x, const char *unit)
{
    r->x = x;
    snprintf(r->x_unit, sizeof r->x_unit, "%s", unit);
}

void row_goal(figure *r, goal g, double target)
{
    r->goal = g;
    r->target = target;
}

void row_limit(figure *r, const figure *limit)
{
    if (r->n_values == 0 || limit->n_values == 0 || row_median(limit) <= 0)
        return;
    snprintf(r->limit, sizeof r->limit, "%s", limit->name);
    r->fraction = row_median(r) / row_median(limit);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double percentile(double *values, size_t n, double share)
{
    if (n == 0)
        return NAN;
    qsort(values, n, sizeof *values, by_value);
    const size_t rank = (size_t)ceil((double)n * share);
    return values[rank > 0 ? rank - 1 : 0];
}

double row_median(const figure *r)
{
    double sorted[MAX_VALUES];
    const uint32_t n = r->n_values;
    if (n == 0)
        return NAN;
    memcpy(sorted, r->values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* ---- JSON ---- */

typedef struct text {
    char bytes[4096];
    size_t n;
} text;

static void put(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(t->bytes + t->n, sizeof t->bytes - t->n, format, args);
    va_end(args);
    if (n > 0 && t->n + (size_t)n < sizeof t->bytes)
        t->n += (size_t)n;
}

static void put_string(text *t, const char *key, const char *value)
{
    put(t, "\"%s\": \"", key);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            put(t, "\\%c", *value);
        else
            put(t, "%c", (unsigned char)*value < 0x20 ? ' ' : *value);
    }
    put(t, "\"");
}

/* One write a line, so that a program that is killed leaves whole lines. */
static void finish(text *t)
{
    put(t, "}\n");
    if (rows_fd >= 0 && write(rows_fd, t->bytes, t->n) != (ssize_t)t->n)
        perror("gpubench: writing a row");
    fputs(t->bytes, stdout);
    fflush(stdout);
}

static void put_goal(text *t, const figure *r)
{
    const double m = row_median(r);
    const bool reached = r->goal == AT_LEAST ? m >= r->target : m <= r->target;
    put(t, ", \"target\": {\"%s\": %g, \"reached\": %s}",
        r->goal == AT_LEAST ? "at_least" : "at_most", r->target, reached ? "true" : "false");
}

void row_write(const figure *r)
{
    text t = {.n = 0};
    if (r->n_values == 0) {
        row_left_out(last_problem(), "%s", r->name);
        return;
    }
    put(&t, "{\"page\": \"gpu\", ");
    put_string(&t, "name", r->name);
    put(&t, ", ");
    put_string(&t, "unit", r->unit);
    put(&t, ", \"median\": %.6g", row_median(r));
    if (r->goal != NO_GOAL)
        put_goal(&t, r);
    if (r->group[0]) {
        put(&t, ", ");
        put_string(&t, "group", r->group);
    }
    if (r->system[0]) {
        put(&t, ", ");
        put_string(&t, "system", r->system);
    }
    if (r->x > 0) {
        put(&t, ", \"x\": %.10g, ", r->x);
        put_string(&t, "x_unit", r->x_unit);
    }
    if (r->limit[0]) {
        put(&t, ", ");
        put_string(&t, "limit", r->limit);
        put(&t, ", \"fraction\": %.6g", r->fraction);
    }
    put(&t, ", \"values\": [");
    for (uint32_t i = 0; i < r->n_values; i++)
        put(&t, "%s%.6g", i ? ", " : "", r->values[i]);
    put(&t, "]");
    finish(&t);
}

void row_left_out(const char *reason, const char *name, ...)
{
    text t = {.n = 0};
    char full[160];
    va_list args;
    va_start(args, name);
    vsnprintf(full, sizeof full, name, args);
    va_end(args);
    put(&t, "{\"page\": \"gpu\", ");
    put_string(&t, "name", full);
    put(&t, ", ");
    put_string(&t, "left_out", reason);
    finish(&t);
}
