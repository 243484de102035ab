/* SPDX-License-Identifier: Apache-2.0 */
/* part_reading.h - reads inputs as a whole and in parts that are cut at random places: both must
 * give the same. */
#ifndef TOKMAP_PART_READING_H
#define TOKMAP_PART_READING_H

#include "corpus/corpus.h"
#include "support/random_input.h"

typedef struct part_reading {
    input_bytes text;
    input_bytes ends;   /* uint64_t: where documents end in the text */
    input_bytes inputs; /* corpus_end: of inputs */
    input_bytes values, collected;
    input_bytes
        reports; /* about bad documents, each with a newline; without the numbers of lines */
    corpus_counts counts;
    int result;
    failure err;
    /* Of the parts: */
    size_t n_parts, n_cut, n_resumed;
} part_reading;

/* Reads the parts one after another into *all, each a second time from a random place on, and
 * compares with the whole. NULL, or how they differ. The functions in the options are replaced. */
const char *part_reading_compare(part_reading *all, const char *const *names, size_t n_names,
                                 const corpus_options *options, uint64_t *random);
/* Reads an input into *r, and a second time from a random place on. NULL, or how they differ. */
const char *part_reading_resume(part_reading *r, const char *name, const corpus_options *options,
                                uint64_t *random);
void part_reading_free(part_reading *r);

#endif /* TOKMAP_PART_READING_H */
