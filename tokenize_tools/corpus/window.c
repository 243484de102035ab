/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/window.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MIN_CAPACITY ((size_t)1024) /* to recognize a file by its beginning */
#define READ_BYTES ((size_t)256 * 1024)

bool window_fail(const window *w, failure *err)
{
    if (err->status > 0)
        return fail_at(err, "%.200s: ", w->name);
    return fail_at(err, "%.200s: byte %" PRIu64 ": ", w->name, w->offset);
}

bool window_open(window *w, const input_source *source, const corpus_options *options, int stop_fd,
                 failure *err)
{
    size_t read_bytes = options->read_bytes ? options->read_bytes : READ_BYTES;
    stream_options how = {
        .ahead = options->read_ahead, .block_bytes = read_bytes, .stop_fd = stop_fd};
    *w = (window){.name = source->path,
                  .part = source->part,
                  .offset = source->part ? source->part->begin.offset : 0,
                  .limit = UINT64_MAX};
    /* Room for a whole document, its terminator, and bytes that show that a document is longer. */
    w->max_capacity = options->max_piece_bytes + options->separator_bytes + 16;
    if (w->max_capacity < MIN_CAPACITY)
        w->max_capacity = MIN_CAPACITY;
    w->capacity = read_bytes < w->max_capacity ? read_bytes : w->max_capacity;
    w->bytes = calloc(1, w->capacity + WINDOW_PADDING);
    if (!w->bytes)
        return fail_memory(err);
    w->stream = stream_open(source, &how, err);
    return w->stream != NULL;
}

void window_close(window *w)
{
    stream_close(w->stream);
    free(w->bytes);
}

static bool grow_window(window *w, failure *err)
{
    size_t capacity = w->capacity * 2 < w->max_capacity ? w->capacity * 2 : w->max_capacity;
    uint8_t *bytes = realloc(w->bytes, capacity + WINDOW_PADDING);
    if (!bytes)
        return fail_memory(err);
    memset(bytes + w->capacity, 0, capacity + WINDOW_PADDING - w->capacity);
    w->bytes = bytes;
    w->capacity = capacity;
    return true;
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
    if (w->filled == w->capacity && w->begin > 0) {
        memmove(w->bytes, window_text(w), window_size(w));
        w->filled = window_size(w);
        w->begin = 0;
    } else if (w->filled == w->capacity && !grow_window(w, err)) {
        return false;
    }
    ssize_t n = stream_read(w->stream, w->bytes + w->filled, w->capacity - w->filled, err);
    if (n < 0)
        return false;
    w->filled += (size_t)n;
    set_end(w);
    if (n > 0)
        return true;
    w->at_end = true;
    return w->limit == UINT64_MAX ||
           fail(err, "is truncated: the input ends at byte %" PRIu64 ", and this at byte %" PRIu64,
                w->offset + window_size(w), w->limit);
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
