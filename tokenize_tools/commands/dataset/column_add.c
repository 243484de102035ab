/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/dataset/column_add.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/cli.h"
#include "datasets/values.h"
#include "corpus/open_input.h"
#include "fields/field_list.h"
#include "request/inputs.h"
#include "system/files.h"
#include "tokmap_writer.h"

/* The documents by their keys. The keys themselves are in the dataset. */
typedef struct key_table {
    uint32_t *slots; /* document + 1; 0: free. NULL: the keys have come in the order of P so far */
    uint64_t n_slots, n_bytes;
    uint8_t *has_row; /* a bit for each document */
} key_table;

typedef struct add_job {
    const tokmap_dataset *ds;
    tokmap_dataset_info info;
    const column_add_options *options;
    field_list fields; /* with a key: it comes first */
    size_t n_keys;     /* 0 or 1 */
    tokmap_column_writer *writers[FIELD_LIST_MAX];
    tokmap_column *key;
    key_table table;
    uint64_t text_fields; /* bits of those that are strings in some CSV or TSV */
    uint64_t n_rows;
    uint64_t next; /* the document after the last one that got a row */
    /* For each field: the first file without a value for it, and whether a file has one. */
    char *missing[FIELD_LIST_MAX];
    bool is_found[FIELD_LIST_MAX];

    reader *reader; /* of the current file */
    bool is_missing[FIELD_LIST_MAX];
    document row;
} add_job;

/* Describes the place of the row for a message. */
typedef struct place_text {
    char s[320];
} place_text;
static place_text place_of(const add_job *job)
{
    const reader_place at = {.offset = job->row.offset, .line = job->row.line};
    place_text t;
    reader_describe(job->reader, at, at.offset, t.s, sizeof t.s);
    return t;
}

/* ---- Keys ---- */

/* Describes a key for a message. */
static cli_text describe_key(const tokmap_value *v)
{
    cli_text t;
    if (v->type == TOKMAP_VALUE_INT64)
        snprintf(t.s, sizeof t.s, "%" PRId64, v->integer);
    else
        snprintf(t.s, sizeof t.s, "'%.*s'", (int)(v->text_bytes < 40 ? v->text_bytes : 40),
                 v->text);
    return t;
}

static int get_key(const add_job *job, uint64_t number, tokmap_value *v)
{
    return tokmap_column_get_value(job->key, number, v) == TOKMAP_OK
               ? CLI_OK
               : cli_error(CLI_DATASET, "%s: damaged: the values of document %" PRIu64,
                           job->info.index_path, number);
}

/* Finds the slot of a key: free, or with its document. */
static int find_slot(const add_job *job, const tokmap_value *key, uint32_t **slot)
{
    const key_table *t = &job->table;
    int code = CLI_OK;
    uint64_t at = values_hash(key) % t->n_slots;
    for (;; at = at + 1 < t->n_slots ? at + 1 : 0) {
        tokmap_value other;
        *slot = &t->slots[at];
        if (**slot == 0)
            return CLI_OK;
        code = get_key(job, **slot - 1, &other);
        if (code != CLI_OK || values_is_same(key, &other))
            return code;
    }
}

static int fill_table(add_job *job)
{
    int code = CLI_OK;
    for (uint64_t d = 0; d < job->info.n_documents && code == CLI_OK; d++) {
        tokmap_value key;
        uint32_t *slot;
        code = get_key(job, d, &key);
        if (code != CLI_OK || key.type == TOKMAP_VALUE_NULL)
            continue;
        code = find_slot(job, &key, &slot);
        if (code == CLI_OK && *slot != 0)
            code = cli_error(CLI_DATASET,
                             "%s: documents %" PRIu32 " and %" PRIu64 " have the same key: %s",
                             job->info.index_path, *slot - 1, d, describe_key(&key).s);
        else if (code == CLI_OK)
            *slot = (uint32_t)(d + 1);
    }
    return code;
}

