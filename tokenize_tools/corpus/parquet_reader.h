/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_reader.h - the documents of a Parquet file: each row is one, and a column of strings is
 * its text. */
#ifndef TOKMAP_PARQUET_READER_H
#define TOKMAP_PARQUET_READER_H

#include "corpus/reader_kind.h"

/* Whether an input is to be read as Parquet. The file is opened for its first bytes; *sys_errno
 * is set if they cannot be read. */
bool parquet_reader_chooses(const input_source *source, const corpus_options *options,
                            int *sys_errno);
/* The options of the reader interface. NULL: *err says why. */
reader *parquet_reader_open(const input_source *source, const corpus_options *options, int stop_fd,
                            failure *err);

/* As corpus_cutter_next, with the reader of a whole file. */
int parquet_reader_next_cut(reader *base, uint64_t at_least, corpus_cut *cut, failure *err);

#endif /* TOKMAP_PARQUET_READER_H */
