/* SPDX-License-Identifier: Apache-2.0 */
/* part_reading.h - reads inputs as a whole, from a place on, and in parts that are cut at random
 * places: all must give the same. */
#pragma once

#include "corpus/corpus.h"
#include "support/random_input.h"

/* A place after a batch, and how much was read before it. */
typedef struct part_place {
    corpus_place place;
    size_t text, ends, values, ranges;
} part_place;

typedef struct part_reading {
    input_bytes text;
    input_bytes ends;   /* uint64_t: where documents end in the text */
    input_bytes ended;  /* corpus_counts: at these ends, if the options ask for them */
    input_bytes inputs; /* corpus_end: of inputs */
    input_bytes places; /* part_place: after each batch */
    input_bytes values;
    input_bytes ranges;   /* text_range: of all documents */
    input_bytes messages; /* about bad documents, each with a newline; */
    input_bytes reports;  /* the same without the numbers of lines */
    corpus_counts counts;
    int result;
    failure err;
    /* Of the parts: */
    size_t n_parts, n_cut, n_resumed;
} part_reading;

/* Reads inputs from a place on; NULL: from the beginning. The functions in the options are
 * replaced. NULL, or what is wrong with the batches. */
const char *part_reading_read(part_reading *r, const char *const *names, size_t n_names,
                              const corpus_options *options, const corpus_place *from);
/* How a reading from one of the whole's places on differs from the rest of the whole, or NULL. */
const char *part_reading_compare_rest(const part_reading *whole, const part_place *place,
                                      const part_reading *rest);
/* Reads the parts one after another into *all, each a second time from a random place on, and
 * compares with the whole. NULL, or how they differ. */
const char *part_reading_compare(part_reading *all, const char *const *names, size_t n_names,
                                 const corpus_options *options, uint64_t *random);
/* Reads an input into *r, and a second time from a random place on. NULL, or how they differ. */
const char *part_reading_resume(part_reading *r, const char *name, const corpus_options *options,
                                uint64_t *random);
void part_reading_free(part_reading *r);

size_t part_reading_n_documents(const part_reading *r);
/* A document; *n_bytes: of its text. */
const uint8_t *part_reading_document(const part_reading *r, size_t i, size_t *n_bytes);
size_t part_reading_n_places(const part_reading *r);
const part_place *part_reading_place(const part_reading *r, size_t i);
/* The documents, each with a | behind it, or the text of the error; until the next call. */
const char *part_reading_text(const part_reading *r);
