#include "input_codec.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#if HAVE_ZLIB
#include <zlib.h>
#endif
#if HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

static bool is_gzip(const uint8_t *b, size_t n)
{
    return n >= 2 && b[0] == 0x1f && b[1] == 0x8b;
}

/* A frame, or a skippable frame. */
static bool is_zstd(const uint8_t *b, size_t n)
{
    return n >= 4 && ((b[0] == 0x28 && b[1] == 0xb5 && b[2] == 0x2f && b[3] == 0xfd) ||
                      ((b[0] & 0xf0) == 0x50 && b[1] == 0x2a && b[2] == 0x4d && b[3] == 0x18));
}

#if HAVE_ZLIB

static void *gzip_create(void)
{
    z_stream *z = calloc(1, sizeof *z);
    if (z && inflateInit2(z, 15 + 16) != Z_OK) {
        free(z);
        return NULL;
    }
    return z;
}

static input_codec_result gzip_decode(void *state, input_codec_buffers *buffers, char *why,
                                      size_t why_bytes)
{
    z_stream *z = state;
    uInt n_in = buffers->in_bytes > UINT_MAX ? UINT_MAX : (uInt)buffers->in_bytes;
    uInt n_out = buffers->out_bytes > UINT_MAX ? UINT_MAX : (uInt)buffers->out_bytes;
    z->next_in = (Bytef *)(uintptr_t)buffers->in; /* zlib may be built without const */
    z->avail_in = n_in;
    z->next_out = buffers->out;
    z->avail_out = n_out;
    int result = inflate(z, Z_NO_FLUSH);
    buffers->in += n_in - z->avail_in;
    buffers->in_bytes -= n_in - z->avail_in;
    buffers->out += n_out - z->avail_out;
    buffers->out_bytes -= n_out - z->avail_out;
    switch (result) {
    case Z_OK:
    case Z_BUF_ERROR:
        return INPUT_CODEC_MORE;
    case Z_STREAM_END:
        inflateReset(z);
        return INPUT_CODEC_FRAME_END;
    case Z_MEM_ERROR:
        return INPUT_CODEC_NO_MEMORY;
    default:
        snprintf(why, why_bytes, "%s", z->msg ? z->msg : zError(result));
        return INPUT_CODEC_DAMAGED;
    }
}

static void gzip_destroy(void *state)
{
    inflateEnd(state);
    free(state);
}

#define GZIP_CALLS gzip_create, gzip_decode, gzip_destroy
#else
#define GZIP_CALLS NULL, NULL, NULL
#endif

#if HAVE_ZSTD

/* 128 MiB, what the zstd command takes by default. */
#define ZSTD_WINDOW_LOG 27

static void *zstd_create(void)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (context)
        ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
    return context;
}

static input_codec_result zstd_decode(void *state, input_codec_buffers *buffers, char *why,
                                      size_t why_bytes)
{
    ZSTD_inBuffer in = {buffers->in, buffers->in_bytes, 0};
    ZSTD_outBuffer out = {buffers->out, buffers->out_bytes, 0};
    size_t result = ZSTD_decompressStream(state, &out, &in);
    buffers->in += in.pos;
    buffers->in_bytes -= in.pos;
    buffers->out += out.pos;
    buffers->out_bytes -= out.pos;
    if (!ZSTD_isError(result))
        return result == 0 ? INPUT_CODEC_FRAME_END : INPUT_CODEC_MORE;
    switch (ZSTD_getErrorCode(result)) {
    case ZSTD_error_memory_allocation:
        return INPUT_CODEC_NO_MEMORY;
    case ZSTD_error_frameParameter_windowTooLarge:
        snprintf(why, why_bytes, "it needs a window of more than 128 MiB");
        return INPUT_CODEC_DAMAGED;
    default:
        snprintf(why, why_bytes, "%s", ZSTD_getErrorName(result));
        return INPUT_CODEC_DAMAGED;
    }
}

static void zstd_destroy(void *state)
{
    ZSTD_freeDCtx(state);
}

#define ZSTD_CALLS zstd_create, zstd_decode, zstd_destroy
#else
#define ZSTD_CALLS NULL, NULL, NULL
#endif

const input_codec input_codecs[] = {
    {"gzip", "zlib", is_gzip, GZIP_CALLS},
    {"zstd", "zstd", is_zstd, ZSTD_CALLS},
};
const size_t input_n_codecs = sizeof input_codecs / sizeof *input_codecs;
