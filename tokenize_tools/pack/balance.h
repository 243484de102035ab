/* balance.h - what was read against what was written: checked at each checkpoint, and before
 * anything gets its name.
 *
 * Reader, encoders, packer and writers each keep their own count of what passes them, across
 * resumed runs too. Whatever is lost or doubled between two of them shows as a difference. */
#ifndef TOKMAP_PACK_BALANCE_H
#define TOKMAP_PACK_BALANCE_H

#include "pack/documents.h"

typedef struct pack_balance {
    const pack_inputs *inputs;
    const pack_outputs *outputs;
    const corpus_place *read;
    uint64_t encoded_tokens;
    const pack_position *packed;
    bool limited;             /* a limit ended the work in the middle of an input */
    bool collected;           /* bad documents were copied: */
    uint64_t collected_bytes; /* so much */
} pack_balance;

/* CLI_OK, or CLI_DATASET with what does not add up. */
int pack_balance_check(const pack_balance *b, pack_error *err);

#endif /* TOKMAP_PACK_BALANCE_H */
