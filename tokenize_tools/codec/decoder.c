/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/decoder.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config.h"
#if HAVE_ISAL
#include <isa-l/igzip_lib.h>
#endif
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

/* Whether a frame or a skippable frame begins here. */
static bool is_zstd(const uint8_t *b, size_t n)
{
    return n >= 4 && ((b[0] == 0x28 && b[1] == 0xb5 && b[2] == 0x2f && b[3] == 0xfd) ||
                      ((b[0] & 0xf0) == 0x50 && b[1] == 0x2a && b[2] == 0x4d && b[3] == 0x18));
}

static uint64_t gzip_memory(const uint8_t *b, size_t n)
{
    (void)b;
    (void)n;
    return (uint64_t)128 << 10; /* its window, and tables */
}

/* 128 MiB, the default limit of the zstd command. */
#define ZSTD_WINDOW_LOG 27
#define ZSTD_USUAL_WINDOW ((uint64_t)8 << 20)

/* The window that the header of the first frame asks for (RFC 8878, section 3.1.1.1). */
static uint64_t zstd_window(const uint8_t *b, size_t n)
{
    static const size_t dictionary_id_bytes[] = {0, 1, 2, 4};
    if (n < 6 || b[0] != 0x28) /* too short to tell, or a frame to be skipped */
        return ZSTD_USUAL_WINDOW;
    const bool is_single = b[4] & 0x20;
    if (!is_single)
        return (((uint64_t)8 + (b[5] & 7)) << (b[5] >> 3)) << 7;
    const size_t at = 5 + dictionary_id_bytes[b[4] & 3], n_bytes = (size_t)1 << (b[4] >> 6);
    uint64_t content = n_bytes == 2 ? 256 : 0;
    if (n < at + n_bytes)
        return ZSTD_USUAL_WINDOW;
    for (size_t i = 0; i < n_bytes; i++)
        content += (uint64_t)b[at + i] << 8 * i;
    return content;
}

/* A larger window is refused. */
static uint64_t zstd_memory(const uint8_t *b, size_t n)
{
    return MIN(zstd_window(b, n), (uint64_t)1 << ZSTD_WINDOW_LOG) + ((uint64_t)384 << 10);
}

#if HAVE_ISAL

static void isal_begin(struct inflate_state *state)
{
    isal_inflate_reset(state);
    state->crc_flag = ISAL_GZIP;
}

static void *isal_create(void)
{
    struct inflate_state *state = malloc(sizeof *state);
    if (!state)
        return NULL;
    isal_inflate_init(state);
    isal_begin(state);
    return state;
}

static const char *isal_reason(int result)
{
    static const char *const reasons[] = {
        [-ISAL_INVALID_BLOCK] = "invalid block",
        [-ISAL_INVALID_SYMBOL] = "invalid symbol",
        [-ISAL_INVALID_LOOKBACK] = "invalid distance",
        [-ISAL_UNSUPPORTED_METHOD] = "unknown compression method",
        [-ISAL_INCORRECT_CHECKSUM] = "incorrect checksum",
    };
    const size_t i = (size_t)-result;
    return i < sizeof reasons / sizeof *reasons && reasons[i] ? reasons[i] : "incorrect header";
}

static decoder_result isal_decode(void *state, decoder_buffers *buffers, failure *err)
{
    struct inflate_state *z = state;
    uint32_t n_in = buffers->in_bytes > INT_MAX ? INT_MAX : (uint32_t)buffers->in_bytes;
    uint32_t n_out = buffers->out_bytes > INT_MAX ? INT_MAX : (uint32_t)buffers->out_bytes;
    z->next_in = (uint8_t *)(uintptr_t)buffers->in; /* the field of the library is not const */
    z->avail_in = n_in;
    z->next_out = buffers->out;
    z->avail_out = n_out;
    int result = isal_inflate(z);
    buffers->in += n_in - z->avail_in;
    buffers->in_bytes -= n_in - z->avail_in;
    buffers->out += n_out - z->avail_out;
    buffers->out_bytes -= n_out - z->avail_out;
    if (result < 0)
        return fail(err, "damaged gzip data: %s", isal_reason(result));
    if (z->block_state != ISAL_BLOCK_FINISH)
        return DECODER_MORE;
    isal_begin(z);
    return DECODER_FRAME_END;
}

#define ISAL_CALLS isal_create, isal_decode, free
#else
#define ISAL_CALLS NULL, NULL, NULL
#endif

#if HAVE_ZLIB

static void *zlib_create(void)
{
    z_stream *z = calloc(1, sizeof *z);
    if (z && inflateInit2(z, 15 + 16) != Z_OK) {
        free(z);
        return NULL;
    }
    return z;
}

static decoder_result zlib_decode(void *state, decoder_buffers *buffers, failure *err)
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
        return DECODER_MORE;
    case Z_STREAM_END:
        inflateReset(z);
        return DECODER_FRAME_END;
    case Z_MEM_ERROR:
        return fail_memory(err);
    default:
        return fail(err, "damaged gzip data: %s", z->msg ? z->msg : zError(result));
    }
}

static void zlib_destroy(void *state)
{
    inflateEnd(state);
    free(state);
}

#define ZLIB_CALLS zlib_create, zlib_decode, zlib_destroy
#else
#define ZLIB_CALLS NULL, NULL, NULL
#endif

#if HAVE_ZSTD

static void *zstd_create(void)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (context)
        ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
    return context;
}

static decoder_result zstd_decode(void *state, decoder_buffers *buffers, failure *err)
{
    ZSTD_inBuffer in = {buffers->in, buffers->in_bytes, 0};
    ZSTD_outBuffer out = {buffers->out, buffers->out_bytes, 0};
    size_t result = ZSTD_decompressStream(state, &out, &in);
    buffers->in += in.pos;
    buffers->in_bytes -= in.pos;
    buffers->out += out.pos;
    buffers->out_bytes -= out.pos;
    if (!ZSTD_isError(result))
        return result == 0 ? DECODER_FRAME_END : DECODER_MORE;
    switch (ZSTD_getErrorCode(result)) {
    case ZSTD_error_memory_allocation:
        return fail_memory(err);
    case ZSTD_error_frameParameter_windowTooLarge:
        return fail(
            err, "zstd data with a window of more than 128 MiB is not supported; compress it again "
                 "without --long, or with --long=27");
    default:
        return fail(err, "damaged zstd data: %s", ZSTD_getErrorName(result));
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

const decoder decoders[] = {
    {"gzip", "ISA-L", is_gzip, gzip_memory, ISAL_CALLS},
    {"gzip", "zlib", is_gzip, gzip_memory, ZLIB_CALLS},
    {"zstd", "zstd", is_zstd, zstd_memory, ZSTD_CALLS},
};
const size_t n_decoders = sizeof decoders / sizeof *decoders;

const decoder *decoder_recognize(const uint8_t *bytes, size_t n_bytes)
{
    const decoder *found = NULL;
    for (size_t i = 0; i < n_decoders && !(found && found->create); i++) {
        if (decoders[i].is_magic(bytes, n_bytes))
            found = &decoders[i];
    }
    return found;
}

const decoder *decoder_find(const char *name)
{
    size_t i = 0;
    while (i < n_decoders && !(decoders[i].create && strcmp(decoders[i].name, name) == 0))
        i++;
    return i < n_decoders ? &decoders[i] : NULL;
}
