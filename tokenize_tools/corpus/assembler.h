/* assembler.h - the text of documents, mended, put into a batch and cut; for corpus.c. */
#ifndef TOKMAP_ASSEMBLER_H
#define TOKMAP_ASSEMBLER_H

#include "corpus/corpus.h"
#include "corpus/reader.h"

/* Where a document is cut depends on its text alone, not on how it was read: in a batch of its own
 * that is filled up to batch_bytes or, while there is no place to cut, up to twice as much. */
typedef struct assembler {
    const corpus_options *options;
    corpus_batch *batch;
    size_t limit;          /* how much the batch may hold now */
    size_t begin;          /* of the document at hand, in the batch */
    uint64_t n_before;     /* text bytes of it that came before the batch */
    uint64_t n_discard;    /* that have come before and are still to be read */
    uint64_t replacements; /* in it */
    bool may_cut;          /* set it before a document is cut for the first time */
    uint8_t *carry;        /* what was cut off: the beginning of the next batch */
    size_t n_carry, carry_capacity;
    char reason[128]; /* ADD_BAD */
    uint64_t bad_at;  /* in the text of the document; 0 if it is all of it */
} assembler;

typedef enum add_result {
    ADD_DONE,      /* with what is left of the text, wait for more */
    ADD_FULL,      /* hand out the batch, then call again */
    ADD_FIRST_CUT, /* the document is to be cut: set may_cut, then call again */
    ADD_BAD,
    ADD_NO_MEMORY
} add_result;

void assembler_begin_document(assembler *a);
/* Takes the text from its front. */
add_result assembler_add(assembler *a, reader_text *text);
/* Takes what there is of the document out of the batch. */
void assembler_drop(assembler *a);
uint64_t assembler_document_bytes(const assembler *a);

/* The batch becomes the next one. false: out of memory. */
bool assembler_next_batch(assembler *a, corpus_batch *batch);
void assembler_free(assembler *a);

#endif /* TOKMAP_ASSEMBLER_H */
