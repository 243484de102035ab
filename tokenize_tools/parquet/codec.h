/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - decompresses pages of a Parquet file, of which the size is known, and checks them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What a codec keeps between pages; start with {0}. For one thread. */
typedef struct parquet_codec {
    void *zstd, *gzip;
} parquet_codec;
void parquet_codec_free(parquet_codec *c);

/* "zstd"; "unknown" for a number that is no codec. */
const char *parquet_codec_name(uint8_t codec);
/* NULL if this build reads pages of this codec, else why not. */
const char *parquet_codec_refused(uint8_t codec);

typedef struct parquet_codec_job {
    uint8_t codec; /* not "uncompressed", nor one that is refused */
    const uint8_t *from;
    size_t from_bytes;
    uint8_t *to;
    size_t to_bytes; /* exactly as many must come out */
} parquet_codec_job;

/* NULL, or why the data cannot be decompressed. */
const char *parquet_decompress(parquet_codec *c, const parquet_codec_job *job);

/* The CRC-32 of gzip. */
uint32_t parquet_crc32(const uint8_t *bytes, size_t n_bytes);
