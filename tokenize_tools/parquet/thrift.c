/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/thrift.h"

enum {
    INT8 = 3,
    INT16,
    INT32,
    INT64,
    DOUBLE,
    BINARY,
    SET = 10,
    MAP,
    UUID = 13
};

static void fail(thrift *t, const char *why)
{
    if (!t->why)
        t->why = why;
    t->at = t->end;
}

static void fail_short(thrift *t)
{
    t->short_of = t->short_of || !t->why;
    fail(t, "its header ends too early");
}

bool thrift_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        const uint8_t byte = *(*at)++;
        if (shift == 63 && byte > 1)
            return false;
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

int64_t thrift_zigzag(uint64_t n)
{
    return (int64_t)(n >> 1 ^ (0 - (n & 1)));
}

static uint8_t read_byte(thrift *t)
{
    if (t->at < t->end)
        return *t->at++;
    fail_short(t);
    return 0;
}

static uint64_t read_varint(thrift *t)
{
    const uint8_t *begin = t->at;
    uint64_t value;
    if (thrift_varint(&t->at, t->end, &value))
        return value;
    if (t->end - begin < 10)
        fail_short(t);
    else
        fail(t, "a number in its header has more than 64 bits");
    return 0;
}

static void skip_bytes(thrift *t, uint64_t n)
{
    if (n <= (uint64_t)(t->end - t->at))
        t->at += n;
    else
        fail_short(t);
}

bool thrift_next(thrift *t, thrift_struct *s)
{
    const uint8_t byte = read_byte(t);
    if (t->why || byte == 0)
        return false;
    s->type = byte & 15;
    if (byte >> 4) {
        s->id += byte >> 4;
    } else {
        const int64_t id = thrift_zigzag(read_varint(t));
        if (id < 0 || id > INT16_MAX)
            fail(t, "the number of a field in its header is wrong");
        s->id = (int32_t)id;
    }
    if (s->id > INT16_MAX)
        fail(t, "the number of a field in its header is wrong");
    return !t->why;
}

static bool expect(thrift *t, bool fits)
{
    if (!fits)
        fail(t, "a field of its header has the wrong type");
    return !t->why;
}

int64_t thrift_integer(thrift *t, uint8_t type)
{
    if (!expect(t, type >= INT8 && type <= INT64))
        return 0;
    return type == INT8 ? (int8_t)read_byte(t) : thrift_zigzag(read_varint(t));
}

bool thrift_boolean(thrift *t, uint8_t type)
{
    return expect(t, type == THRIFT_TRUE || type == THRIFT_FALSE) && type == THRIFT_TRUE;
}

thrift_bytes thrift_binary(thrift *t, uint8_t type)
{
    if (!expect(t, type == BINARY))
        return (thrift_bytes){0};
    const uint64_t n = read_varint(t);
    const uint8_t *data = t->at;
    skip_bytes(t, n);
    if (t->why)
        return (thrift_bytes){0};
    return (thrift_bytes){data, (size_t)n};
}

thrift_list thrift_begin_list(thrift *t, uint8_t type)
{
    if (!expect(t, type == THRIFT_LIST || type == SET))
        return (thrift_list){0};
    const uint8_t head = read_byte(t);
    const uint64_t n = head >> 4 == 15 ? read_varint(t) : head >> 4;
    /* An element has at least one byte. */
    if (n > (uint64_t)(t->end - t->at) || n > UINT32_MAX)
        fail_short(t);
    if (t->why)
        return (thrift_list){0};
    return (thrift_list){head & 15, (uint32_t)n};
}

bool thrift_is_struct(thrift *t, uint8_t type)
{
    return expect(t, type == THRIFT_STRUCT);
}

/* ---- Skipping ---- */

static void skip_value(thrift *t, uint8_t type, unsigned depth);

/* Inside a list or map, a boolean has a byte of its own. */
static void skip_element(thrift *t, uint8_t type, unsigned depth)
{
    if (type == THRIFT_TRUE || type == THRIFT_FALSE)
        skip_bytes(t, 1);
    else
        skip_value(t, type, depth);
}

static void skip_map(thrift *t, unsigned depth)
{
    const uint64_t n = read_varint(t);
    const uint8_t types = n ? read_byte(t) : 0;
    if (n > (uint64_t)(t->end - t->at))
        fail_short(t);
    for (uint64_t i = 0; i < n && !t->why; i++) {
        skip_element(t, types >> 4, depth);
        skip_element(t, types & 15, depth);
    }
}

static void skip_struct(thrift *t, unsigned depth)
{
    thrift_struct s = {0};
    while (thrift_next(t, &s))
        skip_value(t, s.type, depth);
}

static void skip_list(thrift *t, uint8_t type, unsigned depth)
{
    const thrift_list list = thrift_begin_list(t, type);
    for (uint32_t i = 0; i < list.n && !t->why; i++)
        skip_element(t, list.type, depth);
}

static void skip_value(thrift *t, uint8_t type, unsigned depth)
{
    if (depth == THRIFT_MAX_DEPTH) {
        fail(t, "its header is nested too deeply");
        return;
    }
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        return;
    case INT8:
        skip_bytes(t, 1);
        return;
    case INT16:
    case INT32:
    case INT64:
        read_varint(t);
        return;
    case DOUBLE:
        skip_bytes(t, 8);
        return;
    case BINARY:
        skip_bytes(t, read_varint(t));
        return;
    case THRIFT_LIST:
    case SET:
        skip_list(t, type, depth + 1);
        return;
    case MAP:
        skip_map(t, depth + 1);
        return;
    case THRIFT_STRUCT:
        skip_struct(t, depth + 1);
        return;
    case UUID:
        skip_bytes(t, 16);
        return;
    default:
        fail(t, "a field of its header has an unknown type");
    }
}

void thrift_skip(thrift *t, uint8_t type)
{
    skip_value(t, type, 0);
}
