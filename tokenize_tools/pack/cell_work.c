/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/cell_work.h"

#include <stdio.h>

#include "cli/cli.h"
#include "system/files.h"

void cell_work_look(cell_work *work, const plan_file *plan, size_t cell, bool verify)
{
    const path_text path = plan_file_cell_path(plan, cell, "", ".tmi");
    char facts[PACK_CELL_FACTS_BYTES];
    bool same;
    *work = (cell_work){0};
    cell_look(plan, cell, verify, &work->report);
    if (work->report.state != CELL_UNFINISHED && work->report.state != CELL_OUTDATED)
        return;
    pack_cell_facts(&(pack_cell){plan_file_cell_hash(plan, cell), cell}, facts);
    work->has_note = pack_resume_peek(path.s, facts, &work->note, &same);
    if (!work->has_note || same)
        return;
    work->has_note = false;
    work->discard = true;
    for (size_t i = 0; i < plan->n_earlier; i++) {
        pack_cell_facts(&(pack_cell){plan->earlier[i], cell}, facts);
        if (pack_resume_peek(path.s, facts, &work->note, &same) && same)
            work->report.state = CELL_OUTDATED;
    }
    if (work->report.state == CELL_OUTDATED)
        return;
    work->report.state = CELL_FOREIGN;
    work->report.exit_code = CLI_DATASET;
    snprintf(work->report.why, sizeof work->report.why,
             "%.400s: an unfinished run of another plan, or without one",
             plan_file_cell_path(plan, cell, "", "").s);
}

int cell_work_find(cell_work *work, const plan_file *plan, size_t cell, cell_replace replace)
{
    const cell_report *r = &work->report;
    cell_work_look(work, plan, cell, replace != REPLACE_NONE);
    const bool wrong = r->state == CELL_FOREIGN || r->state == CELL_DAMAGED;
    const bool may = replace == REPLACE_ALL || (replace && r->state == CELL_DAMAGED);
    if (!wrong || (may && r->exit_code != CLI_AGAIN))
        return CLI_OK;
    return cli_error(r->exit_code, "%s", r->why);
}

/* ---- Leftovers ---- */

static bool has_leftovers(const plan_file *plan, size_t cell, const char *split)
{
    const path_text prefix = plan_file_cell_path(plan, cell, split, "");
    bool found = file_suffix_exists(prefix.s, ".lock");
    for (size_t i = PATH_N_LASTING_SUFFIXES; i < PATH_N_DATASET_SUFFIXES && !found; i++)
        found = file_suffix_exists(prefix.s, path_dataset_suffixes[i]);
    return found;
}

bool cell_work_is_clear(const plan_file *plan, size_t cell)
{
    const plan_splits splits = plan_file_splits(plan);
    bool clear = true;
    for (size_t i = 0; i < splits.n && clear; i++)
        clear = !has_leftovers(plan, cell, splits.names[i]);
    return clear;
}

int cell_work_clear(const plan_file *plan, size_t cell, const pack_tokens *tokens)
{
    const plan_splits splits = plan_file_splits(plan);
    const tokmap_writer_options options = {
        .struct_size = sizeof options,
        .vocab_size = tokens->vocab_size,
        .has_eod = tokens->eod_id != MODEL_NO_ID,
        .eod_id = tokens->eod_id,
        .unfinished = TOKMAP_UNFINISHED_RESUME,
    };
    int code = CLI_OK;
    for (size_t i = 0; i < splits.n && code == CLI_OK; i++) {
        const path_text path = plan_file_cell_path(plan, cell, splits.names[i], ".tmi");
        tokmap_writer *w = NULL;
        tokmap_error err = {.status = TOKMAP_OK};
        if (has_leftovers(plan, cell, splits.names[i]))
            tokmap_writer_open(&w, path.s, &options, &err);
        tokmap_writer_close(w);
        code = err.status < 0 ? cli_fail(&err) : CLI_OK;
    }
    return code;
}
