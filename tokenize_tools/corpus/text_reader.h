/* text_reader.h - a reader of text, lines and JSON lines. */
#ifndef TOKMAP_TEXT_READER_H
#define TOKMAP_TEXT_READER_H

#include "corpus/reader_kind.h"

/* Takes over the window, except on failure. The format is an option, or is decided by the first
 * line. */
reader *text_reader_open(const corpus_options *options, const window *w, corpus_error *err);

#endif /* TOKMAP_TEXT_READER_H */
