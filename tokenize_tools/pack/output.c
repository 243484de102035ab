/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/output.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "foreign/megatron_index.h"
#include "plan/plan_file.h"

enum {
    MOST_FLUSH_THREADS = 7, /* of a writer */
    MOST_SPLITS_WITH_THREADS = 3
};

void pack_outputs_init(pack_outputs *outputs, const pack_options *options)
{
    outputs->n = options->n_splits + 1;
    for (size_t i = 0; i < outputs->n; i++) {
        pack_output *out = &outputs->list[i];
        *out = (pack_output){.split = i ? &options->splits[i - 1] : NULL};
        const char *split = i ? out->split->name : "";
        strcpy(out->prefix, plan_split_path(options->prefix, split, "").s);
        strcpy(out->index_path, path_of(out->prefix, ".tmi").s);
    }
}

/* ---- Open ---- */

/* Whether the output has its name, which it gets when all of it is on disk. */
static bool is_complete(const pack_output *out)
{
    tokmap_dataset *ds;
    if (tokmap_dataset_open(&ds, out->index_path, NULL) != TOKMAP_OK)
        return false;
    const char *token_path = cli_dataset_info(ds).token_path;
    /* Otherwise it is the index of other files. */
    bool complete = token_path && strcmp(token_path, path_of(out->prefix, ".bin").s) == 0;
    tokmap_dataset_close(ds);
    return complete;
}

static int cannot_open(pack_output *out, const tokmap_error *err)
{
    int code = cli_fail(err);
    if (err->status == TOKMAP_ERR_CORRUPT)
        fputs("Use --restart to start over.\n", stderr);
    out->was_complete = err->status == TOKMAP_ERR_EXISTS && !out->split && is_complete(out);
    if (out->was_complete)
        fputs("The dataset is complete: there is nothing to resume.\n", stderr);
    return code;
}

/* Checks that the output, which has its name, is the one that this run packed. */
static int check_complete(const pack_output *out)
{
    tokmap_dataset *ds;
    tokmap_error err;
    if (tokmap_dataset_open(&ds, out->index_path, &err) != TOKMAP_OK) {
        const int code = cli_fail(&err);
        fputs("The interrupted run had written it: use --restart and --force to start over.\n",
              stderr);
        return code;
    }
    const tokmap_dataset_info info = cli_dataset_info(ds);
    tokmap_dataset_close(ds);
    if (info.n_tokens == out->tokens && info.n_documents == out->documents)
        return CLI_OK;
    return cli_error(CLI_EXISTS,
                     "%s: is not the one that the interrupted run wrote; use --restart "
                     "and --force to start over",
                     out->index_path);
}

/* Opens the writer. *complete: the dataset was complete, but the run that wrote it was killed
 * before it removed its temporary files; they are removed now. */
static int open_writer(pack_output *out, tokmap_writer_options options, bool *complete)
{
    tokmap_error err;
    tokmap_status status = tokmap_writer_open(&out->writer, out->index_path, &options, &err);
    *complete = status == TOKMAP_END;
    return status == TOKMAP_OK || *complete ? CLI_OK : cannot_open(out, &err);
}

/* One thread hashes and writes what more than 16 encode; a writer starts them when it has written
 * 2 MiB. Many outputs get none, because each would take 16 MiB more. */
static uint32_t n_flush_threads(const pack_options *o)
{
    if (o->n_splits > MOST_SPLITS_WITH_THREADS)
        return 0;
    return (uint32_t)MIN(1 + o->n_threads / 16, MOST_FLUSH_THREADS);
}

static int open_output(pack_output *out, const pack_parts *parts, pack_start from)
{
    const pack_options *o = parts->options;
    tokmap_checkpoint_info info = {.struct_size = sizeof info};
    tokmap_error err;
    bool complete = false;
    if ((from.checkpoint || !from.discard) &&
        tokmap_writer_get_checkpoint(out->index_path, 0, &info, NULL, &err) != TOKMAP_OK)
        return cannot_open(out, &err);
    tokmap_writer_options options = {
        .struct_size = sizeof options,
        .vocab_size = parts->tokens->vocab_size,
        .token_bytes = pack_token_bytes(parts->tokens, o),
        .has_eod = parts->tokens->eod_id != MODEL_NO_ID,
        .eod_id = parts->tokens->eod_id,
        .replace = o->force,
        .resumable = !parts->inputs->once,
        .unfinished = TOKMAP_UNFINISHED_RESUME,
        .resume_checkpoint = from.checkpoint,
        .has_spans = o->input.list && (o->input.marks || o->input.list == LIST_PARTS),
        .n_threads = n_flush_threads(o),
    };
    /* The last run gave this output its name, but may have been killed before it removed its
     * temporary files: opening removes them. */
    if (from.finishing && info.n_checkpoints == 0) {
        options.replace = 0;
        options.resume_checkpoint = 0;
        if (tokmap_writer_open(&out->writer, out->index_path, &options, &err) == TOKMAP_OK)
            tokmap_writer_close(out->writer);
        out->writer = NULL;
        return check_complete(out);
    }
    if (!from.checkpoint && (from.discard || info.n_checkpoints > 0))
        options.unfinished = from.discard ? TOKMAP_UNFINISHED_DISCARD : TOKMAP_UNFINISHED_REFUSE;
    int code = open_writer(out, options, &complete);
    if (!complete)
        return code;
    if (from.checkpoint && !from.finishing)
        return cli_error(
            CLI_DATASET,
            "%s: is complete, but other outputs of the run lost their last checkpoint; "
            "use --restart and --force to start over",
            out->index_path);
    if (from.checkpoint)
        return check_complete(out);
    options.unfinished = TOKMAP_UNFINISHED_REFUSE;
    return open_writer(out, options, &complete);
}

