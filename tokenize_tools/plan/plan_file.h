/* SPDX-License-Identifier: Apache-2.0 */
/* plan_file.h - the plan of a pack in cells: a text file that states which inputs are packed with
 * which options, and where the cells begin. docs/FORMAT.md section 10 specifies it.
 *
 * `tokmap plan` writes it; pack, status and join read it. Printing a parsed plan gives the same
 * bytes. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/paths.h"
#include "base/error.h"

#define PLAN_MAX_INPUTS ((size_t)1 << 24)
#define PLAN_MAX_CELLS ((size_t)1 << 20) /* as many as a dataset may have segments */
#define PLAN_MAX_OPTIONS 256
#define PLAN_MAX_FACTS 256
#define PLAN_MAX_TEXT_BYTES 16384 /* bytes of a path or a value */
#define PLAN_MAX_FILE_BYTES ((size_t)1 << 32)

typedef struct plan_option {
    const char *name;  /* without dashes */
    const char *value; /* NULL: the option takes no value */
} plan_option;

typedef struct plan_input {
    uint64_t n_bytes, mtime_ns; /* when the plan was made */
    const char *format;         /* a word of --format, or "tar" */
    const char *name;
    size_t line; /* where its line begins in the text that was parsed */
} plan_input;

/* Where a cell begins; it ends where the next one begins, the last one at the end of the inputs. A
 * cell that ends where it begins is empty. */
typedef struct plan_cell {
    uint64_t input;       /* n_inputs: at the end of all */
    uint64_t offset, row; /* as in corpus_cut (input/input.h); 0: at the start of the input */
    uint64_t hash;        /* identifies what is packed into it; set by the parser */
} plan_cell;

/* The datasets of each cell: one for the documents in no split, with an empty name here, and one
 * for each split. */
#define PLAN_MAX_SPLITS 16
typedef struct plan_splits {
    char names[PLAN_MAX_SPLITS + 1][33];
    size_t n;
} plan_splits;

typedef struct plan_file {
    const char *folder;       /* relative names are looked up there; begins with / */
    const char *cells_folder; /* for the datasets of the cells */
    uint64_t cell_bytes;      /* --cell-size */
    plan_option *options;
    size_t n_options;
    char *fingerprint; /* the lines "fact" (request/fingerprint.h) */
    size_t fingerprint_bytes;
    plan_input *inputs;
    size_t n_inputs;
    plan_cell *cells;
    size_t n_cells;
    uint64_t hash;      /* the checksum of its text */
    uint64_t origin;    /* the hash of the plan as it was made */
    bool updated;       /* else the origin is the hash */
    plan_splits splits; /* if it was parsed */
    char *memory;       /* holds the texts above, if they were parsed */
} plan_file;

/* Parses a plan, which begins as {0}; plan_file_free frees it, also after a failure, whose place is
 * a line. */
bool plan_file_parse(plan_file *plan, const char *text, size_t n_bytes, failure *err);
/* Prints a plan whose members before `hash` are set; sets the hash. Malloced; NULL: out of
 * memory. */
char *plan_file_print(plan_file *plan, size_t *n_bytes);
void plan_file_free(plan_file *plan);
/* Reads a plan, which begins as {0}, and protects its file (system/protected.h). plan_file_free
 * frees it, also after a failure. Returns an exit code, and prints the error. */
int plan_read(plan_file *plan, const char *path);
/* The same as plan_read, but the file may be an output. */
int plan_read_to_update(plan_file *plan, const char *path);

/* Whether the paths of cells are short enough; the parser checks it. */
bool plan_file_folders_fit(const plan_file *plan);
/* Returns the value of the last option of this name, or NULL. */
const char *plan_file_option(const plan_file *plan, const char *name);
/* Returns P and the suffix, or, with a split, P-NAME and the suffix. */
path_text plan_split_path(const char *prefix, const char *split, const char *suffix);

/* ---- Cells ---- */

/* The inputs [first_input, end_input) of a cell, without any if the cell is empty; and where the
 * cell begins in the first one and ends in the last one. */
typedef struct plan_part {
    size_t first_input, end_input;
    uint64_t begin_offset, begin_row;
    uint64_t end_offset, end_row; /* 0: at the end of the input */
} plan_part;

plan_part plan_file_part(const plan_file *plan, size_t cell);
/* Returns the stored bytes of its inputs. */
uint64_t plan_file_cell_bytes(const plan_file *plan, size_t cell);
/* Returns the path of a file of a cell's dataset: /FOLDER/DIR/000042SUFFIX, or, with a split,
 * /FOLDER/DIR/000042-validSUFFIX. */
path_text plan_file_cell_path(const plan_file *plan, size_t cell, const char *split,
                              const char *suffix);
