/* SPDX-License-Identifier: Apache-2.0 */
/* text_reader.h - the reader of text and JSON lines, for text.c, which reads the records, and
 * text_choose.c, which decides by the beginning of an input what it is, and refuses what is not
 * meant to be packed. text.c calls text_choose.c. */
#pragma once

#include "formats/format.h"
#include "formats/json_array.h"
#include "formats/json_line.h"

typedef struct text_reader {
    reader base;
    uint64_t begin;         /* where the input begins: a member of an archive not at 0 */
    bool checked;           /* wrong_file_check has passed, or this is a part */
    const char *terminator; /* between documents */
    size_t terminator_bytes;

    /* The current record, until the next one is asked for. */
    bool at_hand;
    uint64_t line;  /* of the current record, else of the next one */
    size_t n_bytes; /* in the window */

    /* JSON lines: */
    json_array array; /* that they come from */
    json_paths *paths;
    uint8_t *decoded;
    size_t decoded_capacity;
    char reason[256];
} text_reader;

void text_set_format(text_reader *r, corpus_format format);
bool text_reserve_decoded(text_reader *r, size_t n_bytes, failure *err);
/* Says why the line has no text. */
void text_set_reason(text_reader *r, json_line_status status, const json_line_result *result);
#define TEXT_BOM_BYTES 3
/* How many bytes at the window belong to a byte order mark: only where the input begins. */
size_t text_bom_bytes(const text_reader *r);

/* Before the first record: checks the input, and decides its format if it is CORPUS_AUTO. */
bool text_begin_input(text_reader *r, failure *err);
