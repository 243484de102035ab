/* SPDX-License-Identifier: Apache-2.0 */
/* assembler.h - repairs the text of documents, adds it to a batch, and cuts it; for corpus.c. */
#pragma once

#include "corpus/corpus.h"
#include "corpus/reader.h"

/* Where a document is cut depends on its text alone, not on how it was read: it is put into an
 * empty batch, which is filled up to batch_bytes and doubled while there is no place to cut. */
typedef struct assembler {
    const corpus_options *options;
    corpus_batch *batch;
    size_t limit;          /* current size limit of the batch */
    size_t n_searched;     /* bytes of it without a place to cut */
    size_t begin;          /* of the current document, in the batch */
    uint64_t n_before;     /* bytes of its text before this batch */
    uint64_t n_discard;    /* bytes of it that were packed earlier and will be read again */
    uint64_t replacements; /* in it */
    bool may_cut;          /* to be set before a document is cut for the first time */
    uint8_t *carry;        /* the text after the cut: the beginning of the next batch */
    size_t n_carry, carry_capacity;
    char reason[128]; /* ADD_BAD */
    uint64_t bad_at;  /* offset in the text of the document; 0: the whole text */
} assembler;

typedef enum add_result {
    ADD_DONE,      /* keep the rest of the text until there is more */
    ADD_FULL,      /* hand out the batch, and call again */
    ADD_FIRST_CUT, /* the document must be cut: set may_cut, and call again */
    ADD_BAD,
    ADD_NO_MEMORY
} add_result;

void assembler_begin_document(assembler *a);
/* Consumes the text from its front. */
add_result assembler_add(assembler *a, reader_text *text);
/* Removes the document from the batch. */
void assembler_drop(assembler *a);
uint64_t assembler_document_bytes(const assembler *a);

/* Continues in this batch. false: out of memory. */
bool assembler_next_batch(assembler *a, corpus_batch *batch);
void assembler_free(assembler *a);
