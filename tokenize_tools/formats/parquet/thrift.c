/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/parquet/thrift.h"

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

void thrift_fail(thrift *t, const char *why)
{
    if (!t->why)
        t->why = why;
    t->at = t->end;
}

static void fail_short(thrift *t)
{
    t->ends_early = t->ends_early || !t->why;
    thrift_fail(t, "its header ends too early");
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
        thrift_fail(t, "a number in its header has more than 64 bits");
    return 0;
}

static void skip_bytes(thrift *t, uint64_t n)
{
    if (n <= (uint64_t)(t->end - t->at))
        t->at += n;
    else
        fail_short(t);
}

bool thrift_next(thrift *t, int32_t *id, uint8_t *type)
{
    const uint8_t byte = read_byte(t);
    if (t->why || byte == 0)
        return false;
    *type = byte & 15;
    const int64_t next = byte >> 4 ? *id + (byte >> 4) : thrift_zigzag(read_varint(t));
    if (next < 0 || next > INT16_MAX)
        thrift_fail(t, "the number of a field in its header is wrong");
    *id = (int32_t)next;
    return !t->why;
}

static bool expect(thrift *t, bool fits)
{
    if (!fits)
        thrift_fail(t, "a field of its header has the wrong type");
    return !t->why;
}

void thrift_read(thrift *t, uint8_t type, const thrift_field *fields, void *to)
{
    int32_t id = 0;
    if (!expect(t, type == THRIFT_STRUCT))
        return;
    while (thrift_next(t, &id, &type)) {
        const thrift_field *field = fields;
        while (field->id && field->id != id)
            field++;
        void *const place = (char *)to + field->offset;
        if (!field->id)
            thrift_skip(t, type);
        else if (field->read)
            field->read(t, type, place);
        else
            thrift_read(t, type, field->fields, place);
    }
}

void thrift_integer(thrift *t, uint8_t type, void *to)
{
    if (expect(t, type >= INT8 && type <= INT64))
        *(int64_t *)to = type == INT8 ? (int8_t)read_byte(t) : thrift_zigzag(read_varint(t));
}

void thrift_boolean(thrift *t, uint8_t type, void *to)
{
    if (expect(t, type == THRIFT_TRUE || type == THRIFT_FALSE))
        *(bool *)to = type == THRIFT_TRUE;
}

void thrift_binary(thrift *t, uint8_t type, void *to)
{
    if (!expect(t, type == BINARY))
        return;
    const uint64_t n = read_varint(t);
    const uint8_t *data = t->at;
    skip_bytes(t, n);
    if (!t->why)
        *(thrift_bytes *)to = (thrift_bytes){data, (size_t)n};
}

void thrift_present(thrift *t, uint8_t type, void *to)
{
    *(bool *)to = true;
    thrift_skip(t, type);
}

thrift_list thrift_begin_list(thrift *t, uint8_t type)
{
    if (!expect(t, type == THRIFT_LIST || type == SET))
        return (thrift_list){0};
    const uint8_t head = read_byte(t);
    const uint64_t n = head >> 4 == 15 ? read_varint(t) : head >> 4;
    /* Each element has at least one byte. */
    if (n > (uint64_t)(t->end - t->at) || n > UINT32_MAX)
        fail_short(t);
    if (t->why)
        return (thrift_list){0};
    return (thrift_list){head & 15, (uint32_t)n};
}

/* ---- Skipping ---- */

/* Skips an element of a list or map, where a boolean has a byte of its own. */
static void skip_element(thrift *t, uint8_t type)
{
    if (type == THRIFT_TRUE || type == THRIFT_FALSE)
        skip_bytes(t, 1);
    else
        thrift_skip(t, type);
}

static void skip_map(thrift *t)
{
    const uint64_t n = read_varint(t);
    const uint8_t types = n ? read_byte(t) : 0;
    if (n > (uint64_t)(t->end - t->at))
        fail_short(t);
    for (uint64_t i = 0; i < n && !t->why; i++) {
        skip_element(t, types >> 4);
        skip_element(t, types & 15);
    }
}

void thrift_skip(thrift *t, uint8_t type)
{
    thrift_list list;
    int32_t id = 0;
    if (t->depth++ == THRIFT_MAX_DEPTH)
        thrift_fail(t, "its header is nested too deeply");
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        break;
    case INT8:
        skip_bytes(t, 1);
        break;
    case INT16:
    case INT32:
    case INT64:
        read_varint(t);
        break;
    case DOUBLE:
        skip_bytes(t, 8);
        break;
    case BINARY:
        skip_bytes(t, read_varint(t));
        break;
    case THRIFT_LIST:
    case SET:
        list = thrift_begin_list(t, type);
        for (uint32_t i = 0; i < list.n && !t->why; i++)
            skip_element(t, list.type);
        break;
    case MAP:
        skip_map(t);
        break;
    case THRIFT_STRUCT:
        while (thrift_next(t, &id, &type))
            thrift_skip(t, type);
        break;
    case UUID:
        skip_bytes(t, 16);
        break;
    default:
        thrift_fail(t, "a field of its header has an unknown type");
    }
    t->depth--;
}
