/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/result.h"
#include "request/look.h"
#include "request/options.h"
#include "pack/report.h"
#include "pack/work.h"
#include "system/memory_file.h"
#include "system/process.h"

/* ---- The end ---- */

static int finish_output(pack_work *w, size_t which, pack_error *err)
{
    tokmap_writer *writer = w->outputs.list[which].writer;
    tokmap_error why;
    size_t n_bytes;
    if (!writer) /* it has its name already */
        return CLI_OK;
    char *metadata = pack_report_metadata(w, which, &n_bytes);
    if (!metadata)
        return pack_error_no_memory(err);
    tokmap_status status = tokmap_writer_set_metadata(writer, metadata, n_bytes, &why);
    if (status == TOKMAP_OK)
        status = tokmap_writer_finish(writer, &why);
    free(metadata);
    return status == TOKMAP_OK ? CLI_OK : pack_error_from_writer(err, &why);
}

static int finish_outputs(pack_work *w, pack_error *err)
{
    w->consistent = false; /* later failures must not make another checkpoint */
    int code = pack_work_check_balance(w, err);
    if (code != CLI_OK)
        return code;
    const corpus_counts *counts = &w->at.place.counts;
    if (!w->parts->cell && corpus_kept_none(counts)) { /* join looks at all cells */
        if (!w->parts->options->quiet)
            pack_fields_note(&w->fields);
        pack_error_set(err, CLI_INPUT, CORPUS_KEPT_NONE, counts->records);
        err->start_over = true;
        return CLI_INPUT;
    }
    if (!w->parts->cell) /* another cell may have the field */
        code = pack_fields_check(&w->fields, err);
    if (code != CLI_OK)
        return code;
    /* A last checkpoint is needed if a kill between the renames would otherwise leave files that
     * the next run cannot interpret. */
    const bool alone = w->outputs.n == 1;
    if (!w->parts->inputs->once && !w->from.note.finishing &&
        (!alone || pack_outputs_keep(&w->outputs))) {
        /* The first checkpoint must not be the last one: then a split without any would look
         * finished. */
        if (!pack_outputs_keep(&w->outputs))
            code = pack_work_checkpoint(w, false, err);
        if (code == CLI_OK)
            code = pack_work_checkpoint(w, true, err);
    }
    if (code ==
        CLI_OK) /* before an output has its name: then the same command does not run again */
        code = pack_skipped_sync(w->skipped, err);
    if (code == CLI_OK)
        code = pack_outputs_remove_also(&w->outputs, w->parts->options, err);
    if (code != CLI_OK)
        return code;
    size_t next = 1;
    while (next < w->outputs.n && (code = finish_output(w, next, err)) == CLI_OK)
        next++;
    if (code == CLI_OK)
        code = finish_output(w, 0, err);
    if (code != CLI_OK && w->parts->inputs->once && !w->parts->options->force)
        pack_outputs_withdraw(&w->outputs, next);
    return code;
}

static int print_results(pack_work *w, json_out *json)
{
    const pack_options *o = w->parts->options;
    int code = CLI_OK;
    pack_work_print_end(w);
    pack_use_count(&w->use, 1);
    w->use.stored_bytes = w->stored_bytes - w->progress.bytes_before;
    w->use.text_bytes = w->text_bytes;
    w->use.token_bytes =
        (w->at.position.tokens - w->tokens_before) * pack_token_bytes(w->parts->tokens, o);
    if (!o->quiet)
        pack_report_notes(w);
    if (json->out)
        code = pack_report_print(json, w);
    memory_file more;
    json_out counts = {.out = memory_file_open(&more)};
    if (!counts.out)
        return cli_no_memory();
    unsuitable_print_counts(&w->parts->inputs->unsuitable, &counts);
    pack_use_print(&w->use, &counts);
    if (!memory_file_close(counts.out, &more))
        return cli_no_memory();
    for (size_t i = 0; i < w->outputs.n; i++)
        code = cli_first_failure(code, cli_print_result(w->outputs.list[i].prefix, NULL,
                                                        i ? NULL : more.text, o->json, o->quiet));
    free(more.text);
    for (size_t i = 0; i < w->outputs.n && o->also && !o->json && !o->quiet; i++) {
        cli_print_plain(stdout, w->outputs.list[i].prefix, strlen(w->outputs.list[i].prefix));
        puts(".idx: Megatron index");
    }
    return code;
}

/* Prints why the work stopped, and how to resume. */
static int report_stop(pack_work *w, const pack_error *err)
{
    pack_error ignored; /* then the checkpoint before is still valid */
    bool keep = !w->parts->inputs->once && pack_outputs_keep(&w->outputs);
    if (keep && !err->start_over && pack_work_may_checkpoint(w))
        pack_work_checkpoint(w, false, &ignored);
    const bool bad_input = err->exit_code == CLI_INPUT && !err->of_output;
    pack_error_print(err);
    if (bad_input && w->parts->cell)
        fputs(
            "Repair or replace the input and run 'tokmap plan --update PLAN', or leave it out with "
            "'tokmap plan --update PLAN --skip-input INPUT'; then run the same command again. "
            "Other options need a new plan.\n",
            stderr);
    else if (keep && err->start_over)
        fputs(err->hint ? "" : "Use --restart to start over.\n", stderr);
    else if (keep)
        fprintf(stderr,
                "Progress is saved: %srun the same command again to resume, or use "
                "--restart to start over.\n",
                bad_input ? "repair, replace or remove the input, and " : "");
    else if (err->exit_code == CLI_AGAIN)
        fputs("Nothing was saved: the next run starts over.\n", stderr);
    w->keeps_skipped = keep;
    return err->exit_code;
}

