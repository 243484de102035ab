#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "tokmap.h"

uint64_t bench_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t bench_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u); /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

bench_row *bench_add_row(bench_report *report, const char *page, const char *name, const char *unit)
{
    if (report->n_rows == BENCH_MAX_ROWS)
        abort();
    bench_row *row = &report->rows[report->n_rows++];
    snprintf(row->page, sizeof row->page, "%s", page);
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->unit, sizeof row->unit, "%s", unit);
    return row;
}

void bench_add_value(bench_row *row, double value)
{
    if (row->n_values < BENCH_MAX_ROUNDS)
        row->values[row->n_values++] = value;
}

bench_row *bench_add_ratio(bench_report *report, const bench_row *a, const bench_row *b,
                           const char *name)
{
    bench_row *row = bench_add_row(report, a->page, name, "x");
    for (uint32_t i = 0; i < a->n_values && i < b->n_values; i++)
        bench_add_value(row, a->values[i] / b->values[i]);
    return row;
}

void bench_set_goal(bench_row *row, bench_goal goal, double target)
{
    row->goal = goal;
    row->target = target;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void sorted(const bench_row *row, double *values)
{
    memcpy(values, row->values, row->n_values * sizeof *values);
    qsort(values, row->n_values, sizeof *values, by_value);
}

double bench_median(const bench_row *row)
{
    double values[BENCH_MAX_ROUNDS];
    if (row->n_values == 0)
        return 0;
    sorted(row, values);
    const uint32_t middle = row->n_values / 2;
    return row->n_values % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

static bool reached(const bench_row *row)
{
    const double median = bench_median(row);
    return row->goal == BENCH_AT_LEAST ? median >= row->target : median <= row->target;
}

void bench_print_table(const bench_report *report, FILE *out)
{
    fprintf(out, "%-8s %-58s %10s %21s  %s\n", "page", "what", "median", "min .. max", "target");
    for (uint32_t i = 0; i < report->n_rows; i++) {
        const bench_row *row = &report->rows[i];
        double values[BENCH_MAX_ROUNDS];
        sorted(row, values);
        char range[48], median[32], target[48] = "";
        snprintf(median, sizeof median, "%.3g %s", bench_median(row), row->unit);
        snprintf(range, sizeof range, "%.3g .. %.3g", row->n_values ? values[0] : 0,
                 row->n_values ? values[row->n_values - 1] : 0);
        if (row->goal != BENCH_NO_GOAL)
            snprintf(target, sizeof target, "%s %g %s: %s",
                     row->goal == BENCH_AT_LEAST ? ">=" : "<=", row->target, row->unit,
                     reached(row) ? "reached" : "NOT reached");
        fprintf(out, "%-8s %-58s %10s %21s  %s\n", row->page, row->name, median, range, target);
    }
}

/* ---- JSON ---- */

static void print_string(FILE *out, const char *s)
{
    putc('"', out);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            putc('\\', out);
        if ((unsigned char)*s >= 0x20)
            putc(*s, out);
    }
    putc('"', out);
}

static void cpu_model(char *model, size_t n_bytes)
{
    snprintf(model, n_bytes, "unknown");
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (f && fgets(line, sizeof line, f)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && value) {
            snprintf(model, n_bytes, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
            break;
        }
    }
    if (f)
        fclose(f);
}

static void print_machine(FILE *out)
{
    struct utsname system;
    char model[256] = "";
    uname(&system);
    cpu_model(model, sizeof model);
    const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    fprintf(out, "  \"machine\": {\"cpu\": ");
    print_string(out, model);
    fprintf(out, ", \"processors\": %ld, \"memory_gib\": %.1f, \"kernel\": ",
            sysconf(_SC_NPROCESSORS_ONLN), memory / (1u << 30));
    print_string(out, system.release);
    fprintf(out, ", \"architecture\": ");
    print_string(out, system.machine);
    fprintf(out, "},\n");
}

static void print_row(FILE *out, const bench_row *row, bool last)
{
    fprintf(out, "    {\"page\": ");
    print_string(out, row->page);
    fprintf(out, ", \"name\": ");
    print_string(out, row->name);
    fprintf(out, ", \"unit\": ");
    print_string(out, row->unit);
    fprintf(out, ", \"median\": %.6g", bench_median(row));
    if (row->goal != BENCH_NO_GOAL)
        fprintf(out, ", \"target\": {\"%s\": %g, \"reached\": %s}",
                row->goal == BENCH_AT_LEAST ? "at_least" : "at_most", row->target,
                reached(row) ? "true" : "false");
    fprintf(out, ", \"values\": [");
    for (uint32_t i = 0; i < row->n_values; i++)
        fprintf(out, "%s%.6g", i ? ", " : "", row->values[i]);
    fprintf(out, "]}%s\n", last ? "" : ",");
}

int bench_print_json(const bench_report *report, const char *command, FILE *out)
{
    fprintf(out, "{\n  \"schema\": 1,\n  \"tokmap\": ");
    print_string(out, tokmap_version());
    fprintf(out, ",\n  \"command\": ");
    print_string(out, command);
    fprintf(out, ",\n");
    print_machine(out);
    fprintf(out, "  \"rows\": [\n");
    for (uint32_t i = 0; i < report->n_rows; i++)
        print_row(out, &report->rows[i], i + 1 == report->n_rows);
    fprintf(out, "  ]\n}\n");
    return fflush(out) || ferror(out) ? 1 : 0;
}
