/* SPDX-License-Identifier: Apache-2.0 */
/* balance.h - compares what was read with what was written, at each checkpoint and before any
 * output gets its name.
 *
 * The reader of an input, the corpus, the encoders, the packer and the writers each count what
 * passes them. A checkpoint stores these counts with the place, and a run that resumes continues
 * them. Data that is lost or duplicated between two of them shows as a difference.
 *
 * The reader counts records by its position, which is where a resumed run continues; the corpus
 * counts those that it has handed out or left out. Neither is computed from the other, so a place
 * behind a record that nobody got is never stored. */
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
    bool collected;           /* bad documents were copied, */
    uint64_t collected_bytes; /* and this many bytes of them */
} pack_balance;

/* CLI_OK, or CLI_DATASET with the first difference. */
int pack_balance_check(const pack_balance *b, pack_error *err);

#endif /* TOKMAP_PACK_BALANCE_H */
