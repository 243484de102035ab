/* SPDX-License-Identifier: Apache-2.0 */
#include "input/window.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "system/platform_thread.h"
#include "system/work_thread.h"

#define MIN_CAPACITY ((size_t)1024) /* to recognize a file by its beginning */
#define READ_BYTES ((size_t)256 * 1024)

/* ---- Streams ---- */

#define N_BLOCKS 4

typedef struct block {
    uint8_t *bytes;
    size_t n_bytes;
    input_prefix stored; /* of the input, up to the end of the block */
} block;

/* A thread fills blocks[n_filled % N_BLOCKS], and ends at the end of the input; the user empties
 * blocks[n_emptied % N_BLOCKS]. The bytes, and errors with their place, are the same without it. */
struct stream {
    input *in; /* used by the thread, while there is one */
    bool has_thread;
    tokmap_i_thread reader;
    tokmap_i_mutex mutex; /* for the members below */
    tokmap_i_condition changed;
    uint64_t n_filled, n_emptied;
    bool closing, at_end; /* at_end: no block follows n_filled */
    bool failed;          /* and this is the error */
    failure error;

    /* Used by the caller: */
    block blocks[N_BLOCKS];
    uint8_t *memory;             /* of the blocks */
    size_t block_bytes, n_taken; /* of the current block */
    input_prefix stored;
};

/* Reads until the block is full, or the input ends or fails. */
static ssize_t fill_block(stream *s, block *b, failure *err)
{
    ssize_t n = 1;
    b->n_bytes = 0;
    while (n > 0 && b->n_bytes < s->block_bytes) {
        n = input_read(s->in, b->bytes + b->n_bytes, s->block_bytes - b->n_bytes, err);
        b->n_bytes += n > 0 ? (size_t)n : 0;
    }
    b->stored = input_stored(s->in);
    return n;
}

static void *read_ahead(void *arg)
{
    stream *s = arg;
    failure err = {0};
    work_thread_begin(WORK_DECOMPRESS);
    tokmap_i_mutex_lock(&s->mutex);
    while (!s->closing && !s->at_end) {
        if (s->n_filled - s->n_emptied == N_BLOCKS) {
            tokmap_i_condition_wait(&s->changed, &s->mutex);
            continue;
        }
        block *b = &s->blocks[s->n_filled % N_BLOCKS];
        tokmap_i_mutex_unlock(&s->mutex);
        const ssize_t n = fill_block(s, b, &err);
        tokmap_i_mutex_lock(&s->mutex);
        s->n_filled++;
        s->at_end = n <= 0;
        s->failed = n < 0;
        s->error = err;
        tokmap_i_condition_signal(&s->changed);
    }
    tokmap_i_mutex_unlock(&s->mutex);
    work_thread_end(WORK_DECOMPRESS);
    return NULL;
}

/* If the thread may still be reading, make stop_fd readable first: that stops it. */
static void stream_close(stream *s)
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
    free(s->memory);
    input_close(s->in);
    tokmap_i_condition_free(&s->changed);
    tokmap_i_mutex_free(&s->mutex);
    free(s);
}

static bool start_thread(stream *s, failure *err)
{
    s->memory = malloc(N_BLOCKS * s->block_bytes);
    if (!s->memory)
        return fail_system(err, ENOMEM, "cannot start a thread");
    for (size_t i = 0; i < N_BLOCKS; i++)
        s->blocks[i].bytes = s->memory + i * s->block_bytes;
    s->has_thread = tokmap_i_thread_start(&s->reader, read_ahead, s) == 0;
    return true; /* without a thread, the caller reads */
}

static stream *stream_open(input *in, bool ahead, size_t block_bytes, failure *err)
{
    stream *s = calloc(1, sizeof *s);
    if (!s) {
        input_close(in);
        fail_memory(err);
        return NULL;
    }
    tokmap_i_mutex_init(&s->mutex);
    tokmap_i_condition_init(&s->changed);
    s->block_bytes = block_bytes;
    s->in = in;
    if (!ahead || start_thread(s, err))
        return s;
    stream_close(s);
    return NULL;
}

