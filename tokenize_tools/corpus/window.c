#include "corpus/window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_BYTES ((size_t)256 * 1024)

bool window_fail(const window *w, int sys_errno, corpus_error *err)
{
    *err = (corpus_error){.sys_errno = sys_errno};
    snprintf(err->text, sizeof err->text, "%.200s: %s", w->name, strerror(sys_errno));
    return false;
}

static bool input_failed(const input_error *input_err, corpus_error *err)
{
    *err = (corpus_error){.sys_errno = input_err->sys_errno, .changed = input_err->changed};
    snprintf(err->text, sizeof err->text, "%s", input_err->text);
    return false;
}

bool window_open(window *w, const input_source *source, const corpus_options *options, int stop_fd,
                 corpus_error *err)
{
    size_t read_bytes = options->read_bytes ? options->read_bytes : READ_BYTES;
    stream_options how = {
        .ahead = options->read_ahead, .block_bytes = read_bytes, .stop_fd = stop_fd};
    input_error input_err;
    *w = (window){.name = source->path};
    /* Room for a whole document, its terminator, and bytes that show that a document is longer. */
    w->max_capacity = options->max_piece_bytes + options->separator_bytes + 16;
    w->capacity = read_bytes < w->max_capacity ? read_bytes : w->max_capacity;
    w->bytes = calloc(1, w->capacity + WINDOW_PADDING);
    if (!w->bytes)
        return window_fail(w, ENOMEM, err);
    w->stream = stream_open(source, &how, &input_err);
    return w->stream != NULL || input_failed(&input_err, err);
}

void window_close(window *w)
{
    stream_close(w->stream);
    free(w->bytes);
}

static bool grow_window(window *w, corpus_error *err)
{
    size_t capacity = w->capacity * 2 < w->max_capacity ? w->capacity * 2 : w->max_capacity;
    uint8_t *bytes = realloc(w->bytes, capacity + WINDOW_PADDING);
    if (!bytes)
        return window_fail(w, ENOMEM, err);
    memset(bytes + w->capacity, 0, capacity + WINDOW_PADDING - w->capacity);
    w->bytes = bytes;
    w->capacity = capacity;
    return true;
}

bool window_fill(window *w, corpus_error *err)
{
    input_error input_err;
    if (w->end == w->capacity && w->begin > 0) {
        memmove(w->bytes, window_text(w), window_size(w));
        w->end -= w->begin;
        w->begin = 0;
    } else if (w->end == w->capacity && !grow_window(w, err)) {
        return false;
    }
    ssize_t n = stream_read(w->stream, w->bytes + w->end, w->capacity - w->end, &input_err);
    if (n < 0)
        return input_failed(&input_err, err);
    w->at_end = n == 0;
    w->end += (size_t)n;
    return true;
}

void window_consume(window *w, size_t n_bytes)
{
    w->begin += n_bytes;
    w->offset += n_bytes;
    w->n_searched -= n_bytes < w->n_searched ? n_bytes : w->n_searched;
    if (w->begin == w->end)
        w->begin = w->end = 0;
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
