/* page.c - the page around the drawings and the tables. */
#include "report/page.h"
#include "report/rows.h"
#include "report/write.h"

typedef struct counts {
    size_t figures, runs, targets, reached;
} counts;

static void count_run(const report_run *run, counts *c)
{
    c->figures += run->n_rows;
    c->runs++;
    for (size_t i = 0; i < run->n_rows; i++) {
        c->targets += run->rows[i].goal != BENCH_NO_GOAL;
        c->reached += run->rows[i].goal != BENCH_NO_GOAL && run->rows[i].reached;
    }
}

static counts count_part(const report_part *part)
{
    counts c = {0, 0, 0, 0};
    for (size_t i = 0; i < part->n_runs; i++)
        count_run(part->runs[i], &c);
    return c;
}

static const char *number_of(report_memory *memory, size_t n, const char *noun)
{
    return report_text(memory, "%s %s%s", report_format((double)n).s, noun, n == 1 ? "" : "s");
}

static void put_head(FILE *out)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
          "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>tokmap, measured</title>\n"
          "<style>\n",
          out);
    report_put_style(out);
    fputs("</style>\n</head>\n<body>\n", out);
}

static void put_header(FILE *out, report_memory *memory, const report_parts *parts)
{
    counts all = {0, 0, 0, 0};
    for (size_t i = 0; i < parts->n_parts; i++)
        for (size_t k = 0; k < parts->parts[i].n_runs; k++)
            count_run(parts->parts[i].runs[k], &all);
    fprintf(out, "<header>\n<h1>tokmap, measured</h1>\n<p>%s from %s on %s",
            number_of(memory, all.figures, "figure"), number_of(memory, all.runs, "run"),
            number_of(memory, parts->n_parts, "machine"));
    if (all.targets)
        fprintf(out, "; %zu of %s reached", all.reached, number_of(memory, all.targets, "target"));
    fputs(". Made by <code>tokbench report</code> from result files.</p>\n", out);
    if (parts->n_parts > 1)
        fputs("<p>Each machine has a part of its own. Figures of different machines are in no "
              "drawing together: they are not comparable.</p>\n",
              out);
    fputs("</header>\n", out);
}

static void put_runs(FILE *out, const report_part *part)
{
    fputs("<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"Runs\"><table>\n"
          "<thead><tr><th scope=\"col\">run</th><th scope=\"col\">command</th><th scope=\"col\">"
          "tokmap</th><th scope=\"col\" class=\"number\">figures</th></tr></thead>\n<tbody>\n",
          out);
    for (size_t i = 0; i < part->n_runs; i++) {
        const report_run *run = part->runs[i];
        fputs("<tr><th scope=\"row\">", out);
        report_put_html(out, run->file);
        fputs("</th><td><code>", out);
        report_put_html(out, run->command);
        fputs("</code></td><td>", out);
        report_put_html(out, run->version ? run->version : "");
        fprintf(out, "</td><td class=\"number\">%zu</td></tr>\n", run->n_rows);
    }
    fputs("</tbody></table></div>\n", out);
}

/* The targets that were not reached come first on a page: nobody should have to look for them. */
static void put_missed(FILE *out, report_memory *memory, const report_part *part)
{
    const counts c = count_part(part);
    if (!c.targets)
        return;
    fprintf(out, "<h3>Targets: %zu of %zu reached</h3>\n", c.reached, c.targets);
    if (c.reached == c.targets)
        return;
    fputs("<p>Not reached:</p>\n<div class=\"wide\" role=\"region\" tabindex=\"0\" "
          "aria-label=\"Targets that were not reached\"><table>\n<thead><tr><th scope=\"col\">what"
          "</th><th scope=\"col\" class=\"number\">median</th><th scope=\"col\" "
          "class=\"number\">min .. max</th><th scope=\"col\">target</th><th scope=\"col\">page, "
          "run</th></tr></thead>\n<tbody>\n",
          out);
    for (size_t i = 0; i < part->n_runs; i++) {
        for (size_t k = 0; k < part->runs[i]->n_rows; k++) {
            const report_row *row = &part->runs[i]->rows[k];
            if (row->goal == BENCH_NO_GOAL || row->reached)
                continue;
            fputs("<tr><th scope=\"row\">", out);
            report_put_html(out, row->name);
            fprintf(out,
                    "</th><td class=\"number no\">%s</td><td class=\"number quiet\">%s</td><td>",
                    report_format(row->median).s, report_format_range(row->min, row->max).s);
            report_put_html(out, report_target_text(memory, row));
            fputs("</td><td class=\"quiet\">", out);
            report_put_html(out, report_text(memory, "%s, %s", row->page, part->runs[i]->file));
            fputs("</td></tr>\n", out);
        }
    }
    fputs("</tbody></table></div>\n", out);
}

void report_put_page(FILE *out, report_memory *memory, const report_parts *parts)
{
    put_head(out);
    put_header(out, memory, parts);
    for (size_t i = 0; i < parts->n_parts; i++) {
        const report_part *part = &parts->parts[i];
        fprintf(out, "<main>\n<h2 id=\"m%zu\">", i + 1);
        report_put_html(out, report_machine_text(memory, &part->machine));
        fputs("</h2>\n<nav>\n", out);
        report_put_section_links(out, i + 1);
        fprintf(out, "<a href=\"#m%zu-all\">All figures</a>\n</nav>\n", i + 1);
        put_runs(out, part);
        put_missed(out, memory, part);
        report_put_sections(out, memory, part, i + 1);
        report_put_tables(out, memory, part, i + 1);
        fputs("</main>\n", out);
    }
    fputs("</body>\n</html>\n", out);
}
