/* SPDX-License-Identifier: Apache-2.0 */
/* window.h - a buffer with the next plain bytes of an input, as many as a document needs. */
#pragma once

#include "input/input.h"

#define INPUT_PADDING 64 /* readable bytes after a text */

typedef struct window_options {
    bool read_ahead;   /* read and decompress in a thread of its own */
    size_t read_bytes; /* of one read; 0: 256 KiB */
} window_options;

typedef struct stream stream; /* an input, read ahead in a thread if that is wanted */

/* Changes bytes in place, without changing how many there are. No bytes: the input ends here. */
typedef bool (*window_changer)(void *context, uint8_t *bytes, size_t n_bytes, failure *err);

typedef struct window {
    const char *name;       /* of the input */
    const char *codec;      /* how it is compressed: "gzip"; NULL: it is not */
    const input_part *part; /* that is read; NULL: all of it */
    stream *stream;
    uint8_t *bytes; /* INPUT_PADDING readable bytes follow `capacity` */
    size_t begin, end, capacity, usual_capacity;
    size_t filled;         /* `end`, or more if it is the limit */
    uint64_t offset;       /* of bytes[begin] in the plain bytes of the input */
    uint64_t limit;        /* the window ends here */
    bool at_end;           /* bytes[end] is the end of the input, or the limit */
    size_t n_searched;     /* after `begin`, where no terminator begins */
    window_changer change; /* NULL: bytes are shown as they are */
    void *change_context;
    bool (*reserve)(void *context, uint64_t n_bytes); /* of the source */
    void *reserve_context;
} window;

/* `in` is what input_open made of the source, or NULL, which is a failure. The window closes it,
 * also on failure, and grows while nothing is consumed. read_ahead needs an input with a stop_fd,
 * because that stops the thread. */
bool window_open(window *w, const input_source *source, input *in, const window_options *options,
                 failure *err);
void window_close(window *w);
const input *window_input(const window *w);
/* The stored bytes behind the bytes read so far, and their checksum; after the end, of the whole
 * input. */
input_prefix window_stored(const window *w);

/* Reads more bytes, or sets at_end. The window must not be full. */
bool window_fill(window *w, failure *err);
/* Shows all bytes from here on as this function changes them. */
bool window_change(window *w, window_changer change, void *context, failure *err);
/* Reads until there are n_bytes, or the input ends. */
bool window_reach(window *w, size_t n_bytes, failure *err);
static inline const uint8_t *window_text(const window *w)
{
    return w->bytes + w->begin;
}
static inline size_t window_size(const window *w)
{
    return w->end - w->begin;
}
void window_consume(window *w, size_t n_bytes);
/* Makes the next n_bytes of the input all that the window shows: then it is at_end. An input that
 * ends before that is damaged. UINT64_MAX: all that follows. */
void window_limit(window *w, uint64_t n_bytes);
/* Copies the next n_bytes, less at the end, to dst and consumes them. dst may be NULL. */
bool window_take(window *w, void *dst, uint64_t n_bytes, uint64_t *n_taken, failure *err);
/* Passes over bytes, at most max_bytes, up to an offset of the input. Returns 1 if the window
 * begins there or after it, 0 if it does not yet, and -1 for a failure: an input that ends before
 * has changed. */
int window_seek(window *w, uint64_t offset, uint64_t max_bytes, failure *err);
/* Whether the terminator is in the window. *n_bytes is the number of bytes before it; if it was not
 * found, those in which it cannot begin. No terminator: never found. */
bool window_find(window *w, const char *terminator, size_t terminator_bytes, size_t *n_bytes);
