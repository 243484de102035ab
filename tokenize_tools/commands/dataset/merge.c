/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c - tokmap merge: several datasets as one, with their tokens unchanged. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/result.h"
#include "cli/options.h"
#include "commands/dataset/dataset_commands.h"
#include "datasets/each.h"
#include "datasets/beside.h"
#include "datasets/values.h"
#include "cli/json_out.h"
#include "base/base.h"
#include "base/json_text.h"
#include "system/memory_file.h"
#include "system/output_file.h"
#include "cli/paths.h"
#include "tokmap_writer.h"
#include "system/protected.h"

typedef struct merge_options {
    const char *output;
    uint64_t vocab_size; /* 0: not given */
    bool force, json, quiet;
} merge_options;

typedef struct merge_input {
    const tokmap_dataset *ds; /* belongs to the list */
    tokmap_dataset_info info;
    json_text_span tokenizer, roles; /* empty: not known */
} merge_input;

typedef struct merge_state {
    const merge_options *options;
    char prefix[PATH_PREFIX_BYTES]; /* of the output */
    dataset_list list;
    merge_input *inputs;
    size_t n_inputs;
    uint64_t vocab_size;               /* 0: not known */
    const merge_input *vocab_from;     /* the first that knows its vocabulary, or NULL */
    const merge_input *tokenizer_from; /* the first that knows its tokenizer, or NULL */
    const merge_input *roles_from;     /* the first that may have roles with a name, or NULL */
    uint64_t n_bytes;                  /* of all tokens */
    bool has_spans;
} merge_state;

/* ---- What fits together ---- */

static int refuse_pair(const merge_input *a, const merge_input *b, const char *what)
{
    return cli_error(CLI_DATASET, "%s and %s cannot be merged: %s", a->info.index_path,
                     b->info.index_path, what);
}

/* Checks that the columns of a exist in b, and hold numbers in both or strings in both. */
static int check_columns(const merge_input *a, const merge_input *b)
{
    tokmap_meta_column in_a = TOKMAP_INIT(tokmap_meta_column), in_b;
    char what[512];
    for (uint32_t i = 0; tokmap_dataset_get_meta_column(a->ds, i, &in_a) == TOKMAP_OK; i++) {
        const bool found = values_find_column(b->ds, in_a.name, in_a.name_bytes, &in_b);
        const bool any = found && in_a.type != TOKMAP_VALUE_NULL && in_b.type != TOKMAP_VALUE_NULL;
        if (found &&
            (!any || (in_a.type == TOKMAP_VALUE_STRING) == (in_b.type == TOKMAP_VALUE_STRING)))
            continue;
        if (found)
            snprintf(what, sizeof what, "their column '%.*s' of values is %s and %s",
                     (int)in_a.name_bytes, in_a.name, values_type_name(in_a.type),
                     values_type_name(in_b.type));
        else
            snprintf(what, sizeof what,
                     "only %.200s has a column '%.*s' of values; pack the other one again with "
                     "--meta, or give a Loader both",
                     a->info.index_path, (int)in_a.name_bytes, in_a.name);
        return refuse_pair(a, b, what);
    }
    return CLI_OK;
}

/* Checks that a name stands for the same role in all inputs. */
static int check_roles(merge_state *s, const merge_input *in)
{
    if (!dataset_has_roles(in->ds))
        return CLI_OK;
    if (!s->roles_from)
        s->roles_from = in;
    const json_text_span a = s->roles_from->roles, b = in->roles;
    if (a.n_bytes == b.n_bytes && (b.n_bytes == 0 || memcmp(a.text, b.text, b.n_bytes) == 0))
        return CLI_OK;
    return refuse_pair(
        s->roles_from, in,
        "the names of their roles differ; pack both with the same --roles, or give a "
        "Loader both as sources");
}

/* Checks what dataset_list_open has not checked. */
static int check_input(const merge_state *s, const merge_input *in)
{
    if (in->info.n_tokens && !in->info.n_documents)
        return cli_error(CLI_DATASET, "%s: the document boundaries are not known",
                         in->info.index_path);
    const uint32_t eod[2] = {s->inputs[0].info.eod_id, in->info.eod_id};
    if (eod[0] != eod[1]) {
        char what[128], ids[2][16] = {"none", "none"};
        for (int i = 0; i < 2; i++) {
            if (eod[i] != TOKMAP_NO_ID)
                snprintf(ids[i], sizeof ids[i], "%" PRIu32, eod[i]);
        }
        snprintf(what, sizeof what, "their end-of-document ids are %s and %s", ids[0], ids[1]);
        return refuse_pair(&s->inputs[0], in, what);
    }
    int code = check_columns(&s->inputs[0], in);
    return code == CLI_OK ? check_columns(in, &s->inputs[0]) : code;
}

