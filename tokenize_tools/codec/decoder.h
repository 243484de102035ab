/* SPDX-License-Identifier: Apache-2.0 */
/* decoder.h - decompresses gzip and zstd. A build without a library still recognizes the magic
 * number: it refuses such an input, and never takes it for text. If a build has two libraries for
 * the same data, the first one is used. */
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
    DECODER_MORE,     /* not at the end; without progress, more input or room is needed */
    DECODER_FRAME_END /* a frame or member is complete; another may follow */
} decoder_result;

typedef struct decoder {
    const char *name;    /* "gzip" */
    const char *library; /* "zlib" */
    /* Whether these bytes begin a frame; they may be fewer than a magic number. */
    bool (*is_magic)(const uint8_t *bytes, size_t n_bytes);
    /* The bytes of memory that decompressing data that begins like this takes. */
    uint64_t (*memory)(const uint8_t *bytes, size_t n_bytes);
    void *(*create)(void); /* NULL: not in this build */
    /* Decompresses. Advances both buffers past what was consumed and produced. */
    decoder_result (*decode)(void *state, decoder_buffers *buffers, failure *err);
    void (*destroy)(void *state);
} decoder;

extern const decoder decoders[];
extern const size_t n_decoders;

/* Returns the decoder of data that begins like this: one of this build, if it has one. NULL: the
 * data is not compressed. */
const decoder *decoder_recognize(const uint8_t *bytes, size_t n_bytes);
/* Finds the decoder "gzip" or "zstd". NULL: not in this build. */
const decoder *decoder_find(const char *name);