/* Like input_read. */
static ssize_t stream_read(stream *s, void *buffer, size_t n_bytes, failure *err)
{
    if (!s->has_thread)
        return input_read(s->in, buffer, n_bytes, err);
    for (;;) {
        tokmap_i_mutex_lock(&s->mutex);
        while (s->n_filled == s->n_emptied && !s->at_end)
            tokmap_i_condition_wait(&s->changed, &s->mutex);
        const bool has_block = s->n_filled > s->n_emptied;
        tokmap_i_mutex_unlock(&s->mutex);
        if (!has_block) {
            *err = s->error;
            return s->failed ? -1 : 0;
        }
        const block *b = &s->blocks[s->n_emptied % N_BLOCKS];
        size_t n = b->n_bytes - s->n_taken;
        n = n < n_bytes ? n : n_bytes;
        if (n > 0)
            memcpy(buffer, b->bytes + s->n_taken, n);
        s->n_taken += n;
        s->stored = b->stored;
        if (s->n_taken == b->n_bytes) { /* the thread may fill it again */
            tokmap_i_mutex_lock(&s->mutex);
            s->n_emptied++;
            tokmap_i_condition_signal(&s->changed);
            tokmap_i_mutex_unlock(&s->mutex);
            s->n_taken = 0;
        }
        if (n > 0)
            return (ssize_t)n;
    }
}

/* ---- Windows ---- */

bool window_open(window *w, const input_source *source, input *in, const window_options *options,
                 failure *err)
{
    size_t read_bytes = options->read_bytes ? options->read_bytes : READ_BYTES;
    *w = (window){.name = source->path,
                  .part = source->part,
                  .offset = source->part ? source->part->begin.offset : 0,
                  .limit = UINT64_MAX,
                  .reserve = source->reserve,
                  .reserve_context = source->reserve_context};
    if (!in)
        return false;
    w->codec = input_codec_name(in);
    w->capacity = w->usual_capacity = read_bytes < MIN_CAPACITY ? MIN_CAPACITY : read_bytes;
    w->bytes = calloc(1, w->capacity + INPUT_PADDING);
    if (w->bytes)
        w->stream = stream_open(in, options->read_ahead, read_bytes, err);
    else
        input_close(in);
    return w->bytes ? w->stream != NULL : fail_memory(err);
}

const input *window_input(const window *w)
{
    return w->stream->in;
}

input_prefix window_stored(const window *w)
{
    return w->stream->has_thread ? w->stream->stored : input_stored(w->stream->in);
}

void window_close(window *w)
{
    stream_close(w->stream);
    free(w->bytes);
}

static bool resize_window(window *w, size_t capacity, failure *err)
{
    /* Twice, because the text of a long record is copied. */
    if (capacity > w->capacity && w->reserve &&
        !w->reserve(w->reserve_context, input_memory(w->stream->in) + 2 * (uint64_t)capacity))
        return fail_system(err, ECANCELED, "cannot read");
    uint8_t *bytes = realloc(w->bytes, capacity + INPUT_PADDING);
    if (!bytes)
        return fail_memory(err);
    w->bytes = bytes;
    w->capacity = capacity;
    return true;
}

/* Makes room at the end of the window. A window that a long record has made large becomes small
 * again. */
static bool make_room(window *w, failure *err)
{
    const bool is_large = w->capacity / 64 > w->usual_capacity;
    const bool shrinks = is_large && w->filled - w->begin < w->usual_capacity;
    if (w->filled < w->capacity && !shrinks)
        return true;
    if (w->begin > 0) {
        w->filled -= w->begin;
        memmove(w->bytes, w->bytes + w->begin, w->filled);
        w->begin = 0;
    }
    if (shrinks)
        return resize_window(w, w->usual_capacity, err);
    return w->filled < w->capacity || resize_window(w, w->capacity * 2, err);
}

/* The limit may be in what was read already. */
static void set_end(window *w)
{
    const uint64_t n_shown = w->limit - w->offset;
    const size_t n_filled = w->filled - w->begin;
    w->end = n_shown < n_filled ? w->begin + (size_t)n_shown : w->filled;
    w->at_end = w->limit != UINT64_MAX && n_shown <= n_filled;
}

