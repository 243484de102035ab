/* SPDX-License-Identifier: Apache-2.0 */
/* The paths are a tree of keys. The objects on a path are read key by key; every other value is
 * skipped: strings by vectors (json_span.h), containers by counting their brackets. */
#include "corpus/json_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/json_span.h"
#include "text/array.h"
#include "text/exact_number.h"
#include "text/json_parts.h"
#include "text/utf8.h"
#include "text/word_distance.h"

enum {
    NONE = -1,
    CONTAINERS = 0x80,    /* beside the types of values */
    SEARCHED_LINES = 100, /* for similar keys */
};

typedef struct node {
    const char *key;
    size_t key_bytes;
    int field; /* whose path ends here, or NONE */
    int first_child, next_sibling;
    bool seen; /* a line had this key */
    /* Else, of the keys beside it in the first lines, the most similar one. */
    char nearest[WORD_DISTANCE_LONGEST];
    size_t nearest_bytes, distance;
} node;

struct json_fields {
    const field_list *list;
    const json_span_calls *calls;
    node *nodes; /* the first one is the line */
    size_t n_nodes;
    uint8_t *decoded; /* strings with escapes; never longer than the line */
    size_t capacity, n_decoded;

    const uint8_t *at, *end;
    tokmap_value *values;

    uint64_t n_lines;
    unsigned types[FIELD_LIST_MAX]; /* of the values of each field: bits */
};

/* ---- Paths ---- */

static int find_child(const json_fields *f, int parent, const void *key, size_t key_bytes)
{
    int i = f->nodes[parent].first_child;
    while (i != NONE &&
           !(f->nodes[i].key_bytes == key_bytes && memcmp(f->nodes[i].key, key, key_bytes) == 0))
        i = f->nodes[i].next_sibling;
    return i;
}

static int add_child(json_fields *f, int parent, const char *key, size_t key_bytes)
{
    const int i = (int)f->n_nodes++;
    f->nodes[i] = (node){.key = key,
                         .key_bytes = key_bytes,
                         .field = NONE,
                         .first_child = NONE,
                         .next_sibling = f->nodes[parent].first_child,
                         .distance = SIZE_MAX};
    f->nodes[parent].first_child = i;
    return i;
}

static void add_path(json_fields *f, const char *path, int field)
{
    int at = 0;
    for (const char *key = path;; key++) {
        const size_t key_bytes = strcspn(key, ".");
        const int child = find_child(f, at, key, key_bytes);
        at = child == NONE ? add_child(f, at, key, key_bytes) : child;
        key += key_bytes;
        if (!*key)
            break;
    }
    f->nodes[at].field = field;
}

json_fields *json_fields_new(const field_list *fields)
{
    json_fields *f = calloc(1, sizeof *f);
    size_t n_nodes = 1;
    for (size_t i = 0; i < fields->n_fields; i++)
        n_nodes += strlen(fields->names[i]);
    if (f)
        f->nodes = malloc(n_nodes * sizeof *f->nodes);
    if (!f || !f->nodes) {
        free(f);
        return NULL;
    }
    f->list = fields;
    f->calls = json_span_engine(JSON_LINE_BEST);
    f->nodes[f->n_nodes++] = (node){.field = NONE, .first_child = NONE, .next_sibling = NONE};
    for (size_t i = 0; i < fields->n_fields; i++) {
        if (strcmp(fields->names[i], FIELD_ROW) != 0)
            add_path(f, fields->names[i], (int)i);
    }
    return f;
}

void json_fields_free(json_fields *f)
{
    if (!f)
        return;
    free(f->nodes);
    free(f->decoded);
    free(f);
}

/* A key has come again: what was found below it does not count. */
static void forget_values(json_fields *f, int at)
{
    if (f->nodes[at].field != NONE)
        f->values[f->nodes[at].field] = (tokmap_value){0};
    for (int i = f->nodes[at].first_child; i != NONE; i = f->nodes[i].next_sibling)
        forget_values(f, i);
}

/* ---- Skipping ---- */

static void skip_white(json_fields *f)
{
    while (f->at < f->end && json_is_space(*f->at))
        f->at++;
}

typedef struct string { /* what is between the quotes */
    const uint8_t *text;
    size_t n_bytes;
    bool escapes;
} string;

