/* SPDX-License-Identifier: Apache-2.0 */
/* look.h - opens each input of tokmap pack before the run, and finds what it is. */
#pragma once

#include "request/inputs.h"

/* Opens each input that can be read again, and finds what it is or why it is refused: a bad input
 * ends a run before anything is packed. With --format auto, text beside records is refused. With
 * --skip-unsuitable, removes what is recognized as something other than text. Names all that cannot
 * be packed. Adds to the options which fields are strings in CSV and TSV. Returns an exit code, and
 * prints errors and notes; but in a dry run, inputs->seen has what is wrong with an input, and
 * pack_inputs_refuse prints the error. */
int pack_inputs_look(pack_inputs *inputs, pack_options *options);
/* Keeps why an input cannot be packed, for the table of a dry run. Returns an exit code, and prints
 * the error. */
int pack_inputs_keep_failure(pack_inputs *inputs, size_t which, const failure *err);
/* Prints what a dry run says after its table, if not all inputs can be packed in one run. Returns
 * the exit code that the run would have. */
int pack_inputs_refuse(const pack_inputs *inputs, const pack_options *options);
/* Refuses text beside records, tables with other columns or types, fields that no input has, and
 * what cannot be packed, as pack_inputs_look does, of inputs that were looked at before and have
 * changed. */
int pack_inputs_check_again(pack_inputs *inputs, const pack_options *options);
const char *pack_kind_name(corpus_format kind); /* CORPUS_AUTO is "empty" */
/* "118 jsonl, 2 parquet, 1 empty"; an empty text if none was looked at. */
#define PACK_KINDS_BYTES 256
void pack_kinds_text(const pack_inputs *inputs, char text[PACK_KINDS_BYTES]);
/* Prints it if there are several, unless the format was given. */
void pack_kinds_note(const pack_inputs *inputs, const pack_options *options);
