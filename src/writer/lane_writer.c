/* SPDX-License-Identifier: Apache-2.0 */
/* lane_writer.c - writes the file of a lane.
 *
 * Values are written where they belong as they come. The file begins as a hole, and each token gets
 * its values once, so zeros need not be written. A block that comes as a whole is hashed on the
 * way; finish reads the others. */
#include "writer/lane_writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"
#include "base/options.h"
#include "dataset/dataset.h"
#include "dataset/store.h"
#include "dataset/token_files.h"
#include "system/platform_thread.h"
#include "tokmap_writer.h"

struct tokmap_lane_writer {
    tokmap_i_lane_header header;
    char about[TOKMAP_I_LANE_ABOUT_ROOM];
    bool partial, finished;
    tokmap_i_side_file file;
    uint8_t *checksums;
    uint8_t *is_hashed;   /* for each block: its checksum is known */
    tokmap_i_mutex mutex; /* for all fields below */
    tokmap_error failure; /* the first one */
    tokmap_i_extent *put; /* the tokens that have values, in order; none touches the next one */
    size_t n_put;
};

/* ---- Which tokens have values ---- */

/* Notes that these tokens have values. */
static tokmap_status take_tokens(tokmap_lane_writer *w, uint64_t first, uint64_t n_tokens,
                                 tokmap_error *err)
{
    const uint64_t end = first + n_tokens;
    size_t at = 0; /* of the first extent that ends at `first` or later */
    for (size_t n = w->n_put; n > 0;) {
        const size_t half = n / 2;
        const bool is_before = w->put[at + half].end < first;
        at += is_before ? half + 1 : 0;
        n = is_before ? n - half - 1 : half;
    }
    const bool joins_last = at < w->n_put && w->put[at].end == first;
    const size_t next = at + joins_last;
    const bool has_next = next < w->n_put;
    if (has_next && w->put[next].begin < end)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: token %" PRIu64 " has its values already",
                    w->file.path, MAX(first, w->put[next].begin));
    const bool joins_next = has_next && w->put[next].begin == end;
    if (joins_last && joins_next) {
        w->put[at].end = w->put[next].end;
        memmove(w->put + next, w->put + next + 1, (--w->n_put - next) * sizeof *w->put);
    } else if (joins_last) {
        w->put[at].end = end;
    } else if (joins_next) {
        w->put[at].begin = first;
    } else {
        if (!array_grow(&w->put, w->n_put, sizeof *w->put))
            return FAIL_MEMORY(err);
        memmove(w->put + at + 1, w->put + at, (w->n_put++ - at) * sizeof *w->put);
        w->put[at] = (tokmap_i_extent){first, end};
    }
    return TOKMAP_OK;
}

static tokmap_status check_complete(const tokmap_lane_writer *w, tokmap_error *err)
{
    const uint64_t n_tokens = w->header.n_tokens;
    const bool from_begin = w->n_put > 0 && w->put[0].begin == 0;
    const uint64_t missing = from_begin ? w->put[0].end : 0;
    if (w->partial || missing == n_tokens)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "%s: token %" PRIu64 " of %" PRIu64
                " has no values: give all tokens values, or begin the lane as partial",
                w->file.path, missing, n_tokens);
}

/* ---- Values ---- */

/* Writes values, counted in bytes from the first one, that are all in one block. */
static tokmap_status write_piece(tokmap_lane_writer *w, const uint8_t *values, uint64_t begin,
                                 size_t n_bytes, tokmap_error *err)
{
    const tokmap_i_lane_header *h = &w->header;
    const uint64_t block = begin / TOKMAP_I_BLOCK_BYTES, at = h->offset + begin;
    const uint64_t block_begin = block * TOKMAP_I_BLOCK_BYTES;
    if (n_bytes == MIN(h->n_bytes - h->offset - block_begin, TOKMAP_I_BLOCK_BYTES)) {
        le_put64(w->checksums + 8 * block, tokmap_i_checksum(values, n_bytes));
        w->is_hashed[block] = 1;
    }
    const int error =
        is_zero(values, n_bytes) ? 0 : tokmap_i_file_write(w->file.fd, values, n_bytes, at);
    return CHECK_IO_AT(err, error, at, "%s: cannot write", w->file.partial);
}

