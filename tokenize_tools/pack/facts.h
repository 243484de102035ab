/* facts.h - everything that decides the bytes that a run writes, as text. It shows whether a run
 * may resume an earlier one, and if not, why.
 *
 * One line for each option, "NAME VALUE", then one for each input. Time, threads, memory and output
 * options are not part of it. */
#ifndef TOKMAP_PACK_FACTS_H
#define TOKMAP_PACK_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pack/inputs.h"
#include "pack/options.h"
#include "pack/tokens.h"

#define PACK_DIFFERENCE_BYTES 512

typedef struct pack_facts {
    char *text; /* owned, NUL-terminated */
    size_t n_bytes;
    uint64_t hash;
} pack_facts;

typedef struct pack_parts {
    const pack_options *options;
    const tokenizer_file *tokenizer;
    const pack_tokens *tokens;
    const pack_inputs *inputs;
} pack_parts;

/* false: out of memory. */
bool pack_facts_make(pack_facts *facts, const pack_parts *parts);
void pack_facts_free(pack_facts *facts);

/* Describes how `facts` differs from the one that begins with `then`: "--eod was 256 and is now
 * 0". */
void pack_facts_difference(const pack_facts *facts, const char *then, size_t n_then,
                           char difference[PACK_DIFFERENCE_BYTES]);

#endif /* TOKMAP_PACK_FACTS_H */
