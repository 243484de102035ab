/* SPDX-License-Identifier: Apache-2.0 */
/* second_look.h - opens an input a second time, to check a document to its end before its beginning
 * is handed out, and to copy a bad one; for corpus.c.
 *
 * Checking and copying each move only forward, so each reads the input at most once more. */
#pragma once

#include "corpus/corpus.h"
#include "corpus/reader.h"

typedef struct second_look second_look;

typedef struct second_look_report {
    bool good;
    uint64_t n_begun; /* JSON: how many strings of the field there are; the last one counts */
    char reason[256];
    uint64_t bad_offset; /* in the plain bytes */
} second_look_report;

/* Does not open the input yet. The path must stay valid; format: of the input. NULL: out of
 * memory. */
second_look *second_look_new(const input_source *source, const corpus_options *options,
                             corpus_format format, int stop_fd);
void second_look_free(second_look *s);
/* Whether the input can be opened again: not a pipe, not stdin. */
bool second_look_possible(const char *name);

/* Checks the document that begins at `place`. false: the input cannot be read. */
bool second_look_check(second_look *s, reader_place place, second_look_report *report,
                       failure *err);
/* The same for a document in one piece, without reading the input. */
bool second_look_check_whole(second_look *s, const reader_text *whole, second_look_report *report,
                             failure *err);
/* Passes the plain bytes [begin, end) to options->collect. */
bool second_look_collect(second_look *s, uint64_t begin, uint64_t end, failure *err);
