/* SPDX-License-Identifier: Apache-2.0 */
#include "foreign/foreign.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* ---- Bytes and tables ---- */

bool foreign_read(const foreign_bytes *bytes, uint64_t offset, void *dst, size_t n_bytes,
                  failure *err)
{
    uint64_t end;
    if (__builtin_add_overflow(offset, n_bytes, &end) || end > bytes->size)
        return fail(err, "is too short: it has %" PRIu64 " bytes and needs at least %" PRIu64,
                    bytes->size, offset + n_bytes);
    errno = 0;
    if (bytes->read(bytes->user, offset, dst, n_bytes))
        return true;
    return errno ? fail_system(err, errno, "cannot be read at byte %" PRIu64, offset)
                 : fail(err, "cannot be read at byte %" PRIu64, offset);
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

/* ---- Every token, once: is it negative, does a document begin or end at it? ---- */

/* Tokens are checked in runs of this size: a run without a boundary and without a bad id, the usual
 * case, costs two branchless passes that compilers vectorise. */
#define RUN_TOKENS 64

static bool has_boundaries(const foreign_layout *layout)
{
    return layout->boundaries == FOREIGN_BOUNDARIES_BEGIN ||
           layout->boundaries == FOREIGN_BOUNDARIES_END;
}

void foreign_scan_begin(foreign_scan *scan, const foreign_layout *layout)
{
    *scan = (foreign_scan){.layout = *layout};
    if (!has_boundaries(layout))
        scan->layout.boundary_id = UINT32_MAX; /* no run stops for it */
}

bool foreign_refuse_negative(const foreign_layout *layout, uint64_t token, uint32_t id,
                             failure *err)
{
    return fail(err, "has the negative id %" PRId64 " at token %" PRIu64 " (byte %" PRIu64 ")",
                (int64_t)id - (INT64_C(1) << 32), token,
                (layout->token_offset + token * layout->token_bytes));
}

static bool is_negative(const foreign_scan *scan, uint32_t id)
{
    return scan->layout.is_signed && id > INT32_MAX;
}

static bool end_document(foreign_scan *scan, const foreign_sink *sink)
{
    const uint64_t n_tokens = scan->n_open;
    scan->n_open = 0;
    return sink->document(sink->user, n_tokens);
}

static bool scan_token(foreign_scan *scan, uint32_t id, const foreign_sink *sink, failure *err)
{
    if (is_negative(scan, id))
        return foreign_refuse_negative(&scan->layout, scan->done, id, err);
    const bool is_boundary = id == scan->layout.boundary_id;
    const bool begins = scan->layout.boundaries == FOREIGN_BOUNDARIES_BEGIN;
    const bool ends = scan->layout.boundaries == FOREIGN_BOUNDARIES_END;
    if (is_boundary && begins && scan->done > 0 && !end_document(scan, sink))
        return false;
    scan->done++;
    scan->n_open++;
    return !is_boundary || !ends || end_document(scan, sink);
}

static bool run_is_plain_u16(const foreign_scan *scan, const uint16_t *ids)
{
    uint32_t n_boundaries = 0;
    for (int i = 0; i < RUN_TOKENS; i++)
        n_boundaries += ids[i] == scan->layout.boundary_id;
    return n_boundaries == 0;
}

static bool run_is_plain_u32(const foreign_scan *scan, const uint32_t *ids)
{
    uint32_t largest = 0, n_boundaries = 0;
    for (int i = 0; i < RUN_TOKENS; i++) {
        largest = ids[i] > largest ? ids[i] : largest;
        n_boundaries += ids[i] == scan->layout.boundary_id;
    }
    return !is_negative(scan, largest) && n_boundaries == 0;
}

bool foreign_scan_feed(foreign_scan *scan, const void *tokens, size_t n_tokens,
                       const foreign_sink *sink, failure *err)
{
    bool is_u16 = scan->layout.token_bytes == 2;
    const uint16_t *u16 = tokens;
    const uint32_t *u32 = tokens;
    for (size_t i = 0; i < n_tokens;) {
        if (n_tokens - i >= RUN_TOKENS &&
            (is_u16 ? run_is_plain_u16(scan, u16 + i) : run_is_plain_u32(scan, u32 + i))) {
            scan->done += RUN_TOKENS;
            scan->n_open += RUN_TOKENS;
            i += RUN_TOKENS;
            continue;
        }
        size_t end = n_tokens - i < RUN_TOKENS ? n_tokens : i + RUN_TOKENS;
        for (; i < end; i++)
            if (!scan_token(scan, is_u16 ? u16[i] : u32[i], sink, err))
                return false;
    }
    return true;
}

bool foreign_scan_end(foreign_scan *scan, const foreign_sink *sink)
{
    return !has_boundaries(&scan->layout) || scan->n_open == 0 || end_document(scan, sink);
}
