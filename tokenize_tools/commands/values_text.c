/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/values_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/json_text.h"

const char *values_type_name(tokmap_value_type type)
{
    static const char *const names[] = {"null", "int64", "float64", "string"};
    return names[type];
}

/* The shortest digits that are read back as this number, with a point, so that it stays a float. */
static void print_real(FILE *out, double value)
{
    char digits[40];
    if (isnan(value) || isinf(value)) {
        fputs(isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"", out);
        return;
    }
    for (int n = 15; n <= 17; n++) {
        snprintf(digits, sizeof digits, "%.*g", n, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    fputs(digits, out);
    if (!strpbrk(digits, ".e"))
        fputs(".0", out);
}

static void print_value(FILE *out, const tokmap_value *value)
{
    switch (value->type) {
    case TOKMAP_VALUE_INT64:
        fprintf(out, "%" PRId64, value->integer);
        break;
    case TOKMAP_VALUE_FLOAT64:
        print_real(out, value->real);
        break;
    case TOKMAP_VALUE_STRING:
        json_text_print_string(out, value->text, value->text_bytes);
        break;
    case TOKMAP_VALUE_NULL:
        fputs("null", out);
        break;
    }
}

bool values_print_row(FILE *out, const tokmap_dataset *ds, uint64_t document)
{
    tokmap_meta_column column = TOKMAP_INIT(tokmap_meta_column);
    for (uint32_t i = 0; tokmap_dataset_get_meta_column(ds, i, &column) == TOKMAP_OK; i++) {
        tokmap_value value;
        if (tokmap_dataset_get_meta(ds, i, document, &value) != TOKMAP_OK)
            return false;
        fputs(i ? ", " : "{", out);
        json_text_print_string(out, column.name, column.name_bytes);
        fputs(": ", out);
        print_value(out, &value);
    }
    putc('}', out);
    return true;
}
