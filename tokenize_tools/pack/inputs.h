/* SPDX-License-Identifier: Apache-2.0 */
/* inputs.h - finds the inputs of tokmap pack, and their sizes and times. */
#ifndef TOKMAP_PACK_INPUTS_H
#define TOKMAP_PACK_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corpus/input_list.h"
#include "pack/options.h"

#define PACK_N_KINDS (CORPUS_PARQUET + 1)
typedef struct pack_kinds {
    size_t n[PACK_N_KINDS]; /* inputs of each corpus_format; n[CORPUS_AUTO]: empty ones */
} pack_kinds;

typedef struct pack_inputs {
    const char *const *names;
    input_version *versions; /* of each input; unknown if it can be read only once */
    size_t n;
    uint64_t total_bytes; /* 0: unknown */
    const char *once;     /* the first one that cannot be read again, or NULL */
    /* Of a cell: where it begins in its first input, and ends in its last one. */
    corpus_cut begin, end;
    bool has_end;                 /* false: at the end of its last input */
    const corpus_format *formats; /* of each input, as corpus_options takes them; else NULL */
    input_list files;             /* owns the names of a plain pack */
    pack_kinds kinds;             /* of a plain pack, set by pack_look */
} pack_inputs;

/* Finds the files that the arguments stand for and checks each, so that a wrong name is reported
 * now and not after hours of work. Files that this run or an earlier one wrote are left out of
 * folders and patterns. Returns an exit code, and prints the error. */
int pack_inputs_find(pack_inputs *inputs, char **arguments, size_t n_arguments,
                     const pack_options *options);
/* Describes and protects one input, which may be stdin. Returns an exit code, and prints the
 * error. */
int pack_input_describe(const char *name, file_facts *facts);

/* ---- All of them ---- */

/* Looks at one input. Returns an exit code, and prints the error. */
typedef int (*pack_input_look)(void *context, size_t which);
/* Looks at each input. If one cannot be packed (CLI_INPUT), it goes on with the others, so that all
 * of these are named at once. Returns the exit code of the last failure. */
int pack_inputs_each(const pack_inputs *inputs, pack_input_look look, void *context);
void pack_inputs_free(pack_inputs *inputs);

#endif /* TOKMAP_PACK_INPUTS_H */
