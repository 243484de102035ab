/* gather.h - rows of tokens, which lie anywhere, into one buffer: at their stored width or wider,
 * whole or as inputs and labels. Pure. */
#ifndef TOKMAP_GATHER_H
#define TOKMAP_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tokmap_i_gather_row {
    const void *tokens;   /* little-endian, aligned to token_bytes */
    uint32_t token_bytes; /* 2 or 4 */
    uint32_t n_tokens;    /* 2 to n_inputs + 1; fewer than that: the rest is filled */
    const uint8_t *mask;  /* n_inputs: labels with 0 become `ignore`; NULL: all count */
} tokmap_i_gather_row;

typedef struct tokmap_i_gather {
    const tokmap_i_gather_row *rows;
    size_t n_rows, n_inputs;
    unsigned width; /* of what is written: 2, 4 or 8 bytes, never less than the rows have */
    /* n_rows * n_inputs each, aligned to width; or whole: n_rows * (n_inputs + 1) in inputs, and
     * labels is NULL. Either may be NULL otherwise. */
    bool whole;
    void *inputs, *labels;
    uint32_t pad_id; /* inputs, and what a whole row lacks */
    int64_t ignore;  /* labels that do not count; cut to the width */
} tokmap_i_gather;

/* The best that the machine has; `_by` is for tests. Writes past the caches where that pays. */
void tokmap_i_gather_run(const tokmap_i_gather *g);

typedef enum tokmap_i_gather_level {
    TOKMAP_I_GATHER_SCALAR, /* the truth */
    TOKMAP_I_GATHER_AVX2,
    TOKMAP_I_GATHER_AVX512
} tokmap_i_gather_level;

bool tokmap_i_gather_works(tokmap_i_gather_level level);
/* streaming: write past the caches, whatever the size. */
void tokmap_i_gather_run_by(const tokmap_i_gather *g, tokmap_i_gather_level level, bool streaming);

#endif /* TOKMAP_GATHER_H */
