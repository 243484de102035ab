/* SPDX-License-Identifier: Apache-2.0 */
/* marks.h - ids of the texts of a corpus, also of marked text (formats/marked_text.h). There, an id
 * has the mark of its part. */
#pragma once

#include "request/fingerprint.h"
#include "tokenizer/encode/tokenizer.h"

typedef struct pack_marks { /* what an encoder needs beside its encoder; start with {parts} */
    const pack_parts *parts;
    id_buffer ids;      /* of a document */
    byte_range *tokens; /* LIST_PARTS: the bytes of the text that each token stands for */
    size_t capacity;
} pack_marks;

typedef struct pack_text { /* a document */
    const uint8_t *bytes;
    size_t n_bytes;
    const text_range *ranges; /* LIST_PARTS: of the bytes that count in the loss or have a role */
    size_t n_ranges;
} pack_text;

/* Appends the ids of the text, and those that begin and end the document, as encoder_encode; but
 * nothing unless it returns TOKENIZE_OK. TOKENIZE_SPECIAL also: it is not known which bytes of the
 * text the tokens stand for, because it is changed before it is encoded. In marked text, these
 * count if the id beside them does, and a document that ends with eod_id gets no other. */
tokenize_status pack_marks_encode(pack_marks *m, encoder *e, pack_text text, id_buffer *ids);
/* Returns the bits of an id that are its mark. */
uint32_t pack_marks_bits(const pack_options *options);
void pack_marks_free(pack_marks *m);
