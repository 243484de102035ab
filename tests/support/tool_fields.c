/* SPDX-License-Identifier: Apache-2.0 */
/* tool_fields - fields of JSON lines and the expressions of --where, for tests in Python.
 *
 * stdin is records: a letter, a length in 4 bytes, and that many bytes. `M` is the text of --meta
 * and begins a new list, `W` an expression that adds its fields to the list; `L` is a line. The
 * answer to M and W is the names with commas between them, or the character and the reason of the
 * error: 0 or 1, for 1 the character in 4 bytes, the length in 4 bytes, the text. The answer to L
 * is 0 if the line is not JSON, else 1, the value of each field, and whether the expression holds.
 * A value is its type and 8 bytes, or for a string its length in 4 bytes and its bytes. Numbers are
 * little-endian. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/json_line.h"
#include "fields/where.h"
#include "support/pipes.h"

#define PADDING 64

static void put_error(const failure *err)
{
    put_number(1, 1);
    put_number(err->place, 4);
    put_bytes(err->text, strlen(err->text));
}

static void put_names(const field_list *l)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < l->n_fields; i++)
        n_bytes += strlen(l->names[i]) + (i > 0);
    put_number(0, 1);
    put_number(n_bytes, 4);
    for (size_t i = 0; i < l->n_fields; i++)
        printf("%s%s", i ? "," : "", l->names[i]);
}

static void put_value(const tokmap_value *v)
{
    uint64_t bits = (uint64_t)v->integer;
    put_number(v->type, 1);
    if (v->type == TOKMAP_VALUE_FLOAT64)
        memcpy(&bits, &v->real, sizeof bits);
    if (v->type != TOKMAP_VALUE_STRING) {
        put_number(bits, 8);
        return;
    }
    put_bytes(v->text, v->text_bytes);
}

typedef struct state {
    field_list list;
    where *where;
    json_paths *paths; /* made for the first line after M or W */
} state;

static void take_line(state *s, const uint8_t *line, size_t n_bytes, uint8_t *out)
{
    json_line_result r;
    tokmap_value values[FIELD_LIST_MAX];
    if (!s->paths)
        s->paths = json_paths_new("text", &s->list);
    if (!s->paths)
        exit(2);
    const json_line_status status = json_line_text(s->paths, line, n_bytes, out, values, &r);
    if (status == JSON_LINE_MALFORMED) {
        put_number(0, 1);
        return;
    }
    if (status == JSON_LINE_NO_OBJECT) /* then they mean nothing */
        memset(values, 0, sizeof values);
    put_number(1, 1);
    for (size_t i = 0; i < s->list.n_fields; i++)
        put_value(&values[i]);
    put_number(!s->where || where_holds(s->where, values), 1);
}

static void take_text(state *s, char kind, const char *text)
{
    failure err;
    bool ok;
    json_paths_free(s->paths);
    s->paths = NULL;
    where_free(s->where);
    s->where = NULL;
    if (kind == 'M') {
        field_list_free(&s->list);
        ok = !*text || field_list_parse(&s->list, text, &err);
    } else {
        s->where = where_compile(text, &s->list, &err);
        ok = s->where != NULL;
    }
    if (ok) {
        put_names(&s->list);
    } else {
        field_list_free(&s->list);
        put_error(&err);
    }
}

int main(void)
{
    state s = {0};
    for (int kind; (kind = getchar()) != EOF;) {
        size_t n_bytes;
        if (!get_length(&n_bytes))
            return 2;
        uint8_t *text = get_bytes(n_bytes, PADDING, kind == 'L' ? '"' : 0);
        uint8_t *out = malloc(n_bytes + 1);
        if (kind == 'L')
            take_line(&s, text, n_bytes, out);
        else
            take_text(&s, (char)kind, (const char *)text);
        free(text);
        free(out);
    }
    where_free(s.where);
    field_list_free(&s.list);
    json_paths_free(s.paths);
    return fflush(stdout) == 0 ? 0 : 1;
}
