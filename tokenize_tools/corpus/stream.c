/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "system/platform_thread.h"

#define N_BLOCKS 4

typedef struct block {
    uint8_t *bytes;
    size_t n_bytes;
    input_prefix stored; /* of the input, up to the end of the block */
} block;

/* The reader fills blocks[n_filled % N_BLOCKS], the user empties blocks[n_emptied % N_BLOCKS]. */
struct stream {
    input *in; /* used by the thread, while there is one */
    bool ahead, has_thread;
    tokmap_i_thread reader;
    tokmap_i_mutex mutex; /* for the members below */
    tokmap_i_condition changed;
    uint64_t n_filled, n_emptied;
    bool closing, at_end; /* at_end: no block follows n_filled */
    bool failed;          /* and this is the error */
    failure error;

    /* Used by the caller: */
    block blocks[N_BLOCKS];
    size_t block_bytes, n_taken; /* of the current block */
    input_prefix stored;
};

static input_prefix stored_so_far(const stream *s)
{
    return (input_prefix){input_stored_bytes(s->in), input_checksum(s->in)};
}

/* Reads until the block is full, or the input ends or fails. */
static ssize_t fill_block(stream *s, block *b, failure *err)
{
    ssize_t n = 1;
    b->n_bytes = 0;
    while (n > 0 && b->n_bytes < s->block_bytes) {
        n = input_read(s->in, b->bytes + b->n_bytes, s->block_bytes - b->n_bytes, err);
        b->n_bytes += n > 0 ? (size_t)n : 0;
    }
    b->stored = stored_so_far(s);
    return n;
}

/* False: the stream is being closed. */
static bool wait_for_room(stream *s)
{
    tokmap_i_mutex_lock(&s->mutex);
    while (!s->closing && s->n_filled - s->n_emptied == N_BLOCKS)
        tokmap_i_condition_wait(&s->changed, &s->mutex);
    bool closing = s->closing;
    tokmap_i_mutex_unlock(&s->mutex);
    return !closing;
}

static void *read_ahead(void *arg)
{
    stream *s = arg;
    failure err = {0};
    ssize_t n = 1;
    for (uint64_t i = 0; n > 0 && wait_for_room(s); i++) {
        n = fill_block(s, &s->blocks[i % N_BLOCKS], &err);
        tokmap_i_mutex_lock(&s->mutex);
        s->n_filled++;
        s->at_end = n <= 0;
        s->failed = n < 0;
        s->error = err;
        tokmap_i_condition_signal(&s->changed);
        tokmap_i_mutex_unlock(&s->mutex);
    }
    return NULL;
}

static int start_thread(stream *s)
{
    for (int i = 0; i < N_BLOCKS; i++) {
        s->blocks[i].bytes = malloc(s->block_bytes);
        if (!s->blocks[i].bytes)
            return ENOMEM;
    }
    const int sys_errno = tokmap_i_thread_start(&s->reader, read_ahead, s);
    s->has_thread = sys_errno == 0;
    return sys_errno;
}

stream *stream_open(const input_source *source, const stream_options *options, failure *err)
{
    stream *s = calloc(1, sizeof *s);
    if (!s) {
        fail_memory(err);
        return NULL;
    }
    tokmap_i_mutex_init(&s->mutex);
    tokmap_i_condition_init(&s->changed);
    s->ahead = options->ahead;
    s->block_bytes = options->block_bytes;
    s->in = input_open_with(source, &(input_options){.stop_fd = options->stop_fd}, err);
    if (!s->in) {
        stream_close(s);
        return NULL;
    }
    int sys_errno = s->ahead ? start_thread(s) : 0;
    if (sys_errno) {
        fail_system(err, sys_errno, "cannot start a thread");
        stream_close(s);
        return NULL;
    }
    return s;
}

/* Waits for the next block. NULL: the input has ended or failed. */
static block *wait_for_block(stream *s)
{
    tokmap_i_mutex_lock(&s->mutex);
    while (s->n_filled == s->n_emptied && !s->at_end)
        tokmap_i_condition_wait(&s->changed, &s->mutex);
    block *b = s->n_filled == s->n_emptied ? NULL : &s->blocks[s->n_emptied % N_BLOCKS];
    tokmap_i_mutex_unlock(&s->mutex);
    return b;
}

static void give_block_back(stream *s)
{
    tokmap_i_mutex_lock(&s->mutex);
    s->n_emptied++;
    tokmap_i_condition_signal(&s->changed);
    tokmap_i_mutex_unlock(&s->mutex);
    s->n_taken = 0;
}

static ssize_t read_ring(stream *s, void *buffer, size_t n_bytes, failure *err)
{
    for (;;) {
        block *b = wait_for_block(s);
        if (!b) {
            *err = s->error;
            return s->failed ? -1 : 0;
        }
        size_t n = b->n_bytes - s->n_taken;
        n = n < n_bytes ? n : n_bytes;
        if (n > 0)
            memcpy(buffer, b->bytes + s->n_taken, n);
        s->n_taken += n;
        s->stored = b->stored;
        if (s->n_taken == b->n_bytes)
            give_block_back(s);
        if (n > 0)
            return (ssize_t)n;
    }
}

ssize_t stream_read(stream *s, void *buffer, size_t n_bytes, failure *err)
{
    if (s->ahead)
        return read_ring(s, buffer, n_bytes, err);
    return input_read(s->in, buffer, n_bytes, err);
}

input_prefix stream_stored(const stream *s)
{
    return s->ahead ? s->stored : stored_so_far(s);
}

const char *stream_codec(const stream *s)
{
    return input_codec_name(s->in);
}

void stream_close(stream *s)
{
    if (!s)
        return;
    if (s->has_thread) {
        tokmap_i_mutex_lock(&s->mutex);
        s->closing = true;
        tokmap_i_condition_signal(&s->changed);
        tokmap_i_mutex_unlock(&s->mutex);
        tokmap_i_thread_join(s->reader);
    }
    for (int i = 0; i < N_BLOCKS; i++)
        free(s->blocks[i].bytes);
    input_close(s->in);
    tokmap_i_condition_free(&s->changed);
    tokmap_i_mutex_free(&s->mutex);
    free(s);
}
