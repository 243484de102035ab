/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "pack/options.h"
#include "pack/report.h"
#include "pack/work.h"
#include "system/process.h"

typedef struct pack_session {
    const pack_parts *parts;
    pack_facts facts;
    pack_outputs outputs;
    pack_resume from;
    char bad_path[PATH_PREFIX_BYTES + 8];
    pack_bad_file *bad_file;
    pack_work work;
} pack_session;

/* ---- The end ---- */

static pack_report report_of(const pack_session *s, const pack_counts *counts)
{
    const bool has_bad = s->bad_file && s->work.bad_mark.n_bytes > 0;
    return (pack_report){
        .parts = s->parts,
        .counts = counts,
        .outputs = &s->outputs,
        .bad_documents = has_bad ? s->bad_path : NULL,
        .bad_xxh3 = has_bad ? s->work.bad_mark.checksum : 0,
        .resumed = s->from.checkpoint > 0,
        .seconds = (double)cli_progress_ns(&s->work.progress) / 1e9,
    };
}

static int finish_output(pack_session *s, const pack_report *report, size_t which, pack_error *err)
{
    size_t n_bytes;
    char *metadata = pack_report_metadata(report, which, &n_bytes);
    if (!metadata)
        return pack_error_no_memory(err);
    int code = pack_outputs_finish(&s->outputs, which, metadata, n_bytes, err);
    free(metadata);
    return code;
}

static int finish_outputs(pack_session *s, pack_error *err)
{
    s->work.consistent = false; /* later failures must not make another checkpoint */
    int code = pack_work_check_balance(&s->work, err);
    if (code != CLI_OK)
        return code;
    pack_counts counts = pack_work_counts(&s->work);
    if (!s->parts->cell && corpus_kept_none(&counts.corpus)) { /* join looks at all cells */
        pack_error_set(err, CLI_INPUT, CORPUS_KEPT_NONE, counts.corpus.records);
        err->start_over = true;
        return CLI_INPUT;
    }
    pack_report report = report_of(s, &counts);
    /* A last checkpoint is needed if a kill between the renames would otherwise leave files that
     * the next run cannot interpret. */
    const bool alone = s->outputs.n == 1 && !s->bad_file;
    if (s->work.resumable && !s->from.note.finishing &&
        (!alone || pack_outputs_keep(&s->outputs))) {
        /* The first checkpoint must not be the last one: then a split without any would look
         * finished. */
        if (!pack_outputs_keep(&s->outputs))
            code = pack_work_checkpoint(&s->work, false, err);
        if (code == CLI_OK)
            code = pack_work_checkpoint(&s->work, true, err);
    }
    for (size_t i = 1; i < s->outputs.n && code == CLI_OK; i++)
        code = finish_output(s, &report, i, err);
    if (code == CLI_OK && s->bad_file)
        code = pack_bad_file_place(s->bad_file, s->work.bad_mark.n_bytes, err);
    return code == CLI_OK ? finish_output(s, &report, 0, err) : code;
}

static int print_results(pack_session *s, json_out *json)
{
    const pack_options *o = s->parts->options;
    int code = CLI_OK;
    pack_counts counts = pack_work_counts(&s->work);
    pack_report report = report_of(s, &counts);
    pack_work_print_end(&s->work);
    if (!o->quiet)
        pack_report_notes(&report);
    if (json)
        code = pack_report_print(json, &report);
    for (size_t i = 0; i < s->outputs.n; i++) {
        int printed = cli_print_result(s->outputs.list[i].prefix, NULL, o->json, o->quiet);
        code = code == CLI_OK ? printed : code;
    }
    return code;
}

/* Prints why the work stopped, and how to resume. */
static int report_stop(pack_session *s, const pack_error *err)
{
    pack_work *w = &s->work;
    pack_error ignored; /* then the checkpoint before is still valid */
    bool keep = w->resumable && pack_outputs_keep(&s->outputs);
    if (keep && !err->start_over && pack_work_may_checkpoint(w))
        pack_work_checkpoint(w, false, &ignored);
    cli_error(err->exit_code, "%s", err->text);
    if (err->hint)
        fprintf(stderr, "%s\n", err->hint);
    if (keep && err->start_over)
        fputs(err->hint ? "" : "Use --restart to start over.\n", stderr);
    else if (keep)
        fprintf(stderr,
                "Progress is saved: %srun the same command again to resume, or use "
                "--restart to start over.\n",
                err->exit_code == CLI_INPUT && !err->of_output
                    ? "repair, replace or remove the input, and "
                    : "");
    else if (err->exit_code == CLI_AGAIN)
        fputs("Nothing was saved: the next run starts over.\n", stderr);
    if (s->bad_file)
        pack_bad_file_close(s->bad_file, keep);
    return err->exit_code;
}

