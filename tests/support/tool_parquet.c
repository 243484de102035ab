/* SPDX-License-Identifier: Apache-2.0 */
/* tool_parquet.c - prints the values of a column of a Parquet file, for test_parquet.py.
 *
 * usage: tool_parquet FILE COLUMN MEMORY ROW
 *
 * Each value from ROW on: n; i or d and eight bytes; or s, a length of eight bytes, and bytes. At
 * the end e, and a checksum of eight bytes. MEMORY is in bytes. With COLUMN "?", prints the
 * column that would be chosen for text. Errors go to stderr. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/parquet/parquet_column.h"

static int complain(const char *text)
{
    fprintf(stderr, "%s\n", text);
    return 3;
}

static void put(char type, uint64_t n)
{
    putchar(type);
    fwrite(&n, sizeof n, 1, stdout);
}

static void print_value(const tokmap_value *v)
{
    uint64_t bits;
    switch (v->type) {
    case TOKMAP_VALUE_NULL:
        putchar('n');
        break;
    case TOKMAP_VALUE_INT64:
        put('i', (uint64_t)v->integer);
        break;
    case TOKMAP_VALUE_FLOAT64:
        memcpy(&bits, &v->real, sizeof bits);
        put('d', bits);
        break;
    case TOKMAP_VALUE_STRING:
        put('s', v->text_bytes);
        fwrite(v->text, 1, v->text_bytes, stdout);
        break;
    }
}

static int print_column(const parquet_file *f, const parquet_element *element, char **argv)
{
    const parquet_column_options options = {.memory_bytes = strtoull(argv[3], NULL, 10),
                                            .memory_option = strtoull(argv[3], NULL, 10)};
    failure err;
    tokmap_value value;
    int result;
    const parquet_rows rows = {.begin = strtoull(argv[4], NULL, 10), .end = f->footer.n_rows};
    parquet_column *c = parquet_column_open(f, element, rows, &options, &err);
    if (!c)
        return complain(err.text);
    while ((result = parquet_column_next(c, &value, &err)) > 0)
        print_value(&value);
    if (result == 0)
        put('e', c->checksum + f->footer_checksum);
    parquet_column_close(c);
    return result < 0 ? complain(err.text) : 0;
}

static int print_choice(const parquet_file *f)
{
    failure why;
    char path[200];
    const parquet_element *element = parquet_text_column(&f->footer, "text", &why);
    if (!element)
        return complain(why.text);
    parquet_path(&f->footer, element, path, sizeof path);
    printf("%s: %" PRIu64 " rows\n", path, f->footer.n_rows);
    return 0;
}

int main(int argc, char **argv)
{
    parquet_file f;
    failure err;
    if (argc != 5)
        return 2;
    const int fd = input_open_file(&(input_source){.path = argv[1]}, &err);
    const bool opened = fd >= 0 && parquet_file_open(&f, argv[1], fd, &err);
    const bool choose = opened && strcmp(argv[2], "?") == 0;
    const parquet_element *element =
        opened && !choose ? parquet_value_column(&f.footer, argv[2], &err) : NULL;
    const int status = choose    ? print_choice(&f)
                       : element ? print_column(&f, element, argv)
                                 : complain(err.text);
    if (fd >= 0)
        parquet_file_close(&f);
    return status;
}
