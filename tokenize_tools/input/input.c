/* SPDX-License-Identifier: Apache-2.0 */
#include "input/input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "codec/decoder.h"
#include "system/input_file.h"
#include "system/platform.h"

#define STORED_BYTES ((size_t)256 * 1024)

struct input {
    int fd, stop_fd;
    const char *name;
    input_version version;
    uint64_t begin;         /* of the part that is read */
    uint64_t part_bytes;    /* UINT64_MAX: the whole file is read */
    input_prefix prefix;    /* still to be compared; 0 bytes: none */
    const decoder *decoder; /* NULL: plain */
    uint64_t memory;        /* that it takes */
    void *decoder_state;
    bool between_frames; /* no frame or member is open: the input may end here */
    bool at_end;         /* of the stored bytes */
    uint64_t n_read;     /* stored bytes read */
    uint64_t asked;      /* up to which the file is read ahead */
    XXH3_state_t *checksum;
    decoder_buffers buffers; /* .in is the unread part of `stored` */
    uint8_t stored[];
};

/* ---- Files that change ---- */

input_version input_version_of(const file_facts *facts)
{
    if (facts->kind != FILE_REGULAR)
        return (input_version){0};
    return (input_version){
        .known = true,
        .n_bytes = facts->n_bytes,
        .mtime_ns = facts->mtime_ns,
        .ctime_ns = facts->ctime_ns,
    };
}

bool input_version_check(const input_version *was, int fd, failure *err)
{
    file_facts facts;
    if (!was->known)
        return true;
    const int sys_errno = file_describe_open(fd, &facts);
    if (sys_errno)
        return fail_system(err, sys_errno, "cannot read");
    const input_version now = input_version_of(&facts);
    if (!now.known)
        return fail_changed(err, "has changed: it is no longer a regular file");
    if (now.n_bytes != was->n_bytes)
        return fail_changed(err, "has changed: it had %" PRIu64 " bytes and now has %" PRIu64,
                            was->n_bytes, now.n_bytes);
    return (now.mtime_ns == was->mtime_ns && now.ctime_ns == was->ctime_ns) ||
           fail_changed(err, "has changed: it was modified or replaced");
}

/* Called after each read, and at the end. */
static bool check_length(const input *in, failure *err)
{
    const uint64_t expected = in->version.n_bytes;
    if (in->at_end && !input_version_check(&in->version, in->fd, err))
        return false;
    const bool part = in->part_bytes != UINT64_MAX;
    if (part && in->at_end && in->n_read < in->part_bytes)
        return fail_changed(err,
                            "has changed: it now ends here, and was to be read up to byte %" PRIu64,
                            in->begin + in->part_bytes);
    if (!part && in->version.known &&
        (in->n_read > expected || (in->at_end && in->n_read < expected)))
        return fail_changed(err, "has changed: it had %" PRIu64 " bytes, but %s were read",
                            expected, in->n_read > expected ? "more" : "fewer");
    if (in->at_end && in->prefix.n_bytes > 0)
        return fail_changed(err,
                            "has changed: it now ends before byte %" PRIu64
                            ", up to which an earlier run read it",
                            in->prefix.n_bytes);
    return true;
}

/* Adds the bytes just read to the checksum, and compares the prefix once it is complete. */
static bool add_to_checksum(input *in, const uint8_t *bytes, size_t n_bytes, failure *err)
{
    const uint64_t begin = in->n_read, left = in->prefix.n_bytes - begin;
    in->n_read += n_bytes;
    if (in->prefix.n_bytes > 0 && left <= n_bytes) {
        XXH3_64bits_update(in->checksum, bytes, (size_t)left);
        bytes += left;
        n_bytes -= (size_t)left;
        if (XXH3_64bits_digest(in->checksum) != in->prefix.checksum)
            return fail_changed(
                err, "has changed: its first %" PRIu64 " bytes are not the ones that were packed",
                in->prefix.n_bytes);
        in->prefix.n_bytes = 0;
    }
    XXH3_64bits_update(in->checksum, bytes, n_bytes);
    return true;
}

/* ---- Reading ---- */

