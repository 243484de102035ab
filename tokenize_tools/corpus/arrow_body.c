/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/arrow_body.h"

#include <string.h>

#include "corpus/input_codec.h"
#include "text/little_endian.h"

bool arrow_take(window *w, void *dst, uint64_t n_bytes, failure *err)
{
    uint64_t n_taken;
    if (!window_take(w, dst, n_bytes, &n_taken, err))
        return false;
    return n_taken == n_bytes || fail(err, "the input ends inside a message; it is truncated");
}

static const input_codec *find_zstd(void)
{
    size_t i = 0;
    while (i < input_n_codecs && strcmp(input_codecs[i].name, "zstd") != 0)
        i++;
    return i < input_n_codecs && input_codecs[i].create ? &input_codecs[i] : NULL;
}

void arrow_body_close(arrow_body *b)
{
    if (b->zstd)
        find_zstd()->destroy(b->zstd);
    b->zstd = NULL;
    b->in_frame = false;
}

static bool open_zstd(arrow_body *b, failure *err)
{
    const input_codec *codec = find_zstd();
    if (b->in_frame) /* the buffer before was not taken to its end */
        arrow_body_close(b);
    if (!codec)
        return fail(err, "is compressed with zstd, which this build of tokmap does not read");
    if (!b->zstd)
        b->zstd = codec->create();
    return b->zstd || fail_memory(err);
}

bool arrow_body_begin(arrow_body *b, const arrow_extent *buffer, uint64_t *n_bytes, failure *err)
{
    window *w = b->window;
    uint8_t size[8];
    const uint64_t begin = b->begin + buffer->offset;
    if (begin < w->offset)
        return fail(err, "damaged: the buffers of a record batch overlap");
    if (!arrow_take(w, NULL, begin - w->offset, err))
        return false;
    b->end = begin + buffer->n_bytes;
    b->is_plain = !b->is_compressed || buffer->n_bytes == 0;
    b->n_left = *n_bytes = buffer->n_bytes;
    if (b->is_plain)
        return true;
    if (buffer->n_bytes < sizeof size)
        return fail(err, "damaged: a compressed buffer without its size");
    if (!arrow_take(w, size, sizeof size, err))
        return false;
    *n_bytes = le_get64(size);
    b->is_plain = *n_bytes == UINT64_MAX; /* it did not become smaller */
    if (b->is_plain)
        *n_bytes = buffer->n_bytes - sizeof size;
    b->n_left = *n_bytes;
    return b->is_plain || open_zstd(b, err);
}

/* Decompresses what the window has; `out` is advanced. */
static bool decode(arrow_body *b, input_codec_buffers *out, failure *err)
{
    window *w = b->window;
    char why[160];
    if (window_size(w) == 0 && w->offset < b->end) {
        if (!window_fill(w, err))
            return false;
        if (window_size(w) == 0)
            return fail(err, "the input ends inside a message; it is truncated");
    }
    const uint64_t n_stored = b->end - w->offset;
    const size_t n_in = n_stored < window_size(w) ? (size_t)n_stored : window_size(w);
    const size_t n_out = out->out_bytes;
    out->in = window_text(w);
    out->in_bytes = n_in;
    const input_codec_result result = find_zstd()->decode(b->zstd, out, why, sizeof why);
    if (result == INPUT_CODEC_NO_MEMORY)
        return fail_memory(err);
    if (result == INPUT_CODEC_WINDOW)
        return fail(err, INPUT_CODEC_WINDOW_TEXT);
    if (result == INPUT_CODEC_DAMAGED)
        return fail(err, "damaged zstd data: %s", why);
    const bool stuck = out->in_bytes == n_in && out->out_bytes == n_out && n_stored == n_in;
    window_consume(w, n_in - out->in_bytes);
    b->in_frame = result != INPUT_CODEC_FRAME_END;
    return !stuck || fail(err, "damaged: a buffer is shorter than it says");
}

/* After the last plain byte: the end of the frame, with its checksum if it has one. */
static bool finish(arrow_body *b, failure *err)
{
    uint8_t spare;
    while (b->in_frame || b->window->offset < b->end) {
        input_codec_buffers out = {.out = &spare, .out_bytes = 1};
        if (!decode(b, &out, err))
            return false;
        if (out.out_bytes == 0)
            return fail(err, "damaged: a buffer is longer than it says");
    }
    return true;
}

bool arrow_body_take(arrow_body *b, uint8_t *dst, uint64_t n_bytes, failure *err)
{
    uint8_t unwanted[4096] = {0};
    if (b->is_plain) {
        b->n_left -= n_bytes;
        return arrow_take(b->window, dst, n_bytes, err);
    }
    while (n_bytes > 0) {
        const size_t room =
            dst ? (size_t)n_bytes : (n_bytes < sizeof unwanted ? (size_t)n_bytes : sizeof unwanted);
        input_codec_buffers out = {.out = dst ? dst : unwanted, .out_bytes = room};
        if (!decode(b, &out, err))
            return false;
        const size_t n_given = room - out.out_bytes;
        dst = dst ? dst + n_given : NULL;
        n_bytes -= n_given;
        b->n_left -= n_given;
    }
    return b->n_left > 0 || finish(b, err);
}
