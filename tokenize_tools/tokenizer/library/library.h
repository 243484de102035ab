/* SPDX-License-Identifier: Apache-2.0 */
/* library.h - what the files of libtokmap_tokenizer share. Its other parts are those of the
 * commands. */
#pragma once

#include <stdatomic.h>

#include "tokenizer/file/tokenizer_file.h"
#include "tokmap_tokenizer.h"

/* Texts are encoded in jobs that are small enough that text and ids stay in the cache, and large
 * enough that threads take a job only every millisecond. */
#define JOB_BYTES ((size_t)128 << 10)

/* What a thread needs to encode, kept for the next call: the caches are worth most. */
typedef struct worker_state {
    encoder *encoder;
    uint8_t *text; /* a copy, because encoders read TEXT_PADDING bytes after a text */
    size_t capacity;
    id_buffer ids;
    byte_range *ranges; /* of the ids, if they are wanted */
    size_t ranges_capacity;
    bool broken; /* memory ran out inside the encoder */
} worker_state;

#define MAX_KEPT_STATES 1024

struct tokmap_tokenizer {
    tokenizer_file file;
    char *path;
    uint32_t eod_id, bos_id;
    bool eod_guessed;
    char *eod_reason, *bos_reason; /* or NULL */
    atomic_uint ids_per_kib;       /* of the last large call, to expect in the next */
    /* Without a lock, so that a child that is forked while another thread takes one can go on. */
    _Atomic(worker_state *) states[MAX_KEPT_STATES];
};

/* Hands out a state. NULL: out of memory. */
worker_state *tokmap_i_take_state(tokmap_tokenizer *t);
void tokmap_i_return_state(tokmap_tokenizer *t, worker_state *state);

/* Allocates what a call returns, and tokmap_memory_free frees: in huge pages when it is
 * large, because small ones would cost a fifth of the time of encoding. NULL: out of memory. */
void *result_memory_new(size_t n_bytes);
/* Gives back what is behind the first n_bytes, and returns the memory, which may have moved. */
void *result_memory_shrink(void *memory, size_t n_bytes);
