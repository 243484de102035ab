# SPDX-License-Identifier: Apache-2.0
"""Thrift's compact protocol: a structure as a dictionary {field number: (type, value)}, from bytes and to bytes."""

import struct

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def integer(self):
        n = self.varint()
        return n >> 1 ^ -(n & 1)

    def list(self):
        head = self.take(1)[0]
        n = self.varint() if head >> 4 == 15 else head >> 4
        return head & 15, [self.value(head & 15, True) for _ in range(n)]

    def value(self, kind, in_list=False):
        if kind in (TRUE, FALSE):
            return self.take(1)[0] == TRUE if in_list else kind == TRUE
        if kind == BYTE:
            return self.take(1)[0]
        if kind in (I16, I32, I64):
            return self.integer()
        if kind == DOUBLE:
            return struct.unpack("<d", self.take(8))[0]
        if kind == BINARY:
            return self.take(self.varint())
        if kind in (LIST, SET):
            return self.list()
        assert kind == STRUCT, "a map, which Parquet does not use"
        return self.struct()

    def struct(self):
        fields, number = {}, 0
        while True:
            head = self.take(1)[0]
            if head == 0:
                return fields
            number = number + (head >> 4) if head >> 4 else self.integer()
            fields[number] = (head & 15, self.value(head & 15))


def varint(n):
    out = bytearray()
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def encode(kind, value):
    if kind in (TRUE, FALSE):
        return b""
    if kind == BYTE:
        return bytes([value])
    if kind in (I16, I32, I64):
        return varint(value * 2 if value >= 0 else -value * 2 - 1)
    if kind == DOUBLE:
        return struct.pack("<d", value)
    if kind == BINARY:
        return varint(len(value)) + value
    if kind in (LIST, SET):
        element, values = value
        parts = [bytes([TRUE if v else FALSE]) if element in (TRUE, FALSE) else encode(element, v) for v in values]
        return bytes([15 << 4 | element]) + varint(len(values)) + b"".join(parts)
    out = b""
    for number, (field_kind, field) in sorted(value.items()):
        if field_kind in (TRUE, FALSE):
            field_kind = TRUE if field else FALSE
        out += bytes([field_kind]) + encode(I16, number) + encode(field_kind, field)
    return out + b"\0"
