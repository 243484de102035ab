/* corpus_part.h - which part of an input is read; for corpus.c. */
#ifndef TOKMAP_CORPUS_PART_H
#define TOKMAP_CORPUS_PART_H

#include "corpus/corpus.h"

/* NULL, or why the parts that the options ask for cannot be read. */
const char *corpus_part_wrong(const corpus_options *options, size_t n_names);
/* Whether only a part of an input is read, and which. */
bool corpus_part_find(const corpus_options *options, size_t n_names, size_t which,
                      input_part *part);
/* Sets what is known of the whole input at the end of its part. */
bool corpus_part_end(const char *name, corpus_end *end, corpus_error *err);

#endif /* TOKMAP_CORPUS_PART_H */
