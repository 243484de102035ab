/* plan.h - everything that decides the bytes that a run writes, as text. It shows whether a run may
 * resume an earlier one, and if not, why.
 *
 * One line for each option, "NAME VALUE", then one for each input. Time, threads, memory and output
 * options are not part of it. */
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
    char *text; /* owned, NUL-terminated */
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

/* Describes how `plan` differs from the one that begins with `then`: "--eod was 256 and is now
 * 0". */
void pack_plan_difference(const pack_plan *plan, const char *then, size_t n_then,
                          char difference[PACK_DIFFERENCE_BYTES]);

#endif /* TOKMAP_PACK_PLAN_H */
