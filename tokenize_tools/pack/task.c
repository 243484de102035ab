/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/task.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "pack/planner.h"
#include "pack/remaining.h"
#include "pack/report.h"
#include "pack/resume.h"
#include "pack/session.h"
#include "plan/cell_join.h"
#include "plan/plan_file.h"
#include "system/files.h"
#include "system/platform.h"
#include "system/process.h"
#include "base/number.h"

#define MAX_LISTED 10
#define MAX_TASKS ((uint64_t)1 << 32)

/* ---- The number of a task ---- */

/* The variables of one engine. The first one whose variables `i` and `n` are set counts. The ranks
 * of mpirun come before those of srun, because a process that mpirun has started inherits the
 * variables of Slurm from mpirun itself. */
typedef struct task_variables {
    const char *i, *n;
    const char *least; /* the smallest value of i, or NULL: 0 */
    const char *step;  /* between two values of i, or NULL: 1 */
    const char *most;  /* the largest value of i, or NULL: not known */
} task_variables;

static const task_variables engines[] = {
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN",
     "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_MAX"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, NULL, NULL},
    {"PMI_RANK", "PMI_SIZE", NULL, NULL, NULL},
    {"SLURM_PROCID", "SLURM_NTASKS", NULL, NULL, NULL},
};
#define N_ENGINES (sizeof engines / sizeof *engines)

/* CLI_OK with the value as it was if the variable is not set. */
static int read_variable(const char *name, uint64_t *value)
{
    const char *text = name ? getenv(name) : NULL;
    if (!text || number_read_digits(text, strlen(text), value))
        return CLI_OK;
    return cli_usage("--task auto: %s is '%.100s', not a whole number", name, text);
}

static int refuse_auto(void)
{
    char names[512] = "";
    size_t used = 0;
    if (getenv("PMIX_RANK"))
        return cli_usage(
            "--task auto: PMIX_RANK is the number of this process, but no variable says "
            "how many there are; give the task as --task $PMIX_RANK/N");
    for (size_t i = 0; i < N_ENGINES; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s with %s", i ? ", " : "",
                                 engines[i].i, engines[i].n);
    return cli_usage("--task auto: none of these variables is set: %s; give the task as --task "
                     "I/N, in Kubernetes as --task $JOB_COMPLETION_INDEX/N",
                     names);
}

static int check_task(const pack_task_number *task, const char *text)
{
    if (task->n > 0 && task->n <= MAX_TASKS && task->i < task->n)
        return CLI_OK;
    return cli_usage("--task %s: must be I/N, with I from 0 to N-1 and N at most 2^32", text);
}

static int find_auto(pack_task_number *task)
{
    const task_variables *e = engines;
    uint64_t least = 0, step = 1, most;
    while (e < engines + N_ENGINES && (!getenv(e->i) || !getenv(e->n)))
        e++;
    if (e == engines + N_ENGINES)
        return refuse_auto();
    if (read_variable(e->i, &task->i) || read_variable(e->n, &task->n) ||
        read_variable(e->least, &least) || read_variable(e->step, &step))
        return CLI_USAGE;
    most = least;
    if (read_variable(e->most, &most))
        return CLI_USAGE;
    char text[128];
    snprintf(text, sizeof text, "auto (%s=%.20s, %s=%.20s)", e->i, getenv(e->i), e->n,
             getenv(e->n));
    if (task->i < least || step == 0)
        return cli_usage("--task %s: the values do not go together", text);
    if (task->n > 0 && most >= least && (most - least) / step >= task->n)
        return cli_usage("--task %s: the array has only some of its tasks: submit the whole array "
                         "again, which leaves out what is done, or give the task as --task I/N",
                         text);
    task->i = (task->i - least) / step;
    return check_task(task, text);
}