/* At the quote that begins it. */
static string scan_string(json_fields *f)
{
    string s = {.text = ++f->at};
    for (; f->at < f->end; f->at++) {
        f->at += f->calls->find(f->at, (size_t)(f->end - f->at));
        if (f->at == f->end || *f->at == '"')
            break;
        if (*f->at == '\\') {
            s.escapes = true;
            f->at += f->end - f->at > 1; /* the character after it */
        }
    }
    s.n_bytes = (size_t)(f->at - s.text);
    f->at += f->at < f->end;
    return s;
}

static void skip_container(json_fields *f)
{
    static const int8_t levels[256] = {['{'] = 1, ['['] = 1, ['}'] = -1, [']'] = -1};
    int64_t depth = 0;
    do {
        if (*f->at == '"')
            scan_string(f);
        else
            depth += levels[*f->at++];
    } while (depth > 0 && f->at < f->end);
}

static bool ends_scalar(uint8_t c)
{
    return c == ',' || c == '}' || c == ']' || json_is_space(c);
}

static void skip_value(json_fields *f)
{
    if (f->at == f->end)
        return;
    if (*f->at == '"') {
        scan_string(f);
    } else if (*f->at == '{' || *f->at == '[') {
        skip_container(f);
    } else {
        while (f->at < f->end && !ends_scalar(*f->at))
            f->at++;
    }
}

/* ---- Values ---- */

/* Decodes the escapes into f->decoded. Returns whether the string has a lone surrogate. */
static bool decode(json_fields *f, string *s)
{
    const uint8_t *text = s->text, *const end = text + s->n_bytes;
    uint8_t *const begin = f->decoded + f->n_decoded, *out = begin;
    bool lone = false;
    while (text < end) {
        const json_span_moved moved = f->calls->decode(text, (size_t)(end - text), out);
        text += moved.read;
        out += moved.written;
        if (text == end)
            break;
        lone = true;
        text += end - text > 6 ? 6 : end - text;
        out += utf8_encode(0xfffd, out);
    }
    *s = (string){.text = begin, .n_bytes = (size_t)(out - begin)};
    return lone;
}

static void read_string(json_fields *f, tokmap_value *value)
{
    string s = scan_string(f);
    if (s.escapes) {
        decode(f, &s);
        f->n_decoded += s.n_bytes;
    }
    *value = (tokmap_value){
        .type = TOKMAP_VALUE_STRING, .text = (const char *)s.text, .text_bytes = s.n_bytes};
}

static void read_number(json_fields *f, tokmap_value *value)
{
    const uint8_t *const text = f->at;
    skip_value(f);
    const size_t n_bytes = (size_t)(f->at - text);
    char *const copy = (char *)f->decoded + f->n_decoded;
    memcpy(copy, text, n_bytes);
    copy[n_bytes] = '\0';
    *value = number_read(copy, n_bytes, (const char *)text);
}

static void read_scalar(json_fields *f, tokmap_value *value)
{
    const uint8_t c = *f->at;
    if (c == '"') {
        read_string(f, value);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        read_number(f, value);
    } else {
        if (c == 't' || c == 'f')
            *value = (tokmap_value){.type = TOKMAP_VALUE_INT64, .integer = c == 't'};
        skip_value(f);
    }
}

/* ---- Objects ---- */

/* How far a key is from the one that is wanted; next to it if one begins with the other. */
static size_t key_distance(const node *wanted, const string *key)
{
    const size_t n_bytes = key->n_bytes < wanted->key_bytes ? key->n_bytes : wanted->key_bytes;
    const size_t distance =
        word_distance(wanted->key, wanted->key_bytes, (const char *)key->text, key->n_bytes);
    return distance < SIZE_MAX && memcmp(key->text, wanted->key, n_bytes) == 0 ? 1 : distance;
}

/* The key is that of `child`, or of no path. */
static void compare_key(json_fields *f, int parent, int child, const string *key)
{
    for (int i = f->nodes[parent].first_child; i != NONE; i = f->nodes[i].next_sibling) {
        node *n = &f->nodes[i];
        const size_t distance = n->seen || i == child ? SIZE_MAX : key_distance(n, key);
        if (distance >= n->distance)
            continue;
        n->distance = distance;
        n->nearest_bytes = key->n_bytes;
        memcpy(n->nearest, key->text, key->n_bytes);
    }
}

