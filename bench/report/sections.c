/* sections.c - which figures are drawn, and how: a section for each question. */
#include <string.h>

#include "report/page.h"
#include "report/plot.h"
#include "report/rows.h"
#include "report/write.h"

typedef struct section section;

typedef struct kind {
    const char *id, *title, *intro;
    const char *absent; /* said when no file has such figures; NULL: nothing is */
    void (*draw)(section *s, const report_run *run);
} kind;

struct section {
    FILE *out;
    report_memory *memory;
    const kind *kind;
    size_t part;
    bool begun;
};

static void put_heading(section *s)
{
    if (!s->begun)
        fprintf(s->out, "<h3 id=\"m%zu-%s\">%s</h3>\n", s->part, s->kind->id, s->kind->title);
    s->begun = true;
}

static const char end_of_set[] = "</div>\n</div>\n";

/* A set of drawings of one run. */
static void begin_set(section *s, const char *title, const char *unit, const report_run *run)
{
    if (!s->begun) {
        put_heading(s);
        fprintf(s->out, "<p>%s</p>\n<div class=\"sets\">\n", s->kind->intro);
    }
    fputs("<div class=\"set\">\n<h4>", s->out);
    report_put_html(s->out, title);
    fputs(" <span>", s->out);
    report_put_html(s->out, unit);
    fputs(*unit ? ", " : "", s->out);
    report_put_html(s->out, run->file);
    fputs("</span></h4>\n<div class=\"figures\">\n", s->out);
}

static void begin_figure(section *s, const char *title)
{
    fputs("<figure>", s->out);
    if (*title) {
        fputs("<figcaption>", s->out);
        report_put_html(s->out, title);
        fputs("</figcaption>", s->out);
    }
    putc('\n', s->out);
}

/* ---- Bars ---- */

typedef struct bar_set {
    report_bars plan; /* what is the same for all drawings of the set */
    void (*fill)(section *s, const report_items *rows, size_t i, report_bar *bar);
} bar_set;

/* One drawing; the keys of its rows are one and the same. */
static void draw_panel(section *s, const bar_set *set, const char *title, const report_items *rows)
{
    report_bar *bars = report_alloc(s->memory, rows->n * sizeof *bars);
    report_bars drawing = set->plan;
    for (size_t i = 0; i < rows->n; i++)
        set->fill(s, rows, i, &bars[i]);
    drawing.bars = bars;
    drawing.n_bars = rows->n;
    drawing.title = *title ? title : rows->items[0].row->page;
    begin_figure(s, title);
    report_draw_bars(s->out, &drawing);
    fputs("</figure>\n", s->out);
}

static void clear_keys(report_items *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        rows->items[i].key = "";
}

/* A drawing for each size that the rows were measured at; one for all when each size would have a
 * single bar. */
static void draw_places(section *s, const bar_set *set, const char *group, report_items rows)
{
    report_set_keys(s->memory, &rows, *group ? report_key_x : report_key_place);
    if (report_all_differ(&rows))
        clear_keys(&rows);
    while (rows.n) {
        const report_items panel = report_split(s->memory, &rows);
        const char *place = panel.items[0].key;
        const bool said = strstr(group, place) != NULL; /* "hot, 1024 tokens" says it */
        draw_panel(s, set,
                   said || !*group ? report_text(s->memory, "%s%s", group, said ? "" : place)
                                   : report_text(s->memory, "%s: %s", group, place),
                   &panel);
    }
}

/* The rows of a group together, and together those that are alone in theirs. */
static void draw_panels(section *s, const bar_set *set, report_items *rows)
{
    report_items *alone = report_alloc(s->memory, sizeof *alone);
    alone->items = report_alloc(s->memory, (rows->n + 1) * sizeof *alone->items);
    report_set_keys(s->memory, rows, report_key_group);
    while (rows->n) {
        const report_items group = report_split(s->memory, rows);
        if (group.n > 1)
            draw_places(s, set, group.items[0].key, group);
        else
            alone->items[alone->n++] = group.items[0];
    }
    if (alone->n)
        draw_places(s, set, "", *alone);
    fputs(end_of_set, s->out);
}

