/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "system/platform.h"

#define SCAN_BYTES (64 << 10)

/* ---- Reading ---- */

/* Reads the journal. *n_read is below n_bytes only where the file ended when it was opened, because
 * without the lock another process may be writing. */
static tokmap_status read_at(const tokmap_i_journal *j, uint64_t offset, size_t n_bytes,
                             uint8_t *dst, size_t *n_read, tokmap_error *err)
{
    const uint64_t left = j->n_bytes - MIN(offset, j->n_bytes);
    const int error = tokmap_i_file_read(j->fd, dst, (size_t)MIN(n_bytes, left), offset, n_read);
    return CHECK_IO_AT(err, error, j->end, "%s: cannot read", j->path);
}

static tokmap_status fail_damaged(const tokmap_i_journal *j, const char *why, tokmap_error *err)
{
    if (j->last.sequence == 0)
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, j->end,
                       "%s: damaged at byte %" PRIu64 " (%s)" TOKMAP_I_CANNOT_RESUME, j->path,
                       j->end, why);
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, j->end,
                   "%s: damaged at byte %" PRIu64
                   " (%s): resume the unfinished dataset at checkpoint "
                   "%" PRIu64 " or before, or discard it to start over",
                   j->path, j->end, why, j->last.sequence);
}

/* Decides what the rest is, because there is no valid record at j->end. If a record head follows,
 * the record is damaged; else it is torn, at the end of the file. from: where to look for that
 * head. */
static tokmap_status check_rest(const tokmap_i_journal *j, uint64_t from, tokmap_error *err)
{
    const size_t piece_bytes = SCAN_BYTES + TOKMAP_I_RECORD_HEAD_BYTES - TOKMAP_I_RECORD_ALIGNMENT;
    uint8_t *piece = malloc(piece_bytes);
    if (!piece)
        return FAIL_MEMORY(err);
    size_t n_read = piece_bytes;
    tokmap_status status = TOKMAP_OK;
    bool found = false;
    while (!status && !found && n_read == piece_bytes) {
        status = read_at(j, from, piece_bytes, piece, &n_read, err);
        for (size_t i = 0; !status && !found && i + TOKMAP_I_RECORD_HEAD_BYTES <= n_read;
             i += TOKMAP_I_RECORD_ALIGNMENT)
            found = tokmap_i_record_is_head(piece + i);
        from += SCAN_BYTES;
    }
    free(piece);
    if (status)
        return status;
    return found ? fail_damaged(j, "wrong checksum, with more records after it", err) : TOKMAP_END;
}

static tokmap_status read_header(tokmap_i_journal *j, tokmap_error *err)
{
    uint8_t bytes[TOKMAP_I_JOURNAL_HEADER_BYTES];
    size_t n_read;
    const tokmap_status status = read_at(j, 0, sizeof bytes, bytes, &n_read, err);
    if (status)
        return status;
    if (n_read < sizeof bytes || !tokmap_i_journal_header_decode(bytes, &j->header))
        return check_rest(j, 0, err);
    if (j->header.version != TOKMAP_I_JOURNAL_VERSION)
        return FAIL(err, TOKMAP_ERR_VERSION,
                    "%s: only the version of tokmap that wrote it can resume it: use that version, "
                    "or discard it to start over",
                    j->path);
    j->end = sizeof bytes;
    return TOKMAP_OK;
}

