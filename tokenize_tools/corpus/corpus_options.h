/* SPDX-License-Identifier: Apache-2.0 */
/* corpus_options.h - checks and completes the options of corpus.h; for corpus.c and cutter.c. */
#ifndef TOKMAP_CORPUS_OPTIONS_H
#define TOKMAP_CORPUS_OPTIONS_H

#include "corpus/corpus.h"

/* NULL, or why the options make no sense for this number of inputs. */
const char *corpus_options_wrong(const corpus_options *o, size_t n_names);
/* Replaces zeros by the defaults, and sizes that are too small or too large. */
corpus_options corpus_options_complete(const corpus_options *o);
/* Whether only a part of an input is read, and which. */
bool corpus_options_part(const corpus_options *o, size_t n_names, size_t which, input_part *part);
/* Whether FIELD_ROW is among the fields. */
bool corpus_options_want_row(const corpus_options *o);

#endif /* TOKMAP_CORPUS_OPTIONS_H */