/* Adds to the buffer until it holds `wanted` bytes or the input ends. */
static bool fill_buffer(input *in, size_t wanted, failure *err)
{
    memmove(in->stored, in->buffers.in, in->buffers.in_bytes);
    in->buffers.in = in->stored;
    while (!in->at_end && in->buffers.in_bytes < wanted) {
        uint8_t *to = in->stored + in->buffers.in_bytes;
        const size_t room = STORED_BYTES - in->buffers.in_bytes;
        const uint64_t left = in->part_bytes - in->n_read;
        ssize_t n = input_file_read(in->fd, in->stop_fd, to, left < room ? (size_t)left : room);
        if (n < 0)
            return fail_system(err, errno, "cannot read");
        in->at_end = n == 0;
        if (!add_to_checksum(in, to, (size_t)n, err) || !check_length(in, err))
            return false;
        in->buffers.in_bytes += (size_t)n;
        /* At most as much as was read, because the caller may want only the beginning. */
        const uint64_t ahead = in->part_bytes - in->n_read;
        tokmap_i_file_read_ahead(in->fd, in->begin + in->n_read,
                                 ahead < in->n_read ? ahead : in->n_read, &in->asked);
    }
    return true;
}

static bool choose_decoder(input *in, const input_source *source, failure *err)
{
    if (!fill_buffer(in, DECODER_MAGIC_BYTES, err))
        return false;
    const decoder *d = decoder_recognize(in->buffers.in, in->buffers.in_bytes);
    if (d && !d->create)
        return fail(err, "%s data cannot be read, because this build has no %s", d->name,
                    d->library);
    in->memory = d ? d->memory(in->buffers.in, in->buffers.in_bytes) : 0;
    if (d && source->reserve && !source->reserve(source->reserve_context, in->memory))
        return fail_system(err, ECANCELED, "cannot read");
    in->decoder = d;
    in->decoder_state = d ? d->create() : NULL;
    return !d || in->decoder_state || fail_system(err, ENOMEM, "cannot start %s", d->library);
}

/* Whether a line begins at this byte, in a file of n_bytes. */
static bool check_line_start(const input *in, uint64_t offset, uint64_t n_bytes, failure *err)
{
    uint8_t before = '\n';
    const bool inside = offset > 0 && offset < n_bytes;
    const int sys_errno =
        inside ? tokmap_i_file_read(in->fd, &before, 1, offset - 1, &(size_t){0}) : 0;
    if (sys_errno)
        return fail_system(err, sys_errno, "cannot read");
    return before == '\n' ||
           fail_changed(err, "has changed: no line begins at byte %" PRIu64 ", where it was cut",
                        offset);
}

/* Goes to the beginning of a part. */
static bool begin_part(input *in, const input_part *part, failure *err)
{
    file_facts facts;
    int sys_errno = file_describe_open(in->fd, &facts);
    if (sys_errno)
        return fail_system(err, sys_errno, "cannot read");
    if (facts.kind != FILE_REGULAR)
        return fail(err, "only a regular file can be read in parts");
    const uint64_t begin = part->begin.offset;
    const uint64_t end = part->has_end ? part->end.offset : facts.n_bytes;
    if (begin > end || end > facts.n_bytes)
        return fail_changed(
            err, "has changed: it has %" PRIu64 " bytes, and not the part that is to be read",
            facts.n_bytes);
    if (!check_line_start(in, begin, facts.n_bytes, err) ||
        !check_line_start(in, end, facts.n_bytes, err))
        return false;
    in->begin = begin;
    in->part_bytes = end - begin;
    sys_errno = input_file_skip_to(in->fd, begin);
    return !sys_errno || fail_system(err, sys_errno, "cannot read");
}

static void name_place(const input *in, failure *err)
{
    if (err->status > 0)
        fail_in_file(err, in->name);
    else
        fail_at(err, "%.200s: byte %" PRIu64 ": ", in->name,
                in->begin + in->n_read - in->buffers.in_bytes);
}

int input_open_file(const input_source *source, failure *err)
{
    const int fd = input_file_open(source->path);
    if (fd < 0)
        fail_system(err, errno, "cannot open");
    else if (!source->version || input_version_check(source->version, fd, err))
        return fd;
    input_file_close(fd);
    fail_in_file(err, source->path);
    return -1;
}