/* Makes the table when a key is not that of the next document. */
static int make_table(add_job *job)
{
    key_table *t = &job->table;
    const uint64_t n = job->info.n_documents;
    if (n >= UINT32_MAX)
        return cli_error(CLI_INPUT,
                         "%s: has more than 2^32 documents, and the rows do not have their order: "
                         "add the columns to its cells, one by one",
                         job->info.index_path);
    t->n_slots = n + n / 3 + 1;
    t->n_bytes = t->n_slots * sizeof *t->slots + n / 8 + 1;
    if (t->n_bytes > job->options->memory)
        return cli_error(CLI_INPUT,
                         "%s: the rows are not in the order of the documents, and a table of the "
                         "keys takes %s: raise --memory, or add the columns cell by cell",
                         job->info.index_path, cli_bytes(t->n_bytes).s);
    if (!job->options->quiet)
        cli_warn("the rows are not in the order of the documents: a table of the keys takes %s",
                 cli_bytes(t->n_bytes).s);
    t->slots = calloc(t->n_slots, sizeof *t->slots);
    t->has_row = calloc(n / 8 + 1, 1);
    if (!t->slots || !t->has_row)
        return cli_no_memory();
    for (uint64_t d = 0; d < job->next; d++)
        t->has_row[d / 8] |= (uint8_t)(1 << d % 8);
    return fill_table(job);
}

/* Finds the document of a key. */
static int find_document(add_job *job, const tokmap_value *key, uint64_t *number)
{
    key_table *t = &job->table;
    tokmap_value next = {.type = TOKMAP_VALUE_NULL};
    uint32_t *slot;
    if (key->type != TOKMAP_VALUE_INT64 && key->type != TOKMAP_VALUE_STRING)
        return cli_error(CLI_INPUT, "%s: '%s' is %s, and must be an integer or a string",
                         place_of(job).s, job->options->key,
                         key->type == TOKMAP_VALUE_NULL ? "missing" : "not a whole number");
    int code = job->next < job->info.n_documents ? get_key(job, job->next, &next) : CLI_OK;
    *number = job->next;
    if (code == CLI_OK && !t->slots && values_is_same(key, &next))
        return CLI_OK;
    if (code == CLI_OK && !t->slots)
        code = make_table(job);
    if (code != CLI_OK || !t->slots)
        return code;
    code = find_slot(job, key, &slot);
    if (code != CLI_OK)
        return code;
    if (*slot == 0)
        return cli_error(CLI_INPUT, "%s: %s has no document whose '%s' is %s", place_of(job).s,
                         job->info.index_path, job->options->key, describe_key(key).s);
    *number = *slot - 1;
    if (t->has_row[*number / 8] >> *number % 8 & 1)
        return cli_error(CLI_INPUT, "%s: a second row whose '%s' is %s", place_of(job).s,
                         job->options->key, describe_key(key).s);
    t->has_row[*number / 8] |= (uint8_t)(1 << *number % 8);
    return CLI_OK;
}

/* ---- Rows ---- */

static int put_row(add_job *job, const tokmap_value *values)
{
    uint64_t number = job->n_rows;
    tokmap_error err;
    int code = job->key ? find_document(job, &values[0], &number) : CLI_OK;
    if (code == CLI_OK && number >= job->info.n_documents)
        code = cli_error(CLI_INPUT, "%s: more rows than %s has documents: %" PRIu64,
                         place_of(job).s, job->info.index_path, job->info.n_documents);
    for (size_t i = job->n_keys; code == CLI_OK && i < job->fields.n_fields; i++) {
        if (!number_is_storable(&values[i]))
            return cli_error(CLI_INPUT,
                             "%s: the number in '%s' is neither a signed integer of 64 bits nor "
                             "exactly a float64%s%s%s",
                             place_of(job).s, job->fields.names[i],
                             reader_is_table(job->reader) ? "; --meta-text " : "",
                             reader_is_table(job->reader) ? job->fields.names[i] : "",
                             reader_is_table(job->reader) ? " keeps them as strings" : "");
        if (tokmap_column_writer_put(job->writers[i], number, &values[i], 1, &err) != TOKMAP_OK)
            code = cli_error(cli_exit_code(&err) == CLI_USAGE ? CLI_INPUT : cli_exit_code(&err),
                             "%s: %s", place_of(job).s, err.text);
    }
    job->n_rows++;
    job->next = number + 1;
    return code;
}

static void note_field(void *context, const char *text)
{
    const add_job *job = context;
    if (!job->options->quiet)
        cli_warn("%s", text);
}

/* Keeps that the file has no value for a field. */
static void note_missing(void *context, size_t field, const char *text)
{
    add_job *job = context;
    job->is_missing[field] = true;
    if (!job->missing[field])
        job->missing[field] = strdup(text);
}