tokmap_status tokmap_i_journal_next(tokmap_i_journal *j, tokmap_error *err)
{
    uint8_t head[TOKMAP_I_RECORD_HEAD_BYTES];
    tokmap_i_checkpoint now;
    size_t n_read;
    tokmap_status status = read_at(j, j->end, sizeof head, head, &n_read, err);
    if (status)
        return status;
    const uint64_t search_from = j->end + TOKMAP_I_RECORD_ALIGNMENT;
    if (n_read < sizeof head || !tokmap_i_record_is_head(head))
        return check_rest(j, search_from, err);
    const char *problem = tokmap_i_record_head_decode(head, &j->header, &j->last, &now);
    if (problem)
        return fail_damaged(j, problem, err);
    tokmap_i_record_measure(&j->header, &j->last, &now, &j->parts);
    const uint64_t n_bytes = tokmap_i_record_payload_bytes(&j->parts);
    if (j->n_bytes - j->end - sizeof head < n_bytes) /* checked before memory is allocated */
        return check_rest(j, search_from, err);
    j->payload.n_bytes = 0;
    uint8_t *payload = tokmap_i_bytes_add(&j->payload, (size_t)n_bytes);
    if (!payload)
        return FAIL_MEMORY(err);
    status = read_at(j, j->end + sizeof head, (size_t)n_bytes, payload, &n_read, err);
    if (status)
        return status;
    if (n_read < n_bytes || !tokmap_i_record_is_payload(head, payload, n_bytes))
        return check_rest(j, search_from, err);
    problem = tokmap_i_record_payload_decode(payload, &now, &j->parts);
    if (problem)
        return fail_damaged(j, problem, err);
    j->last = now;
    j->end += sizeof head + n_bytes;
    return TOKMAP_OK;
}

tokmap_status tokmap_i_journal_open(tokmap_i_journal *j, const char *path, bool writable,
                                    tokmap_error *err)
{
    tokmap_i_file_stat stat = {0};
    *j = (tokmap_i_journal){.path = path, .fd = -1};
    int error =
        writable ? tokmap_i_file_open_again(path, &j->fd) : tokmap_i_file_open(path, &j->fd);
    if (error == ENOENT)
        return TOKMAP_END;
    if (!error)
        error = tokmap_i_file_stat_fd(j->fd, &stat);
    j->n_bytes = stat.n_bytes;
    tokmap_status status = CHECK_IO(err, error, "%s: cannot open", path);
    if (!status)
        status = read_header(j, err);
    if (status)
        tokmap_i_journal_close(j);
    return status;
}

void tokmap_i_journal_close(tokmap_i_journal *j)
{
    tokmap_i_file_close(j->fd);
    free(j->payload.data);
    *j = TOKMAP_I_NO_JOURNAL;
}

/* ---- Writing ---- */

tokmap_status tokmap_i_journal_cut(tokmap_i_journal *j, tokmap_error *err)
{
    int error = tokmap_i_file_resize(j->fd, j->end);
    if (!error)
        error = tokmap_i_file_sync(j->fd);
    return CHECK_IO_AT(err, error, j->end, "%s: cannot shorten", j->path);
}

tokmap_status tokmap_i_journal_create(tokmap_i_journal *j, const char *path,
                                      const tokmap_i_journal_header *header, tokmap_error *err)
{
    *j = (tokmap_i_journal){.path = path, .fd = -1, .header = *header};
    j->header.version = TOKMAP_I_JOURNAL_VERSION;
    return CHECK_IO(err, tokmap_i_file_create(path, &j->fd), "%s: cannot create", path);
}

/* If a record could not be fully written or flushed, it is cut off again if possible: the next
 * record must not follow a broken one. */
tokmap_status tokmap_i_journal_append(tokmap_i_journal *j, const tokmap_i_checkpoint *now,
                                      const tokmap_i_record_parts *parts, tokmap_error *err)
{
    tokmap_i_checkpoint c = *now;
    const size_t header_bytes = j->end == 0 ? TOKMAP_I_JOURNAL_HEADER_BYTES : 0;
    const size_t n_bytes =
        header_bytes + TOKMAP_I_RECORD_HEAD_BYTES + (size_t)tokmap_i_record_payload_bytes(parts);
    uint8_t *bytes = malloc(n_bytes);
    if (!bytes)
        return FAIL_MEMORY(err);
    if (header_bytes > 0)
        tokmap_i_journal_header_encode(&j->header, bytes);
    const uint64_t previous = j->last.sequence == 0 ? j->header.checksum : j->last.checksum;
    tokmap_i_record_encode(&c, previous, parts, bytes + header_bytes);
    int error = tokmap_i_file_write(j->fd, bytes, n_bytes, j->end);
    if (!error)
        error = tokmap_i_file_sync(j->fd);
    free(bytes);
    if (error) {
        tokmap_i_file_resize(j->fd, j->end);
        return FAIL_IO_AT(err, error, j->end, "%s: cannot write", j->path);
    }
    j->end += n_bytes;
    j->last = c;
    return TOKMAP_OK;
}
