/* pack_inputs.h - the inputs of tokmap pack as they are on the disk now. */
#ifndef TOKMAP_PACK_INPUTS_H
#define TOKMAP_PACK_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pack_options.h"

typedef struct pack_input {
    uint64_t n_bytes, mtime_ns; /* 0 where `again` is false */
    bool again;                 /* a regular file: it can be read a second time */
} pack_input;

typedef struct pack_inputs {
    const char *const *names;
    pack_input *list;
    size_t n;
    uint64_t total_bytes; /* 0: not known */
    const char *once;     /* the first that cannot be read again, or NULL */
} pack_inputs;

/* Looks at each of the files: a name that is wrong should be told now and not after hours of work.
 * The names live as long as the inputs. Returns an exit code, with a message. */
int pack_inputs_look(pack_inputs *inputs, const char *const *names, size_t n,
                     const pack_options *options);
void pack_inputs_free(pack_inputs *inputs);

#endif /* TOKMAP_PACK_INPUTS_H */