static void fill_figure(report_bar *bar, const report_row *row)
{
    bar->median = row->median;
    bar->min = row->min;
    bar->max = row->max;
}

static const char *bar_name(section *s, const report_items *rows, size_t i)
{
    const report_row *row = rows->items[i].row;
    return *rows->items[i].key ? report_short_name(s->memory, row) : row->name;
}

/* ---- Rates ---- */

static bool is_rate_of_system(const report_row *row)
{
    return report_is_rate(row) && (row->system || row->x == 0);
}

/* The system, where no other bar of the drawing has the same. */
static void fill_rate(section *s, const report_items *rows, size_t i, report_bar *bar)
{
    const report_row *row = rows->items[i].row;
    bool alone = row->system != NULL;
    for (size_t k = 0; alone && k < rows->n; k++) {
        const char *other = rows->items[k].row->system;
        alone = k == i || !other || strcmp(other, row->system) != 0;
    }
    fill_figure(bar, row);
    bar->label = alone ? row->system : bar_name(s, rows, i);
    bar->paint = !report_any_ours(rows) ? REPORT_PLAIN
                 : report_is_ours(row)  ? REPORT_OURS
                                        : REPORT_PEER;
    bar->target = row->goal == BENCH_NO_GOAL ? 0 : row->target;
}

static void draw_rates(section *s, const report_run *run)
{
    report_items rows = report_choose(s->memory, run, is_rate_of_system);
    report_set_keys(s->memory, &rows, report_key_page_unit);
    while (rows.n) {
        report_items set = report_split(s->memory, &rows);
        const report_row *first = set.items[0].row;
        report_extent extent = {0, 0};
        for (size_t i = 0; i < set.n; i++) {
            report_extend(&extent, set.items[i].row->min);
            report_extend(&extent, set.items[i].row->max);
            report_extend(&extent, set.items[i].row->goal ? set.items[i].row->target : 0);
        }
        const bar_set bars = {{.unit = first->unit, .axis = report_axis_log(extent, true)},
                              fill_rate};
        if (set.n < 2) /* nothing to compare: the tables have it */
            continue;
        begin_set(s, first->page, first->unit, run);
        draw_panels(s, &bars, &set);
    }
}

/* ---- Parts of a limit ---- */

static bool has_fraction(const report_row *row)
{
    double fraction;
    return report_fraction(row, &fraction);
}

static void fill_fraction(section *s, const report_items *rows, size_t i, report_bar *bar)
{
    const report_row *row = rows->items[i].row;
    report_fraction(row, &bar->median);
    bar->min = row->limit ? bar->median : row->min;
    bar->max = row->limit ? bar->median : row->max;
    bar->target = row->limit ? 0 : row->target;
    bar->label = bar_name(s, rows, i);
    bar->detail = row->limit ? report_text(s->memory, "of %s", row->limit) : NULL;
    bar->paint = REPORT_PLAIN;
}

static void draw_fractions(section *s, const report_run *run)
{
    report_items rows = report_choose(s->memory, run, has_fraction);
    report_set_keys(s->memory, &rows, report_key_page);
    while (rows.n) {
        report_items set = report_split(s->memory, &rows);
        double most = 0;
        for (size_t i = 0; i < set.n; i++) {
            report_bar bar = {0};
            fill_fraction(s, &set, i, &bar);
            most = bar.max > most ? bar.max : most;
        }
        const bar_set bars = {{.unit = "of the limit",
                               .axis = report_axis_parts(most, 2),
                               .percent = true,
                               .reference = 1},
                              fill_fraction};
        begin_set(s, set.items[0].row->page, "", run);
        draw_panels(s, &bars, &set);
    }
}