input *input_open(const input_source *source, int stop_fd, failure *err)
{
    const int fd = input_open_file(source, err);
    return fd < 0 ? NULL : input_open_at(source, fd, stop_fd, err);
}

input *input_open_at(const input_source *source, int fd, int stop_fd, failure *err)
{
    input *in = calloc(1, sizeof *in + STORED_BYTES);
    if (in)
        in->checksum = XXH3_createState();
    if (!in || !in->checksum) {
        free(in);
        input_file_close(fd);
        fail_memory(err);
        fail_in_file(err, source->path);
        return NULL;
    }
    XXH3_64bits_reset(in->checksum);
    in->name = source->path;
    in->version = source->version ? *source->version : (input_version){0};
    in->prefix = source->prefix;
    in->stop_fd = stop_fd;
    in->buffers.in = in->stored;
    in->between_frames = true;
    in->part_bytes = UINT64_MAX;
    in->fd = fd;
    if (source->part ? begin_part(in, source->part, err) : choose_decoder(in, source, err))
        return in;
    name_place(in, err);
    input_close(in);
    return NULL;
}

/* One step of the decompressor. */
static bool decode_step(input *in, failure *err)
{
    decoder_buffers before = in->buffers;
    if (in->between_frames && !in->decoder->is_magic(in->buffers.in, in->buffers.in_bytes))
        return fail(err, "trailing data that is not %s after the compressed data",
                    in->decoder->name);
    const decoder_result result = in->decoder->decode(in->decoder_state, &in->buffers, err);
    in->between_frames = result == DECODER_FRAME_END;
    if (result != DECODER_MORE)
        return result == DECODER_FRAME_END;
    bool stuck =
        before.in_bytes == in->buffers.in_bytes && before.out_bytes == in->buffers.out_bytes;
    if (stuck && in->at_end)
        fail(err, "truncated %s data: its end is missing", in->decoder->name);
    else if (stuck)
        fail(err, "damaged %s data", in->decoder->name);
    return !stuck;
}

ssize_t input_read(input *in, void *buffer, size_t n_bytes, failure *err)
{
    in->buffers.out = buffer;
    in->buffers.out_bytes = n_bytes;
    for (bool ok = true; ok;) {
        /* A magic number must be in the buffer as a whole. */
        const size_t wanted = in->between_frames ? DECODER_MAGIC_BYTES : 1;
        ok = in->buffers.in_bytes >= wanted || fill_buffer(in, wanted, err);
        if (ok && !in->decoder) {
            const size_t n = n_bytes < in->buffers.in_bytes ? n_bytes : in->buffers.in_bytes;
            memcpy(buffer, in->buffers.in, n);
            in->buffers.in += n;
            in->buffers.in_bytes -= n;
            return (ssize_t)n;
        }
        if (ok && in->at_end && in->buffers.in_bytes == 0 && in->between_frames)
            return 0;
        ok = ok && decode_step(in, err);
        if (ok && in->buffers.out_bytes < n_bytes)
            return (ssize_t)(n_bytes - in->buffers.out_bytes);
    }
    name_place(in, err);
    return -1;
}

input_prefix input_stored(const input *in)
{
    return (input_prefix){in->n_read, XXH3_64bits_digest(in->checksum)};
}

bool input_is_plain_file(const input *in, uint64_t *n_bytes)
{
    file_facts facts;
    if (in->decoder || file_describe_open(in->fd, &facts) || facts.kind != FILE_REGULAR)
        return false;
    *n_bytes = facts.n_bytes;
    return true;
}

int input_read_at(const input *in, void *to, size_t n_bytes, uint64_t offset, size_t *n_read)
{
    return tokmap_i_file_read(in->fd, to, n_bytes, offset, n_read);
}

const char *input_codec_name(const input *in)
{
    return in->decoder ? in->decoder->name : NULL;
}

uint64_t input_memory(const input *in)
{
    return in->memory;
}

void input_close(input *in)
{
    if (!in)
        return;
    if (in->decoder_state)
        in->decoder->destroy(in->decoder_state);
    input_file_close(in->fd);
    XXH3_freeState(in->checksum);
    free(in);
}
