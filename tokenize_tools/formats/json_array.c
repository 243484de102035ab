/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/json_array.h"

#include "base/json_parts.h"

/* Returns what the byte becomes; 0: it cannot be there. */
static uint8_t change_byte(json_array *a, uint8_t c)
{
    const bool closes = c == ']' || c == '}';
    if (a->in_string) {
        a->in_string = a->escaped || c != '"';
        a->escaped = !a->escaped && c == '\\';
        return c;
    }
    if (a->is_over)
        return json_is_space(c) ? c : 0;
    if (c == '\n' || (c == ',' && a->depth == 1))
        return c == ',' ? '\n' : ' ';
    if (c == '[' || c == '{')
        return ++a->depth == 1 ? ' ' : c;
    a->in_string = c == '"';
    if (!closes || --a->depth > 0)
        return c;
    a->is_over = true;
    return c == ']' ? ' ' : 0;
}

bool json_array_change(void *array, uint8_t *bytes, size_t n_bytes, failure *err)
{
    json_array *a = array;
    if (n_bytes == 0 && !a->is_over)
        return fail(err, "is truncated: the JSON array has no end");
    for (size_t i = 0; i < n_bytes; i++) {
        const uint8_t c = change_byte(a, bytes[i]);
        if (c == 0)
            return fail(err, "is not one JSON array: something follows its end");
        bytes[i] = c;
    }
    return true;
}
