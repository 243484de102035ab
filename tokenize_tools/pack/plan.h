/* plan.h - what decides the bytes that a run writes, as text: to tell whether another run may
 * go on where this one was killed, and if not, why.
 *
 * One line for each option, "NAME VALUE", then one for each input. Time, threads, memory and what
 * is printed are not in it. */
#ifndef TOKMAP_PACK_PLAN_H
#define TOKMAP_PACK_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pack/inputs.h"
#include "pack/options.h"
#include "pack/tokens.h"

#define PACK_DIFFERENCE_BYTES 512

typedef struct pack_plan {
    char *text; /* owned, with a NUL */
    size_t n_bytes;
    uint64_t hash;
} pack_plan;

typedef struct pack_plan_parts {
    const pack_options *options;
    const tokenizer_file *tokenizer;
    const pack_tokens *tokens;
    const pack_inputs *inputs;
} pack_plan_parts;

/* false: out of memory. */
bool pack_plan_make(pack_plan *plan, const pack_plan_parts *parts);
void pack_plan_free(pack_plan *plan);

/* Says how `plan` differs from the one that begins with `then`: "--eod was 256 and is 0". */
void pack_plan_difference(const pack_plan *plan, const char *then, size_t n_then,
                          char difference[PACK_DIFFERENCE_BYTES]);

#endif /* TOKMAP_PACK_PLAN_H */
