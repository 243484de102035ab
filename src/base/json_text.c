/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_text.h"

#include "base/json_reader.h"

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
