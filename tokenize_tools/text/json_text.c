/* SPDX-License-Identifier: Apache-2.0 */
#include "text/json_text.h"

#include <stdint.h>

#include "text/json_reader.h"
#include "text/plain_text.h"
#include "text/utf8.h"

bool json_text_check_object(json_text_span text, failure *err)
{
    json_reader r;
    json_reader_init(&r, text.text, text.n_bytes);
    const bool is_object = json_peek(&r) == JSON_OBJECT || json_fail(&r, "not an object");
    const bool ok = is_object && json_skip(&r) && json_end(&r);
    if (!ok && err) {
        fail(err, "%s", r.failure);
        err->place = r.failure_at;
    }
    json_reader_free(&r);
    return ok;
}

bool json_text_find(json_text_span object, const char *key, json_text_span *value)
{
    json_reader r;
    json_string name;
    bool found = false;
    json_reader_init(&r, object.text, object.n_bytes);
    json_begin(&r, JSON_OBJECT);
    while (!found && json_next_key(&r, &name)) {
        found = json_string_is(name, key);
        json_peek(&r);
        const size_t at = r.at;
        found = json_skip(&r) && found;
        if (found)
            *value = (json_text_span){object.text + at, r.at - at};
    }
    json_reader_free(&r);
    return found;
}

bool json_text_is_string(json_text_span value, const char *s)
{
    json_reader r;
    json_string string;
    json_reader_init(&r, value.text, value.n_bytes);
    const bool same = json_read_string(&r, &string) && json_end(&r) && json_string_is(string, s);
    json_reader_free(&r);
    return same;
}

/* The next byte outside white space between values, or -1 at the end. Works byte by byte with two
 * bits of state, so that no copy of the text is needed. */
typedef struct compact {
    json_text_span rest;
    bool in_string, escaped;
} compact;

static int compact_next(compact *c)
{
    while (c->rest.n_bytes) {
        char byte = *c->rest.text++;
        c->rest.n_bytes--;
        if (!c->in_string && json_is_space(byte))
            continue;
        if (c->escaped)
            c->escaped = false;
        else if (c->in_string && byte == '\\')
            c->escaped = true;
        else if (byte == '"')
            c->in_string = !c->in_string;
        return (unsigned char)byte;
    }
    return -1;
}

/* Prints the character at s[0 .. n_bytes): unchanged if it is plain, else as an escape (all of
 * those are below U+10000). Returns its length; 0, with nothing printed: it is not UTF-8. */
static size_t print_character(FILE *out, const char *s, size_t n_bytes)
{
    uint32_t code_point;
    const size_t length = utf8_decode((const uint8_t *)s, n_bytes, &code_point);
    if (length && plain_text_length(s, n_bytes))
        fwrite(s, 1, length, out);
    else if (length)
        fprintf(out, "\\u%04x", (unsigned)code_point);
    return length;
}

void json_text_print(FILE *out, json_text_span text)
{
    compact c = {.rest = text};
    for (int byte = compact_next(&c); byte >= 0; byte = compact_next(&c)) {
        if (byte < 0x7f) {
            putc(byte, out);
            continue;
        }
        const size_t length = print_character(out, c.rest.text - 1, c.rest.n_bytes + 1);
        c.rest.text += length - 1;
        c.rest.n_bytes -= length - 1;
    }
}

void json_text_print_string(FILE *out, const char *s, size_t n_bytes)
{
    putc('"', out);
    while (n_bytes) {
        size_t length = 1;
        if (*s == '"' || *s == '\\')
            fprintf(out, "\\%c", *s);
        else if (*s == '\n')
            fputs("\\n", out);
        else if (*s == '\t')
            fputs("\\t", out);
        else
            length = print_character(out, s, n_bytes);
        if (length == 0) {
            fputs("\\ufffd", out);
            length = utf8_bad_bytes((const uint8_t *)s, n_bytes);
        }
        if (length == 0) /* a character that the end of the text cuts off */
            length = n_bytes;
        s += length;
        n_bytes -= length;
    }
    putc('"', out);
}