int pack_task_number_parse(pack_task_number *task, const char *text)
{
    const char *slash = strchr(text, '/');
    if (strcmp(text, "auto") == 0)
        return find_auto(task);
    if (!slash || !number_read_digits(text, (size_t)(slash - text), &task->i) ||
        !number_read_digits(slash + 1, strlen(slash + 1), &task->n))
        *task = (pack_task_number){0};
    return check_task(task, text);
}

typedef struct pack_task {
    const pack_task_options *o;
    plan_file plan;
    pack_plan_inputs inputs;
    tokenizer_file tokenizer;
    pack_tokens tokens;
    size_t first, end; /* its cells */
    pack_report_file report;
    size_t n_packed, n_before; /* cells that this process has packed; that were done before */
    bool *done;                /* which ones were done when the task began */
    pack_remaining remaining;  /* of the others */
    size_t *left;              /* those that other processes pack */
    size_t n_left;
} pack_task;

/* ---- What is there ---- */

/* What may be packed again. */
typedef enum cell_replace {
    REPLACE_NONE,
    REPLACE_DAMAGED, /* cells are verified */
    REPLACE_ALL      /* and foreign ones */
} cell_replace;

/* CLI_DATASET with a message if the cell is foreign or damaged and may not be replaced. */
static int find_work(cell_work *work, const plan_file *plan, size_t cell, cell_replace replace)
{
    const cell_report *r = &work->report;
    pack_resume_look(work, plan, cell, replace != REPLACE_NONE);
    pack_resume_compare(&work->report, plan, cell); /* what has changed is named later */
    const bool wrong = r->state == CELL_FOREIGN || r->state == CELL_DAMAGED;
    const bool may = replace == REPLACE_ALL || (replace && r->state == CELL_DAMAGED);
    if (!wrong || (may && r->exit_code != CLI_AGAIN))
        return CLI_OK;
    return cli_error(r->exit_code, "%s", r->why);
}

static bool has_leftovers(const plan_file *plan, size_t cell, const char *split)
{
    const path_text prefix = plan_file_cell_path(plan, cell, split, "");
    bool found = file_suffix_exists(prefix.s, ".lock");
    for (size_t i = PATH_N_LASTING_SUFFIXES; i < PATH_N_DATASET_SUFFIXES && !found; i++)
        found = file_suffix_exists(prefix.s, path_dataset_suffixes[i]);
    return found || file_suffix_exists(prefix.s, PACK_SKIPPED_SUFFIX ".partial");
}

/* Removes what lies beside a cell that is done; with `look`, CLI_EXISTS if there is something. */
static int clear_up(const plan_file *plan, size_t cell, bool look)
{
    int code = CLI_OK;
    for (size_t i = 0; i < plan->splits.n && code == CLI_OK; i++) {
        const char *split = plan->splits.names[i];
        if (!has_leftovers(plan, cell, split))
            continue;
        code = look ? CLI_EXISTS : cell_clear_up(plan_file_cell_path(plan, cell, split, ".tmi").s);
        if (code == CLI_OK)
            pack_skipped_remove(plan_file_cell_path(plan, cell, split, "").s);
    }
    return code;
}

/* Whether a run was killed while it replaced the cell, which may then be replaced. */
static bool was_being_replaced(const plan_file *plan, size_t cell)
{
    bool found = false;
    for (size_t i = 0; i < plan->splits.n && !found; i++)
        found = file_name_exists(
            plan_file_cell_path(plan, cell, plan->splits.names[i], ".tmi.replaced").s);
    return found;
}

/* ---- One cell ---- */

