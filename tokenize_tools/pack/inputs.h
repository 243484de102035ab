/* inputs.h - the inputs of tokmap pack as they are on the disk now. */
#ifndef TOKMAP_PACK_INPUTS_H
#define TOKMAP_PACK_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corpus/input_list.h"
#include "pack/options.h"

typedef struct pack_inputs {
    const char *const *names;
    input_version *versions; /* of each; not known for what can be read only once */
    size_t n;
    uint64_t total_bytes; /* 0: not known */
    const char *once;     /* the first that cannot be read again, or NULL */
    input_list files;     /* what the names are of */
} pack_inputs;

/* Finds the files that the arguments stand for and looks at each: a name that is wrong should be
 * told now and not after hours of work. What this run or one before it writes is left out of
 * folders and patterns. Returns an exit code, with a message. */
int pack_inputs_look(pack_inputs *inputs, char **arguments, size_t n_arguments,
                     const pack_options *options);
void pack_inputs_free(pack_inputs *inputs);

#endif /* TOKMAP_PACK_INPUTS_H */