static reader_options options_of(add_job *job, const field_list *fields)
{
    const column_add_options *o = job->options;
    uint64_t text_fields = job->text_fields;
    for (size_t i = 0; fields && i < o->n_text_fields; i++) {
        const size_t at = field_list_find(fields, o->text_fields[i], strlen(o->text_fields[i]));
        text_fields |= at < fields->n_fields ? (uint64_t)1 << at : 0;
    }
    return reader_options_complete(
        &(reader_options){.fields_only = true,
                          .fields = fields,
                          .may_lack = fields ? field_list_bits(fields) & ~(uint64_t)job->n_keys : 0,
                          .text_fields = text_fields,
                          .report = job->options->quiet ? NULL : pack_print_note,
                          .note = note_field,
                          .missing = note_missing,
                          .context = job});
}

/* Refuses a field for which no file has a value: it is probably misspelt. */
static int check_fields(const add_job *job)
{
    int code = CLI_OK;
    for (size_t i = 0; i < job->fields.n_fields && code == CLI_OK; i++) {
        if (job->missing[i] && !job->is_found[i])
            code = cli_error(CLI_INPUT, "%s", job->missing[i]);
        else if (job->missing[i])
            note_field((void *)job, job->missing[i]);
    }
    return code;
}

/* Finds which columns are strings, if the files are CSV or TSV: a column has one type in all of
 * them. What cannot be read is told when the rows are read. */
static void find_text_fields(add_job *job, char *const *files, size_t n_files)
{
    uint64_t found = 0;
    bool is_other = false; /* the last one has another format */
    for (size_t i = 0; i < n_files && !is_other; i++) {
        file_facts facts;
        const input_source source = {.path = files[i]};
        reader_options options = options_of(job, &job->fields);
        reader_summary summary = {0};
        field_list names = {0};
        failure err;
        if (file_describe(files[i], &facts) != 0 || facts.kind != FILE_REGULAR)
            continue;          /* a pipe can be read only once */
        options.report = NULL; /* what there is to report comes with the rows */
        reader *r = reader_open(&source, &options, -1, &err);
        if (r && reader_list_fields(r, &names, &err) && reader_is_table(r))
            reader_summarize(r, &summary);
        is_other = r && reader_format(r) != CORPUS_AUTO && !reader_is_table(r);
        found |= summary.text_fields;
        field_list_free(&names);
        reader_close(r);
    }
    job->text_fields = found;
}

static int read_rows(add_job *job, const char *path)
{
    const reader_options options = options_of(job, &job->fields);
    const input_source source = {.path = path};
    failure err;
    reader_result result = READER_FAILED;
    int code = CLI_OK;
    const uint64_t first = job->n_rows;
    memset(job->is_missing, 0, sizeof job->is_missing);
    job->reader = reader_open(&source, &options, -1, &err);
    while (job->reader && code == CLI_OK &&
           (result = reader_next(job->reader, &job->row, &err)) > READER_END)
        code = result == READER_BAD
                   ? cli_error(CLI_INPUT, "%s: %s", place_of(job).s, job->row.reason)
                   : put_row(job, job->row.values);
    if (code == CLI_OK && result == READER_FAILED)
        code = cli_print_failure(&err);
    if (code == CLI_OK)
        reader_note_fields(job->reader);
    for (size_t i = 0; i < job->fields.n_fields && job->n_rows > first; i++)
        job->is_found[i] |= !job->is_missing[i];
    reader_close(job->reader);
    return code;
}

/* ---- Before and after ---- */

/* Lists the fields: the key first, then those of --fields, or all that the first file has. */
static int choose_fields(add_job *job, const char *path)
{
    const column_add_options *o = job->options;
    field_list found = {0};
    const reader_options options = options_of(job, NULL);
    const input_source source = {.path = path};
    size_t index;
    failure err;
    bool ok = !o->key || field_list_add(&job->fields, o->key, strlen(o->key), &index, &err);
    job->n_keys = job->fields.n_fields;
    if (ok && o->fields && !field_list_parse(&found, o->fields, &err))
        return cli_refuse_text("--fields", &err);
    if (ok && !o->fields && strcmp(path, "-") == 0)
        return cli_usage("name the fields of stdin with --fields");
    reader *r = ok && !o->fields ? reader_open(&source, &options, -1, &err) : NULL;
    ok = ok && (o->fields || (r && reader_list_fields(r, &found, &err)));
    for (size_t i = 0; ok && i < found.n_fields; i++)
        ok = field_list_add(&job->fields, found.names[i], strlen(found.names[i]), &index, &err);
    reader_close(r);
    field_list_free(&found);
    if (!ok)
        return cli_print_failure(&err);
    for (size_t i = 0; i < o->n_text_fields; i++) {
        const char *name = o->text_fields[i];
        if (field_list_find(&job->fields, name, strlen(name)) == job->fields.n_fields)
            return cli_usage("--meta-text %s: is neither the key nor a field that is read", name);
    }
    return job->fields.n_fields > job->n_keys
               ? CLI_OK
               : cli_error(CLI_INPUT, "%s: has no fields with numbers or strings", path);
}

