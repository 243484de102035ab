/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.c - reads bytes and gives a reason on failure; a cursor over tables. */
#include "foreign/foreign.h"

#include <inttypes.h>
#include <string.h>

bool foreign_read(const foreign_bytes *bytes, uint64_t offset, void *dst, size_t n_bytes,
                  failure *err)
{
    uint64_t end;
    if (__builtin_add_overflow(offset, n_bytes, &end) || end > bytes->size) {
        return fail(err, "is too short: it has %" PRIu64 " bytes and needs at least %" PRIu64,
                    bytes->size, offset + n_bytes);
    }
    if (!bytes->read(bytes->user, offset, dst, n_bytes))
        return fail(err, "cannot be read at byte %" PRIu64, offset);
    return true;
}

void foreign_cursor_begin(foreign_cursor *cursor, const foreign_bytes *bytes, uint64_t offset,
                          uint64_t end_offset)
{
    cursor->bytes = bytes;
    cursor->next_offset = offset;
    cursor->end_offset = end_offset;
    cursor->at = 0;
    cursor->filled = 0;
}

const uint8_t *foreign_cursor_next(foreign_cursor *cursor, size_t n_bytes, failure *err)
{
    size_t left = cursor->filled - cursor->at;
    if (left < n_bytes) {
        memmove(cursor->buffer, cursor->buffer + cursor->at, left);
        uint64_t in_table = cursor->end_offset - cursor->next_offset;
        size_t room = sizeof cursor->buffer - left;
        size_t n_read = in_table < room ? (size_t)in_table : room;
        if (left + n_read < n_bytes) {
            fail(err, "ends within a table, at byte %" PRIu64, cursor->end_offset);
            return NULL;
        }
        if (!foreign_read(cursor->bytes, cursor->next_offset, cursor->buffer + left, n_read, err))
            return NULL;
        cursor->next_offset += n_read;
        cursor->at = 0;
        cursor->filled = left + n_read;
    }
    const uint8_t *p = cursor->buffer + cursor->at;
    cursor->at += n_bytes;
    return p;
}
