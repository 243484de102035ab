/* SPDX-License-Identifier: Apache-2.0 */
/* arrow_reader.h - a reader of Arrow's IPC format: a column of texts, one record batch after
 * another. A stream and a file are read in the same way, from front to back.
 *
 * The place of a document is the offset of its record batch and the number of its row in the
 * input. */
#ifndef TOKMAP_ARROW_READER_H
#define TOKMAP_ARROW_READER_H

#include "corpus/reader_kind.h"

bool arrow_is_magic(const uint8_t *bytes, size_t n_bytes);
/* Takes over the window, except on failure. */
reader *arrow_reader_open(const corpus_options *options, const window *w, failure *err);

#endif /* TOKMAP_ARROW_READER_H */
