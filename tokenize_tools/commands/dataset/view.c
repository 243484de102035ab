/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - tokmap view: writes which documents of datasets have certain values. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/options.h"
#include "commands/dataset/dataset_commands.h"
#include "datasets/each.h"
#include "datasets/values.h"
#include "fields/where.h"
#include "system/memory_file.h"
#include "system/output_file.h"
#include "tokmap_loader.h"

enum {
    MOST_VALUES = 10000, /* of --by */
    N_SLOTS = 32768      /* a power of two */
};

typedef struct view_options {
    const char *where, *by, *output;
    bool json, quiet;
} view_options;

/* ---- One view ---- */

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100 * (double)part / (double)whole : 0;
}

static void print_result(const tokmap_dataset *ds, const tokmap_view_info *info,
                         const char *expression, const view_options *o)
{
    const tokmap_dataset_info all = cli_dataset_info(ds);
    if (o->json) {
        json_out json = json_out_begin_result(stdout);
        json_out_string(&json, "path", info->path);
        json_out_string(&json, "where", expression);
        json_out_number(&json, "n_documents", info->n_documents);
        json_out_number(&json, "n_tokens", info->n_tokens);
        json_out_number(&json, "n_runs", info->n_runs);
        json_out_hash(&json, "set_hash", info->set_hash);
        json_out_number(&json, "n_bytes", info->n_bytes);
        puts("}");
    } else if (!o->quiet) {
        cli_print_plain(stdout, info->path, strlen(info->path));
        fputs(": ", stdout);
        cli_print_plain(stdout, expression, strlen(expression));
        printf(": %s (%.2f%%)", cli_count_of(info->n_documents, "document").s,
               percent(info->n_documents, all.n_documents));
        printf(", %s (%.2f%%)", cli_count_of(info->n_tokens, "token").s,
               percent(info->n_tokens, all.n_tokens));
        printf(", %s\n", cli_bytes(info->n_bytes).s);
    }
}

static int write_view(const tokmap_dataset *ds, const char *expression, const view_options *o)
{
    tokmap_error err;
    tokmap_view *view;
    tokmap_view_info info = TOKMAP_INIT(tokmap_view_info);
    const tokmap_view_options to = {
        .struct_size = sizeof to, .where = expression, .path = o->output};
    const tokmap_view_options from = {
        .struct_size = sizeof from, .where = o->output ? NULL : expression, .path = o->output};
    if (tokmap_view_write(ds, &to, NULL, &err) || tokmap_view_open(&view, ds, &from, &err))
        return cli_fail(&err);
    tokmap_view_get_info(view, &info);
    print_result(ds, &info, expression, o);
    tokmap_view_close(view);
    return CLI_OK;
}

/* ---- A view for each value ---- */

/* The different values of a column, in order of their first documents. */
typedef struct value_set {
    const char *name; /* of the column */
    tokmap_value *values;
    uint64_t *documents; /* of each value the first one */
    size_t n;
    uint16_t slots[N_SLOTS]; /* 0, or the number of a value, from 1 on */
} value_set;

static int add_value(value_set *s, const tokmap_value *value, uint64_t document)
{
    size_t at = values_hash(value) % N_SLOTS;
    while (s->slots[at] && !values_is_same(&s->values[s->slots[at] - 1], value))
        at = (at + 1) % N_SLOTS;
    if (s->slots[at])
        return CLI_OK;
    if (s->n == MOST_VALUES)
        return cli_error(CLI_INPUT, "'%s' has more than %d different values", s->name, MOST_VALUES);
    if (!array_grow(&s->values, s->n, sizeof *s->values) ||
        !array_grow(&s->documents, s->n, sizeof *s->documents))
        return cli_no_memory();
    s->documents[s->n] = document;
    s->values[s->n++] = *value;
    s->slots[at] = (uint16_t)s->n;
    return CLI_OK;
}

static int find_values(value_set *s, const tokmap_dataset *ds, const tokmap_column *column)
{
    const tokmap_dataset_info info = cli_dataset_info(ds);
    int code = CLI_OK;
    for (uint64_t d = 0; d < info.n_documents && code == CLI_OK; d++) {
        tokmap_value value;
        if (tokmap_column_get_value(column, d, &value) != TOKMAP_OK)
            return cli_error(CLI_DATASET, "%s: damaged: the values of document %" PRIu64,
                             info.index_path, d);
        if (value.type != TOKMAP_VALUE_NULL)
            code = add_value(s, &value, d);
    }
    return code;
}

/* Makes the expression for the documents that have a value; NULL: out of memory. */
static char *compare_with(const char *name, const tokmap_value *value)
{
    memory_file text;
    FILE *out = memory_file_open(&text);
    if (!out)
        return NULL;
    fprintf(out, "`%s` == ", name);
    if (value->type == TOKMAP_VALUE_INT64)
        fprintf(out, "%" PRId64, value->integer);
    else
        json_text_print_string(out, value->text, value->text_bytes);
    memory_file_close(out, &text);
    return text.text;
}

