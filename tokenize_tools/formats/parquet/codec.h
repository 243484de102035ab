/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - decompresses pages of a Parquet file, whose sizes are known, and computes their CRC. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* State that a codec keeps between pages, for one thread. Starts as {0}. */
typedef struct parquet_codec {
    void *zstd, *gzip;
} parquet_codec;
void parquet_codec_free(parquet_codec *c);

/* Returns the name of a codec, such as "zstd", or "unknown" if the number is not a codec. */
const char *parquet_codec_name(uint8_t codec);
/* Returns NULL if this build reads pages of this codec, else why it does not. */
const char *parquet_codec_refused(uint8_t codec);

typedef struct parquet_codec_job {
    uint8_t codec; /* compresses, and is supported by this build */
    const uint8_t *from;
    size_t from_bytes;
    uint8_t *to;
    size_t to_bytes; /* the exact size of the result */
} parquet_codec_job;

/* Returns NULL, or why the data cannot be decompressed. */
const char *parquet_decompress(parquet_codec *c, const parquet_codec_job *job);

/* Computes the CRC-32 that gzip uses. */
uint32_t parquet_crc32(const uint8_t *bytes, size_t n_bytes);