static int choose_vocab_size(merge_state *s)
{
    uint64_t given = s->options->vocab_size,
             known = s->vocab_from ? s->vocab_from->info.vocab_size : 0;
    if (given && known && given != known)
        return cli_error(CLI_DATASET, "%s: its vocabulary has %s ids, not %s",
                         s->vocab_from->info.index_path, cli_count(known).s, cli_count(given).s);
    s->vocab_size = known ? known : given;
    for (size_t i = 0; s->vocab_size && i < s->n_inputs; i++) {
        const tokmap_dataset_info *info = &s->inputs[i].info;
        if ((info->n_tokens && info->largest_id >= s->vocab_size) ||
            (info->eod_id != TOKMAP_NO_ID && info->eod_id >= s->vocab_size))
            return cli_error(CLI_DATASET, "%s: has ids outside a vocabulary of %s ids",
                             info->index_path, cli_count(s->vocab_size).s);
    }
    return CLI_OK;
}

/* ---- Inputs ---- */

static int check_inputs(merge_state *s)
{
    int code = CLI_OK;
    tokmap_error err;
    for (size_t i = 0; i < s->n_inputs; i++) {
        merge_input *in = &s->inputs[i];
        in->ds = s->list.datasets[i];
        in->info = cli_dataset_info(in->ds);
        dataset_metadata_find(in->ds, "tokenizer", &in->tokenizer);
        dataset_metadata_find(in->ds, "roles", &in->roles);
        if (in->info.vocab_size && !s->vocab_from)
            s->vocab_from = in;
        if (in->tokenizer.n_bytes && !s->tokenizer_from)
            s->tokenizer_from = in;
        s->n_bytes += in->info.n_tokens * in->info.token_bytes;
        s->has_spans |= in->info.n_spans > 0;
    }
    for (size_t i = 0; i < s->n_inputs && code == CLI_OK; i++)
        code = check_input(s, &s->inputs[i]);
    for (size_t i = 0; i < s->n_inputs && code == CLI_OK; i++)
        code = check_roles(s, &s->inputs[i]);
    if (code == CLI_OK && tokmap_dataset_check_tokenizers(s->list.datasets, s->n_inputs, &err))
        code = cli_fail(&err);
    if (code == CLI_OK)
        code = choose_vocab_size(s);
    for (size_t i = 0; i < s->n_inputs && code == CLI_OK; i++)
        code = path_protect_dataset(s->inputs[i].ds);
    return code == CLI_OK ? path_check_dataset(s->prefix) : code;
}

/* ---- Output ---- */

/* Sets the metadata. The metadata of a single dataset stay, because the result has the same content
 * and id. */
static tokmap_status set_metadata(const merge_state *s, tokmap_writer *writer, tokmap_error *err)
{
    memory_file json;
    size_t n_bytes;
    const char *text = tokmap_dataset_metadata(s->inputs->ds, &n_bytes);
    if (s->n_inputs == 1)
        return tokmap_writer_set_metadata(writer, text, n_bytes, err);
    json_out o = {.out = memory_file_open(&json)};
    if (o.out) {
        json_out_begin(&o, NULL, '{');
        json_out_print(&o, "created_by", "\"tokmap %s\"", tokmap_version());
        if (s->tokenizer_from) {
            json_out_key(&o, "tokenizer");
            fwrite(s->tokenizer_from->tokenizer.text, 1, s->tokenizer_from->tokenizer.n_bytes,
                   o.out);
        }
        if (s->roles_from && s->roles_from->roles.n_bytes) {
            json_out_key(&o, "roles");
            fwrite(s->roles_from->roles.text, 1, s->roles_from->roles.n_bytes, o.out);
        }
        json_out_begin(&o, "merged_from", '[');
        for (size_t i = 0; i < s->n_inputs; i++) {
            json_out_begin(&o, NULL, '{');
            json_out_string(&o, "dataset_id", cli_hex(s->inputs[i].info.dataset_id).s);
            json_out_number(&o, "n_tokens", s->inputs[i].info.n_tokens);
            json_out_end(&o, '}');
        }
        json_out_end(&o, ']');
        json_out_end(&o, '}');
    }
    if (!o.out || !memory_file_close(o.out, &json)) {
        *err = (tokmap_error){.status = TOKMAP_ERR_MEMORY, .text = "out of memory"};
        return TOKMAP_ERR_MEMORY;
    }
    tokmap_status status = tokmap_writer_set_metadata(writer, json.text, json.n_bytes, err);
    free(json.text);
    return status;
}

/* The progress through all inputs. */
typedef struct merge_progress {
    cli_progress line;
    uint64_t n_before, n_input, n_bytes; /* of the inputs before this one, of it, and of all */
} merge_progress;

