/* SPDX-License-Identifier: Apache-2.0 */
#include "core/bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/real.h"
#include "cli/cli.h"
#include "cli/json_out.h"

/* Formats what follows `format` in the arguments of the caller. */
enum {
    MOST_MISSED = 7 /* lines of the summary */
};

#define FORMAT(text, format)                                                                       \
    do {                                                                                           \
        va_list more;                                                                              \
        va_start(more, format);                                                                    \
        vsnprintf(text, sizeof(text), format, more);                                               \
        va_end(more);                                                                              \
    } while (0)

tokmap_error bench_error;

_Noreturn void bench_fail(const char *format, ...)
{
    char text[4600];
    FORMAT(text, format);
    cli_warn("%s", text);
    _exit(1);
}

void bench_check_errno(int error, const char *what)
{
    if (error)
        bench_fail("%s: %s", what, strerror(error));
}

void *bench_memory(size_t n_bytes)
{
    const size_t n_whole = (n_bytes + 4095) / 4096 * 4096;
    void *memory = aligned_alloc(4096, n_whole);
    if (memory)
        return memset(memory, 0, n_whole);
    bench_fail("out of memory");
}

double bench_ns_since(uint64_t start)
{
    return (double)(tokmap_i_now_ns() - start);
}

/* Reads what follows `key` at the beginning of a line; false if no line begins with it. */
static bool read_system_line(const char *path, const char *key, char *rest, size_t n_bytes)
{
    char line[512];
    bool found = false;
    FILE *f = fopen(path, "r");
    while (f && !found && fgets(line, sizeof line, f))
        if ((found = strncmp(line, key, strlen(key)) == 0))
            snprintf(rest, n_bytes, "%.*s", (int)strcspn(line + strlen(key), "\n"),
                     line + strlen(key));
    if (f)
        fclose(f);
    return found;
}

double bench_system_number(const char *path, const char *key)
{
    char rest[64];
    return read_system_line(path, key, rest, sizeof rest) ? real_read(rest, NULL) : -1;
}

bench_times bench_read_times(void)
{
    double part[8] = {0}, all = 0; /* user, nice, system, idle, iowait, irq, softirq, steal */
    char rest[256] = "", *at = rest;
    struct rusage own, children; /* pages have none; ranks are children that have ended */
    read_system_line("/proc/stat", "cpu ", rest, sizeof rest);
    for (int i = 0; i < 8; i++)
        all += part[i] = real_read(at, &at) / (double)sysconf(_SC_CLK_TCK);
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    const double own_user = (double)(own.ru_utime.tv_sec + children.ru_utime.tv_sec) +
                            (double)(own.ru_utime.tv_usec + children.ru_utime.tv_usec) / 1e6;
    return (bench_times){all, part[0] + part[1] - own_user, part[7]};
}

void bench_ignore_io(void)
{
    if (!getenv("TOKMAP_IO"))
        return;
    cli_warn("TOKMAP_IO is ignored, because ways of reading are compared");
    unsetenv("TOKMAP_IO");
}

uint64_t bench_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u); /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static bench_row *new_row(bench_report *report, const char *unit)
{
    if (report->n_rows == BENCH_MAX_ROWS)
        abort();
    bench_row *row = &report->rows[report->n_rows++];
    row->page = report->page;
    snprintf(row->unit, sizeof row->unit, "%s", unit);
    return row;
}

bench_row *bench_add_row(bench_report *report, const char *unit, const char *name, ...)
{
    bench_row *row = new_row(report, unit);
    FORMAT(row->name, name);
    return row;
}

bench_row *bench_add_cell(bench_report *report, const char *const *cell, const char *line, ...)
{
    bench_row *row = new_row(report, cell[1]);
    char text[sizeof row->line];
    FORMAT(text, line);
    snprintf(row->line, sizeof row->line, "%s", text);
    snprintf(row->column, sizeof row->column, "%s", cell[0]);
    snprintf(row->name, sizeof row->name, "%.60s, %s", text, cell[0]);
    return row;
}

void bench_add_value(bench_row *row, double value)
{
    if (row->n_values < BENCH_MAX_ROUNDS)
        row->values[row->n_values++] = value;
}

