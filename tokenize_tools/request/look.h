/* SPDX-License-Identifier: Apache-2.0 */
/* look.h - opens each input of tokmap pack before the run, and finds what it is. */
#pragma once

#include "request/inputs.h"

/* Opens each input that can be read again, and finds what it is or why it is refused: a bad input
 * ends a run before anything is packed. With --format auto, text beside records is refused. With
 * --skip-unsuitable, removes what is recognized as something other than text. Names all that cannot
 * be packed. Returns an exit code, and prints errors and notes. */
int pack_inputs_look(pack_inputs *inputs, const pack_options *options);
/* Refuses text beside records and what cannot be packed, as pack_inputs_look does, of inputs that
 * were looked at before and have changed. */
int pack_inputs_check_kinds(pack_inputs *inputs, const pack_options *options);
const char *pack_kind_name(corpus_format kind); /* CORPUS_AUTO is "empty" */
/* "118 jsonl, 2 parquet, 1 empty"; an empty text if none was looked at. */
#define PACK_KINDS_BYTES 256
void pack_kinds_text(const pack_inputs *inputs, char text[PACK_KINDS_BYTES]);
/* Prints it unless the format was given. */
void pack_kinds_note(const pack_inputs *inputs, const pack_options *options);
