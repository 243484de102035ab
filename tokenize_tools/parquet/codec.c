/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/codec.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "parquet/footer.h"
#include "parquet/snappy.h"
#include "text/little_endian.h"
#if HAVE_ISAL
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#elif HAVE_ZLIB
#include <zlib.h>
#endif
#if HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

static const char *copy_plain(parquet_codec *c, const parquet_codec_job *job)
{
    (void)c;
    if (job->from_bytes != job->to_bytes)
        return "its two sizes differ, but it is not compressed";
    memcpy(job->to, job->from, job->to_bytes);
    return NULL;
}

static const char *read_snappy(parquet_codec *c, const parquet_codec_job *job)
{
    (void)c;
    return snappy_read(job->from, job->from_bytes, job->to, job->to_bytes) ? NULL
                                                                           : "damaged snappy data";
}

#if HAVE_ZSTD
static const char *read_zstd(parquet_codec *c, const parquet_codec_job *job)
{
    if (!c->zstd)
        c->zstd = ZSTD_createDCtx();
    if (!c->zstd)
        return parquet_no_memory;
    const size_t n =
        ZSTD_decompressDCtx(c->zstd, job->to, job->to_bytes, job->from, job->from_bytes);
    if (ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation)
        return parquet_no_memory;
    if (ZSTD_isError(n))
        return ZSTD_getErrorName(n);
    return n == job->to_bytes ? NULL : "its zstd data has another size than its header says";
}

static void free_zstd(void *zstd)
{
    ZSTD_freeDCtx(zstd);
}
#else
#define read_zstd NULL
static void free_zstd(void *zstd)
{
    free(zstd);
}
#endif

#if HAVE_ISAL || HAVE_ZLIB
static const char damaged_gzip[] = "damaged gzip data";
static const char short_gzip[] = "its gzip data has another size than its header says";
#endif

#if HAVE_ISAL
/* A page may have several members, like a file. */
static const char *read_gzip(parquet_codec *c, const parquet_codec_job *job)
{
    if (!c->gzip)
        c->gzip = malloc(sizeof(struct inflate_state));
    struct inflate_state *z = c->gzip;
    if (!z)
        return parquet_no_memory;
    isal_inflate_init(z);
    z->next_in = (uint8_t *)(uintptr_t)job->from; /* the field is not const */
    z->avail_in = (uint32_t)job->from_bytes;
    z->next_out = job->to;
    z->avail_out = (uint32_t)job->to_bytes;
    while (z->avail_in > 0) {
        isal_inflate_reset(z);
        z->crc_flag = ISAL_GZIP;
        if (isal_inflate(z) < 0)
            return damaged_gzip;
        if (z->block_state != ISAL_BLOCK_FINISH)
            return short_gzip;
    }
    return z->avail_out == 0 ? NULL : short_gzip;
}

static void free_gzip(void *gzip)
{
    free(gzip);
}

uint32_t parquet_crc32(const uint8_t *bytes, size_t n_bytes)
{
    return crc32_gzip_refl(0, bytes, n_bytes);
}
#elif HAVE_ZLIB
static const char *read_gzip(parquet_codec *c, const parquet_codec_job *job)
{
    z_stream *z = c->gzip ? c->gzip : calloc(1, sizeof *z);
    if (!z || (!c->gzip && inflateInit2(z, 15 + 16) != Z_OK)) {
        free(z);
        return parquet_no_memory;
    }
    c->gzip = z;
    z->next_in = (Bytef *)(uintptr_t)job->from; /* zlib may be built without const */
    z->avail_in = (uInt)job->from_bytes;
    z->next_out = job->to;
    z->avail_out = (uInt)job->to_bytes;
    while (z->avail_in > 0) {
        inflateReset(z);
        const int result = inflate(z, Z_FINISH);
        if (result == Z_BUF_ERROR || result == Z_OK)
            return short_gzip;
        if (result != Z_STREAM_END)
            return result == Z_MEM_ERROR ? parquet_no_memory : damaged_gzip;
    }
    return z->avail_out == 0 ? NULL : short_gzip;
}

static void free_gzip(void *gzip)
{
    if (gzip)
        inflateEnd(gzip);
    free(gzip);
}
#else
#define read_gzip NULL
static void free_gzip(void *gzip)
{
    free(gzip);
}
#endif

#if !HAVE_ISAL
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

static const char not_read[] = "this codec is not supported; write the file with zstd, snappy or "
                               "gzip, such as compression=\"zstd\" in pandas, pyarrow and Polars";

static const struct codec {
    const char *name;
    const char *refused; /* without `read` */
    const char *(*read)(parquet_codec *, const parquet_codec_job *);
} codecs[] = {
    {"uncompressed", NULL, copy_plain},
    {"snappy", NULL, read_snappy},
    {"gzip", "this build has no zlib or ISA-L", read_gzip},
    {"lzo", not_read, NULL},
    {"brotli", not_read, NULL},
    {"lz4", not_read, NULL},
    {"zstd", "this build has no zstd", read_zstd},
    {"lz4_raw", not_read, NULL},
};
enum {
    N_CODECS = sizeof codecs / sizeof *codecs
};

const char *parquet_codec_name(uint8_t codec)
{
    return codec < N_CODECS ? codecs[codec].name : "unknown";
}

const char *parquet_codec_refused(uint8_t codec)
{
    if (codec >= N_CODECS)
        return not_read;
    return codecs[codec].read ? NULL : codecs[codec].refused;
}

const char *parquet_decompress(parquet_codec *c, const parquet_codec_job *job)
{
    const char *refused = parquet_codec_refused(job->codec);
    if (refused)
        return refused;
    /* Some writers compress nothing to nothing. */
    if (job->to_bytes == 0 && job->from_bytes == 0)
        return NULL;
    return codecs[job->codec].read(c, job);
}

void parquet_codec_free(parquet_codec *c)
{
    free_zstd(c->zstd);
    free_gzip(c->gzip);
    *c = (parquet_codec){0};
}
