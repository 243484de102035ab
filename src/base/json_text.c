/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_text.h"

#include <stdio.h>
#include <string.h>

#include "base/json_reader.h"
#include "base/plain_text.h"
#include "base/utf8.h"

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

/* ---- Characters ---- */

size_t json_text_character(const char *s, size_t n_bytes, char out[JSON_ESCAPED_BYTES],
                           size_t *n_out)
{
    uint32_t code_point;
    const size_t length = utf8_decode((const uint8_t *)s, n_bytes, &code_point);
    if (length && plain_text_length(s, n_bytes)) {
        memcpy(out, s, length);
        *n_out = length;
        return length;
    }
    *n_out = (size_t)snprintf(out, JSON_ESCAPED_BYTES, "\\u%04x",
                              length ? (unsigned)code_point & 0xffff : 0xfffd);
    if (length)
        return length;
    const size_t n_bad = utf8_bad_bytes((const uint8_t *)s, n_bytes);
    return n_bad ? n_bad : n_bytes; /* a character that is cut off by the end of the text */
}

size_t json_text_escape(const char *s, size_t n_bytes, char out[JSON_ESCAPED_BYTES], size_t *n_out)
{
    const char letter = *s == '\n' ? 'n' : *s == '\t' ? 't' : *s;
    if (letter == *s && *s != '"' && *s != '\\')
        return json_text_character(s, n_bytes, out, n_out);
    out[0] = '\\';
    out[1] = letter;
    *n_out = 2;
    return 1;
}