/* ---- Stalls ---- */

#define STALL_AIM_SECONDS 50e-6

static bool is_stall(const report_row *row)
{
    return report_percentile(row) == 0.99 &&
           (strcmp(row->page, "stall") == 0 || report_on_gpu(row));
}

static void fill_stall(section *s, const report_items *rows, size_t i, report_bar *bar)
{
    const report_row *row = rows->items[i].row;
    fill_figure(bar, row);
    bar->label = bar_name(s, rows, i);
    bar->target = STALL_AIM_SECONDS / report_time_unit(row);
    bar->paint = report_on_gpu(row) ? REPORT_OURS : REPORT_PEER;
}

static void draw_stalls(section *s, const report_run *run)
{
    report_items rows = report_choose(s->memory, run, is_stall);
    report_set_keys(s->memory, &rows, report_key_page_unit);
    while (rows.n) {
        report_items set = report_split(s->memory, &rows);
        const report_row *first = set.items[0].row;
        report_extent extent = {0, 0};
        report_extend(&extent, STALL_AIM_SECONDS / report_time_unit(first));
        for (size_t i = 0; i < set.n; i++) {
            report_extend(&extent, set.items[i].row->min);
            report_extend(&extent, set.items[i].row->max);
        }
        const bar_set bars = {{.unit = first->unit, .axis = report_axis_log(extent, true)},
                              fill_stall};
        begin_set(s, first->page, first->unit, run);
        draw_panels(s, &bars, &set);
    }
}

/* ---- Percentiles and lines: a drawing for each group ---- */

static bool is_percentile(const report_row *row)
{
    return report_percentile(row) > 0;
}

/* Whether two rows belong to one distribution: a single point is none. */
static bool has_pair(report_memory *memory, report_items rows)
{
    report_set_keys(memory, &rows, report_key_distribution);
    return !report_all_differ(&rows);
}

static void draw_latencies(section *s, const report_run *run)
{
    report_items rows = report_choose(s->memory, run, is_percentile);
    report_set_keys(s->memory, &rows, report_key_title_unit);
    while (rows.n) {
        report_items set = report_split(s->memory, &rows);
        const report_row *first = set.items[0].row;
        const char *title = first->group ? first->group : first->page;
        if (!has_pair(s->memory, set))
            continue;
        begin_set(s, title, first->unit, run);
        begin_figure(s, "");
        report_draw_dots(s->out, s->memory, title, set);
        fputs("</figure>\n", s->out);
        fputs(end_of_set, s->out);
    }
}

static bool is_start(const report_row *row)
{
    return report_x(row) > 0 && !report_is_rate(row) && strcmp(report_x_unit(row), "tokens") == 0;
}

static bool is_by_size(const report_row *row)
{
    return row->x > 0 && !is_start(row) && !is_rate_of_system(row);
}

/* The first lines of `rows` that one drawing has room for are taken out of it. */
static report_items take_lines(report_memory *memory, report_items *rows)
{
    report_items taken = {report_alloc(memory, (rows->n + 1) * sizeof *rows->items), 0};
    for (int i = 0; i < REPORT_MAX_SERIES && rows->n; i++) {
        const report_items line = report_split(memory, rows);
        memcpy(taken.items + taken.n, line.items, line.n * sizeof *line.items);
        taken.n += line.n;
    }
    return taken;
}

static void draw_curves(section *s, const report_run *run, report_choice *choice)
{
    const char *title = NULL;
    report_items rows = report_choose(s->memory, run, choice);
    report_set_keys(s->memory, &rows, report_key_title_unit);
    while (rows.n) {
        report_items set = report_split(s->memory, &rows);
        const report_row *first = set.items[0].row;
        const char *name = first->group ? first->group : first->page;
        if (!title || strcmp(title, name) != 0) { /* units of one page stand side by side */
            fputs(title ? end_of_set : "", s->out);
            begin_set(s, name, "", run);
            title = name;
        }
        report_set_keys(s->memory, &set, report_key_line);
        while (set.n) {
            begin_figure(s, report_text(s->memory, "%s, by %s", first->unit, report_x_unit(first)));
            report_draw_lines(s->out, s->memory, name, take_lines(s->memory, &set));
            fputs("</figure>\n", s->out);
        }
    }
    fputs(title ? end_of_set : "", s->out);
}

