/* SPDX-License-Identifier: Apache-2.0 */
/* hf_vocabulary.h - reads {"token": id} and merges, as in tokenizer.json, vocab.json and
 * merges.txt. */
#pragma once

#include "base/json_reader.h"
#include "tokenizer/model/model.h"
#include "tokenizer/model/name_table.h"

/* Reads the tokens of m, and their names as written. In a byte-level model the names stand for
 * bytes; with byte_fallback <0xNN> are bytes. */
bool hf_read_vocabulary(json_reader *r, model *m, name_table *names, failure *err);
/* Reads a list of "a b" or of ["a", "b"]. */
bool hf_read_merges(json_reader *r, model *m, const name_table *names, failure *err);
/* Reads lines of "a b". */
bool hf_read_merge_lines(json_string text, model *m, const name_table *names, failure *err);
/* Returns the value of the byte that <0xNN>, with capitals, stands for; -1 for any other name. */
int hf_byte_of_name(const char *name, size_t n_bytes);