/* Documents come after the tokens of an input, and do not count. */
static int on_progress(void *context, uint64_t n_done, uint64_t n_total)
{
    merge_progress *p = context;
    (void)n_total;
    if (p->n_input > 0) /* else finish */
        cli_progress_update(&p->line, p->n_before + MIN(n_done, p->n_input), p->n_bytes);
    return 0;
}

static int write_merged(const merge_state *s)
{
    tokmap_writer *writer;
    tokmap_error err;
    merge_progress progress = {.n_bytes = s->n_bytes};
    tokmap_writer_options options = cli_writer_options_like(s->inputs[0].ds);
    options.vocab_size = s->vocab_size;
    options.replace = s->options->force;
    options.has_spans = s->has_spans;
    options.context = &progress;
    options.on_progress = on_progress;
    int code = output_make_folders(s->prefix);
    if (code != CLI_OK)
        return code;
    tokmap_status status = tokmap_writer_open(&writer, s->options->output, &options, &err);
    cli_progress_begin(&progress.line, "merge", s->options->quiet);
    for (size_t i = 0; i < s->n_inputs && status == TOKMAP_OK; i++) {
        const merge_input *in = &s->inputs[i];
        progress.n_input = in->info.n_tokens * in->info.token_bytes;
        status = tokmap_writer_append_dataset(writer, in->ds, &err);
        progress.n_before += progress.n_input;
    }
    progress.n_input = 0;
    if (status == TOKMAP_OK)
        cli_progress_end(&progress.line, progress.n_before);
    else
        cli_progress_clear(&progress.line);
    if (status == TOKMAP_OK)
        status = set_metadata(s, writer, &err);
    if (status == TOKMAP_OK)
        status = tokmap_writer_finish(writer, &err);
    tokmap_writer_close(writer);
    return status == TOKMAP_OK ? CLI_OK : cli_fail(&err);
}

/* ---- Command ---- */

static int merge_all(void *command_options, const input_list *names)
{
    const merge_options *options = command_options;
    merge_state s = {.options = options, .n_inputs = names->n_names};
    int code = path_output_prefix(s.prefix, options->output, ".tmi");
    if (code != CLI_OK)
        return code;
    s.inputs = calloc(s.n_inputs, sizeof *s.inputs);
    if (!s.inputs)
        return cli_no_memory();
    code = dataset_list_open(&s.list, names);
    if (code == CLI_OK)
        code = check_inputs(&s);
    for (size_t i = 0; code == CLI_OK && i < s.n_inputs; i++)
        beside_note_left_out(s.inputs[i].ds, options->quiet);
    if (code == CLI_OK)
        code = write_merged(&s);
    dataset_list_close(&s.list);
    free(s.inputs);
    if (code == CLI_OK && options->force && !options->quiet)
        beside_report_replaced(path_of(s.prefix, ".tmi").s);
    return code == CLI_OK ? cli_print_result(s.prefix, NULL, NULL, options->json, options->quiet)
                          : code;
}

#define TARGET(field) offsetof(merge_options, field)
static const cli_option option_table[] = {
    {"output", 'o', CLI_TEXT, TARGET(output), "P", .help = "the dataset to write",
     .is_required = true},
    {"vocab-size", 0, CLI_NUMBER, TARGET(vocab_size), "N",
     .help = "size of the vocabulary, if no dataset states it [what the datasets state]",
     .lowest = 1, .highest = UINT64_C(1) << 31},
    {"force", 'f', CLI_FLAG, TARGET(force), .help = "replace P if it already exists"},
    OUTPUT_NO_LOCK_ROW,
    {"json", 0, CLI_FLAG, TARGET(json), .help = "print the result as a JSON object"},
    {"quiet", 'q', CLI_FLAG, TARGET(quiet), .help = "print only errors"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap merge [OPTION]... A B... -o P",
    .about = "Makes one dataset P from the datasets A, B, ..., in this order: from their "
             "documents, the names of their input files, and the values of the documents. The "
             "tokens are copied into P.bin unchanged, and their checksums are verified; A, B, ... "
             "are no longer needed. A single dataset keeps its metadata and its id: that gives a "
             "joined dataset a token file of its own. The datasets must have the same dtype, "
             "vocabulary and end-of-document id, the same tokenizer where it is known, known "
             "document boundaries, and values in the same columns. A dataset may be a pattern such "
             "as 'shards/*'; its matches are taken in natural order.",
    .options = option_table,
    .examples = "  tokmap merge data/a data/b data/c -o data/all\n"
                "  tokmap merge shards/*.tmi --vocab-size 50257 -o data/train\n"
                "  tokmap merge data/joined -o data/one_file\n",
    .operand = "dataset",
    .n_least = 1,
};

int merge_command(int argc, char **argv)
{
    merge_options options = {0};
    const each_command command = {&manual, &options, dataset_names_expand_all, &options.quiet,
                                  .end = merge_all};
    return each_run(&command, argc, argv);
}
