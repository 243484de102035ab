/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/json_paths.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CONTAINERS = 0x80,    /* beside the types of values */
    SEARCHED_LINES = 100, /* for similar keys */
};

/* ---- Paths ---- */

bool json_path_fits(const char *dotted)
{
    size_t n_dots = 0;
    for (; *dotted; dotted++)
        n_dots += *dotted == '.';
    return n_dots < JSON_MAX_DEPTH;
}

/* Returns the key at its end. */
static json_key *add_path(json_paths *p, const char *path, bool leads_to_text)
{
    json_key *at = p->keys;
    for (const char *name = path;; name++) {
        const size_t n_bytes = strcspn(name, ".");
        json_key *key = json_key_find(at, name, n_bytes);
        if (!key) {
            key = &p->keys[p->n_keys++];
            *key = (json_key){.name = name,
                              .n_bytes = n_bytes,
                              .parent = at,
                              .next = at->first_child,
                              .field = JSON_NO_FIELD,
                              .distance = SIZE_MAX};
            at->first_child = key;
        }
        key->leads_to_text |= leads_to_text;
        p->buffer_bytes = n_bytes > p->buffer_bytes ? n_bytes : p->buffer_bytes;
        at = key;
        name += n_bytes;
        if (!*name)
            return at;
    }
}

json_paths *json_paths_new(const char *text, const field_list *fields)
{
    const size_t n_fields = fields ? fields->n_fields : 0;
    json_paths *p = json_path_fits(text) ? calloc(1, sizeof *p) : NULL;
    size_t n_keys = 1 + strlen(text) + 1;
    for (size_t i = 0; i < n_fields; i++)
        n_keys += strlen(fields->names[i]);
    if (p)
        p->keys = malloc(n_keys * sizeof *p->keys);
    if (p && p->keys) {
        p->fields = fields;
        p->buffer_bytes = FIELD_NAME_MAX;
        p->keys[p->n_keys++] = (json_key){.field = JSON_NO_FIELD};
        add_path(p, text, true)->is_text = true;
        for (size_t i = 0; i < n_fields; i++) {
            if (strcmp(fields->names[i], FIELD_ROW) != 0)
                add_path(p, fields->names[i], false)->field = i;
        }
        p->buffer = malloc(p->buffer_bytes + 1);
    }
    if (p && p->buffer)
        return p;
    json_paths_free(p);
    return NULL;
}

void json_paths_free(json_paths *p)
{
    if (!p)
        return;
    free(p->keys);
    free(p->buffer);
    free(p);
}

/* ---- A line ---- */

void json_paths_begin(json_paths *p, tokmap_value *values)
{
    memset(values, 0, p->fields->n_fields * sizeof *values);
    p->line++;
}

/* A key has come again: what was found below it does not count. */
static void forget_values(json_key *key, tokmap_value *values)
{
    if (key->field != JSON_NO_FIELD)
        values[key->field] = (tokmap_value){0};
    for (json_key *child = key->first_child; child; child = child->next)
        forget_values(child, values);
}

/* How far a key is from the one that is wanted; next to it if one begins with the other. */
static size_t key_distance(const json_key *wanted, const uint8_t *name, size_t n_bytes)
{
    const size_t n_same = n_bytes < wanted->n_bytes ? n_bytes : wanted->n_bytes;
    const size_t distance =
        word_distance(wanted->name, wanted->n_bytes, (const char *)name, n_bytes);
    return distance < SIZE_MAX && memcmp(name, wanted->name, n_same) == 0 ? 1 : distance;
}

void json_paths_see(json_paths *p, json_key *object, json_key *key, const uint8_t *name,
                    size_t n_bytes, tokmap_value *values)
{
    for (json_key *k = object->first_child; k && p->n_lines < SEARCHED_LINES; k = k->next) {
        const size_t distance = k->seen || k == key ? SIZE_MAX : key_distance(k, name, n_bytes);
        if (distance >= k->distance)
            continue;
        k->distance = distance;
        k->nearest_bytes = n_bytes;
        memcpy(k->nearest, name, n_bytes);
    }
    if (!key)
        return;
    if (key->line == p->line)
        forget_values(key, values);
    key->line = p->line;
    key->is_container = false;
}

void json_paths_end(json_paths *p, const tokmap_value *values)
{
    p->n_lines++;
    for (json_key *key = p->keys; key < p->keys + p->n_keys; key++) {
        if (key->line != p->line)
            continue;
        key->seen = true;
        if (key->field != JSON_NO_FIELD)
            p->types[key->field] |=
                1u << values[key->field].type | (key->is_container ? CONTAINERS : 0);
    }
}

/* ---- Of all lines ---- */

bool json_paths_missing(const json_paths *p, size_t field, bool *always, char *text,
                        size_t text_bytes)
{
    const char *const path = p->fields->names[field], *name = path;
    const json_key *key = p->keys;
    *always = true;
    if (p->n_lines == 0 || strcmp(path, FIELD_ROW) == 0)
        return false;
    for (;; name++) { /* to the first key that no line had */
        const size_t n_bytes = strcspn(name, ".");
        key = json_key_find(key, name, n_bytes);
        if (!key->seen)
            break;
        name += n_bytes;
        if (*name)
            continue;
        if ((p->types[field] & CONTAINERS) == 0)
            return false;
        *always = (p->types[field] & ~(1u << TOKMAP_VALUE_NULL)) == CONTAINERS;
        snprintf(text, text_bytes, "the field %.100s is an object or a list %s of %" PRIu64 " %s",
                 path, *always ? "wherever a record" : "in some records", p->n_lines,
                 *always ? "has it" : "and counts as missing there");
        return true;
    }
    snprintf(text, text_bytes, "no record of %" PRIu64 " has the field %.100s%s%.*s%.*s",
             p->n_lines, path, key->nearest_bytes ? "; the nearest one is " : "",
             key->nearest_bytes ? (int)(name - path) : 0, path, (int)key->nearest_bytes,
             key->nearest);
    return true;
}

tokmap_value_type json_paths_type(const json_paths *p, size_t field)
{
    const bool strings = p->types[field] >> TOKMAP_VALUE_STRING & 1;
    const bool numbers = p->types[field] & (1u << TOKMAP_VALUE_INT64 | 1u << TOKMAP_VALUE_FLOAT64);
    return strings == numbers ? TOKMAP_VALUE_NULL
           : strings          ? TOKMAP_VALUE_STRING
                              : TOKMAP_VALUE_INT64;
}
