/* hf_json.h - what the components of a tokenizer.json have in common: a type, a Sequence of them,
 * and patterns. */
#ifndef TOKMAP_HF_JSON_H
#define TOKMAP_HF_JSON_H

#include "text/json_reader.h"

#define HF_N(fields) (sizeof(fields) / sizeof *(fields))

/* The name of a component, "" where there is none; the reader stays before it. A name that is too
 * long is cut. */
#define HF_TYPE_BYTES 64
bool hf_read_type(json_reader *r, char type[HF_TYPE_BYTES]);

/* Calls `read` for a component or, one after the other, for those of a Sequence. The reader stands
 * before each. Nothing is called for null. */
typedef bool hf_read_component(json_reader *r, const char *type, void *context);
typedef struct hf_sequence {
    const char *what; /* "normalizer" */
    const char *list; /* "normalizers" */
    hf_read_component *read;
    void *context;
} hf_sequence;
bool hf_read_components(json_reader *r, const hf_sequence *s);

/* A component that has nothing but its type. */
bool hf_read_bare(json_reader *r, const char *type);

/* {"String": ...} or {"Regex": ...} */
typedef struct hf_pattern {
    bool regex;
    json_string text;
} hf_pattern;
bool hf_read_pattern(json_reader *r, const json_field *field, const char *what, hf_pattern *p);

/* The bytes of a text from the file that a message has room for, for "%.*s". */
int hf_shown(json_string s);

#endif /* TOKMAP_HF_JSON_H */
