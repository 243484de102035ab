/* SPDX-License-Identifier: Apache-2.0 */
#include "request/tables.h"

#include "cli/cli.h"
#include "formats/format.h"

void table_columns_add(table_columns *t, const char *name, corpus_format format,
                       const reader_summary *summary)
{
    if (summary->header == 0) {
        t->n_others += format != CORPUS_AUTO && format != CORPUS_CSV && format != CORPUS_TSV;
        return;
    }
    if (t->n++ == 0) {
        t->first = name;
        t->header = summary->header;
    }
    if (summary->header != t->header && !t->other)
        t->other = name;
    for (size_t i = 0; i < FIELD_LIST_MAX; i++)
        if ((summary->text_fields & ~t->text_fields) >> i & 1)
            t->text_in[i] = name;
    t->text_fields |= summary->text_fields;
    t->number_fields |= summary->number_fields;
}

/* Refuses names of columns that differ. */
static int check_names(const table_columns *t)
{
    return t->other ? cli_error(CLI_INPUT,
                                "%s: its columns are not those of %s; all CSV and TSV inputs of a "
                                "run must have the same names of columns, in any order",
                                t->other, t->first)
                    : CLI_OK;
}

/* Compares --where with the types of the columns, as the readers of other formats do. */
static int check_where(const table_columns *t, const pack_options *options)
{
    const reader_options o = pack_reader_options(options);
    tokmap_value_type types[FIELD_LIST_MAX];
    failure err;
    for (size_t i = 0; o.fields && i < o.fields->n_fields; i++) {
        const uint64_t bit = (uint64_t)1 << i;
        types[i] = o.text_fields & bit      ? TOKMAP_VALUE_STRING
                   : t->number_fields & bit ? TOKMAP_VALUE_INT64
                                            : TOKMAP_VALUE_NULL;
    }
    return reader_check_where(&o, types, &err) ? CLI_OK
                                               : cli_error(CLI_INPUT, "%s: %s", t->first, err.text);
}

int table_columns_check_again(const table_columns *t, const pack_options *options)
{
    const uint64_t strings = t->text_fields & ~pack_reader_options(options).text_fields;
    int code = check_names(t);
    for (size_t i = 0; code == CLI_OK && i < options->fields.n_fields; i++)
        if (strings >> i & 1)
            code = cli_error(CLI_INPUT,
                             "%s: the column \"%.200s\" has values that are not numbers, and was "
                             "one of numbers when the plan was made; make a new plan",
                             t->text_in[i], options->fields.names[i]);
    return code;
}

int table_columns_settle(const table_columns *t, bool all_seen, pack_options *options)
{
    const uint64_t given = pack_reader_options(options).text_fields;
    int code = check_names(t);
    if (t->n == 0 && t->n_others > 0 && all_seen && (options->input.columns || given))
        return cli_usage("%s: no input is CSV or TSV",
                         options->input.columns ? "--columns" : "--meta-text");
    if (t->n == 0) /* what is read only once is looked at by its reader */
        return CLI_OK;
    for (size_t i = 0; code == CLI_OK && i < options->fields.n_fields; i++) {
        const char *name = options->fields.names[i];
        if (((t->text_fields & ~given) >> i & 1) && !pack_options_add_text(options, name))
            code = cli_no_memory();
    }
    options->types_known = true;
    return code == CLI_OK ? check_where(t, options) : code;
}
