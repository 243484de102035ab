/* SPDX-License-Identifier: Apache-2.0 */
/* tool_records.c - the records of a file that are only values, for test_fields_only.py.
 *
 * usage: tool_records FIELDS FILE
 *
 * FIELDS is a list as for --meta; a line for each record has its values with tabs between them, or
 * a reason. The last line is the place of the last record. FIELDS "?": a line for each field that
 * the file has. Errors go to stderr. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "corpus/open_input.h"
#include "fields/field_list.h"

static int complain(const char *text)
{
    fprintf(stderr, "%s\n", text);
    return 3;
}

static void print_value(const tokmap_value *v)
{
    if (v->type == TOKMAP_VALUE_NULL)
        printf("null");
    else if (v->type == TOKMAP_VALUE_INT64)
        printf("%" PRId64, v->integer);
    else if (v->type == TOKMAP_VALUE_FLOAT64)
        printf("%.17g", v->real);
    else
        printf("'%.*s'", (int)v->text_bytes, v->text);
}

static int print_fields(reader *r)
{
    field_list found = {0};
    failure err;
    const bool done = reader_list_fields(r, &found, &err);
    for (size_t i = 0; i < found.n_fields && done; i++)
        puts(found.names[i]);
    field_list_free(&found);
    return done ? 0 : complain(err.text);
}

static int print_records(reader *r, const field_list *fields)
{
    failure err;
    document d;
    char spot[320] = "";
    reader_summary summary;
    reader_result result;
    while ((result = reader_next(r, &d, &err)) >= READER_DOCUMENT) {
        const bool is_empty = result == READER_DOCUMENT && d.text && d.n_bytes == 0;
        if (!is_empty)
            printf("%s", result == READER_BAD ? d.reason : "not a document without text");
        for (size_t i = 0; i < fields->n_fields && is_empty; i++) {
            printf("%s", i ? "\t" : "");
            print_value(&d.values[i]);
        }
        puts("");
        const reader_place place = {.offset = d.offset, .line = d.line};
        reader_describe(r, place, d.offset, spot, sizeof spot);
    }
    if (result == READER_FAILED)
        return complain(err.text);
    printf("%s\n", spot);
    reader_summarize(r, &summary);
    return *summary.column ? complain(summary.column) : 0;
}

int main(int argc, char **argv)
{
    field_list fields = {0};
    failure err;
    if (argc != 3)
        return 2;
    const bool lists = strcmp(argv[1], "?") == 0;
    if (!lists && !field_list_parse(&fields, argv[1], &err))
        return complain(err.text);
    const reader_options options = reader_options_complete(&(reader_options){
        .fields_only = true, .fields = lists ? NULL : &fields, .on_error = ON_ERROR_SKIP});
    const input_source source = {.path = argv[2]};
    reader *r = reader_open(&source, &options, -1, &err);
    const int status = !r      ? complain(err.text)
                       : lists ? print_fields(r)
                               : print_records(r, &fields);
    reader_close(r);
    field_list_free(&fields);
    return status;
}
