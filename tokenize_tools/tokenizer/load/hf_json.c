/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/load/hf_json.h"

#include <stdio.h>
#include <string.h>

#include "tokenizer/model/model.h"

/* A nested Sequence is read again for each level: this limit keeps the time linear. */
#define MAX_SEQUENCE_DEPTH 8

int hf_shown(json_string s)
{
    return s.n_bytes < 360 ? (int)s.n_bytes : 360;
}

bool hf_read_type(json_reader *r, char type[HF_TYPE_BYTES])
{
    const size_t at = r->at;
    const unsigned depth = r->depth;
    json_string key, value;
    type[0] = '\0';
    if (!json_begin(r, JSON_OBJECT))
        return false;
    while (!type[0] && json_next_key(r, &key)) {
        const bool found = json_string_is(key, "type");
        if (!(found ? json_read_string(r, &value) : json_skip(r)))
            return false;
        if (!found)
            continue;
        if (memchr(value.s, '\0', value.n_bytes))
            return json_fail(r, "a type contains a NUL");
        snprintf(type, HF_TYPE_BYTES, "%.*s", hf_shown(value), value.s);
    }
    r->at = at;
    r->depth = depth;
    return r->failure[0] == '\0';
}

size_t hf_find_word(const char *const *words, size_t n_words, json_string word)
{
    size_t i = 0;
    while (i < n_words && !(words[i] && json_string_is(word, words[i])))
        i++;
    return i;
}

static bool read_sequence(json_reader *r, const hf_sequence *s, int depth, failure *err)
{
    char type[HF_TYPE_BYTES];
    if (!hf_read_type(r, type))
        return false;
    if (strcmp(type, "Sequence") != 0) {
        const size_t i = hf_find_word(s->types, s->n_types, (json_string){type, strlen(type)});
        if (i == s->n_types)
            return model_fail(err, r->at, "%s %s is not supported", s->what,
                              type[0] ? type : "without a type");
        return s->read(r, i, s->context);
    }
    json_field fields[] = {{"type", 0}, {s->list, 0}};
    if (depth == MAX_SEQUENCE_DEPTH)
        return json_fail(r, "%s: sequences nested more than %d deep", s->what, depth);
    if (!json_read_fields(r, s->what, fields, HF_N(fields)))
        return false;
    if (!fields[1].at)
        return json_fail(r, "%s: a Sequence without %s", s->what, s->list);
    const size_t end = r->at;
    r->at = fields[1].at;
    bool ok = json_begin(r, JSON_ARRAY);
    while (ok && json_next_item(r))
        ok = read_sequence(r, s, depth + 1, err);
    r->at = end;
    return ok && r->failure[0] == '\0';
}

bool hf_read_components(json_reader *r, const hf_sequence *s, failure *err)
{
    if (r->at == 0)
        return true;
    return json_peek(r) == JSON_NULL ? json_skip(r) : read_sequence(r, s, 0, err);
}

bool hf_read_bare(json_reader *r, const char *type)
{
    json_field fields[] = {{"type", 0}};
    return json_read_fields(r, type, fields, HF_N(fields));
}

bool hf_read_pattern(json_reader *r, const json_field *field, const char *what, hf_pattern *p)
{
    json_field fields[] = {{"String", 0, JSON_STRING, true}, {"Regex", 0, JSON_STRING, true}};
    const size_t at = r->at;
    if (!field->at)
        return json_fail(r, "%s without a pattern", what);
    r->at = field->at;
    if (!json_read_fields(r, what, fields, HF_N(fields)))
        return false;
    p->regex = fields[1].at != 0;
    if ((fields[0].at != 0) == p->regex)
        return json_fail(r, "%s: a pattern must be a String or a Regex", what);
    r->at = at;
    return json_field_string(r, &fields[p->regex], &p->text);
}
