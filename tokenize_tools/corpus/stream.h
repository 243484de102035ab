/* stream.h - an input (input.h), read and decompressed ahead in a thread of its own, or not.
 *
 * The thread fills a ring of four blocks and ends with the input. The bytes, and errors with their
 * place among the bytes, are the same with and without it. */
#ifndef TOKMAP_STREAM_H
#define TOKMAP_STREAM_H

#include <stdbool.h>

#include "corpus/input.h"

typedef struct stream_options {
    bool ahead;
    size_t block_bytes; /* of the ring */
    /* Once it can be read, reading fails with ECANCELED. A stream that is closed before its end is
     * told by it, so with `ahead` there has to be one. */
    int stop_fd;
} stream_options;

typedef struct stream stream;

/* The path must live as long. */
stream *stream_open(const input_source *source, const stream_options *options, input_error *err);
/* As input_read. */
ssize_t stream_read(stream *s, void *buffer, size_t n_bytes, input_error *err);
/* As input_is_compressed. */
bool stream_is_compressed(const stream *s);
/* The stored bytes that have been read for what has been handed out, and their checksum; after the
 * end, of all of the input. */
input_prefix stream_stored(const stream *s);
/* A thread that still reads ends when stop_fd can be read: see to that first. */
void stream_close(stream *s);

#endif /* TOKMAP_STREAM_H */
