/* SPDX-License-Identifier: Apache-2.0 */
/* text_reader_parts.h - what text_reader.c (documents) and text_format.c (the format of an input)
 * share. */
#ifndef TOKMAP_TEXT_READER_PARTS_H
#define TOKMAP_TEXT_READER_PARTS_H

#include "corpus/json_fields.h"
#include "corpus/json_line.h"
#include "corpus/reader_kind.h"

typedef struct text_reader {
    reader base;
    uint64_t begin;         /* where the input begins: a member of an archive not at 0 */
    bool checked;           /* wrong_file_find has passed, or this is a part */
    const char *terminator; /* between documents */
    size_t terminator_bytes;
    uint64_t line; /* of the current document, else of the next one */
    bool in_white; /* only white space so far in a line of JSON lines */

    /* The current document, until the next one is asked for. */
    bool at_hand, in_pieces;
    bool complete; /* its end is in the window, n_bytes further on */
    uint64_t offset;
    size_t n_bytes, n_kept; /* in the window; those of the last text that come again */

    /* JSON lines: */
    json_line_path *path;
    json_line_options json;
    json_line_scanner *scanner;
    uint8_t *decoded;
    size_t n_decoded, decoded_capacity;
    uint64_t wanted;
    bool drop;
    json_fields *fields; /* NULL: none are wanted */
    char reason[256];
} text_reader;

static inline bool text_is_white(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

#define TEXT_BOM_BYTES 3

/* Makes room for the decoded text of a line. */
bool text_reader_reserve(text_reader *r, size_t n_bytes, failure *err);
void text_reader_set_reason(text_reader *r, json_line_status status,
                            const json_line_result *result);

void text_reader_set_format(text_reader *r, corpus_format format);
/* Fills the window until it has n_bytes or the input ends. */
bool text_reader_fill(text_reader *r, size_t n_bytes, failure *err);
/* Of the byte order mark at the beginning of the window. */
size_t text_reader_bom_bytes(const text_reader *r);
/* Called before anything is taken from the input: refuses what is not text, and decides the
 * format. */
bool text_reader_begin(text_reader *r, failure *err);

#endif /* TOKMAP_TEXT_READER_PARTS_H */
