/* SPDX-License-Identifier: Apache-2.0 */
/* decoder.h - decompresses gzip and zstd. A build without a library still recognizes its magic
 * number: it refuses such an input and never takes it for text. If two libraries can read the same
 * data, the first one in this build is used. */
#pragma once

#include "base/error.h"

#define DECODER_MAGIC_BYTES 4

typedef struct decoder_buffers {
    const uint8_t *in;
    size_t in_bytes;
    uint8_t *out;
    size_t out_bytes;
} decoder_buffers;

typedef enum decoder_result {
    DECODER_FAILED = false,
    DECODER_MORE,     /* no end yet; without progress, it needs more input or more room */
    DECODER_FRAME_END /* a frame or member is complete; another may follow */
} decoder_result;

typedef struct decoder {
    const char *name;    /* "gzip" */
    const char *library; /* "zlib" */
    /* Whether n_bytes bytes, possibly fewer than a magic number, begin a frame. */
    bool (*is_magic)(const uint8_t *bytes, size_t n_bytes);
    void *(*create)(void); /* NULL: not in this build */
    /* Advances both buffers by what was consumed and produced. */
    decoder_result (*decode)(void *state, decoder_buffers *buffers, failure *err);
    void (*destroy)(void *state);
} decoder;

extern const decoder decoders[];
extern const size_t n_decoders;

/* The one for data that begin like this, of this build unless it has none; NULL: not compressed. */
const decoder *decoder_recognize(const uint8_t *bytes, size_t n_bytes);
/* "gzip" or "zstd"; NULL: not in this build. */
const decoder *decoder_find(const char *name);
