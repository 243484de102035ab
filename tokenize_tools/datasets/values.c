/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/values.h"

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
#include "datasets/beside.h"
#include "tokmap_loader.h"

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

/* ---- All columns ---- */

static int open_column(value_columns *v, const tokmap_dataset *ds, const char *name, bool verify)
{
    tokmap_error err;
    if (!array_grow(&v->columns, v->n, sizeof *v->columns) ||
        !array_grow(&v->info, v->n, sizeof *v->info))
        return cli_no_memory();
    if (tokmap_column_open(&v->columns[v->n], ds, name, &err) != TOKMAP_OK)
        return cli_fail(&err);
    if (verify && tokmap_column_verify(v->columns[v->n], NULL, NULL, &err) != TOKMAP_OK) {
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
    int code = beside_list(ds, BESIDE_COLUMNS, &late);
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

static tokmap_status copy_bits(void *context, uint64_t first, uint32_t n, const uint64_t *kept,
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
    const tokmap_status status = tokmap_dataset_select(ds, where, copy_bits, *kept, &err);
    if (status && err.reason == TOKMAP_REASON_EXPRESSION)
        return cli_usage("--%s", err.text);
    return status == TOKMAP_ERR_ARGUMENT ? cli_error(CLI_INPUT, "%s (--where)", err.text)
           : status                      ? cli_fail(&err)
                                         : CLI_OK;
}
