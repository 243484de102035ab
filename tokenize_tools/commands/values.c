/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/values.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/real.h"
#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/paths.h"
#include "system/files.h"
#include "system/output_file.h"
#include "tokmap_loader.h"

enum {
    REDACTED_DIGITS = 16 /* in the name of a file of redacted tokens */
};

bool values_find_column(const tokmap_dataset *ds, const char *name, size_t name_bytes,
                        tokmap_meta_column *column)
{
    bool found = false;
    *column = (tokmap_meta_column)TOKMAP_INIT(tokmap_meta_column);
    for (uint32_t i = 0; !found && tokmap_dataset_get_meta_column(ds, i, column) == TOKMAP_OK; i++)
        found = column->name_bytes == name_bytes && memcmp(column->name, name, name_bytes) == 0;
    return found;
}

const char *values_type_name(tokmap_value_type type)
{
    static const char *const names[] = {"null", "int64", "float64", "string"};
    return names[type];
}

/* ---- Files beside datasets ---- */

/* The names in a folder that may be files beside a dataset. Kept for the next dataset, which is
 * often in the same folder, so what this command has written may be missing. */
static struct {
    path_text folder;
    input_list names;
    int code; /* not CLI_OK: the folder could not be listed */
} listed;

static bool see_name(void *context, const char *name)
{
    static const char *const suffixes[] = {VALUES_COLUMNS, VALUES_VIEWS, VALUES_REDACTED};
    failure *err = context;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (path_ends_with(name, suffixes[i]))
            return input_list_append(&listed.names, strdup(name), err);
    return true;
}

/* Lists the names of the dataset's folder, unless it is the one that was listed last. */
static int list_folder(const char *index_path)
{
    const path_text folder = path_beside(index_path, ".");
    failure err = {0};
    if (strcmp(folder.s, listed.folder.s) == 0)
        return listed.code;
    input_list_free(&listed.names);
    listed.names = (input_list){0};
    listed.folder = folder;
    const int sys_errno = file_list_folder(folder.s, see_name, &err);
    listed.code = sys_errno   ? cli_fail_errno(index_path, "list the files beside it", sys_errno)
                  : *err.text ? cli_print_failure(&err)
                              : CLI_OK;
    return listed.code;
}

/* Whether a late column may have this name (docs/FORMAT.md, section 14). */
static bool is_column_name(const char *name, size_t n_bytes)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    return n_bytes <= 64 && strspn(name, allowed) >= n_bytes;
}

/* Says once that a file is not a late column, and forgets its name. */
static void ignore_name(const char *index_path, char *name)
{
    cli_warn(
        "%s: ignored: it is not a late column, whose name has 1 to 64 letters, digits, _ and -. "
        "It may contain values of documents",
        path_beside(index_path, name).s);
    *name = '\0';
}

int values_list_beside(const tokmap_dataset *ds, const char *suffix, input_list *found)
{
    failure err;
    const tokmap_dataset_info info = cli_dataset_info(ds);
    const path_text begin = path_of(path_prefix(path_last_part(info.index_path)).s, ".");
    const size_t n_begin = strlen(begin.s), n_end = strlen(suffix);
    int code = list_folder(info.index_path);
    *found = (input_list){0};
    for (size_t i = 0; code == CLI_OK && i < listed.names.n_names; i++) {
        const char *name = listed.names.names[i];
        const size_t n = strlen(name);
        if (n <= n_begin + n_end || strncmp(name, begin.s, n_begin) != 0 ||
            !path_ends_with(name, suffix) || memchr(name + n_begin, '.', n - n_begin - n_end))
            continue;
        if (strcmp(suffix, VALUES_COLUMNS) == 0 &&
            !is_column_name(name + n_begin, n - n_begin - n_end))
            ignore_name(info.index_path, listed.names.names[i]);
        else if (!input_list_append(found, strndup(name + n_begin, n - n_begin - n_end), &err))
            code = cli_print_failure(&err);
    }
    input_list_sort(found, 0);
    return code;
}

