/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/cell_work.h"

#include <stdio.h>

#include "cli/cli.h"
#include "system/files.h"

void cell_work_look(cell_work *work, const plan_file *plan, size_t cell, bool verify)
{
    char prefix[PATH_PREFIX_BYTES], path[PATH_PREFIX_BYTES + 8], facts[PACK_CELL_FACTS_BYTES];
    bool same;
    *work = (cell_work){0};
    cell_look(plan, cell, verify, &work->report);
    if (work->report.state != CELL_UNFINISHED && work->report.state != CELL_OUTDATED)
        return;
    plan_file_cell_prefix(plan, cell, NULL, prefix);
    snprintf(path, sizeof path, "%s.tmi", prefix);
    pack_cell_facts(&(pack_cell){plan_file_cell_hash(plan, cell), cell}, facts);
    work->has_note = pack_resume_peek(path, facts, &work->note, &same);
    if (!work->has_note || same)
        return;
    work->has_note = false;
    work->discard = true;
    for (size_t i = 0; i < plan->n_earlier; i++) {
        pack_cell_facts(&(pack_cell){plan->earlier[i], cell}, facts);
        if (pack_resume_peek(path, facts, &work->note, &same) && same)
            work->report.state = CELL_OUTDATED;
    }
    if (work->report.state == CELL_OUTDATED)
        return;
    work->report.state = CELL_FOREIGN;
    work->report.exit_code = CLI_DATASET;
    snprintf(work->report.why, sizeof work->report.why,
             "%.400s: an unfinished run of another plan, or without one", prefix);
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

static bool has_leftovers(const char *prefix)
{
    static const char *const suffixes[] = {".bin.partial", ".tmi.partial",  ".tmj.partial",
                                           ".tmv.partial", ".bin.replaced", ".tmi.replaced",
                                           ".lock"};
    char path[PATH_PREFIX_BYTES + 16];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(path, sizeof path, "%s%s", prefix, suffixes[i]);
        if (file_name_exists(path))
            return true;
    }
    return false;
}

static int clear_dataset(const char *prefix, const pack_tokens *tokens)
{
    char path[PATH_PREFIX_BYTES + 8];
    tokmap_writer *w;
    tokmap_error err;
    const tokmap_writer_options options = {
        .struct_size = sizeof options,
        .vocab_size = tokens->vocab_size,
        .has_eod = tokens->eod_id != MODEL_NO_ID,
        .eod_id = tokens->eod_id,
        .unfinished = TOKMAP_UNFINISHED_RESUME,
    };
    if (!has_leftovers(prefix))
        return CLI_OK;
    snprintf(path, sizeof path, "%s.tmi", prefix);
    tokmap_status status = tokmap_writer_open(&w, path, &options, &err);
    if (status == TOKMAP_OK)
        tokmap_writer_close(w);
    return status == TOKMAP_OK || status == TOKMAP_END ? CLI_OK : cli_fail(&err);
}

bool cell_work_is_clear(const plan_file *plan, size_t cell)
{
    char prefix[PATH_PREFIX_BYTES];
    const plan_splits splits = plan_file_splits(plan);
    plan_file_cell_prefix(plan, cell, NULL, prefix);
    bool clear = !has_leftovers(prefix);
    for (size_t i = 0; i < splits.n && clear; i++) {
        plan_file_cell_prefix(plan, cell, splits.names[i], prefix);
        clear = !has_leftovers(prefix);
    }
    return clear;
}

int cell_work_clear(const plan_file *plan, size_t cell, const pack_tokens *tokens)
{
    char prefix[PATH_PREFIX_BYTES];
    const plan_splits splits = plan_file_splits(plan);
    plan_file_cell_prefix(plan, cell, NULL, prefix);
    int code = clear_dataset(prefix, tokens);
    for (size_t i = 0; i < splits.n && code == CLI_OK; i++) {
        plan_file_cell_prefix(plan, cell, splits.names[i], prefix);
        code = clear_dataset(prefix, tokens);
    }
    return code;
}