bench_row *bench_add_ratio(bench_report *report, const bench_row *a, const bench_row *b,
                           const char *name, ...)
{
    bench_row *row = new_row(report, "x");
    FORMAT(row->name, name);
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

void bench_sort(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
}

double bench_median(const bench_row *row)
{
    double values[BENCH_MAX_ROUNDS];
    if (row->n_values == 0)
        return 0;
    memcpy(values, row->values, row->n_values * sizeof *values);
    bench_sort(values, row->n_values);
    const uint32_t middle = row->n_values / 2;
    return row->n_values % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

static bool is_missed(const bench_row *row)
{
    const double median = bench_median(row);
    return row->goal == BENCH_AT_LEAST  ? median < row->target
           : row->goal == BENCH_AT_MOST ? median > row->target
                                        : false;
}

void bench_set_limit(bench_row *row, const bench_row *limit, double scale)
{
    const bool is_rate = strstr(row->unit, "/s") != NULL;
    const bench_row *over = is_rate ? row : limit, *under = is_rate ? limit : row;
    bench_row ratios = {.n_values = 0};
    for (uint32_t i = 0; i < over->n_values && i < under->n_values; i++)
        bench_add_value(&ratios, over->values[i] * scale / under->values[i]);
    if (ratios.n_values == 0)
        return;
    snprintf(row->limit, sizeof row->limit, "%s", limit->name);
    row->fraction = bench_median(&ratios);
}

void bench_set_group(bench_row *row, const char *system, const char *group, ...)
{
    FORMAT(row->group, group);
    snprintf(row->system, sizeof row->system, "%s", system);
}

void bench_set_x(bench_row *row, double x, const char *unit)
{
    row->x = x;
    snprintf(row->x_unit, sizeof row->x_unit, "%s", unit);
}

uint32_t bench_rounds(const bench_options *options, uint32_t usual)
{
    return options->n_rounds ? (uint32_t)options->n_rounds : usual;
}

/* ---- Lines ---- */

cli_text bench_short(double value, const char *unit)
{
    static const char *const letters[] = {"", "k", "M", "G", "T"};
    cli_text text;
    int i = 0;
    for (; i < 4 && (value >= 999.5 || value <= -999.5); i++)
        value /= 1000;
    const bool own_word = *unit == ' ' && !*letters[i]; /* "5 tokens", but "5 k tokens" */
    snprintf(text.s, sizeof text.s, "%.3g%s%s%s", value, *unit ? " " : "", letters[i],
             own_word ? unit + 1 : unit);
    return text;
}

static void print_line(const bench_row *row, FILE *out)
{
    double least = row->values[0], most = row->values[0];
    for (uint32_t i = 1; i < row->n_values; i++) {
        least = row->values[i] < least ? row->values[i] : least;
        most = row->values[i] > most ? row->values[i] : most;
    }
    fprintf(out, "  %s: %s %s", row->name, bench_short(bench_median(row), "").s, row->unit);
    if (row->n_values > 1)
        fprintf(out, " (%s .. %s)", bench_short(least, "").s, bench_short(most, "").s);
    if (row->limit[0])
        fprintf(out, ", %.3g %% of %s", row->fraction * 100, row->limit);
    if (row->goal != BENCH_NO_GOAL)
        fprintf(out, "; target %s %s: %s",
                row->goal == BENCH_AT_LEAST ? ">=" : "<=", bench_short(row->target, "").s,
                is_missed(row) ? "missed" : "reached");
    putc('\n', out);
}

/* Prints in at most ten lines what was missed, and how busy the machine was. */
static void print_summary(const bench_report *report, FILE *out)
{
    uint32_t n_goals = 0, n_missed = 0;
    for (uint32_t i = 0; i < report->n_rows; i++) {
        n_goals += report->rows[i].goal != BENCH_NO_GOAL;
        n_missed += is_missed(&report->rows[i]);
    }
    fprintf(out, "\n%u of %u targets reached", n_goals - n_missed, n_goals);
    fputs(n_missed > 0 ? "; missed:\n" : "\n", out);
    for (uint32_t i = 0, n = 0; i < report->n_rows && n < MOST_MISSED; i++) {
        const bench_row *row = &report->rows[i];
        if (!is_missed(row))
            continue;
        fprintf(out, "  %s, %s: %s %s, target %s %s\n", row->page, row->name,
                bench_short(bench_median(row), "").s, row->unit,
                row->goal == BENCH_AT_LEAST ? ">=" : "<=", bench_short(row->target, "").s);
        n++;
    }
    if (n_missed > MOST_MISSED)
        fprintf(out, "  and %u more\n", n_missed - MOST_MISSED);
    fprintf(out,
            "Other programs took %.3g %% of the processors' time, other virtual machines %.3g "
            "%%%s.\n",
            report->others_percent, report->steal_percent,
            report->others_percent >= 5 || report->steal_percent >= 1 ? ": figures may be too low"
                                                                      : "");
}

void bench_print_rows(const bench_report *report, FILE *out)
{
    const char *page = NULL;
    for (uint32_t i = 0; i < report->n_rows; i++) {
        if (report->rows[i].page != page)
            fprintf(out, "%s%s\n", page ? "\n" : "", report->rows[i].page);
        page = report->rows[i].page;
        print_line(&report->rows[i], out);
    }
    fputs("\nMedians (smallest .. largest of the rounds). k, M, G, T: 10^3 to 10^12.\n60 % of "
          "NAME: 100 % would be as fast as NAME, which was measured in the same rounds.\n",
          out);
    print_summary(report, out);
}

/* ---- JSON ---- */

/* Prints null for infinity and NaN, which JSON does not have. */
static void print_number(json_out *o, const char *key, double number)
{
    if (isfinite(number))
        json_out_print(o, key, "%.6g", number);
    else
        json_out_string(o, key, NULL);
}

static void print_row(json_out *o, const bench_row *row)
{
    const char *const texts[][2] = {
        {"page", row->page},     {"name", row->name},     {"line", row->line},
        {"column", row->column}, {"unit", row->unit},     {"limit", row->limit},
        {"group", row->group},   {"system", row->system}, {"x_unit", row->x_unit}};
    json_out_begin(o, NULL, '{');
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*texts[i][1])
            json_out_string(o, texts[i][0], texts[i][1]);
    print_number(o, "median", bench_median(row));
    if (row->goal != BENCH_NO_GOAL) {
        json_out_begin(o, "target", '{');
        json_out_print(o, row->goal == BENCH_AT_LEAST ? "at_least" : "at_most", "%g", row->target);
        json_out_bool(o, "reached", !is_missed(row));
        json_out_end(o, '}');
    }
    if (row->limit[0])
        print_number(o, "fraction", row->fraction);
    if (row->x > 0)
        json_out_print(o, "x", "%.15g", row->x);
    json_out_begin(o, "values", '[');
    for (uint32_t i = 0; i < row->n_values; i++)
        print_number(o, NULL, row->values[i]);
    json_out_end(o, ']');
    json_out_end(o, '}');
}

void bench_json_machine(json_out *o)
{
    struct utsname system;
    char line[256];
    uname(&system);
    const bool known = read_system_line("/proc/cpuinfo", "model name\t: ", line, sizeof line);
    const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    json_out_begin(o, "machine", '{');
    json_out_string(o, "cpu", known ? line : "unknown");
    json_out_print(o, "processors", "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    json_out_print(o, "memory_gib", "%.1f", memory / (1u << 30));
    json_out_string(o, "kernel", system.release);
    json_out_string(o, "architecture", system.machine);
    json_out_end(o, '}');
}

void bench_print_json(const bench_report *report, const char *command, FILE *out)
{
    json_out o = {.out = out};
    json_out_begin(&o, NULL, '{');
    json_out_number(&o, "schema", 1);
    json_out_number(&o, "schema_version", 1);
    json_out_string(&o, "kind", "pages");
    json_out_string(&o, "tokmap", tokmap_version());
    json_out_string(&o, "command", command);
    bench_json_machine(&o);
    json_out_begin(&o, "busy", '{');
    json_out_print(&o, "others_percent", "%.3g", report->others_percent);
    json_out_print(&o, "steal_percent", "%.3g", report->steal_percent);
    json_out_end(&o, '}');
    json_out_begin(&o, "rows", '[');
    for (uint32_t i = 0; i < report->n_rows; i++) {
        fputs(i > 0 ? ",\n" : "\n", out); /* each on a line of its own */
        o.follows = false;
        print_row(&o, &report->rows[i]);
    }
    fputs("\n", out);
    json_out_end(&o, ']');
    json_out_end(&o, '}');
    fputs("\n", out);
}
