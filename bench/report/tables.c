/* tables.c - every figure of a part, as it is in its file. */
#include <string.h>

#include "report/page.h"
#include "report/rows.h"
#include "report/write.h"

const char *report_target_text(report_memory *memory, const report_row *row)
{
    return row->goal == BENCH_NO_GOAL
               ? ""
               : report_text(memory, "at %s %s %s", row->goal == BENCH_AT_LEAST ? "least" : "most",
                             report_format(row->target).s, row->unit);
}

const char *report_limit_text(report_memory *memory, const report_row *row)
{
    if (!row->limit)
        return "";
    if (row->fraction < 0)
        return row->limit_found ? row->limit
                                : report_text(memory, "%s: not in this run", row->limit);
    return report_text(memory, "%s of %s", report_format_percent(row->fraction).s, row->limit);
}

/* ---- Remarks ---- */

static bool same_remark(const report_remark *a, const report_remark *b)
{
    return strcmp(a->system, b->system) == 0 && strcmp(a->text, b->text) == 0;
}

static bool told_before(const report_run *run, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (same_remark(&run->remarks[k], &run->remarks[i]))
            return true;
    return false;
}

void report_each_remark(FILE *out, report_memory *memory, const report_run *run,
                        report_remark_use *use)
{
    for (size_t i = 0; i < run->n_remarks; i++) {
        const report_remark *first = &run->remarks[i];
        size_t n_bytes = strlen(first->text) + 8, used;
        if (told_before(run, i))
            continue;
        for (size_t k = i; first->place && k < run->n_remarks; k++)
            if (same_remark(first, &run->remarks[k]))
                n_bytes += strlen(run->remarks[k].place) + 2;
        char *text = report_alloc(memory, n_bytes);
        used = (size_t)snprintf(text, n_bytes, "%s", first->text);
        const char *before = " (";
        for (size_t k = i; first->place && k < run->n_remarks; k++) {
            if (!same_remark(first, &run->remarks[k]))
                continue;
            used += (size_t)snprintf(text + used, n_bytes - used, "%s%s", before,
                                     run->remarks[k].place);
            before = "; ";
        }
        if (first->place)
            snprintf(text + used, n_bytes - used, ")");
        use(out, first->system, text);
    }
}

static void put_remark(FILE *out, const char *system, const char *text)
{
    fputs("<li><b>", out);
    report_put_html(out, system);
    fputs("</b>: ", out);
    report_put_html(out, text);
    fputs("</li>\n", out);
}

/* ---- Tables ---- */

typedef struct columns {
    bool system, limit, target;
} columns;

static columns columns_of(const report_items *rows)
{
    columns c = {false, false, false};
    for (size_t i = 0; i < rows->n; i++) {
        const report_row *row = rows->items[i].row;
        c.system |= row->system != NULL;
        c.limit |= row->limit != NULL;
        c.target |= row->goal != BENCH_NO_GOAL;
    }
    return c;
}

static void put_cell(FILE *out, const char *class, const char *text)
{
    fprintf(out, *class ? "<td class=\"%s\">" : "<td>", class);
    report_put_html(out, text);
    fputs("</td>", out);
}

static void put_row(FILE *out, report_memory *memory, const report_row *row, const columns *c)
{
    fputs("<tr><th scope=\"row\">", out);
    report_put_html(out, row->name);
    fputs("</th>", out);
    if (c->system)
        put_cell(out, "", row->system ? row->system : "");
    put_cell(out, "number", report_format(row->median).s);
    put_cell(out, "number quiet", report_format_range(row->min, row->max).s);
    put_cell(out, "", row->unit);
    if (c->limit)
        put_cell(out, "", report_limit_text(memory, row));
    if (c->target)
        put_cell(out, "", report_target_text(memory, row));
    if (c->target)
        put_cell(out, row->reached ? "yes" : "no",
                 row->goal == BENCH_NO_GOAL ? ""
                 : row->reached             ? "reached"
                                            : "not reached");
    fputs("</tr>\n", out);
}

static void put_table(FILE *out, report_memory *memory, const report_items *rows, const char *page)
{
    const columns c = columns_of(rows);
    fputs("<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"", out);
    report_put_html(out, page);
    fputs("\"><table>\n<caption>", out);
    report_put_html(out, page);
    fprintf(out,
            "</caption>\n<thead><tr><th scope=\"col\">what</th>%s"
            "<th scope=\"col\" class=\"number\">median</th>"
            "<th scope=\"col\" class=\"number\">min .. max</th><th scope=\"col\">unit</th>%s%s"
            "</tr></thead>\n<tbody>\n",
            c.system ? "<th scope=\"col\">system</th>" : "",
            c.limit ? "<th scope=\"col\">of its limit</th>" : "",
            c.target ? "<th scope=\"col\">target</th><th scope=\"col\"></th>" : "");
    for (size_t i = 0; i < rows->n; i++)
        put_row(out, memory, rows->items[i].row, &c);
    fputs("</tbody></table></div>\n", out);
}

static bool every_row(const report_row *row)
{
    return row != NULL;
}

void report_put_tables(FILE *out, report_memory *memory, const report_part *part, size_t n)
{
    fprintf(out, "<h3 id=\"m%zu-all\">All figures</h3>\n", n);
    for (size_t i = 0; i < part->n_runs; i++) {
        const report_run *run = part->runs[i];
        fputs("<h4>", out);
        report_put_html(out, run->file);
        fputs("</h4>\n<p class=\"command\"><code>", out);
        report_put_html(out, run->command);
        fputs("</code></p>\n", out);
        report_items rows = report_choose(memory, run, every_row);
        report_set_keys(memory, &rows, report_key_page);
        while (rows.n) {
            const report_items page = report_split(memory, &rows);
            put_table(out, memory, &page, page.items[0].key);
        }
        if (!run->n_remarks)
            continue;
        fputs("<ul class=\"remarks\">\n", out);
        report_each_remark(out, memory, run, put_remark);
        fputs("</ul>\n", out);
    }
}