static int open_key(add_job *job)
{
    tokmap_meta_column info = TOKMAP_INIT(tokmap_meta_column);
    tokmap_error err;
    if (!job->options->key)
        return CLI_OK;
    if (tokmap_column_open(&job->key, job->ds, job->options->key, &err) != TOKMAP_OK)
        return cli_error(CLI_INPUT, "%s (--key)", err.text);
    if (tokmap_column_verify(job->key, NULL, NULL, &err) != TOKMAP_OK)
        return cli_fail(&err);
    tokmap_column_get_info(job->key, &info);
    return info.type == TOKMAP_VALUE_INT64 || info.type == TOKMAP_VALUE_STRING
               ? CLI_OK
               : cli_error(CLI_INPUT, "%s: its '%s' is %s, and a key must be int64 or string",
                           job->info.index_path, job->options->key, values_type_name(info.type));
}

static int open_writers(add_job *job)
{
    tokmap_error err;
    for (size_t i = job->n_keys; i < job->fields.n_fields; i++) {
        const tokmap_column_options options = {.struct_size = sizeof options,
                                               .name = job->fields.names[i],
                                               .replace = job->options->force};
        const tokmap_status status =
            tokmap_column_writer_open(&job->writers[i], job->ds, &options, &err);
        if (status == TOKMAP_ERR_ARGUMENT)
            return cli_error(CLI_INPUT, "%s; choose others with --fields", err.text);
        if (status != TOKMAP_OK)
            return status == TOKMAP_ERR_EXISTS && !job->options->force
                       ? cli_error(CLI_EXISTS, "%s; --force replaces late columns", err.text)
                       : cli_fail(&err);
    }
    return CLI_OK;
}

/* Whether each document got a row. */
static int check_count(const add_job *job)
{
    const uint64_t n = job->info.n_documents, n_missing = n - job->n_rows;
    uint64_t first = job->n_rows;
    for (uint64_t d = 0; job->table.has_row && d < n; d++) {
        first = d;
        if (!(job->table.has_row[d / 8] >> d % 8 & 1))
            break;
    }
    if (n_missing == 0 || (job->key && job->options->missing_is_null))
        return CLI_OK;
    if (!job->key)
        return cli_error(CLI_INPUT,
                         "%s: there are %" PRIu64 " rows for %" PRIu64
                         " documents; with --key, rows find their documents by a value",
                         job->info.index_path, job->n_rows, n);
    return cli_error(CLI_INPUT,
                     "%s: %s without a row, the first is number %" PRIu64
                     "; --missing null allows that",
                     job->info.index_path, cli_count_of(n_missing, "document").s, first);
}

static int finish_columns(add_job *job)
{
    tokmap_error err;
    for (size_t i = job->n_keys; i < job->fields.n_fields; i++)
        if (tokmap_column_writer_finish(job->writers[i], &err) != TOKMAP_OK)
            return cli_fail(&err);
    return CLI_OK;
}

int column_add(const tokmap_dataset *ds, char *const *files, size_t n_files,
               const column_add_options *options)
{
    add_job *job = calloc(1, sizeof *job);
    if (!job)
        return cli_no_memory();
    job->ds = ds;
    job->info = cli_dataset_info(ds);
    job->options = options;
    int code = open_key(job);
    if (code == CLI_OK)
        code = choose_fields(job, files[0]);
    if (code == CLI_OK)
        code = open_writers(job);
    if (code == CLI_OK && n_files > 1)
        find_text_fields(job, files, n_files);
    for (size_t i = 0; i < n_files && code == CLI_OK; i++)
        code = read_rows(job, files[i]);
    if (code == CLI_OK)
        code = check_fields(job);
    if (code == CLI_OK)
        code = check_count(job);
    if (code == CLI_OK)
        code = finish_columns(job);
    for (size_t i = job->n_keys; code == CLI_OK && i < job->fields.n_fields; i++)
        code = options->quiet ? CLI_OK : values_print_late(ds, job->fields.names[i], false);
    for (size_t i = 0; i < FIELD_LIST_MAX; i++) {
        tokmap_column_writer_close(job->writers[i]);
        free(job->missing[i]);
    }
    tokmap_column_close(job->key);
    field_list_free(&job->fields);
    free(job->table.slots);
    free(job->table.has_row);
    free(job);
    return code;
}
