/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - decompresses pages of a Parquet file, whose sizes are known, and computes their CRC. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "codec/decoder.h"

/* State that a codec keeps between pages, for one thread. Starts as {0}. */
typedef struct parquet_codec {
    void *zstd, *gzip;
} parquet_codec;
void parquet_codec_free(parquet_codec *c);

/* Returns the name of a codec, such as "zstd", or "unknown" if the number is not a codec. */
const char *parquet_codec_name(uint8_t codec);
/* Returns NULL if this build reads pages of this codec, else why it does not. */
const char *parquet_codec_refused(uint8_t codec);

/* Decompresses a page by a codec that compresses, and that this build supports. b.out_bytes is the
 * exact size of the result. Returns NULL, or why the data cannot be decompressed. */
const char *parquet_decompress(parquet_codec *c, uint8_t codec, decoder_buffers b);

/* Computes the CRC-32 that gzip uses. */
uint32_t parquet_crc32(const uint8_t *bytes, size_t n_bytes);
