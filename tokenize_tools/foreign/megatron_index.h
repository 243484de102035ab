/* SPDX-License-Identifier: Apache-2.0 */
/* megatron_index.h - writes the index of a Megatron .bin; megatron.c describes its layout. */
#pragma once

#include <stdbool.h>

#include "system/output_file.h"
#include "tokmap.h"

/* Writes the index of the tokens of ds to `out`, which was begun, with a sequence for each
 * document. skip_empty: except for documents without tokens, as in Megatron's preprocess_data.py.
 * Returns an exit code, and prints the error. */
int megatron_index_write(output_file *out, const tokmap_dataset *ds, bool skip_empty);
