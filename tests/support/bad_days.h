/* SPDX-License-Identifier: Apache-2.0 */
/* bad_days.h - shared by the tests of damage and failure: small datasets whose contents follow from
 * a shape, whole files in memory, and the invariants of every dataset that opens. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokmap_writer.h"

/* ---- Whole files ---- */

typedef struct file_bytes {
    uint8_t *data;
    size_t n_bytes;
} file_bytes;

/* The data is NULL when the file cannot be read; one byte more than the file, zero, follows it. */
file_bytes file_load(const char *path);
bool file_store(const char *path, const void *data, size_t n_bytes);
bool file_is_there(const char *path);
bool file_holds(const char *path, const file_bytes *bytes);
/* Cuts a file that may be in use, and returns what it was. */
file_bytes file_cut(const char *path, size_t n_left);
/* Whether both can be read and have the same bytes. */
bool files_are_equal(const char *a, const char *b);

/* ---- Datasets whose content follows from their shape ---- */

typedef struct shape {
    const char *name;
    uint64_t vocab_size;
    uint32_t n_tokens, n_documents, n_inputs;
    uint32_t seed; /* of the ids */
    const char *metadata;
    uint32_t token_offset; /* with adopted_suffix: bytes of a foreign header */
    const char *adopted_suffix;
    uint32_t n_columns; /* of values, up to SHAPE_MAX_COLUMNS */
} shape;

extern const shape SHAPE_TINY, SHAPE_WIDE_IDS, SHAPE_NO_DOCUMENTS, SHAPE_EMPTY, SHAPE_ADOPTED,
    SHAPE_VALUES;
enum {
    N_SMALL_SHAPES = 6, /* these */
    SHAPE_MAX_COLUMNS = 5
};
extern const shape SHAPE_OLD; /* of what is replaced */
extern const shape *const SMALL_SHAPES[N_SMALL_SHAPES];

uint32_t shape_id(const shape *s, uint64_t token);
/* Every fifth document is empty. */
uint64_t shape_document_end(const shape *s, uint32_t document);
uint32_t shape_input_end(const shape *s, uint32_t input) /* document */;
/* P and the suffix of the token file, and so on. */
const char *with_suffix(const char *prefix, const char *suffix);
const char *shape_token_path(const shape *s, const char *prefix);
/* Writes the tokens [first, end) in calls of odd sizes. */
tokmap_status shape_append(const shape *s, tokmap_writer *w, uint64_t first, uint64_t end,
                           tokmap_error *err);
/* Everything but open, finish and close; of an adopted one only what is declared. */
tokmap_status shape_fill(const shape *s, tokmap_writer *w, tokmap_error *err);
/* The token bytes as the file holds them, with the foreign header (0xee) before them. */
file_bytes shape_token_file(const shape *s);
bool shape_store_tokens(const shape *s, const char *prefix);
tokmap_status shape_open(const shape *s, const char *prefix, bool replace, tokmap_writer **out,
                         tokmap_error *err);
/* Writes it (of an adopted one, the index: shape_store_tokens comes first). */
tokmap_status shape_write(const shape *s, const char *prefix, bool replace, tokmap_error *err);

/* ---- Invariants of every dataset that opens ---- */

/* Calls everything that reads; NULL, or what was out of range. */
const char *probe(const tokmap_dataset *ds);
/* The promise of verify if it finds no damage: documents and inputs cover all tokens without
 * gaps. */
const char *probe_sound(const tokmap_dataset *ds);
tokmap_status verify_one_thread(const tokmap_dataset *ds, tokmap_error *err);
/* NULL if everything except the checksums is as in the shape; else the difference. */
const char *compare_content(const shape *s, const tokmap_dataset *ds);
/* NULL if the dataset exists, is sound, and contains exactly this; else the error. */
const char *shape_compare(const shape *s, const char *prefix);
/* Absent for readers: no index, so that open says that there is no such file. */
bool is_absent(const char *prefix);
bool has_partials(const char *prefix);
/* With all that writers leave but a journal. */
void remove_dataset(const char *prefix);
