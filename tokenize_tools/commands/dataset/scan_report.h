/* SPDX-License-Identifier: Apache-2.0 */
/* scan_report.h - the matches of an example that a scan shows, with the text around each. */
#pragma once

#include "cli/json_out.h"
#include "scan/document_tokens.h"
#include "tokenizer/choice/tokenizer_choice.h"
#include "tokenizer/model/id_buffer.h"
#include "tokmap.h"

enum {
    SCAN_MOST_MATCHES = 20 /* of an example that are shown */
};

/* A run of n-grams in a document. */
typedef struct scan_match {
    uint64_t document, at, n_tokens;
} scan_match;

/* The longest matches of an example; among equal ones, the ones in the first documents. Begins as
 * {0}. */
typedef struct scan_matches {
    scan_match *list;
    size_t n, room;
} scan_matches;

/* Adds a match, and keeps at most SCAN_MOST_MATCHES; false: out of memory. */
bool scan_matches_add(scan_matches *m, const scan_match *match);
void scan_matches_free(scan_matches *m);

/* What is needed to print matches. */
typedef struct scan_texts {
    const tokmap_dataset *ds;
    const tokenizer *tokenizer;
    document_tokens tokens; /* begins as {ds} */
    id_buffer ids;
} scan_texts;

/* Prints matches: as an array of `out`, or to stdout for people if `out` is NULL. Returns CLI_OK,
 * or an exit code with a message. */
int scan_texts_print(scan_texts *t, const scan_matches *m, json_out *out);
void scan_texts_free(scan_texts *t);