/* ---- Beginning ---- */

static int open_bad_file(pack_session *s)
{
    const pack_options *o = s->parts->options;
    if (!pack_bad_path(s->bad_path, o))
        return CLI_OK;
    s->bad_file = malloc(sizeof *s->bad_file);
    if (!s->bad_file)
        return cli_no_memory();
    const pack_bad_file_options options = {
        .path = s->bad_path,
        .keep = s->from.checkpoint ? s->from.note.bad_file : (pack_bad_mark){0},
        .replace = o->force,
        .may_be_placed = s->from.note.finishing,
    };
    return pack_bad_file_open(s->bad_file, &options);
}

static void print_start(const pack_session *s)
{
    const pack_note *note = &s->from.note;
    if (s->parts->options->quiet)
        return;
    if (s->from.checkpoint == 0 && s->from.discard && !s->parts->options->restart)
        cli_warn("an unfinished run has no checkpoint that all of its outputs have: starting over");
    if (s->from.checkpoint == 0)
        return;
    if (*s->from.difference)
        cli_warn("since the interrupted run began, %s; what was packed before it is kept",
                 s->from.difference);
    cli_text documents = cli_count_of(note->position.documents, "document");
    if (note->place.input < s->parts->inputs->n)
        cli_warn("resuming after %s, in %s", documents.s,
                 s->parts->inputs->names[note->place.input]);
    else
        cli_warn("resuming after %s, at the end of the inputs", documents.s);
}

static int open_outputs(pack_session *s)
{
    pack_outputs_init(&s->outputs, s->parts->options);
    int code = pack_resume_find(&s->from, &s->outputs, s->parts->options, &s->facts);
    if (code != CLI_OK)
        return code;
    s->work = (pack_work){
        .parts = s->parts,
        .facts = &s->facts,
        .outputs = &s->outputs,
        .resumable = !s->parts->inputs->once,
        .from = &s->from,
    };
    if (!pack_work_begin(&s->work))
        return cli_no_memory();
    code = pack_outputs_open(&s->outputs, &(pack_outputs_options){
                                              .options = s->parts->options,
                                              .tokens = s->parts->tokens,
                                              .resumable = s->work.resumable,
                                              .discard = s->from.discard,
                                              .checkpoint = s->from.checkpoint,
                                              .finishing = s->from.note.finishing,
                                          });
    if (code == CLI_OK)
        code = open_bad_file(s);
    s->work.bad_file = s->bad_file;
    return code;
}

static int run_session(pack_session *s, json_out *report)
{
    pack_error err;
    if (!pack_facts_make(&s->facts, s->parts))
        return cli_no_memory();
    int code = open_outputs(s);
    if (code != CLI_OK)
        return code;
    print_start(s);
    if (!s->from.note.finishing)
        code = pack_work_run(&s->work, &err);
    if (code == CLI_OK)
        code = finish_outputs(s, &err);
    if (code != CLI_OK)
        return report_stop(s, &err);
    pack_outputs_close(&s->outputs);
    return print_results(s, report);
}

int pack_session_run(const pack_parts *parts, json_out *report)
{
    pack_session *s = calloc(1, sizeof *s);
    if (!s)
        return cli_no_memory();
    s->parts = parts;
    int code = run_session(s, report);
    pack_outputs_close(&s->outputs);
    pack_work_end(&s->work);
    pack_facts_free(&s->facts);
    if (s->bad_file)
        pack_bad_file_close(s->bad_file, true);
    free(s->bad_file);
    free(s);
    return code;
}

/* ---- Runs ---- */

int pack_run(const pack_options *options, char **names, size_t n_names)
{
    pack_inputs inputs;
    tokenizer_file file = {0};
    pack_tokens tokens;
    pack_report_file report;
    const pack_parts parts = {
        .options = options, .tokenizer = &file, .tokens = &tokens, .inputs = &inputs};
    process_share_heap();
    int code = pack_inputs_find(&inputs, names, n_names, options);
    if (code == CLI_OK)
        code = pack_tokens_open(&tokens, &file, options);
    if (code == CLI_OK)
        code = pack_names_check(options);
    if (code == CLI_OK && !options->dry_run)
        process_catch_interrupts();
    if (code == CLI_OK)
        code = pack_inputs_look(&inputs, options);
    if (code == CLI_OK && options->dry_run) {
        code = pack_dry_run(&parts);
    } else if (code == CLI_OK) {
        code = pack_report_begin(&report, options);
        if (code == CLI_OK)
            code = pack_report_end(&report,
                                   pack_session_run(&parts, report.json.out ? &report.json : NULL));
        if (code == CLI_OK)
            code = pack_options_say_bytes(options);
    }
    tokenizer_file_close(&file);
    pack_inputs_free(&inputs);
    return code;
}