path_text values_path_beside(const tokmap_dataset *ds, const char *name, const char *suffix)
{
    return path_of(path_of(path_prefix(cli_dataset_info(ds).index_path).s, ".").s,
                   path_of(name, suffix).s);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void values_report_unused(const tokmap_dataset *ds)
{
    const tokmap_dataset_info info = cli_dataset_info(ds);
    const path_text begin = path_of(path_prefix(path_last_part(info.index_path)).s, ".");
    const size_t n_begin = strlen(begin.s);
    input_list names;
    values_list_beside(ds, VALUES_REDACTED, &names);
    bool *is_used = calloc(names.n_names + 1, sizeof *is_used);
    if (names.n_names > 0)
        qsort(names.names, names.n_names, sizeof *names.names, compare_names);
    for (uint64_t i = 0; is_used && names.n_names > 0 && i < info.n_segments; i++) {
        tokmap_segment_info segment = TOKMAP_INIT(tokmap_segment_info);
        char key[REDACTED_DIGITS + 1] = "";
        const char *const wanted = key;
        tokmap_dataset_get_segment(ds, i, &segment);
        if (segment.path_bytes == n_begin + REDACTED_DIGITS + strlen(VALUES_REDACTED) &&
            memcmp(segment.path, begin.s, n_begin) == 0)
            memcpy(key, segment.path + n_begin, REDACTED_DIGITS);
        char **found =
            bsearch(&wanted, names.names, names.n_names, sizeof *names.names, compare_names);
        is_used[found ? found - names.names : (ptrdiff_t)names.n_names] = true;
    }
    for (size_t i = 0; is_used && i < names.n_names; i++) {
        const path_text path = values_path_beside(ds, names.names[i], VALUES_REDACTED);
        if (!is_used[i] && strlen(names.names[i]) == REDACTED_DIGITS && file_name_exists(path.s))
            cli_warn("%s: is not used by %s: an earlier or failed 'tokmap redact' wrote it, and it "
                     "may contain the tokens of documents that were redacted since. Remove it, "
                     "unless another dataset uses it (tokmap info --segments)",
                     path.s, info.index_path);
    }
    free(is_used);
    input_list_free(&names);
}

/* ---- Late columns and views ---- */

static tokmap_status check_one(const tokmap_dataset *ds, const char *name, const char *suffix,
                               bool verify, tokmap_error *err)
{
    const bool is_view = strcmp(suffix, VALUES_VIEWS) == 0;
    const path_text path = values_path_beside(ds, name, suffix);
    const tokmap_view_options o = {.struct_size = sizeof o, .path = path.s};
    tokmap_column *column = NULL;
    tokmap_view *view = NULL;
    tokmap_status status =
        is_view ? tokmap_view_open(&view, ds, &o, err) : tokmap_column_open(&column, ds, name, err);
    if (status == TOKMAP_OK && verify)
        status = is_view ? tokmap_view_verify(view, err) : tokmap_column_verify(column, err);
    tokmap_column_close(column);
    tokmap_view_close(view);
    return status;
}

int values_check_beside(const tokmap_dataset *ds, const char *suffix, bool verify)
{
    input_list names;
    int code = values_list_beside(ds, suffix, &names);
    for (size_t i = 0; i < names.n_names; i++) {
        tokmap_error err;
        if (check_one(ds, names.names[i], suffix, verify, &err) != TOKMAP_OK)
            code = cli_first_failure(code, cli_fail(&err));
    }
    input_list_free(&names);
    return code;
}

int values_remove_late(const tokmap_dataset *ds, const char *name)
{
    return output_remove(values_path_beside(ds, name, VALUES_COLUMNS).s);
}

void values_print_column(const tokmap_meta_column *c, bool json)
{
    if (json) {
        json_out o = json_out_begin_result(stdout);
        json_out_text(&o, "name", c->name, c->name_bytes);
        json_out_string(&o, "type", values_type_name(c->type));
        json_out_number(&o, "n_nulls", c->n_nulls);
        json_out_known(&o, "n_distinct", c->n_strings, c->code_bytes != 0);
        json_out_string(&o, "file", c->path);
        puts("}");
        return;
    }
    cli_print_plain(stdout, c->name, c->name_bytes);
    printf(": %s", values_type_name(c->type));
    if (c->number_bytes)
        printf(" of %" PRIu32 " %s", c->number_bytes, c->number_bytes == 1 ? "byte" : "bytes");
    if (c->code_bytes)
        printf(", %s different", cli_count(c->n_strings).s);
    if (c->n_nulls)
        printf(", missing in %s", cli_count_of(c->n_nulls, "document").s);
    fputs(", ", stdout);
    cli_print_plain(stdout, c->path ? c->path : "in the index",
                    strlen(c->path ? c->path : "in the index"));
    putchar('\n');
}

int values_print_late(const tokmap_dataset *ds, const char *name, bool json)
{
    tokmap_meta_column info = TOKMAP_INIT(tokmap_meta_column);
    tokmap_column *column;
    tokmap_error err;
    if (tokmap_column_open(&column, ds, name, &err) != TOKMAP_OK)
        return cli_fail(&err);
    tokmap_column_get_info(column, &info);
    values_print_column(&info, json);
    tokmap_column_close(column);
    return CLI_OK;
}

void values_note_late(const tokmap_dataset *ds, bool quiet)
{
    input_list names;
    if (quiet)
        return;
    values_list_beside(ds, VALUES_COLUMNS, &names);
    if (names.n_names > 0)
        cli_warn("%s: its late columns (%s%s) are not in the output",
                 cli_dataset_info(ds).index_path, names.names[0],
                 names.n_names > 1 ? " and others" : "");
    input_list_free(&names);
}

void values_advise_again(const char *dataset)
{
    cli_warn("%s: is complete, but not all files beside it: mend that, and run the command again "
             "with --force",
             dataset);
}

void values_report_replaced(const char *dataset)
{
    static const char *const suffixes[] = {VALUES_COLUMNS, VALUES_VIEWS};
    tokmap_dataset *ds;
    tokmap_error err;
    if (tokmap_dataset_open_index(&ds, dataset, &err) != TOKMAP_OK)
        return;
    for (int k = 0; k < 2; k++) {
        input_list names;
        values_list_beside(ds, suffixes[k], &names);
        for (size_t i = 0; i < names.n_names; i++)
            if (check_one(ds, names.names[i], suffixes[k], false, &err) == TOKMAP_ERR_MISMATCH)
                cli_warn("%s: is of the dataset that was replaced: remove it",
                         values_path_beside(ds, names.names[i], suffixes[k]).s);
        input_list_free(&names);
    }
    tokmap_dataset_close(ds);
}

/* ---- All columns ---- */

static int open_column(value_columns *v, const tokmap_dataset *ds, const char *name, bool verify)
{
    tokmap_error err;
    if (!array_grow(&v->columns, v->n, sizeof *v->columns) ||
        !array_grow(&v->info, v->n, sizeof *v->info))
        return cli_no_memory();
    if (tokmap_column_open(&v->columns[v->n], ds, name, &err) != TOKMAP_OK)
        return cli_fail(&err);
    if (verify && tokmap_column_verify(v->columns[v->n], &err) != TOKMAP_OK) {
        tokmap_column_close(v->columns[v->n]);
        return cli_fail(&err);
    }
    v->info[v->n] = (tokmap_meta_column)TOKMAP_INIT(tokmap_meta_column);
    tokmap_column_get_info(v->columns[v->n], &v->info[v->n]);
    v->n++;
    return CLI_OK;
}

int values_open_all(value_columns *v, const tokmap_dataset *ds, bool verify)
{
    tokmap_meta_column column = TOKMAP_INIT(tokmap_meta_column);
    input_list late;
    int code = values_list_beside(ds, VALUES_COLUMNS, &late);
    for (uint32_t i = 0;
         code == CLI_OK && tokmap_dataset_get_meta_column(ds, i, &column) == TOKMAP_OK; i++) {
        char *name = strndup(column.name, column.name_bytes);
        code = name ? open_column(v, ds, name, verify) : cli_no_memory();
        free(name);
    }
    for (size_t i = 0; code == CLI_OK && i < late.n_names; i++)
        code = open_column(v, ds, late.names[i], verify);
    input_list_free(&late);
    return code;
}

void values_close_all(value_columns *v)
{
    for (size_t i = 0; i < v->n; i++)
        tokmap_column_close(v->columns[i]);
    free(v->columns);
    free(v->info);
    *v = (value_columns){0};
}

/* ---- As keys ---- */

bool values_is_same(const tokmap_value *a, const tokmap_value *b)
{
    if (a->type != b->type)
        return false;
    return a->type == TOKMAP_VALUE_INT64
               ? a->integer == b->integer
               : a->type == TOKMAP_VALUE_STRING && a->text_bytes == b->text_bytes &&
                     memcmp(a->text, b->text, a->text_bytes) == 0;
}

uint64_t values_hash(const tokmap_value *v)
{
    return v->type == TOKMAP_VALUE_INT64 ? tokmap_i_checksum(&v->integer, sizeof v->integer)
                                         : tokmap_i_checksum(v->text, v->text_bytes);
}

/* ---- As text ---- */

/* Prints a float with the fewest digits that are read back as the same number, and with a point, so
 * that it stays a float. */
static void print_real(FILE *out, double value)
{
    char digits[REAL_BYTES];
    if (isnan(value) || isinf(value)) {
        fputs(isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"", out);
        return;
    }
    real_write(digits, value);
    fprintf(out, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
}

bool values_print_row(FILE *out, const value_columns *v, uint64_t document)
{
    for (size_t i = 0; i < v->n; i++) {
        tokmap_value value;
        if (tokmap_column_get_value(v->columns[i], document, &value) != TOKMAP_OK)
            return false;
        fputs(i ? ", " : "{", out);
        json_text_print_string(out, v->info[i].name, v->info[i].name_bytes);
        fputs(": ", out);
        switch (value.type) {
        case TOKMAP_VALUE_INT64:
            fprintf(out, "%" PRId64, value.integer);
            break;
        case TOKMAP_VALUE_FLOAT64:
            print_real(out, value.real);
            break;
        case TOKMAP_VALUE_STRING:
            json_text_print_string(out, value.text, value.text_bytes);
            break;
        case TOKMAP_VALUE_NULL:
            fputs("null", out);
            break;
        }
    }
    putc('}', out);
    return true;
}

/* ---- Copies ---- */

int values_copy(const tokmap_column *from, tokmap_column_writer *to, uint64_t first,
                uint64_t n_documents, const uint64_t *null, uint64_t n_null)
{
    enum {
        MOST = 256
    };
    tokmap_value values[MOST];
    tokmap_error err;
    for (uint64_t d = 0; d < n_documents;) {
        uint64_t n = 0;
        for (; n < MOST && d + n < n_documents; n++) {
            const bool is_null = n_null > 0 && *null == d + n;
            values[n] = (tokmap_value){.type = TOKMAP_VALUE_NULL};
            if (!is_null && tokmap_column_get_value(from, d + n, &values[n]) != TOKMAP_OK)
                return cli_error(CLI_DATASET, "a late column is damaged in document %" PRIu64,
                                 d + n);
            null += is_null;
            n_null -= is_null;
        }
        if (tokmap_column_writer_put(to, first + d, values, n, &err) != TOKMAP_OK)
            return cli_fail(&err);
        d += n;
    }
    return CLI_OK;
}

/* ---- Expressions ---- */

static tokmap_status keep(void *context, uint64_t first, uint32_t n, const uint64_t *kept,
                          tokmap_error *err)
{
    uint64_t *all = context;
    (void)err;
    memcpy(all + first / 64, kept, (n + 63) / 64 * sizeof *kept);
    return TOKMAP_OK;
}

int values_select(const tokmap_dataset *ds, const char *where, uint64_t **kept)
{
    tokmap_error err;
    *kept = calloc(cli_dataset_info(ds).n_documents / 64 + 1, sizeof **kept);
    if (!*kept)
        return cli_no_memory();
    const tokmap_status status = tokmap_dataset_select(ds, where, keep, *kept, &err);
    if (status == TOKMAP_ERR_ARGUMENT && strncmp(err.text, "where: ", 7) == 0)
        return cli_usage("--%s", err.text);
    return status == TOKMAP_ERR_ARGUMENT ? cli_error(CLI_INPUT, "%s (--where)", err.text)
           : status                      ? cli_fail(&err)
                                         : CLI_OK;
}
