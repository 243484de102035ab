/* SPDX-License-Identifier: Apache-2.0 */
#include "base/value_bytes.h"

#include <string.h>

#include "base/le.h"

/* A value is a byte for its type and 8 bytes: a number, or the length of the text that follows. */
#define VALUE_BYTES 9

size_t value_bytes_size(const tokmap_value *values, size_t n)
{
    size_t n_bytes = n * VALUE_BYTES;
    for (size_t i = 0; i < n; i++)
        n_bytes += values[i].type == TOKMAP_VALUE_STRING ? values[i].text_bytes : 0;
    return n_bytes;
}

void value_bytes_put(uint8_t *to, const tokmap_value *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const tokmap_value *v = &values[i];
        uint64_t number = (uint64_t)v->integer;
        if (v->type == TOKMAP_VALUE_FLOAT64)
            memcpy(&number, &v->real, sizeof number);
        else if (v->type == TOKMAP_VALUE_STRING)
            number = v->text_bytes;
        *to = (uint8_t)v->type;
        le_put(to + 1, number, 8);
        to += VALUE_BYTES;
        if (v->type == TOKMAP_VALUE_STRING && v->text_bytes > 0) {
            memcpy(to, v->text, v->text_bytes);
            to += v->text_bytes;
        }
    }
}

size_t value_bytes_get(const uint8_t *from, tokmap_value *values, size_t n)
{
    const uint8_t *at = from;
    for (size_t i = 0; i < n; i++) {
        const uint64_t number = le_get64(at + 1);
        tokmap_value v = {.type = (tokmap_value_type)*at};
        at += VALUE_BYTES;
        if (v.type == TOKMAP_VALUE_FLOAT64) {
            memcpy(&v.real, &number, sizeof v.real);
        } else if (v.type == TOKMAP_VALUE_STRING) {
            v.text = (const char *)at;
            v.text_bytes = (size_t)number;
            at += v.text_bytes;
        } else {
            v.integer = (int64_t)number;
        }
        values[i] = v;
    }
    return (size_t)(at - from);
}
