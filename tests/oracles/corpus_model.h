/* SPDX-License-Identifier: Apache-2.0 */
/* corpus_model.h - the documents of an input, found naively from all of its bytes, to compare with
 * corpus.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "support/part_reading.h"

typedef struct model_document {
    size_t begin, end; /* in the input, the terminator aside */
    uint64_t line;
    bool bad, is_long; /* is_long: larger than options->max_document */
    bool filtered;     /* left out by MODEL_WHERE */
    bool is_null;      /* a record without a text */
    uint8_t *text;
    size_t n_bytes;
    uint64_t replacements;
} model_document;

typedef struct model {
    corpus_format format; /* CORPUS_AUTO: refused */
    model_document *documents;
    size_t n_documents, capacity;
    const corpus_options *options;
    const uint8_t *plain;
    size_t n_plain;
    bool unclosed; /* the input ends within quotes, and reading fails there */
} model;

/* The formats that the model knows are those below this one. */
#define MODEL_N_FORMATS CORPUS_ARROW

/* The expression that the model knows, if the options have fields. */
#define MODEL_WHERE "a.b == 'x' or not text < 'm' and @row != 2"

/* compressed: it is stored so. The model refers to the options and the bytes. */
model corpus_model_read(const corpus_options *o, const uint8_t *plain, size_t n, bool compressed);
/* How many of its documents are bad. */
size_t corpus_model_n_bad(const model *m);
/* How the reading of an input differs from the model; NULL: not at all. */
const char *corpus_model_compare(const model *m, const part_reading *r, const char *name);
void corpus_model_free(model *m);
