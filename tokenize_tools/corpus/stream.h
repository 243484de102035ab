/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - an input (input.h), optionally read and decompressed ahead in a thread.
 *
 * The thread fills a ring of four blocks and ends at the end of the input. The bytes, and errors
 * with their place, are the same with and without it. */
#ifndef TOKMAP_STREAM_H
#define TOKMAP_STREAM_H

#include <stdbool.h>

#include "corpus/input.h"

typedef struct stream_options {
    bool ahead;
    size_t block_bytes; /* of the ring */
    /* When it becomes readable, reading fails with ECANCELED. Required with `ahead`: it stops the
     * thread of a stream that is closed before its end. */
    int stop_fd;
} stream_options;

typedef struct stream stream;

/* The path must stay valid until the stream is closed. */
stream *stream_open(const input_source *source, const stream_options *options, failure *err);
/* Like input_read. */
ssize_t stream_read(stream *s, void *buffer, size_t n_bytes, failure *err);
/* Like input_codec_name. */
const char *stream_codec(const stream *s);
/* The stored bytes behind the bytes returned so far, and their checksum; after the end, of the
 * whole input. */
input_prefix stream_stored(const stream *s);
/* If the thread may still be reading, make stop_fd readable first: that stops it. */
void stream_close(stream *s);

#endif /* TOKMAP_STREAM_H */