/* ---- Beginning ---- */

static int open_skipped(pack_work *w)
{
    static const pack_skipped_mark nothing;
    const pack_options *o = w->parts->options;
    if (o->input.on_error != ON_ERROR_SKIP) {
        if (w->from.discard) /* of a run that had left nothing out */
            pack_skipped_remove(o->prefix);
        return CLI_OK;
    }
    w->skipped = calloc(1, sizeof *w->skipped);
    w->keeps_skipped = true;
    if (!w->skipped)
        return cli_no_memory();
    return pack_skipped_open(w->skipped, o, w->from.checkpoint ? &w->from.note.skipped : &nothing);
}

static void print_start(const pack_work *w)
{
    const pack_note *note = &w->from.note;
    if (w->parts->options->quiet)
        return;
    if (w->from.checkpoint == 0 && w->from.discard && !w->parts->options->restart)
        cli_warn("an unfinished run has no checkpoint that all of its outputs have: starting over");
    if (w->from.checkpoint == 0)
        return;
    if (*w->from.difference)
        cli_warn("since the interrupted run began, %s; what was packed before it is kept",
                 w->from.difference);
    cli_text documents = cli_count_of(note->position.documents, "document");
    if (note->place.input < w->parts->inputs->n)
        cli_warn("resuming after %s, in %s", documents.s,
                 w->parts->inputs->names[note->place.input]);
    else
        cli_warn("resuming after %s, at the end of the inputs", documents.s);
}

static int open_outputs(pack_work *w)
{
    pack_outputs_init(&w->outputs, w->parts->options);
    int code = pack_resume_find(&w->from, &w->outputs, w->parts->options, &w->fingerprint);
    if (code != CLI_OK)
        return code;
    pack_work_begin(w);
    const pack_start start = {w->from.checkpoint, w->from.discard, w->from.note.finishing != 0};
    code = pack_outputs_open(&w->outputs, w->parts, start);
    if (w->outputs.list[0].was_complete) {
        pack_skipped_remove(w->parts->options->prefix);
        return cli_first_failure(pack_outputs_write_also(&w->outputs, w->parts->options, true),
                                 code);
    }
    if (code == CLI_OK)
        code = pack_outputs_check_also(&w->outputs, w->parts->options);
    return code == CLI_OK ? open_skipped(w) : code;
}

static int run_session(pack_work *w, json_out *report)
{
    pack_error err;
    if (!pack_fingerprint_make(&w->fingerprint, w->parts))
        return cli_no_memory();
    int code = open_outputs(w);
    if (code != CLI_OK)
        return code;
    print_start(w);
    if (!w->from.note.finishing)
        code = pack_work_run(w, &err);
    if (code == CLI_OK)
        code = finish_outputs(w, &err);
    if (code != CLI_OK)
        return report_stop(w, &err);
    pack_outputs_close(&w->outputs);
    code = pack_outputs_write_also(&w->outputs, w->parts->options, false);
    w->keeps_skipped = code != CLI_OK;
    return code == CLI_OK ? print_results(w, report) : code;
}

int pack_session_run(const pack_parts *parts, json_out *report)
{
    pack_work *w = calloc(1, sizeof *w);
    if (!w)
        return cli_no_memory();
    w->parts = parts;
    int code = run_session(w, report);
    pack_outputs_close(&w->outputs);
    pack_fingerprint_free(&w->fingerprint);
    pack_skipped_close(w->skipped, w->keeps_skipped);
    pack_fields_free(&w->fields);
    free(w->skipped);
    free(w);
    return code;
}

/* ---- Runs ---- */

int pack_run(pack_options *options, char **names, size_t n_names)
{
    pack_inputs inputs;
    tokenizer_file file = {0};
    pack_tokens tokens;
    pack_report_file report;
    const pack_parts parts = {
        .options = options, .tokenizer = &file, .tokens = &tokens, .inputs = &inputs};
    process_prepare_threads();
    int code = pack_inputs_find(&inputs, names, n_names, options);
    if (code == CLI_OK)
        code = pack_tokens_open(&tokens, &file, options);
    if (code == CLI_OK)
        code = pack_names_check(options, false);
    if (code == CLI_OK && !options->dry_run)
        process_catch_interrupts();
    if (code == CLI_OK)
        code = pack_inputs_look(&inputs, options);
    if (options->dry_run && (code == CLI_OK || (code == CLI_INPUT && inputs.seen))) {
        code = code == CLI_OK ? pack_dry_run(&parts, &inputs) : pack_dry_run_refused(&parts);
    } else if (code == CLI_OK) {
        code = pack_names_check(options, true);
        if (code == CLI_OK)
            code = pack_report_begin(&report, options);
        if (code == CLI_OK)
            code = pack_report_end(&report, pack_session_run(&parts, &report.json));
        if (code == CLI_OK)
            code = pack_options_say_bytes(options);
    }
    tokenizer_file_close(&file);
    pack_inputs_free(&inputs);
    return code;
}
