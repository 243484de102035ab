/* window.h - the plain bytes of an input, as many of them at a time as a document needs. */
#ifndef TOKMAP_WINDOW_H
#define TOKMAP_WINDOW_H

#include "corpus/corpus.h"
#include "corpus/stream.h"

typedef struct window {
    const char *name; /* of the input */
    stream *stream;
    uint8_t *bytes; /* WINDOW_PADDING readable bytes stand behind `capacity` */
    size_t begin, end, capacity, max_capacity;
    uint64_t offset;   /* of bytes[begin] in the plain bytes of the input */
    bool at_end;       /* nothing comes behind bytes[end] */
    size_t n_searched; /* from `begin` on, where no terminator begins */
} window;

#define WINDOW_PADDING 64

/* At most max_bytes bytes; read_bytes at first. stop_fd: see stream.h. */
bool window_open(window *w, const input_source *source, const corpus_options *options, int stop_fd,
                 corpus_error *err);
void window_close(window *w);

/* Reads on: more bytes, or at_end. The window must not be full. */
bool window_fill(window *w, corpus_error *err);
static inline const uint8_t *window_text(const window *w)
{
    return w->bytes + w->begin;
}
static inline size_t window_size(const window *w)
{
    return w->end - w->begin;
}
void window_consume(window *w, size_t n_bytes);
/* Whether the terminator is in the window; *n_bytes is what stands before it, or where it cannot
 * begin yet when it is not. No terminator: never found. */
bool window_find(window *w, const char *terminator, size_t terminator_bytes, size_t *n_bytes);

/* ENOMEM and the like, for this input. Returns false. */
bool window_fail(const window *w, int sys_errno, corpus_error *err);

#endif /* TOKMAP_WINDOW_H */
