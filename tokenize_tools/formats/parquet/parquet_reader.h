/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_reader.h - the format of Parquet files, for the readers of inputs. */
#pragma once

#include "formats/format.h"

/* A Parquet file: each row is a document, and a column of strings is its text. */
extern const reader_kind parquet_reader_kind;
/* Whether an input is to be read as Parquet. The file is opened for its first bytes; *sys_errno
 * is set if they cannot be read. */
bool parquet_reader_chooses(const input_source *source, const reader_options *options,
                            int *sys_errno);
/* As corpus_cutter_next, with the reader of a whole file. */
int parquet_reader_next_cut(reader *base, uint64_t at_least, corpus_cut *cut, failure *err);