/* Refuses a value that no expression can name, before a view is written. */
static int check_value(const value_set *s, const tokmap_dataset *ds, size_t i)
{
    const tokmap_value *value = &s->values[i];
    failure why = {0};
    field_list fields = {0};
    const bool is_utf8 =
        value->type != TOKMAP_VALUE_STRING ||
        utf8_valid_prefix((const uint8_t *)value->text, value->text_bytes) == value->text_bytes;
    char *text = compare_with(s->name, value);
    where *compiled = text && is_utf8 ? where_compile(text, &fields, &why) : NULL;
    int code = CLI_OK;
    if (!text || (is_utf8 && !compiled && why.status == ENOMEM))
        code = cli_no_memory();
    else if (!compiled)
        code = cli_error(CLI_INPUT,
                         "%s: '%s' of document %" PRIu64 " %s%s, and no view was written: give the "
                         "documents names in another column",
                         cli_dataset_info(ds).index_path, s->name, s->documents[i],
                         is_utf8 ? "cannot be in an expression: " : "is not UTF-8", why.text);
    where_free(compiled);
    field_list_free(&fields);
    free(text);
    return code;
}

static int write_views_by(const tokmap_dataset *ds, const view_options *o)
{
    tokmap_error err;
    tokmap_column *column = NULL;
    tokmap_meta_column info = TOKMAP_INIT(tokmap_meta_column);
    value_set *set = calloc(1, sizeof *set);
    if (!set)
        return cli_no_memory();
    set->name = o->by;
    int code = strchr(o->by, '`')
                   ? cli_error(CLI_INPUT,
                               "--by: the name '%s' has a backquote, and no expression "
                               "can have it: add the values as a late column (tokmap columns)",
                               o->by)
               : tokmap_column_open(&column, ds, o->by, &err) ? cli_fail(&err)
                                                              : CLI_OK;
    if (code == CLI_OK) {
        tokmap_column_get_info(column, &info);
        code = info.type == TOKMAP_VALUE_FLOAT64
                   ? cli_error(CLI_INPUT,
                               "--by needs a column of integers or strings; '%s' has numbers with "
                               "a point: use --where '%s >= ...'",
                               o->by, o->by)
               : tokmap_column_verify(column, NULL, NULL, &err) ? cli_fail(&err)
                                                                : find_values(set, ds, column);
        for (size_t i = 0; i < set->n && code == CLI_OK; i++)
            code = check_value(set, ds, i);
        for (size_t i = 0; i < set->n && code == CLI_OK; i++) {
            char *expression = compare_with(o->by, &set->values[i]);
            code = expression ? write_view(ds, expression, o) : cli_no_memory();
            free(expression);
        }
        tokmap_column_close(column);
    }
    free(set->values);
    free(set->documents);
    free(set);
    return code;
}

/* ---- Command ---- */

static int check_options(void *command_options, const input_list *names)
{
    const view_options *o = command_options;
    if (!o->where == !o->by)
        return cli_usage("a view needs one of --where and --by");
    if (o->output && (o->by || names->n_names > 1))
        return cli_usage("--output is for one view of one dataset");
    return CLI_OK;
}

static int make_views(void *command_options, const char *name, const tokmap_dataset *ds)
{
    const view_options *o = command_options;
    (void)name;
    return o->by ? write_views_by(ds, o) : write_view(ds, o->where, o);
}

#define TARGET(field) offsetof(view_options, field)
static const cli_option option_table[] = {
    {"where", 0, CLI_TEXT, TARGET(where), "EXPRESSION",
     .help =
         "the documents for which EXPRESSION holds, as in 'tokmap pack --where'; its fields are "
         "columns of P, late or not"},
    {"by", 0, CLI_TEXT, TARGET(by), "NAME",
     .help = "a view for each value of the column NAME, which has integers or strings; documents "
             "without a value are in none"},
    {"output", 'o', CLI_TEXT, TARGET(output), "FILE",
     .help = "the view file, for one P and --where [P.HHHHHHHHHHHHHHHH.tmw, where the Loader finds "
             "it by the expression]"},
    OUTPUT_NO_LOCK_ROW,
    {"json", 0, CLI_FLAG, TARGET(json), .help = "print a JSON object for each view"},
    {"quiet", 'q', CLI_FLAG, TARGET(quiet), .help = "print only errors"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap view [OPTION]... P...",
    .about =
        "Writes which documents of each dataset P are to be used, as a small file beside it: a "
        "view. A Loader over the view gives the rows that a dataset of only these documents would "
        "give, so a new threshold needs no new pack. P may be a pattern such as 'data/*'.\n\nA "
        "Loader makes views of up to 10,000,000 documents itself, when it is opened with the same "
        "expression: Source(\"P\", where=EXPRESSION); more need the file. Where only a path fits, "
        "the path of the file stands for the view.",
    .options = option_table,
    .notes =
        "An existing view file is replaced. An expression with other spaces or brackets leads to "
        "the same file. Another expression for the same documents has a file of its own, but "
        "leads to the same order of training. If a column changes, the expression leads to a new "
        "file; the old one may then be removed.",
    .examples = "  tokmap view data/scored --where 'quality >= 3 and not dup'\n"
                "  tokmap view data/scored --by lang\n",
    .operand = "dataset",
    .n_least = 1,
};

int view_command(int argc, char **argv)
{
    view_options options = {0};
    const each_command command = {
        &manual,           &options, dataset_names_expand, &options.quiet, .check = check_options,
        .work = make_views};
    return each_run(&command, argc, argv);
}