bool window_fill(window *w, failure *err)
{
    if (w->limit - w->offset <= window_size(w)) {
        w->at_end = true;
        return true;
    }
    if (!make_room(w, err))
        return false;
    ssize_t n = stream_read(w->stream, w->bytes + w->filled, w->capacity - w->filled, err);
    if (n < 0)
        return false;
    if (w->change && !w->change(w->change_context, w->bytes + w->filled, (size_t)n, err))
        return false;
    w->filled += (size_t)n;
    memset(w->bytes + w->filled, 0, INPUT_PADDING);
    set_end(w);
    if (n > 0)
        return true;
    w->at_end = true;
    return w->limit == UINT64_MAX ||
           fail(err, "is truncated: the input ends at byte %" PRIu64 ", and this at byte %" PRIu64,
                w->offset + window_size(w), w->limit);
}

bool window_change(window *w, window_changer change, void *context, failure *err)
{
    const size_t n_bytes = w->filled - w->begin;
    w->change = change;
    w->change_context = context;
    return (n_bytes == 0 || change(context, w->bytes + w->begin, n_bytes, err)) &&
           (!w->at_end || change(context, NULL, 0, err));
}

bool window_reach(window *w, size_t n_bytes, failure *err)
{
    while (window_size(w) < n_bytes && !w->at_end) {
        if (!window_fill(w, err))
            return false;
    }
    return true;
}

void window_consume(window *w, size_t n_bytes)
{
    w->begin += n_bytes;
    w->offset += n_bytes;
    w->n_searched -= n_bytes < w->n_searched ? n_bytes : w->n_searched;
    if (w->begin == w->filled)
        w->begin = w->end = w->filled = 0;
}

void window_limit(window *w, uint64_t n_bytes)
{
    w->limit = n_bytes < UINT64_MAX - w->offset ? w->offset + n_bytes : UINT64_MAX;
    w->n_searched = 0;
    set_end(w);
}

bool window_take(window *w, void *dst, uint64_t n_bytes, uint64_t *n_taken, failure *err)
{
    for (*n_taken = 0; *n_taken < n_bytes;) {
        if (window_size(w) == 0 && !w->at_end && !window_fill(w, err))
            return false;
        if (window_size(w) == 0 && w->at_end)
            return true;
        const uint64_t n_left = n_bytes - *n_taken;
        const size_t n = n_left < window_size(w) ? (size_t)n_left : window_size(w);
        if (dst && n > 0)
            memcpy((uint8_t *)dst + *n_taken, window_text(w), n);
        window_consume(w, n);
        *n_taken += n;
    }
    return true;
}

int window_seek(window *w, uint64_t offset, uint64_t max_bytes, failure *err)
{
    const uint64_t n_left = offset > w->offset ? offset - w->offset : 0;
    const uint64_t n_bytes = n_left < max_bytes ? n_left : max_bytes;
    uint64_t n_taken;
    if (!window_take(w, NULL, n_bytes, &n_taken, err))
        return -1;
    if (n_taken < n_bytes) {
        fail_changed(err,
                     "has changed: it ends at byte %" PRIu64
                     ", but an earlier run read up to byte %" PRIu64,
                     w->offset, offset);
        return -1;
    }
    return w->offset >= offset;
}

bool window_find(window *w, const char *terminator, size_t terminator_bytes, size_t *n_bytes)
{
    const uint8_t *from = window_text(w) + w->n_searched, *found = NULL;
    size_t n_from = window_size(w) - w->n_searched;
    if (terminator_bytes == 1)
        found = memchr(from, *terminator, n_from);
    else if (terminator_bytes > 1)
        found = memmem(from, n_from, terminator, terminator_bytes);
    size_t held_back = terminator_bytes && !w->at_end ? terminator_bytes - 1 : 0;
    if (found)
        w->n_searched = (size_t)(found - window_text(w));
    else
        w->n_searched = window_size(w) > held_back ? window_size(w) - held_back : 0;
    *n_bytes = w->n_searched;
    return found != NULL;
}
