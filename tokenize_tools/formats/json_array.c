/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/json_array.h"

#include <string.h>

#include "base/json_parts.h"

#define WRONG (-1)

/* Returns what a byte between the values of the array becomes, or WRONG. */
static int change_between(json_array *a, uint8_t c)
{
    const bool has_value = a->has_value;
    if (c == ',') {
        a->has_value = false;
        a->after_comma = true;
        return has_value ? '\n' : WRONG;
    }
    if (c == ']') {
        a->is_over = has_value || !a->after_comma;
        return a->is_over ? ' ' : WRONG;
    }
    a->has_value = true;
    a->in_string = c == '"';
    a->depth += c == '[' || c == '{';
    return c == '}' ? WRONG : c;
}

/* Returns what the byte becomes, or WRONG. */
static int change_byte(json_array *a, uint8_t c)
{
    if (a->in_string) {
        a->in_string = a->escaped || c != '"';
        a->escaped = !a->escaped && c == '\\';
        return c;
    }
    if (json_is_space(c))
        return c == '\n' && !a->is_over ? ' ' : c;
    if (a->is_over)
        return WRONG;
    if (a->depth == 1)
        return change_between(a, c);
    a->in_string = c == '"';
    a->depth += c == '[' || c == '{';
    a->depth -= c == ']' || c == '}';
    return a->depth == 1 && c == '[' ? ' ' : c;
}

/* The byte after the comment, string or byte that begins here. */
static size_t end_of_piece(const uint8_t *b, size_t at, size_t n)
{
    const bool is_long = b[at] == '/' && at + 1 < n && b[at + 1] == '*';
    const bool is_line = b[at] == '/' && at + 1 < n && b[at + 1] == '/';
    size_t end = at + (is_long || is_line ? 2 : 1);
    if (b[at] == '"') {
        while (end < n && b[end] != '"')
            end += b[end] == '\\' ? 2 : 1;
        return end < n ? end + 1 : n;
    }
    while (is_line && end < n && b[end] != '\n')
        end++;
    if (!is_long)
        return end;
    const uint8_t *close = memmem(b + end, n - end, "*/", 2);
    return close ? (size_t)(close - b) + 2 : at + 1; /* one without an end is none */
}

void json_blank_comments(uint8_t *b, size_t n)
{
    size_t comma = n; /* the last byte that is neither white space nor a comment, if it is one */
    for (size_t at = 0, end; at < n; at = end) {
        end = end_of_piece(b, at, n);
        const uint8_t c = b[at];
        if (c == '/' && end > at + 1)
            memset(b + at, ' ', end - at);
        else if (c == ',')
            comma = at;
        else if (!json_is_space(c)) {
            if (comma < n && (c == '}' || c == ']'))
                b[comma] = ' ';
            comma = n;
        }
    }
}

bool json_array_change(void *array, uint8_t *bytes, size_t n_bytes, failure *err)
{
    json_array *a = array;
    if (n_bytes == 0 && !a->is_over)
        return fail(err, "is truncated: the JSON array has no end");
    for (size_t i = 0; i < n_bytes; i++) {
        const int c = change_byte(a, bytes[i]);
        if (c == WRONG)
            return fail(err, a->is_over
                                 ? "is not one JSON array: something follows its end"
                                 : "is not a JSON array: a comma or bracket is out of place");
        bytes[i] = (uint8_t)c;
    }
    return true;
}