/* Computes the checksums of the blocks that did not come as a whole. */
static tokmap_status hash_rest(tokmap_lane_writer *w, tokmap_error *err)
{
    const tokmap_i_lane_header *h = &w->header;
    const tokmap_i_named_file file = {w->file.fd, w->file.partial};
    uint8_t *buffer = aligned_alloc(TOKMAP_I_DIRECT_BYTES, TOKMAP_I_BLOCK_BYTES);
    tokmap_status status = buffer ? TOKMAP_OK : FAIL_MEMORY(err);
    for (uint64_t block = 0; block < h->n_blocks && !status; block++) {
        const uint64_t at = h->offset + block * TOKMAP_I_BLOCK_BYTES;
        const size_t n_bytes = (size_t)MIN(h->n_bytes - at, TOKMAP_I_BLOCK_BYTES);
        if (w->is_hashed[block])
            continue;
        status = tokmap_i_read_exactly(file, at, n_bytes, buffer, err);
        le_put64(w->checksums + 8 * block, status ? 0 : tokmap_i_checksum(buffer, n_bytes));
    }
    free(buffer);
    return status;
}

tokmap_status tokmap_i_lane_finish(tokmap_i_side_file *f, tokmap_i_lane_header *h,
                                   const char *about, const uint8_t *checksums, tokmap_error *err)
{
    uint8_t bytes[TOKMAP_I_LANE_CHECKSUMS_AT];
    const size_t n_checksums = (size_t)tokmap_i_lane_checksums_bytes(h);
    h->hash = tokmap_i_checksum(checksums, n_checksums);
    h->about_checksum = tokmap_i_checksum(about, TOKMAP_I_LANE_ABOUT_ROOM);
    tokmap_i_side_header_encode(&tokmap_i_lane_kind, h, bytes);
    memcpy(bytes + TOKMAP_I_SIDE_HEADER_BYTES, about, TOKMAP_I_LANE_ABOUT_ROOM);
    int error = tokmap_i_file_write(f->fd, checksums, n_checksums, TOKMAP_I_LANE_CHECKSUMS_AT);
    if (!error)
        error = tokmap_i_file_write(f->fd, bytes, sizeof bytes, 0);
    return error ? FAIL_IO(err, error, "%s: cannot write", f->partial)
                 : tokmap_i_side_file_finish(f, err);
}

/* ---- Calls ---- */

static tokmap_status take_header(tokmap_lane_writer *w, const tokmap_dataset *ds,
                                 const tokmap_lane_options *o, tokmap_error *err)
{
    tokmap_i_lane_header *h = &w->header;
    const size_t about_bytes = o->about ? strlen(o->about) : 0;
    if (!o->name || !tokmap_i_column_name_valid(o->name))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "'%.100s' is not the name of a lane: 1 to 64 of the letters A-Z and a-z, "
                    "digits, _ and -",
                    o->name ? o->name : "");
    if (about_bytes > TOKMAP_I_LANE_ABOUT_ROOM)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "about has %zu bytes: at most %d", about_bytes,
                    TOKMAP_I_LANE_ABOUT_ROOM);
    if (o->goes_with != TOKMAP_WITH_LABEL && o->goes_with != TOKMAP_WITH_INPUT)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "goes_with is %d: must be 0 or 1", (int)o->goes_with);
    *h = (tokmap_i_lane_header){.type = (uint32_t)o->type,
                                .count = o->count ? o->count : 1,
                                .goes_with = (uint32_t)o->goes_with,
                                .n_tokens = ds->header.n_tokens,
                                .about_bytes = (uint32_t)about_bytes};
    tokmap_i_content_hash_store(&ds->header.tokens_hash, h->tokens_hash);
    memcpy(w->about, o->about ? o->about : "", about_bytes);
    if (!tokmap_i_lane_number_bytes(h->type))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "type is %d: not a type of numbers", (int)o->type);
    if (!tokmap_i_lane_place(h))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "count is %" PRIu32
                    ": the numbers of a token would have more than %d bytes, or "
                    "those of all tokens more than 2^61",
                    h->count, TOKMAP_I_LANE_MOST_BYTES);
    return TOKMAP_OK;
}

static tokmap_status open_file(tokmap_lane_writer *w, const char *path, bool replace,
                               tokmap_error *err)
{
    if (!replace && tokmap_i_file_exists(path))
        return FAIL_REASON(err, TOKMAP_ERR_EXISTS, TOKMAP_REASON_REPLACEABLE, "%s: exists", path);
    const tokmap_status status = tokmap_i_side_file_open(&w->file, &tokmap_i_lane_kind, path, err);
    return status ? status
                  : CHECK_IO(err, tokmap_i_file_resize(w->file.fd, w->header.n_bytes),
                             "%s: cannot write", w->file.partial);
}