static void draw_starts(section *s, const report_run *run)
{
    draw_curves(s, run, is_start);
}

static void draw_by_size(section *s, const report_run *run)
{
    draw_curves(s, run, is_by_size);
}

/* ---- The sections ---- */

static const kind kinds[] = {
    {"rates", "Throughput by system",
     "A bar is the median over the rounds of a run; the thin line on it goes from the smallest to "
     "the largest round. Scales are logarithmic and the same within a set. What stands in one set "
     "was measured in one run.",
     "No two rates of one kind are in these files: <code>tokbench load</code> and <code>make "
     "bench-peers</code> measure them.",
     draw_rates},
    {"latency", "Latency",
     "Half of all calls take no longer than the disc says (p50), 99 in 100 no longer than the "
     "diamond, 999 in 1,000 no longer than the square, and none longer than the triangle. "
     "Logarithmic scales; a red mark is a target.",
     "No percentiles are in these files: <code>tokbench stall</code> measures them.",
     draw_latencies},
    {"start", "Starting up, by the size of the corpus",
     "Both scales are logarithmic: a level line does not depend on the size. Beside each name its "
     "value at the smallest and at the largest size.",
     "No sizes are in these files: <code>tokbench scale</code> measures starting up at each.",
     draw_starts},
    {"size", "By size", "Both scales are logarithmic.", NULL, draw_by_size},
    {"limits", "Part of the machine's limit",
     "Each figure as a part of what the machine itself does, measured in the same run. The black "
     "or white mark is 100 %, a red one a target. A figure can go beyond: a limit is a plain way "
     "of doing the same work, not a law.",
     "No figure in these files names its limit: <code>tokbench limits load</code> measures both "
     "in one run.",
     draw_fractions},
    {"stall", "Stall of a training step",
     "How long a step waits for its batch, in 99 of 100 steps at most. The red mark is 50 "
     "microseconds, the aim with a GPU.",
     "No stalls are in these files: <code>tokbench stall</code> measures them.", draw_stalls}};
enum {
    N_KINDS = sizeof kinds / sizeof *kinds
};

void report_put_section_links(FILE *out, size_t n)
{
    for (int i = 0; i < N_KINDS; i++)
        if (kinds[i].absent)
            fprintf(out, "<a href=\"#m%zu-%s\">%s</a>\n", n, kinds[i].id, kinds[i].title);
}

static bool any_on_gpu(const report_part *part)
{
    for (size_t i = 0; i < part->n_runs; i++)
        for (size_t k = 0; k < part->runs[i]->n_rows; k++)
            if (report_on_gpu(&part->runs[i]->rows[k]))
                return true;
    return false;
}

void report_put_sections(FILE *out, report_memory *memory, const report_part *part, size_t n)
{
    for (int i = 0; i < N_KINDS; i++) {
        section s = {out, memory, &kinds[i], n, false};
        for (size_t k = 0; k < part->n_runs; k++)
            kinds[i].draw(&s, part->runs[k]);
        if (s.begun)
            fputs("</div>\n", out);
        if (s.begun || !kinds[i].absent)
            continue;
        put_heading(&s);
        fprintf(out, "<p class=\"absent\">%s</p>\n", kinds[i].absent);
    }
    if (!any_on_gpu(part))
        fputs(
            "<p class=\"absent\"><b>The GPU path is unmeasured here:</b> no figure in these files "
            "was taken on a GPU. <code>tokbench limits load stall</code> on a machine with an "
            "NVIDIA GPU does that.</p>\n",
            out);
}
