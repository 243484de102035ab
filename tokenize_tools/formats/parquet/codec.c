/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/parquet/codec.h"

#include <errno.h>

#include "config.h"
#include "formats/parquet/footer.h"
#include "formats/parquet/snappy.h"
#if HAVE_ISAL
#include <isa-l/crc.h>
#endif
#if HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

static void free_state(const char *name, void **state)
{
    if (*state)
        decoder_find(name)->destroy(*state);
    *state = NULL;
}

static const char *read_snappy(parquet_codec *c, decoder_buffers b)
{
    (void)c;
    return snappy_read(b.in, b.in_bytes, b.out, b.out_bytes) ? NULL : "damaged snappy data";
}

#if HAVE_ZSTD
static const char *read_zstd(parquet_codec *c, decoder_buffers b)
{
    if (!c->zstd)
        c->zstd = decoder_find("zstd")->create();
    if (!c->zstd)
        return parquet_no_memory;
    const size_t n = ZSTD_decompressDCtx(c->zstd, b.out, b.out_bytes, b.in, b.in_bytes);
    if (ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation)
        return parquet_no_memory;
    if (ZSTD_isError(n))
        return ZSTD_getErrorName(n);
    return n == b.out_bytes ? NULL : "the size of its zstd data differs from its header";
}
#else
#define read_zstd NULL
#endif

/* Reads all gzip members of a page: like a file, it may have several. */
static const char *read_gzip(parquet_codec *c, decoder_buffers b)
{
    const decoder *gzip = decoder_find("gzip");
    decoder_result result = DECODER_FRAME_END;
    failure err;
    if (!c->gzip)
        c->gzip = gzip->create();
    if (!c->gzip)
        return parquet_no_memory;
    while (result == DECODER_FRAME_END && b.in_bytes > 0)
        result = gzip->decode(c->gzip, &b, &err);
    if (result == DECODER_FRAME_END && b.out_bytes == 0)
        return NULL;
    free_state("gzip", &c->gzip); /* its state may be that of an unfinished member */
    if (result == DECODER_FAILED)
        return err.status == ENOMEM ? parquet_no_memory : "damaged gzip data";
    return "the size of its gzip data differs from its header";
}

#if HAVE_ISAL
uint32_t parquet_crc32(const uint8_t *bytes, size_t n_bytes)
{
    return crc32_gzip_refl(0, bytes, n_bytes);
}
#else
uint32_t parquet_crc32(const uint8_t *bytes, size_t n_bytes)
{
    static const uint32_t of_nibble[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                           0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                           0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                           0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = ~(uint32_t)0;
    for (size_t i = 0; i < n_bytes; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ of_nibble[crc & 15];
        crc = crc >> 4 ^ of_nibble[crc & 15];
    }
    return ~crc;
}
#endif

static const char not_supported[] =
    "this codec is not supported; write the file with zstd, snappy or "
    "gzip, such as compression=\"zstd\" in pandas, pyarrow and Polars";

static const struct codec {
    const char *name;
    const char *refused; /* why, if `read` is NULL */
    const char *(*read)(parquet_codec *, decoder_buffers);
} codecs[] = {
    {"uncompressed", NULL, NULL},
    {"snappy", NULL, read_snappy},
    {"gzip", "this build has no zlib or ISA-L", read_gzip},
    {"lzo", not_supported, NULL},
    {"brotli", not_supported, NULL},
    {"lz4", not_supported, NULL},
    {"zstd", "this build has no zstd", read_zstd},
    {"lz4_raw", not_supported, NULL},
};
#define N_CODECS (sizeof codecs / sizeof *codecs)

const char *parquet_codec_name(uint8_t codec)
{
    return codec < N_CODECS ? codecs[codec].name : "unknown";
}

const char *parquet_codec_refused(uint8_t codec)
{
    if (codec >= N_CODECS)
        return not_supported;
    const bool no_gzip = codecs[codec].read == read_gzip && !decoder_find("gzip");
    return codecs[codec].read && !no_gzip ? NULL : codecs[codec].refused;
}

const char *parquet_decompress(parquet_codec *c, uint8_t codec, decoder_buffers b)
{
    /* Some writers compress an empty page to no bytes at all. */
    return b.out_bytes == 0 && b.in_bytes == 0 ? NULL : codecs[codec].read(c, b);
}

void parquet_codec_free(parquet_codec *c)
{
    free_state("zstd", &c->zstd);
    free_state("gzip", &c->gzip);
}
