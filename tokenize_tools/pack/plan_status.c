/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/plan_status.h"

#include <stdlib.h>
#include <string.h>

#include "pack/cell_work.h"
#include "text/array.h"

/* The rate is that of the last hour, if enough cells were done in it. */
#define RECENT_NS ((uint64_t)3600 * 1000000000)

typedef struct done_cell {
    uint64_t at_ns, n_bytes, n_tokens;
} done_cell;

typedef struct status_search {
    plan_status *status;
    const plan_file *plan;
    done_cell *done;
} status_search;

/* ---- The rate ---- */

static int compare_times(const void *a, const void *b)
{
    const done_cell *x = a, *y = b;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* The slope of the line through the sums of bytes and of tokens over time, by least squares: cells
 * of tasks that run together end together too, so the time between two cells says nothing. */
static void find_slopes(const done_cell *cells, size_t n, plan_status *status)
{
    double t_mean = 0, t_squares = 0, bytes = 0, tokens = 0, bytes_so_far = 0, tokens_so_far = 0;
    for (size_t i = 0; i < n; i++)
        t_mean += (double)(cells[i].at_ns - cells[0].at_ns) / 1e9 / (double)n;
    for (size_t i = 0; i < n; i++) {
        double t = (double)(cells[i].at_ns - cells[0].at_ns) / 1e9 - t_mean;
        bytes_so_far += (double)cells[i].n_bytes;
        tokens_so_far += (double)cells[i].n_tokens;
        t_squares += t * t;
        bytes += t * bytes_so_far;
        tokens += t * tokens_so_far;
    }
    if (t_squares <= 0 || bytes <= 0 || tokens <= 0)
        return;
    status->bytes_per_s = bytes / t_squares;
    status->tokens_per_s = tokens / t_squares;
}

/* Of the first cells of tasks that run together, only the end is known, not the beginning. So the
 * tasks must have done two cells each. */
static void find_rate(status_search *s)
{
    plan_status *status = s->status;
    const size_t n = status->done.n_cells;
    const size_t least = 2 * (status->unfinished.n_cells ? status->unfinished.n_cells : 1);
    size_t first = 0;
    if (n < least)
        return;
    qsort(s->done, n, sizeof *s->done, compare_times);
    while (first < n - least && s->done[n - 1].at_ns - s->done[first].at_ns > RECENT_NS)
        first++;
    find_slopes(s->done + first, n - first, status);
    const uint64_t n_bytes = status->all.input_bytes - status->done.input_bytes;
    if (status->bytes_per_s > 0)
        status->seconds_left = (double)(n_bytes - status->unfinished_bytes) / status->bytes_per_s;
}

/* ---- Cells ---- */

static void add_cell(plan_share *share, uint64_t n_bytes)
{
    share->n_cells++;
    share->input_bytes += n_bytes;
}

static void add_done(status_search *s, const cell_report *report, uint64_t n_bytes)
{
    plan_status *status = s->status;
    s->done[status->done.n_cells] = (done_cell){report->done_ns, n_bytes, report->n_tokens};
    add_cell(&status->done, n_bytes);
    status->n_tokens += report->n_tokens;
    status->n_documents += report->n_documents;
}

static void add_unfinished(status_search *s, const cell_work *work, uint64_t n_bytes)
{
    plan_status *status = s->status;
    const pack_note *note = &work->note;
    add_cell(&status->unfinished, n_bytes);
    if (!work->has_note)
        return;
    const uint64_t read = note->place.counts.stored_bytes + note->place.stored.n_bytes;
    status->unfinished_bytes += read < n_bytes ? read : n_bytes;
    status->n_tokens += note->position.tokens;
    status->n_documents += note->position.documents;
}

static bool add_failure(status_search *s, const cell_report *report, size_t cell, uint64_t n_bytes)
{
    plan_status *status = s->status;
    const size_t n = status->failed.n_cells;
    failure *failures = array_grow(status->failures, n, sizeof *failures);
    if (!failures)
        return false;
    status->failures = failures;
    fail(&status->failures[n], "%s", report->why);
    status->failures[n].place = cell;
    add_cell(&status->failed, n_bytes);
    return true;
}

static bool add_to_status(status_search *s, size_t cell, bool verify)
{
    cell_work work;
    const uint64_t n_bytes = plan_file_cell_bytes(s->plan, cell);
    cell_work_look(&work, s->plan, cell, verify);
    add_cell(&s->status->all, n_bytes);
    switch (work.report.state) {
    case CELL_ABSENT:
    case CELL_OUTDATED:
        add_cell(&s->status->left, n_bytes);
        break;
    case CELL_UNFINISHED:
        add_unfinished(s, &work, n_bytes);
        break;
    case CELL_DONE:
        add_done(s, &work.report, n_bytes);
        break;
    case CELL_FOREIGN:
    case CELL_DAMAGED:
        return add_failure(s, &work.report, cell, n_bytes);
    }
    return true;
}

bool plan_status_find(plan_status *status, const plan_file *plan, bool verify)
{
    *status = (plan_status){0};
    status_search s = {.status = status, .plan = plan};
    s.done = calloc(plan->n_cells, sizeof *s.done);
    bool ok = s.done != NULL;
    for (size_t i = 0; i < plan->n_cells && ok; i++)
        ok = add_to_status(&s, i, verify);
    if (ok)
        find_rate(&s);
    free(s.done);
    return ok;
}

void plan_status_free(plan_status *status)
{
    free(status->failures);
    *status = (plan_status){0};
}
