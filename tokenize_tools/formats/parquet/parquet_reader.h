/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_reader.h - the format of Parquet files, for the readers of inputs. */
#pragma once

#include "formats/format.h"

/* A Parquet file: each row is a document, and a column of strings is its text. */
extern const reader_kind parquet_reader_kind;
/* Whether a file is a regular one and Parquet, by its first bytes; *sys_errno is set if they cannot
 * be read. */
bool parquet_is_magic(int fd, int *sys_errno);
/* As corpus_cutter_next, with the reader of a whole file. */
int parquet_reader_next_cut(reader *base, uint64_t at_least, corpus_cut *cut, failure *err);
