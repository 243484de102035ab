/* SPDX-License-Identifier: Apache-2.0 */
/* json_paths.h - what is wanted of lines of JSON: the dotted paths of the text and of some fields,
 * as a tree of keys; and what the lines so far say about the fields. For json_line.h, which fills
 * it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tokmap.h>

#include "fields/field_list.h"
#include "base/json_parts.h"
#include "base/simd.h"
#include "base/word_distance.h"

#define JSON_NO_FIELD SIZE_MAX

typedef struct json_key {
    const char *name;
    size_t n_bytes;
    struct json_key *parent, *first_child, *next;
    bool leads_to_text, is_text; /* the path of the text goes on from here, ends here */
    size_t field;                /* whose path ends here, or JSON_NO_FIELD */
    uint64_t line;               /* the last one that had the key, in its object */
    bool is_container;           /* its value there was an object or a list */
    bool seen;                   /* a line had it */
    /* Else, of the keys beside it in the first lines, the most similar one. */
    char nearest[WORD_DISTANCE_LONGEST];
    size_t nearest_bytes, distance;
} json_key;

typedef struct json_paths {
    const field_list *fields; /* NULL: none */
    json_key *keys;           /* the first one is the line */
    size_t n_keys;
    uint8_t *buffer;     /* for a key with escapes */
    size_t buffer_bytes; /* as many as the longest key here has, and as a field may have */
    uint64_t line;       /* number of the current line, from 1 */
    uint64_t n_lines;    /* that were objects */
    bool bare_string;    /* a line may be a string, which is the text if its path is "text" */
    bool strict;         /* NaN, Infinity and -Infinity are malformed */
    bool lists;          /* the text is a list; so is the last field, if `marks` */
    bool marks;
    simd_level level;   /* of the code that reads; the next best if this machine lacks it */
    field_list *listed; /* not NULL: keys of the line are added whose values are neither objects nor
                           lists; if that fails, the line is malformed */
    failure *why_not_listed;
    unsigned types[FIELD_LIST_MAX]; /* of the values of each field: bits */
} json_paths;

/* "text", "meta.text": each part is a key, without escapes. Both must stay valid, and the list must
 * not change. fields may be NULL. NULL: out of memory, or too many parts. */
json_paths *json_paths_new(const char *text, const field_list *fields);
/* Whether it has at most JSON_MAX_DEPTH parts. */
bool json_path_fits(const char *dotted);
void json_paths_free(json_paths *p);

/* The key below `object` with this name, or NULL. */
static inline json_key *json_key_find(const json_key *object, const void *name, size_t n_bytes)
{
    json_key *key = object->first_child;
    while (key && !(key->n_bytes == n_bytes && memcmp(key->name, name, n_bytes) == 0))
        key = key->next;
    return key;
}

/* ---- While a line is read whose fields are wanted ---- */

/* Sets all values to null. */
void json_paths_begin(json_paths *p, tokmap_value *values);
/* A key of an object on a path: `key` is the one here, or NULL. */
void json_paths_see(json_paths *p, json_key *object, json_key *key, const uint8_t *name,
                    size_t n_bytes, tokmap_value *values);
/* The line was an object: its values count for the functions below. */
void json_paths_end(json_paths *p, const tokmap_value *values);

/* ---- Of all lines so far ---- */

/* Whether no line had the field, or it was an object or a list in a line. Then the text says so,
 * and which field is similar. *always: no line had a value for it. */
bool json_paths_missing(const json_paths *p, size_t field, bool *always, char *text,
                        size_t text_bytes);
/* STRING or INT64 if all its values that are not null are strings or numbers, else NULL. */
tokmap_value_type json_paths_type(const json_paths *p, size_t field);
