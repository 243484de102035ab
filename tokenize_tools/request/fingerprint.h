/* SPDX-License-Identifier: Apache-2.0 */
/* fingerprint.h - everything that decides the bytes that a run writes, as text. It shows whether a
 * run may resume an earlier one, and if not, why.
 *
 * For a cell, the plan, its number and its hash; one line for each option, "NAME VALUE", then
 * one for each input. Time, threads, memory and output options are not part of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "request/inputs.h"
#include "request/options.h"

#define PACK_DIFFERENCE_BYTES 512

typedef struct pack_fingerprint {
    char *text; /* owned */
    size_t n_bytes;
    size_t options_bytes; /* before the lines of inputs */
    uint64_t hash;
} pack_fingerprint;

typedef struct pack_cell {
    uint64_t hash, origin; /* as in plan_file */
    size_t number;
    struct pack_remaining *remaining; /* of all cells of this process; or NULL */
    size_t which, n_cells;            /* its place among these cells, from 1; how many they are */
} pack_cell;

typedef struct pack_parts {
    const pack_options *options;
    const tokenizer_file *tokenizer;
    const pack_tokens *tokens;
    const pack_inputs *inputs; /* NULL: none, in the fingerprint of a plan */
    const pack_cell *cell;     /* NULL: a plain pack */
} pack_parts;

/* What decides the documents of a corpus; the rest is up to the caller. */
corpus_options pack_corpus_options(const pack_parts *parts);

/* Writes the first lines of the fingerprint of a cell, which no other cell has. The lines that stay
 * the same when the plan is updated come first; returns their size. */
#define PACK_FINGERPRINT_CELL_BYTES 96
size_t pack_fingerprint_cell(const pack_cell *cell, char text[PACK_FINGERPRINT_CELL_BYTES]);
/* Makes a fingerprint; false: out of memory. */
bool pack_fingerprint_make(pack_fingerprint *fingerprint, const pack_parts *parts);
void pack_fingerprint_free(pack_fingerprint *fingerprint);
/* Returns the number of bytes before the line of input `n`, or of all lines. */
size_t pack_fingerprint_before(const pack_fingerprint *fingerprint, uint64_t n);
/* Hashes the lines of the options and the first `n` inputs. */
uint64_t pack_fingerprint_hash(const pack_fingerprint *fingerprint, uint64_t n);

/* Describes how `fingerprint` differs from the one that begins with `then`: "--eod was 256 and
 * is now 0". */
void pack_fingerprint_difference(const pack_fingerprint *fingerprint, const char *then,
                                 size_t n_then, char difference[PACK_DIFFERENCE_BYTES]);
