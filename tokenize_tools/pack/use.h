/* SPDX-License-Identifier: Apache-2.0 */
/* use.h - what a run has used and where it waited, and from that the stage that limited it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/json_out.h"

typedef enum pack_limit {
    LIMITED_BY_READ,
    LIMITED_BY_DECOMPRESS,
    LIMITED_BY_ENCODE,
    LIMITED_BY_WRITE,
    LIMITED_BY_MEMORY,
} pack_limit;

/* Times in nanoseconds. */
typedef struct pack_use {
    uint64_t wall;
    uint64_t read, decompress, encode, main, flush; /* CPU time of the threads of each kind */
    uint64_t main_waited;                           /* of the wall time, for a job */
    uint64_t encoders_waited;                       /* for text, all together */
    uint64_t starved; /* of main_waited: inputs that were ahead waited for memory */
    uint64_t reading; /* how long inputs were open and did not wait for memory, together */
    uint32_t n_encoders, n_processors;
    uint64_t stored_bytes, text_bytes, token_bytes; /* read, encoded, written */
    uint64_t spilled_bytes;                         /* of tokens, kept in a file meanwhile */
    /* The --memory with which all threads would have had long documents to encode, and with which
     * inputs that were ahead would not have waited for room; 0: they did not, or not for long. */
    uint64_t memory_for_documents, memory_for_inputs;
} pack_use;

/* Adds the CPU time that was used until now; with -1, takes it away, at the beginning. */
void pack_use_count(pack_use *use, int sign);
pack_limit pack_use_limit(const pack_use *use);
/* How much the stage that limited the run did in a second: of the inputs (read, decompress), of
 * text (encode, memory), of tokens (write). */
double pack_use_rate(const pack_use *use, pack_limit limit);
/* Prints the stage, its rate, and what makes the run faster. */
void pack_use_note(const pack_use *use);
void pack_use_print(const pack_use *use, json_out *o);
