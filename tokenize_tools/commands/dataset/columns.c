/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c - tokmap columns: adds, lists and removes late columns of a dataset. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "commands/dataset/column_add.h"
#include "commands/dataset/dataset_commands.h"
#include "datasets/datasets.h"
#include "datasets/beside.h"
#include "datasets/values.h"
#include "system/output_file.h"
#include "system/platform.h"

typedef struct columns_options {
    column_add_options add;
    bool json;
} columns_options;

/* ---- list and drop ---- */

static int list_columns(const tokmap_dataset *ds, const columns_options *options)
{
    const tokmap_dataset_info info = cli_dataset_info(ds);
    tokmap_meta_column column = TOKMAP_INIT(tokmap_meta_column);
    input_list late;
    int code = beside_list(ds, BESIDE_COLUMNS, &late);
    for (uint32_t i = 0; tokmap_dataset_get_meta_column(ds, i, &column) == TOKMAP_OK; i++)
        values_print_column(&column, options->json);
    for (size_t i = 0; i < late.n_names; i++)
        code = cli_first_failure(code, values_print_late(ds, late.names[i], options->json));
    if (late.n_names == 0 && info.n_meta_columns == 0 && !options->json && !options->add.quiet)
        cli_warn("%s: has no columns", info.index_path);
    input_list_free(&late);
    return code;
}

static int drop_columns(const tokmap_dataset *ds, char *const *names, size_t n)
{
    const tokmap_dataset_info info = cli_dataset_info(ds);
    input_list late;
    int code = beside_list(ds, BESIDE_COLUMNS, &late);
    for (size_t i = 0; i < n && code == CLI_OK; i++) {
        bool found = false;
        for (size_t k = 0; k < late.n_names; k++)
            found |= strcmp(late.names[k], names[i]) == 0;
        if (!found)
            code =
                cli_error(CLI_INPUT, "%s: there is no late column '%s'", info.index_path, names[i]);
    }
    for (size_t i = 0; i < n && code == CLI_OK; i++)
        code = beside_remove_column(ds, names[i]);
    input_list_free(&late);
    return code;
}

/* ---- Command ---- */

typedef enum action {
    ACTION_ADD,
    ACTION_LIST,
    ACTION_DROP
} action;

static const cli_word actions[] = {{"add", ACTION_ADD, "add the fields of FILE... as late columns"},
                                   {"list", ACTION_LIST, "print the columns, late or not"},
                                   {"drop", ACTION_DROP, "remove the late columns NAME..."},
                                   {NULL}};

static const cli_word *get_actions(void)
{
    return actions;
}

static const cli_word missing_words[] = {
    {"error", 0, "end without a column"}, {"null", 1, "the document has no value"}, {NULL}};

static int add_text_field(void *target, const char *name)
{
    column_add_options *add = &((columns_options *)target)->add;
    if (!array_grow(&add->text_fields, add->n_text_fields, sizeof *add->text_fields))
        return cli_no_memory();
    add->text_fields[add->n_text_fields++] = name;
    return CLI_OK;
}

#define TARGET(field) offsetof(columns_options, field)
static const cli_option option_table[] = {
    {"key", 0, CLI_TEXT, TARGET(add.key), "NAME",
     .help = "for add: a row belongs to the document with the same value of NAME, which P must "
             "have as a column ('tokmap pack --meta NAME') and the files as a field: integers or "
             "strings, each once, in any order [row i belongs to document i]"},
    {"fields", 0, CLI_TEXT, TARGET(add.fields), "FIELD,...",
     .help =
         "for add: only these fields [all fields of the first "
         "file, of JSON lines those of its first row, that are numbers, strings or truth values, "
         "but for the key]"},
    {"meta-text", 0, CLI_CALL, 0, "FIELD",
     .help =
         "for add from CSV and TSV: FIELD is a string, also where all its values are numbers; "
         "may be given several times [numbers, if all values in the first MiB of each file are]",
     .call = add_text_field},
    {"missing", 0, CLI_WORD, TARGET(add.missing_is_null), "WORD",
     .help = "for add with --key: how to handle a document without a row [error]",
     .words = missing_words},
    {"memory", 0, CLI_NUMBER, TARGET(add.memory), "SIZE",
     .help = "for add with --key: the most that a table of the keys may take; it is needed only if "
             "the rows are not in the order of the documents, and takes up to 6 bytes for each "
             "document [1GiB]",
     .lowest = 1},
    {"force", 'f', CLI_FLAG, TARGET(add.force), .help = "for add: replace late columns"},
    OUTPUT_NO_LOCK_ROW,
    {"json", 0, CLI_FLAG, TARGET(json), .help = "for list: print a JSON object for each column"},
    {"quiet", 'q', CLI_FLAG, TARGET(add.quiet), .help = "print only errors"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap columns ACTION [OPTION]... P [FILE | NAME]...",
    .about =
        "Adds values to the documents of a dataset P that is already packed, such as scores or "
        "labels that another program has made: each field becomes a late column, a file "
        "P.NAME.tmc beside P. P itself does not change. Late columns have values for --where of "
        "'tokmap info', 'cat' and 'redact', and for a Dataset in Python.\n\nFILE is Parquet, "
        "Arrow, JSON lines, or CSV or TSV by its name, also compressed; the rows of several files "
        "follow one another. "
        "Without --key, there must be as many rows as documents.",
    .list_title = "Actions",
    .get_list = get_actions,
    .options = option_table,
    .notes = "A column is complete or absent: if a file cannot be read or a row does not fit, no "
             "column is added. Columns belong to one dataset: if P is replaced by other documents, "
             "they are refused. 'tokmap merge' and 'tokmap export' leave them out.",
    .examples = "  tokmap columns add data/train scores.parquet\n"
                "  tokmap columns add data/train topics.jsonl --key id --fields topic\n"
                "  tokmap info data/train --where 'quality >= 3 and topic == \"7\"'\n"
                "  tokmap columns drop data/train quality\n",
    .operand = "dataset",
    .n_least = 2,
};

static int run_action(action a, const tokmap_dataset *ds, char *const *arguments, size_t n,
                      const columns_options *options)
{
    if (a == ACTION_LIST)
        return n > 0 ? cli_usage("list takes only the dataset") : list_columns(ds, options);
    if (n == 0)
        return cli_usage(a == ACTION_ADD ? "add needs a file with the values"
                                         : "drop needs the name of a column");
    if (a == ACTION_DROP)
        return drop_columns(ds, arguments, n);
    if (options->add.missing_is_null && !options->add.key)
        return cli_usage("--missing works only with --key");
    return column_add(ds, arguments, n, &options->add);
}

int columns_command(int argc, char **argv)
{
    columns_options options = {.add.memory = UINT64_C(1) << 30};
    tokmap_dataset *ds;
    tokmap_error err;
    int code = cli_parse_options(&manual, argc, argv, &options);
    if (code != CLI_GO_ON)
        return code;
    const cli_word *word = cli_find_word(actions, argv[optind]);
    const char *path = argv[optind + 1];
    if (!word)
        return cli_refuse_word("action", argv[optind], actions);
    if (tokmap_dataset_open(&ds, path, &err) != TOKMAP_OK)
        return report_open_failure(path, &err);
    code = run_action((action)word->value, ds, argv + optind + 2, (size_t)(argc - optind - 2),
                      &options);
    tokmap_dataset_close(ds);
    free(options.add.text_fields);
    return cli_first_failure(code, cli_finish());
}