static int pack_session_of(pack_task *t, size_t cell, const cell_work *found)
{
    pack_options options = *t->o->options;
    const pack_inputs inputs = pack_plan_inputs_of(&t->inputs, cell);
    const pack_cell of = {t->plan.cells[cell].hash, t->plan.origin,   cell, &t->remaining,
                          cell - t->first + 1,      t->end - t->first};
    const cell_state state = found->report.state;
    const pack_parts parts = {.options = &options,
                              .tokenizer = &t->tokenizer,
                              .tokens = &t->tokens,
                              .inputs = &inputs,
                              .cell = &of};
    strcpy(options.prefix, plan_file_cell_path(&t->plan, cell, "", "").s);
    options.restart = options.restart || found->discard;
    options.force = options.force || state == CELL_DAMAGED || state == CELL_OUTDATED ||
                    was_being_replaced(&t->plan, cell);
    int code = pack_names_check(&options, true);
    if (code != CLI_OK)
        return code;
    code = pack_session_run(&parts, &t->report.json);
    if (code != CLI_OK)
        cli_warn("%s: this cell is not done", options.prefix);
    return code;
}

static cell_replace what_to_replace(const pack_task *t)
{
    return t->o->options->force ? REPLACE_ALL : t->o->verify ? REPLACE_DAMAGED : REPLACE_NONE;
}

/* The lock is held. A cell that was done when the task began was verified then. */
static int pack_locked(pack_task *t, size_t cell)
{
    cell_work found;
    const bool done = t->done[cell - t->first];
    int code = find_work(&found, &t->plan, cell, done ? REPLACE_NONE : what_to_replace(t));
    if (code != CLI_OK)
        return code;
    if (found.report.state == CELL_DONE) {
        t->n_before++;
        return clear_up(&t->plan, cell, false);
    }
    code = pack_plan_inputs_check(&t->inputs, cell);
    if (code == CLI_OK)
        code = pack_session_of(t, cell, &found);
    t->n_packed += code == CLI_OK;
    return code;
}

static int pack_cell_of(pack_task *t, size_t cell)
{
    const path_text path = plan_file_cell_path(&t->plan, cell, "", ".lock");
    int lock;
    const bool done = t->done[cell - t->first];
    if (done && clear_up(&t->plan, cell, true) == CLI_OK) {
        t->n_before++;
        return CLI_OK;
    }
    int code = output_make_folders(path.s);
    if (code != CLI_OK)
        return code;
    const int error = tokmap_i_file_lock(path.s, &lock);
    if (error == EWOULDBLOCK) {
        t->left[t->n_left++] = cell;
        return CLI_OK;
    }
    if (done && (error == EACCES || error == EROFS)) { /* then what was left beside it stays */
        t->n_before++;
        return CLI_OK;
    }
    if (error)
        return cli_fail_because(path.s, tokmap_i_file_lock_text(error), error);
    code = pack_locked(t, cell);
    tokmap_i_file_remove(path.s);
    tokmap_i_file_close(lock);
    return code;
}

/* ---- All of them ---- */

/* After an input that cannot be packed, other cells can be. */
static bool may_go_on(int code)
{
    return code == CLI_OK || code == CLI_INPUT || code == CLI_DATASET;
}

/* Compares the cells and their inputs with the plan, and names what has changed, so that nothing is
 * written if something does not belong to it. */
static int check_cells(pack_task *t)
{
    size_t n_wrong = 0;
    int code = CLI_OK;
    for (size_t i = t->first; i < t->end && n_wrong < MAX_LISTED && may_go_on(code); i++) {
        cell_work found;
        const int wrong = find_work(&found, &t->plan, i, what_to_replace(t));
        if (wrong == CLI_AGAIN)
            return wrong;
        n_wrong += wrong != CLI_OK;
        t->done[i - t->first] = found.report.state == CELL_DONE;
        if (!t->done[i - t->first])
            code = cli_first_failure(pack_plan_inputs_check(&t->inputs, i), code);
    }
    if (code == CLI_OK && n_wrong > 0) {
        fputs(
            "Use --verify to pack damaged cells again, and --force to replace also what is not of "
            "this plan.\n",
            stderr);
        return CLI_DATASET;
    }
    return code;
}

