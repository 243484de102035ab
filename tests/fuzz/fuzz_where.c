/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_where.c - any bytes as an expression of --where: refused at one of its characters, or what
 * it says agrees with its negation and with itself doubled. Byte 0 and 1 choose the values. */
#include "fuzz/fuzz.h"

#include <math.h>

#include "fields/where.h"
#include "base/moment.h"

static tokmap_value choose_value(unsigned i)
{
    static const tokmap_value values[] = {
        {.type = TOKMAP_VALUE_NULL},
        {.type = TOKMAP_VALUE_INT64, .integer = 1},
        {.type = TOKMAP_VALUE_INT64, .integer = INT64_MAX},
        {.type = TOKMAP_VALUE_INT64, .integer = -5, .text_bytes = TIME_MICROSECONDS},
        {.type = TOKMAP_VALUE_FLOAT64, .real = 1.5},
        {.type = TOKMAP_VALUE_FLOAT64, .real = NAN},
        {.type = TOKMAP_VALUE_FLOAT64, .real = -0x1p63},
        {.type = TOKMAP_VALUE_FLOAT64, .real = 1.5, .text = "15e-1", .text_bytes = 5},
        {.type = TOKMAP_VALUE_FLOAT64, .real = 0x1p64, .integer = -1},
        {.type = TOKMAP_VALUE_STRING, .text = "en", .text_bytes = 2},
        {.type = TOKMAP_VALUE_STRING},
    };
    return values[i % (sizeof values / sizeof *values)];
}

/* `format` with the expression for each $ has this result, unless it is too long or too deep */
static void check_form(const char *format, const char *text, const tokmap_value *values,
                       bool expected)
{
    static char whole[3 * WHERE_MAX_BYTES];
    field_list l = {0};
    failure err;
    size_t n = 0;
    for (const char *c = format; *c; c++) {
        if (*c != '$')
            whole[n++] = *c;
        for (const char *t = text; *c == '$' && *t; t++)
            whole[n++] = *t;
    }
    whole[n] = '\0';
    where *w = where_compile(whole, &l, &err);
    if (w)
        require(where_holds(w, values) == expected);
    else
        require(strncmp(err.text, "nested", 6) == 0 || strncmp(err.text, "longer", 6) == 0);
    where_free(w);
    field_list_free(&l);
}

static void check_results(const where *w, const field_list *l, const char *text, unsigned seed)
{
    tokmap_value values[FIELD_LIST_MAX];
    tokmap_value_type types[FIELD_LIST_MAX];
    failure err;
    for (size_t i = 0; i < l->n_fields; i++, seed = seed * 5 + 3) {
        values[i] = choose_value(seed >> 2);
        types[i] = values[i].type == TOKMAP_VALUE_INT64 && values[i].text_bytes ? WHERE_TIME
                                                                                : values[i].type;
    }
    const bool holds = where_holds(w, values);
    check_form("not ($)", text, values, !holds);
    check_form("($)and($)", text, values, holds);
    check_form("($)or not($)", text, values, true);
    require(where_check_types(w, types, &err) || err.place > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    char *text = malloc(size - 1);
    require(text != NULL);
    memcpy(text, data + 2, size - 2);
    text[size - 2] = '\0';
    field_list l = {0};
    failure err = {0};
    where *w = where_compile(text, &l, &err);
    require(l.n_fields <= FIELD_LIST_MAX);
    if (w)
        check_results(w, &l, text, data[0] + 256u * data[1]);
    else
        require(err.place >= 1 && err.place <= strlen(text) + 1 && err.text[0]);
    where_free(w);
    field_list_free(&l);
    if (field_list_parse(&l, text, &err))
        require(l.n_fields > 0);
    else
        require(err.place >= 1 && err.place <= strlen(text) + 1 && err.text[0]);
    field_list_free(&l);
    free(text);
    return 0;
}
