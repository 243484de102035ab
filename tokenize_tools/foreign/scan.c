/* scan.c - looks at every token once: is it negative, and does a document begin or end
 * here? */
#include "foreign/foreign.h"

#include <inttypes.h>

/* Tokens are looked at in runs of this many: a run without a border and without a bad id, by far
 * the most frequent kind, costs two branchless passes that compilers turn into vector code. */
enum {
    RUN_TOKENS = 64
};

static bool has_borders(const foreign_layout *layout)
{
    return layout->borders == FOREIGN_BORDERS_BEGIN || layout->borders == FOREIGN_BORDERS_END;
}

void foreign_scan_begin(foreign_scan *scan, const foreign_layout *layout)
{
    *scan = (foreign_scan){.layout = *layout};
    if (!has_borders(layout))
        scan->layout.border_id = UINT32_MAX; /* do not stop at what cuts nothing */
}

bool foreign_refuse_negative(const foreign_layout *layout, uint64_t token, uint32_t id,
                             foreign_error *err)
{
    return foreign_refuse(err,
                          "has the negative id %" PRId64 " at token %" PRIu64 " (byte %" PRIu64 ")",
                          (int64_t)id - (INT64_C(1) << 32), token,
                          (layout->token_offset + token * layout->token_bytes));
}

static bool is_negative(const foreign_scan *scan, uint32_t id)
{
    return scan->layout.is_signed && id > INT32_MAX;
}

static bool scan_token(foreign_scan *scan, uint32_t id, const foreign_sink *sink,
                       foreign_error *err)
{
    if (is_negative(scan, id))
        return foreign_refuse_negative(&scan->layout, scan->done, id, err);
    bool is_border = id == scan->layout.border_id;
    if (scan->layout.borders == FOREIGN_BORDERS_BEGIN && is_border && scan->done > 0) {
        if (!sink->document(sink->user, scan->n_open))
            return false;
        scan->n_open = 0;
    }
    scan->done++;
    scan->n_open++;
    if (scan->layout.borders == FOREIGN_BORDERS_END && is_border) {
        if (!sink->document(sink->user, scan->n_open))
            return false;
        scan->n_open = 0;
    }
    return true;
}

static bool run_is_plain_u16(const foreign_scan *scan, const uint16_t *ids)
{
    uint32_t n_borders = 0;
    for (int i = 0; i < RUN_TOKENS; i++)
        n_borders += ids[i] == scan->layout.border_id;
    return n_borders == 0;
}

static bool run_is_plain_u32(const foreign_scan *scan, const uint32_t *ids)
{
    uint32_t largest = 0, n_borders = 0;
    for (int i = 0; i < RUN_TOKENS; i++) {
        largest = ids[i] > largest ? ids[i] : largest;
        n_borders += ids[i] == scan->layout.border_id;
    }
    return !is_negative(scan, largest) && n_borders == 0;
}

bool foreign_scan_feed(foreign_scan *scan, const void *tokens, size_t n_tokens,
                       const foreign_sink *sink, foreign_error *err)
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
    if (has_borders(&scan->layout) && scan->n_open > 0 && !sink->document(sink->user, scan->n_open))
        return false;
    scan->n_open = 0;
    return true;
}
