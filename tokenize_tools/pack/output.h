/* output.h - the datasets that one run writes, P and a P-NAME for each split: opened, brought
 * to a checkpoint and finished together.
 *
 * Each writer keeps its checkpoints in a journal of its own, P first, so a kill may come between
 * two of them: all go back to the last one that all have. When everything is packed one more
 * checkpoint says so; then the outputs get their names one by one, P last. */
#ifndef TOKMAP_PACK_OUTPUT_H
#define TOKMAP_PACK_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pack/error.h"
#include "pack/options.h"
#include "pack/tokens.h"
#include "tokmap_writer.h"

typedef struct pack_output {
    char prefix[PATH_PREFIX_BYTES];
    char index_path[PATH_PREFIX_BYTES + 8]; /* its name for the library, whatever P ends in */
    const pack_split *split;                /* NULL: P itself, for what goes to no split */
    tokmap_writer *writer;                  /* NULL: not open, or complete already */
    uint64_t tokens, documents;
} pack_output;

typedef struct pack_outputs {
    pack_output list[PACK_MAX_SPLITS + 1]; /* P first */
    size_t n;
} pack_outputs;

typedef struct pack_outputs_options {
    const pack_options *options;
    const pack_tokens *tokens;
    bool resumable;      /* there will be checkpoints */
    bool discard;        /* unfinished work that is there is thrown away, else refused */
    uint64_t checkpoint; /* to go on from; 0: begin */
    bool finishing;      /* all is packed there; outputs may have their names already */
} pack_outputs_options;

/* Names them. */
void pack_outputs_init(pack_outputs *outputs, const pack_options *options);
/* Opens the writers. Returns an exit code, with a message. */
int pack_outputs_open(pack_outputs *outputs, const pack_outputs_options *options);
int pack_outputs_checkpoint(pack_outputs *outputs, const void *note, size_t n_bytes,
                            pack_error *err);
/* Whether there is a checkpoint, so that closing keeps what was written. */
bool pack_outputs_keep(const pack_outputs *outputs);
/* Finishes output `which`. */
int pack_outputs_finish(pack_outputs *outputs, size_t which, const char *metadata, size_t n_bytes,
                        pack_error *err);
void pack_outputs_close(pack_outputs *outputs);

#endif /* TOKMAP_PACK_OUTPUT_H */