tokmap_status tokmap_lane_writer_open(tokmap_lane_writer **out, const tokmap_dataset *ds,
                                      const tokmap_lane_options *options, tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_lane_options, partial)};
    tokmap_lane_options o;
    tokmap_i_error_clear(err);
    if (!out)
        return FAIL_NULL(err);
    *out = NULL;
    if (!ds)
        return FAIL_NULL(err);
    tokmap_status status = tokmap_i_take_options(&o, options, &kind, err);
    if (!status)
        status = tokmap_i_need_files(ds, err);
    if (!status)
        status = tokmap_i_check_flag("replace", o.replace, err);
    if (!status)
        status = tokmap_i_check_flag("partial", o.partial, err);
    if (status)
        return status;
    tokmap_lane_writer *w = calloc(1, sizeof *w);
    if (!w)
        return FAIL_MEMORY(err);
    w->file.fd = -1;
    w->partial = o.partial;
    tokmap_i_mutex_init(&w->mutex);
    status = take_header(w, ds, &o, err);
    if (!status) {
        char *path = tokmap_i_side_path(ds, "%s.tml", o.name);
        w->checksums = calloc((size_t)tokmap_i_lane_checksums_bytes(&w->header) + 1, 1);
        w->is_hashed = calloc((size_t)w->header.n_blocks + 1, 1);
        status = path && w->checksums && w->is_hashed ? open_file(w, path, o.replace, err)
                                                      : FAIL_MEMORY(err);
        free(path);
    }
    if (status)
        tokmap_lane_writer_close(w);
    else
        *out = w;
    return status;
}

/* Begins a call: repeats an earlier failure. The mutex is held. */
static tokmap_status enter(tokmap_lane_writer *w, tokmap_error *err)
{
    if (w->finished)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: is finished", w->file.path);
    if (w->failure.status && err)
        *err = w->failure;
    return w->failure.status;
}

/* Ends a call: remembers its failure, unless there was one before. The mutex is held. */
static tokmap_status leave(tokmap_lane_writer *w, const tokmap_error *fault, tokmap_error *err)
{
    if (fault->status && !w->failure.status)
        w->failure = *fault;
    if (fault->status && err)
        *err = *fault;
    return fault->status;
}

tokmap_status tokmap_lane_writer_put(tokmap_lane_writer *w, uint64_t first, const void *values,
                                     uint64_t n_tokens, tokmap_error *err)
{
    tokmap_error fault;
    tokmap_i_error_clear(err);
    if (!w || (!values && n_tokens > 0))
        return FAIL_NULL(err);
    tokmap_i_error_clear(&fault);
    const tokmap_i_lane_header *h = &w->header;
    tokmap_i_mutex_lock(&w->mutex);
    tokmap_status status = enter(w, err);
    if (!status) {
        if (first > h->n_tokens || n_tokens > h->n_tokens - first)
            FAIL(&fault, TOKMAP_ERR_ARGUMENT,
                 "%s: values for %" PRIu64 " tokens from token %" PRIu64
                 " on, but there are %" PRIu64,
                 w->file.path, n_tokens, first, h->n_tokens);
        else if (n_tokens > 0)
            (void)take_tokens(w, first, n_tokens, &fault);
        status = leave(w, &fault, err);
    }
    tokmap_i_mutex_unlock(&w->mutex);
    const uint8_t *from = values;
    uint64_t at = status ? 0 : first * h->token_bytes, end = at;
    end += status ? 0 : n_tokens * h->token_bytes;
    while (at < end && !status) {
        const uint64_t stop = MIN(end, (at / TOKMAP_I_BLOCK_BYTES + 1) * TOKMAP_I_BLOCK_BYTES);
        status = write_piece(w, from, at, (size_t)(stop - at), &fault);
        from += stop - at;
        at = stop;
    }
    if (fault.status) {
        tokmap_i_mutex_lock(&w->mutex);
        leave(w, &fault, err);
        tokmap_i_mutex_unlock(&w->mutex);
    }
    return status;
}

tokmap_status tokmap_lane_writer_finish(tokmap_lane_writer *w, tokmap_error *err)
{
    tokmap_error fault;
    tokmap_i_error_clear(err);
    if (!w)
        return FAIL_NULL(err);
    tokmap_i_error_clear(&fault);
    tokmap_i_mutex_lock(&w->mutex);
    tokmap_status status = enter(w, err);
    if (!status) {
        status = check_complete(w, &fault);
        if (!status)
            status = hash_rest(w, &fault);
        if (!status)
            status = tokmap_i_lane_finish(&w->file, &w->header, w->about, w->checksums, &fault);
        w->finished = !status;
        leave(w, &fault, err);
    }
    tokmap_i_mutex_unlock(&w->mutex);
    return status;
}

void tokmap_lane_writer_close(tokmap_lane_writer *w)
{
    if (!w)
        return;
    tokmap_i_side_file_close(&w->file);
    tokmap_i_mutex_free(&w->mutex);
    free(w->checksums);
    free(w->is_hashed);
    free(w->put);
    free(w);
}
