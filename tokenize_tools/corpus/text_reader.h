/* SPDX-License-Identifier: Apache-2.0 */
/* text_reader.h - a reader of text, lines and JSON lines. */
#ifndef TOKMAP_TEXT_READER_H
#define TOKMAP_TEXT_READER_H

#include "corpus/reader_kind.h"

/* Takes over the window, except on failure. The format is an option, or is decided by the first
 * line. */
reader *text_reader_open(const corpus_options *options, const window *w, failure *err);
/* Reads what follows in the window as if it were another input. one_record: all of it is one,
 * JSON over any number of lines. */
void text_reader_restart(reader *r, corpus_format format, bool one_record);

#endif /* TOKMAP_TEXT_READER_H */
