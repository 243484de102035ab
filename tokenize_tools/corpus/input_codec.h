/* SPDX-License-Identifier: Apache-2.0 */
/* input_codec.h - the decompressors used by input.h. A build without a library still recognizes its
 * magic number: it refuses such an input and never takes it for text. If two libraries can read the
 * same data, the first one in this build is used. */
#ifndef TOKMAP_INPUT_CODEC_H
#define TOKMAP_INPUT_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INPUT_CODEC_MAGIC_BYTES 4

typedef struct input_codec_buffers {
    const uint8_t *in;
    size_t in_bytes;
    uint8_t *out;
    size_t out_bytes;
} input_codec_buffers;

typedef enum input_codec_result {
    INPUT_CODEC_MORE,      /* no progress: needs more input */
    INPUT_CODEC_FRAME_END, /* a frame or member is complete; another may follow */
    INPUT_CODEC_DAMAGED,   /* `why` holds the reason */
    INPUT_CODEC_WINDOW,    /* not damaged, but it needs more memory than input.h allows */
    INPUT_CODEC_NO_MEMORY
} input_codec_result;

#define INPUT_CODEC_WINDOW_TEXT                                                                    \
    "zstd data with a window of more than 128 MiB is not read; compress it again without --long, " \
    "or with --long=27"

typedef struct input_codec {
    const char *name;    /* "gzip" */
    const char *library; /* "zlib" */
    /* Whether n_bytes bytes, possibly fewer than a magic number, begin a frame. */
    bool (*is_magic)(const uint8_t *bytes, size_t n_bytes);
    void *(*create)(void); /* NULL: not in this build */
    /* Advances both buffers by what was consumed and produced. */
    input_codec_result (*decode)(void *state, input_codec_buffers *buffers, char *why,
                                 size_t why_bytes);
    void (*destroy)(void *state);
} input_codec;

extern const input_codec input_codecs[];
extern const size_t input_n_codecs;

#endif /* TOKMAP_INPUT_CODEC_H */