/* Reads a key: the child of `parent` that it belongs to, or NONE. */
static int read_key(json_fields *f, int parent)
{
    string s = scan_string(f);
    const bool lone = s.escapes && decode(f, &s);
    const int child = lone ? NONE : find_child(f, parent, s.text, s.n_bytes);
    if (f->n_lines < SEARCHED_LINES && !lone)
        compare_key(f, parent, child, &s);
    return child;
}

static void read_object(json_fields *f, int parent);

static void read_value(json_fields *f, int at)
{
    if (at == NONE) {
        skip_value(f);
        return;
    }
    forget_values(f, at);
    f->nodes[at].seen = true;
    if (f->at == f->end)
        return;
    const int field = f->nodes[at].field;
    if (field != NONE && (*f->at == '{' || *f->at == '['))
        f->types[field] |= CONTAINERS;
    if (*f->at == '{' && f->nodes[at].first_child != NONE) {
        read_object(f, at);
    } else if (field != NONE) {
        read_scalar(f, &f->values[field]);
        f->types[field] |= 1u << f->values[field].type;
    } else {
        skip_value(f);
    }
}

/* At its brace. The depth of the calls is that of the paths. */
static void read_object(json_fields *f, int parent)
{
    for (f->at++; f->at < f->end && *f->at != '}';) {
        skip_white(f);
        if (f->at == f->end || *f->at != '"')
            break;
        const int child = read_key(f, parent);
        skip_white(f);
        f->at += f->at < f->end; /* the colon */
        skip_white(f);
        read_value(f, child);
        skip_white(f);
        f->at += f->at < f->end && *f->at == ',';
    }
    f->at += f->at < f->end;
}

bool json_fields_read(json_fields *f, const uint8_t *line, size_t n_bytes, tokmap_value *values)
{
    memset(values, 0, f->list->n_fields * sizeof *values);
    uint8_t *decoded = array_reserve(f->decoded, &f->capacity, n_bytes + 1, 1);
    if (!decoded)
        return false;
    f->decoded = decoded;
    f->n_decoded = 0;
    f->at = line;
    f->end = line + n_bytes;
    f->values = values;
    skip_white(f);
    if (f->at < f->end && *f->at == '{')
        read_object(f, 0);
    f->n_lines++;
    return true;
}

/* ---- Of all lines ---- */

bool json_fields_missing(const json_fields *f, size_t field, char *text, size_t text_bytes)
{
    const char *const path = f->list->names[field], *key = path;
    int at = 0;
    if (f->n_lines == 0 || strcmp(path, FIELD_ROW) == 0)
        return false;
    for (;; key++) { /* to the first key that no line had */
        const size_t key_bytes = strcspn(key, ".");
        at = find_child(f, at, key, key_bytes);
        if (!f->nodes[at].seen)
            break;
        key += key_bytes;
        if (*key)
            continue;
        if ((f->types[field] & ~(1u << TOKMAP_VALUE_NULL)) != CONTAINERS)
            return false;
        snprintf(text, text_bytes,
                 "the field %.100s is an object or a list wherever a record of %" PRIu64 " has it",
                 path, f->n_lines);
        return true;
    }
    const node *n = &f->nodes[at];
    snprintf(text, text_bytes, "no record of %" PRIu64 " has the field %.100s%s%.*s%.*s",
             f->n_lines, path, n->nearest_bytes ? "; the nearest one is " : "",
             n->nearest_bytes ? (int)(key - path) : 0, path, (int)n->nearest_bytes, n->nearest);
    return true;
}

tokmap_value_type json_fields_type(const json_fields *f, size_t field)
{
    const bool strings = f->types[field] >> TOKMAP_VALUE_STRING & 1;
    const bool numbers = f->types[field] & (1u << TOKMAP_VALUE_INT64 | 1u << TOKMAP_VALUE_FLOAT64);
    return strings == numbers ? TOKMAP_VALUE_NULL
           : strings          ? TOKMAP_VALUE_STRING
                              : TOKMAP_VALUE_INT64;
}
