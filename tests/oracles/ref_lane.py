# SPDX-License-Identifier: Apache-2.0
"""Lane files, written from docs/FORMAT.md section 16 alone: a second reader and writer to compare the library with.
Standard library only.

    data = lane_bytes(dataset.tokens_hash, n_tokens, "f32", 2, 0, values, b'{"teacher": "T"}')
    lane = read_lane("data/train.logprob.tml", dataset.tokens_hash, n_tokens)
"""

import struct
from collections import namedtuple

from ref_reader import Damaged, NewerFormat
from ref_xxh3 import xxh3_64

MAGIC = bytes.fromhex("89544D4C0D0A1A0A")
NAMES = "- u8 i8 u16 i16 u32 i32 f16 bf16 f32 f8_e4m3 f8_e5m2".split()
SIZES = (0, 1, 1, 2, 2, 4, 4, 2, 2, 4, 1, 1)
MIB, PAGE = 2**20, 4096

# values: the bytes of all tokens.
Lane = namedtuple("Lane", "type count goes_with about values offset hash")


class OtherTokens(Exception):
    """The lane is of other tokens."""


def checksums_of(values):
    sums = b"".join(struct.pack("<Q", xxh3_64(values[at:at + MIB])) for at in range(0, len(values), MIB))
    return sums + bytes(-len(sums) % PAGE)


def lane_bytes(tokens_hash, n_tokens, type_name, count, goes_with, values, about=b""):
    """The file of a lane with these values."""
    number = NAMES.index(type_name)
    assert len(values) == n_tokens * count * SIZES[number] and len(about) <= PAGE - 128
    checksums, padded = checksums_of(values), about + bytes(PAGE - 128 - len(about))
    header = struct.pack(
        "<8s4I16s3Q2IQ40x", MAGIC, 1, number, count, goes_with, tokens_hash, n_tokens,
        PAGE + len(checksums) + len(values), xxh3_64(checksums), len(about), 0, xxh3_64(padded))
    return header + struct.pack("<Q", xxh3_64(header)) + padded + checksums + values


def read_lane(path, tokens_hash, n_tokens):
    """The Lane in a file, all of which is checked. Raises NewerFormat, OtherTokens or Damaged."""
    with open(path, "rb") as f:
        data = f.read()

    def check(condition, why, offset):
        if not condition:
            raise Damaged(why, path, offset)

    check(len(data) >= PAGE and data[:8] == MAGIC, "magic", 0)
    check(xxh3_64(data[:120]) == struct.unpack_from("<Q", data, 120)[0], "header checksum", 120)
    version, number, count, goes_with = struct.unpack_from("<4I", data, 8)
    n, file_bytes, of_checksums, about_bytes, reserved, of_about = struct.unpack_from("<3Q2IQ", data, 40)
    if version != 1 or reserved or any(data[80:120]):
        raise NewerFormat(path)
    check(0 < number < len(NAMES), "type", 12)
    width = count * SIZES[number]
    check(0 < width <= 65536, "count", 16)
    check(goes_with < 2, "goes_with", 20)
    check(about_bytes <= PAGE - 128, "about_bytes", 64)
    offset = PAGE + -(-8 * -(-n * width // MIB) // PAGE) * PAGE
    check(file_bytes == len(data) == offset + n * width, "file_bytes", 48)
    check(xxh3_64(data[128:PAGE]) == of_about, "checksum of about", 72)
    check(not any(data[128 + about_bytes:PAGE]), "zero bytes after about", 128 + about_bytes)
    if data[24:40] != tokens_hash or n != n_tokens:
        raise OtherTokens(path)
    check(xxh3_64(data[PAGE:offset]) == of_checksums, "hash of the checksums", 56)
    check(checksums_of(data[offset:]) == data[PAGE:offset], "checksum of a MiB of values", PAGE)
    return Lane(NAMES[number], count, goes_with, data[128:128 + about_bytes], data[offset:], offset, of_checksums)
