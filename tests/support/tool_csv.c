/* SPDX-License-Identifier: Apache-2.0 */
/* tool_csv - the records of CSV and TSV, for test_csv.py.
 *
 * stdin is records: a letter, a length in 4 bytes, and that many bytes. `F` is the names of fields,
 * as for --meta, `C` a file of CSV and `T` of TSV, whose answer is, for each row, 1 and the value
 * of each field, as tool_fields writes them, or 2 and "LINE: REASON"; then 0, or 3 and why reading
 * failed. Texts come after their length. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "corpus/open_input.h"
#include "support/pipes.h"
#include "support/random_input.h"

static void put_value(const tokmap_value *v)
{
    uint64_t bits = (uint64_t)v->integer;
    put_number(v->type, 1);
    if (v->type == TOKMAP_VALUE_FLOAT64)
        memcpy(&bits, &v->real, sizeof bits);
    if (v->type == TOKMAP_VALUE_STRING)
        put_bytes(v->text, v->text_bytes);
    else
        put_number(bits, 8);
}

static void put_text(int kind, const char *text)
{
    put_number((uint64_t)kind, 1);
    put_bytes(text, strlen(text));
}

static void read_table(const field_list *fields, corpus_format format, const uint8_t *bytes,
                       size_t n_bytes)
{
    static const size_t reads[] = {1, 7, 64, 4096};
    char name[64], text[512];
    const int fd = input_file(name, bytes, n_bytes);
    const reader_options options =
        reader_options_complete(&(reader_options){.format = format,
                                                  .fields_only = true,
                                                  .fields = fields,
                                                  .may_lack = field_list_bits(fields),
                                                  .on_error = ON_ERROR_SKIP,
                                                  .window.read_bytes = reads[n_bytes % 4]});
    const input_source source = {.path = name};
    failure err;
    document d;
    reader_result result = READER_FAILED;
    reader *r = reader_open(&source, &options, -1, &err);
    while (r && (result = reader_next(r, &d, &err)) > READER_END) {
        if (result == READER_BAD) {
            snprintf(text, sizeof text, "%" PRIu64 ": %s", d.line + 1, d.reason);
            put_text(2, text);
            continue;
        }
        put_number(1, 1);
        for (size_t i = 0; i < fields->n_fields; i++)
            put_value(&d.values[i]);
    }
    if (result == READER_FAILED)
        put_text(3, err.text + strlen(name) + 2);
    else
        put_number(0, 1);
    reader_close(r);
    close(fd);
}

int main(void)
{
    field_list fields = {0};
    for (int kind; (kind = getchar()) != EOF;) {
        size_t n_bytes;
        failure err;
        if (!get_length(&n_bytes))
            return 2;
        uint8_t *bytes = get_bytes(n_bytes, 1, 0);
        if (kind == 'F') {
            field_list_free(&fields);
            if (!field_list_parse(&fields, (const char *)bytes, &err))
                return 2;
        } else {
            read_table(&fields, kind == 'C' ? CORPUS_CSV : CORPUS_TSV, bytes, n_bytes);
        }
        free(bytes);
    }
    field_list_free(&fields);
    return fflush(stdout) == 0 ? 0 : 1;
}
