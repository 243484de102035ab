/* SPDX-License-Identifier: Apache-2.0 */
/* batch.h - what a corpus_batch holds beside its text; for corpus.c. */
#ifndef TOKMAP_BATCH_H
#define TOKMAP_BATCH_H

#include "corpus/corpus.h"

/* The values of one document. Start with {0}. */
typedef struct document_values {
    uint8_t *bytes;
    size_t n_bytes, capacity;
} document_values;

/* false: out of memory. */
bool document_values_set(document_values *v, const tokmap_value *values, size_t n);
void document_values_free(document_values *v);

/* Add at the end of the batch. false: out of memory. */
bool batch_add_end(corpus_batch *batch, corpus_end end);
bool batch_add_values(corpus_batch *batch, const document_values *v);

#endif /* TOKMAP_BATCH_H */
