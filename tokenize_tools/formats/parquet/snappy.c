/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/parquet/snappy.h"

#include <string.h>

#include "formats/parquet/thrift.h"
#include "base/le.h"

enum {
    LITERAL,
    COPY_1,
    COPY_2,
    COPY_4
};

/* Copies are made in pieces of 16 bytes; where there is room, they write beyond their end. */
enum {
    PIECE = 16,
    MAX_COPY = 64
};

typedef struct output {
    uint8_t *at, *begin, *end;
} output;

static bool copy(output *o, size_t distance, size_t n_bytes)
{
    uint8_t *to = o->at;
    if (distance == 0 || distance > (size_t)(to - o->begin) || n_bytes > (size_t)(o->end - to))
        return false;
    o->at += n_bytes;
    /* It is near the end of the output, or it overlaps itself and so repeats `distance` bytes. */
    if (distance < PIECE || o->end - to < MAX_COPY) {
        for (size_t i = 0; i < n_bytes; i++)
            to[i] = (to - distance)[i];
        return true;
    }
    memcpy(to, to - distance, PIECE);
    for (size_t n = PIECE; n < n_bytes; n += PIECE)
        memcpy(to + n, to + n - distance, PIECE);
    return true;
}

static bool copy_literal(output *o, const uint8_t **from, const uint8_t *end, size_t n_bytes)
{
    if (n_bytes <= PIECE && end - *from >= PIECE && o->end - o->at >= PIECE)
        memcpy(o->at, *from, PIECE);
    else if (n_bytes <= (size_t)(end - *from) && n_bytes <= (size_t)(o->end - o->at))
        memcpy(o->at, *from, n_bytes);
    else
        return false;
    *from += n_bytes;
    o->at += n_bytes;
    return true;
}

/* Reads a literal. Up to 60 bytes, its length is in the tag, else in one to four bytes after it. */
static bool read_literal(output *o, const uint8_t **from, const uint8_t *end, uint8_t tag)
{
    size_t n_bytes = tag >> 2;
    const size_t n_extra = n_bytes < 60 ? 0 : n_bytes - 59;
    if (n_extra > 0) {
        if ((size_t)(end - *from) < n_extra)
            return false;
        n_bytes = le_get(*from, n_extra);
        *from += n_extra;
    }
    return copy_literal(o, from, end, n_bytes + 1);
}

static bool read_elements(output *o, const uint8_t *from, const uint8_t *end)
{
    static const uint8_t n_extra[] = {[COPY_1] = 1, [COPY_2] = 2, [COPY_4] = 4};
    bool ok = true;
    while (ok && from < end) {
        const uint8_t tag = *from++;
        if (end - from < n_extra[tag & 3])
            return false;
        switch (tag & 3) {
        case COPY_1:
            ok = copy(o, (size_t)(tag & 0xe0) << 3 | *from, (tag >> 2 & 7) + 4);
            from += 1;
            break;
        case COPY_2:
            ok = copy(o, le_get16(from), (tag >> 2) + 1);
            from += 2;
            break;
        case COPY_4:
            ok = copy(o, le_get32(from), (tag >> 2) + 1);
            from += 4;
            break;
        default:
            ok = read_literal(o, &from, end, tag);
        }
    }
    return ok && o->at == o->end;
}

bool snappy_read(const uint8_t *from, size_t from_bytes, uint8_t *to, size_t to_bytes)
{
    const uint8_t *end = from + from_bytes;
    uint64_t n_bytes;
    output o = {.at = to, .begin = to, .end = to + to_bytes};
    return thrift_varint(&from, end, &n_bytes) && n_bytes == to_bytes &&
           read_elements(&o, from, end);
}