/* Cells that were left to other tasks may be done by now. */
static int check_left(pack_task *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_left; i++) {
        cell_report report;
        cell_check(&t->plan, t->left[i], false, &report);
        if (report.state != CELL_DONE)
            t->left[n++] = t->left[i];
    }
    t->n_before += t->n_left - n;
    t->n_left = n;
    if (n == 0)
        return CLI_OK;
    return cli_error(CLI_AGAIN,
                     "cell %06zu%s: being packed by another process; run this again when "
                     "it has ended",
                     t->left[0], n > 1 ? " and others" : "");
}

static int pack_cells(pack_task *t)
{
    int code = CLI_OK;
    for (size_t i = t->first; i < t->end; i++) {
        const pack_inputs inputs = pack_plan_inputs_of(&t->inputs, i);
        if (!t->done[i - t->first])
            pack_remaining_expect(&t->remaining, &inputs, 0);
    }
    for (size_t i = t->first; i < t->end && may_go_on(code); i++) {
        const int one = process_is_interrupted()
                            ? cli_error(CLI_AGAIN, "interrupted; run the same task again to go on")
                            : pack_cell_of(t, i);
        code = cli_first_failure(one, code);
    }
    if (code == CLI_OK)
        code = check_left(t);
    if (code != CLI_OK || t->o->options->quiet)
        return code;
    if (t->first == t->end)
        cli_warn("task %" PRIu64 "/%" PRIu64 ": no cell: the plan has %s; 'tokmap plan' makes more "
                 "with a smaller --cell-size",
                 t->o->task.i, t->o->task.n, cli_count_of(t->plan.n_cells, "cell").s);
    else
        cli_warn("task %" PRIu64 "/%" PRIu64 ": %s packed, %s done before", t->o->task.i,
                 t->o->task.n, cli_count_of(t->n_packed, "cell").s, cli_count(t->n_before).s);
    return CLI_OK;
}

/* ---- Beginning ---- */

static int begin_task(pack_task *t)
{
    int code = plan_read(&t->plan, t->o->plan);
    if (code == CLI_OK)
        code = pack_plan_options(&t->plan, t->o->options);
    if (code == CLI_OK)
        code = pack_plan_inputs_begin(&t->inputs, &t->plan);
    if (code != CLI_OK)
        return code;
    const uint64_t n_cells = t->plan.n_cells; /* like the number of tasks not above 2^32 */
    t->first = (size_t)(n_cells * t->o->task.i / t->o->task.n);
    t->end = (size_t)(n_cells * (t->o->task.i + 1) / t->o->task.n);
    t->left = calloc(t->end - t->first + 1, sizeof *t->left);
    t->done = calloc(t->end - t->first + 1, sizeof *t->done);
    return t->left && t->done ? CLI_OK : cli_no_memory();
}

int pack_task_run(const pack_task_options *options)
{
    pack_task *t = calloc(1, sizeof *t);
    if (!t)
        return cli_no_memory();
    t->o = options;
    process_prepare_threads();
    int code = begin_task(t);
    if (code == CLI_OK)
        code = pack_plan_tokenizer(&t->plan, options->options, &t->tokens, &t->tokenizer);
    if (code == CLI_OK)
        code = check_cells(t);
    if (code == CLI_OK) {
        process_catch_interrupts();
        code = pack_report_begin(&t->report, options->options);
    }
    if (code == CLI_OK) {
        json_out *json = &t->report.json;
        if (json->out) {
            *json = json_out_begin_result(json->out);
            json_out_string(json, "version", tokmap_version());
            json_out_hash(json, "plan_hash", t->plan.hash);
            json_out_number(json, "task", options->task.i);
            json_out_number(json, "n_tasks", options->task.n);
            json_out_begin(json, "cells", '[');
        }
        code = pack_cells(t);
        if (json->out) {
            json_out_end(json, ']');
            json_out_number(json, "n_cells_done_before", t->n_before);
            json_out_end(json, '}');
        }
        code = pack_report_end(&t->report, code);
    }
    tokenizer_file_close(&t->tokenizer);
    pack_plan_inputs_free(&t->inputs);
    plan_file_free(&t->plan);
    free(t->left);
    free(t->done);
    free(t);
    return code;
}
