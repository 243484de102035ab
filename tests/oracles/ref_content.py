# SPDX-License-Identifier: Apache-2.0
"""The hashes of docs/FORMAT.md section 4, a byte at a time. Standard library only."""

import struct
import sys
from array import array

POLYNOMIALS = (0x9A6C9329AC4BC9B5, 0x95AC9329AC4BC9B5)  # reflected, without x^64


def table_of(polynomial):
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (polynomial if byte & 1 else 0)
        table.append(byte)
    return table


TABLES = [table_of(polynomial) for polynomial in POLYNOMIALS]


def multiply(a, b, polynomial):
    """a * b modulo the polynomial; the lowest bit of a number is the highest power."""
    product = 0
    for bit in range(64):
        product = product >> 1 ^ (polynomial if product & 1 else 0)
        product ^= a if b >> bit & 1 else 0
    return product


class ContentHash:
    def __init__(self):
        self.crc = [0, 0]

    def add(self, data):
        for k, table in enumerate(TABLES):
            crc = self.crc[k]
            for byte in data:
                crc = crc >> 8 ^ table[(crc ^ byte) & 255]
            self.crc[k] = crc

    def add_zeros(self, n_bytes):
        for k, polynomial in enumerate(POLYNOMIALS):
            power, n = 1 << 55, n_bytes  # x^8
            while n > 0:
                if n & 1:
                    self.crc[k] = multiply(self.crc[k], power, polynomial)
                power = multiply(power, power, polynomial)
                n >>= 1

    def add_tokens(self, tokens):
        wide = array("I", tokens)
        assert wide.itemsize == 4
        if sys.byteorder == "big":
            wide.byteswap()
        self.add(wide.tobytes())

    def add_lengths(self, lengths):
        self.add(b"".join(struct.pack("<Q", length) for length in lengths))

    def stored(self):
        return struct.pack("<QQ", *self.crc)
