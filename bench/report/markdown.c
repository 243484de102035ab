/* markdown.c - the same figures for a README. */
#include "report/page.h"
#include "report/rows.h"
#include "report/write.h"

static void put_remark(FILE *out, const char *system, const char *text)
{
    fputs("- ", out);
    report_put_markdown(out, system);
    fputs(": ", out);
    report_put_markdown(out, text);
    putc('\n', out);
}

static void put_cell(FILE *out, const char *text)
{
    fputs(*text ? " " : "", out);
    report_put_markdown(out, text);
    fputs(" |", out);
}

typedef struct columns {
    bool system, limit, target;
} columns;

static columns columns_of(const report_run *run)
{
    columns c = {false, false, false};
    for (size_t i = 0; i < run->n_rows; i++) {
        c.system |= run->rows[i].system != NULL;
        c.limit |= run->rows[i].limit != NULL;
        c.target |= run->rows[i].goal != BENCH_NO_GOAL;
    }
    return c;
}

static void put_row(FILE *out, report_memory *memory, const report_row *row, const columns *c)
{
    putc('|', out);
    put_cell(out, row->page);
    put_cell(out, row->name);
    if (c->system)
        put_cell(out, row->system ? row->system : "");
    put_cell(out, report_text(memory, "%s %s", report_format(row->median).s, row->unit));
    put_cell(out, report_format_range(row->min, row->max).s);
    if (c->limit)
        put_cell(out, report_limit_text(memory, row));
    if (c->target)
        put_cell(out, row->goal == BENCH_NO_GOAL
                          ? ""
                          : report_text(memory, "%s: %s", report_target_text(memory, row),
                                        row->reached ? "reached" : "not reached"));
    putc('\n', out);
}

static void put_run(FILE *out, report_memory *memory, const report_run *run)
{
    const columns c = columns_of(run);
    fputs("**", out);
    report_put_markdown(out, run->file);
    fputs("** (", out);
    report_put_markdown(out, run->command);
    fputs("), ", out);
    report_put_markdown(out, report_machine_text(memory, &run->machine));
    fputs(":\n\n", out);
    if (run->n_rows) {
        fprintf(out, "| page | what |%s median | min .. max |%s%s\n", c.system ? " system |" : "",
                c.limit ? " of its limit |" : "", c.target ? " target |" : "");
        fprintf(out, "| --- | --- |%s ---: | ---: |%s%s\n", c.system ? " --- |" : "",
                c.limit ? " --- |" : "", c.target ? " --- |" : "");
        for (size_t i = 0; i < run->n_rows; i++)
            put_row(out, memory, &run->rows[i], &c);
        putc('\n', out);
    }
    report_each_remark(out, memory, run, put_remark);
    if (run->n_remarks)
        putc('\n', out);
}

void report_put_markdown_tables(FILE *out, report_memory *memory, const report_parts *parts)
{
    for (size_t i = 0; i < parts->n_parts; i++)
        for (size_t k = 0; k < parts->parts[i].n_runs; k++)
            put_run(out, memory, parts->parts[i].runs[k]);
}