int pack_outputs_open(pack_outputs *outputs, const pack_parts *parts, pack_start from)
{
    const char *const *names = (const char *const *)parts->options->fields.names;
    const uint32_t n_names = (uint32_t)parts->options->input.n_kept;
    int code = CLI_OK;
    for (size_t i = 0; i < outputs->n && code == CLI_OK; i++) {
        tokmap_writer *w;
        tokmap_error err;
        code = open_output(&outputs->list[i], parts, from);
        w = outputs->list[i].writer;
        if (code == CLI_OK && w && n_names > 0 &&
            tokmap_writer_set_meta_columns(w, names, n_names, &err) != TOKMAP_OK)
            code = cli_fail(&err);
    }
    return code;
}

/* ---- --also ---- */

int pack_outputs_check_also(const pack_outputs *outputs, const pack_options *options)
{
    output_file idx;
    int code = CLI_OK;
    for (size_t i = 0; i < outputs->n && code == CLI_OK; i++) {
        const path_text path = path_of(outputs->list[i].prefix, ".idx");
        if (options->also)
            code = output_name(&idx, outputs->list[i].prefix, ".idx", options->force);
        else if (file_name_exists(path.s))
            code = cli_error(CLI_EXISTS,
                             "%s: exists, and would be a Megatron index beside other tokens: "
                             "remove it, or add --also megatron",
                             path.s);
    }
    return code;
}

int pack_outputs_remove_also(const pack_outputs *outputs, const pack_options *options,
                             pack_error *err)
{
    for (size_t i = 0; i < outputs->n && options->also && options->force; i++) {
        const path_text path = path_of(outputs->list[i].prefix, ".idx");
        const int error = output_try_remove(path.s);
        if (error)
            return pack_error_from_system(err, path.s, "remove", error);
    }
    return CLI_OK;
}

static int write_index(const pack_output *out)
{
    output_file idx;
    tokmap_dataset *ds;
    tokmap_error err;
    int code = output_name(&idx, out->prefix, ".idx", false);
    if (code != CLI_OK)
        return code;
    if (tokmap_dataset_open(&ds, out->index_path, &err) != TOKMAP_OK)
        return cli_fail(&err);
    code = output_begin(&idx);
    if (code == CLI_OK)
        code = megatron_index_write(&idx, ds, true);
    if (code == CLI_OK)
        code = output_place(&idx);
    output_close(&idx);
    tokmap_dataset_close(ds);
    return code;
}

int pack_outputs_write_also(const pack_outputs *outputs, const pack_options *options, bool rest)
{
    int code = CLI_OK;
    for (size_t i = 0; i < outputs->n && options->also && code == CLI_OK; i++) {
        const path_text path = path_of(outputs->list[i].prefix, ".idx");
        if (rest && file_name_exists(path.s))
            continue;
        code = write_index(&outputs->list[i]);
        if (code != CLI_OK)
            fputs("The dataset is complete. To write only what is missing, run the same command "
                  "again, without --force.\n",
                  stderr);
        else if (rest)
            fprintf(stderr, "%s: was missing, and is written now.\n", path.s);
    }
    return code;
}

/* ---- The end ---- */

bool pack_outputs_keep(const pack_outputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++) {
        const tokmap_writer *w = outputs->list[i].writer; /* NULL: it has its name */
        if (w && tokmap_writer_n_checkpoints(w) == 0)
            return false;
    }
    return true;
}

void pack_outputs_withdraw(const pack_outputs *outputs, size_t end)
{
    for (size_t i = 1; i < end; i++) {
        output_try_remove(outputs->list[i].index_path); /* first: a dataset is complete or absent */
        output_try_remove(path_of(outputs->list[i].prefix, ".bin").s);
    }
}

void pack_outputs_close(pack_outputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++) {
        tokmap_writer_close(outputs->list[i].writer);
        outputs->list[i].writer = NULL;
    }
}
