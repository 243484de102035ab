/* SPDX-License-Identifier: Apache-2.0 */
/* hf_json.h - reads what the components of a tokenizer.json have in common: a type, a Sequence of
 * components, and patterns. */
#pragma once

#include "base/error.h"
#include "base/json_reader.h"

#define HF_N(fields) (sizeof(fields) / sizeof *(fields))

/* The type of a component, "" if there is none; the reader stays before it. A type that is too long
 * is truncated. */
#define HF_TYPE_BYTES 64
bool hf_read_type(json_reader *r, char type[HF_TYPE_BYTES]);

/* Returns the index of the word in the list, which may have NULL; n_words: it is not there. */
size_t hf_find_word(const char *const *words, size_t n_words, json_string word);

/* Calls `read` for a component, or for each component of a Sequence in turn, with the reader before
 * it and the index of its type. Calls nothing for null, or if r->at is 0: there is none. A type
 * that is not listed is refused. */
typedef struct hf_sequence {
    const char *what; /* "normalizer" */
    const char *list; /* "normalizers" */
    const char *const *types;
    size_t n_types;
    bool (*read)(json_reader *r, size_t type, void *context);
    void *context;
} hf_sequence;
bool hf_read_components(json_reader *r, const hf_sequence *s, failure *err);

/* Reads a component that has only a type. */
bool hf_read_bare(json_reader *r, const char *type);

/* {"String": ...} or {"Regex": ...} */
typedef struct hf_pattern {
    bool regex;
    json_string text;
} hf_pattern;
bool hf_read_pattern(json_reader *r, const json_field *field, const char *what, hf_pattern *p);

/* How many bytes of a text from the file fit in a message, for "%.*s". */
int hf_shown(json_string s);
