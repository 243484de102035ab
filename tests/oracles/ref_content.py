# SPDX-License-Identifier: Apache-2.0
"""The hashes of docs/FORMAT.md section 4, a byte at a time. Large data is cut into 256 parts, whose CRCs are taken
side by side and then joined. Standard library only."""

import functools
import operator
import struct
import sys
from array import array

POLYNOMIALS = (0x9A6C9329AC4BC9B5, 0x95AC9329AC4BC9B5)  # reflected, without x^64
N_PARTS = 256


def table_of(polynomial):
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (polynomial if byte & 1 else 0)
        table.append(byte)
    return table


TABLES = [table_of(polynomial) for polynomial in POLYNOMIALS]
BYTES_OF_TABLES = [[bytes(entry >> 8 * j & 255 for entry in table) for j in range(8)] for table in TABLES]


def multiply(a, b, polynomial):
    """a * b modulo the polynomial; the lowest bit of a number is the highest power."""
    product = 0
    for bit in range(64):
        product = product >> 1 ^ (polynomial if product & 1 else 0)
        product ^= a if b >> bit & 1 else 0
    return product


def power_of(n_bytes, polynomial):
    """x to the power of 8 * n_bytes: what n_bytes of zeros multiply a CRC by."""
    product, power = 1 << 63, 1 << 55  # 1 and x^8
    while n_bytes > 0:
        if n_bytes & 1:
            product = multiply(product, power, polynomial)
        power = multiply(power, power, polynomial)
        n_bytes >>= 1
    return product


def tables_of_product(factor, polynomial):
    """tables[j][byte]: byte j of a number, multiplied by `factor`."""
    of_bits = [factor]  # the products of single bits, the highest bit first: it is 1
    for _ in range(63):
        of_bits.append(of_bits[-1] >> 1 ^ (polynomial if of_bits[-1] & 1 else 0))
    tables = []
    for j in range(8):
        table = [0]
        for bit in range(8):
            table += [entry ^ of_bits[63 - 8 * j - bit] for entry in table]
        tables.append(table)
    return tables


def crc_by_byte(crc, data, k):
    table = TABLES[k]
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc


def crc_of_parts(crc, data, k):
    """The same, from N_PARTS parts side by side: at[j] has byte j of the CRC of each part."""
    n = len(data) // N_PARTS
    at = [crc >> 8 * j & 255 for j in range(8)]  # the first part goes on from `crc`, the others from 0
    for i in range(n):
        index = (at[0] ^ int.from_bytes(data[i:n * N_PARTS:n], "little")).to_bytes(N_PARTS, "little")
        entries = [int.from_bytes(index.translate(part), "little") for part in BYTES_OF_TABLES[k]]
        at = [entry ^ after for entry, after in zip(entries, [*at[1:], 0])]
    crc, tables = 0, tables_of_product(power_of(n, POLYNOMIALS[k]), POLYNOMIALS[k])
    for part in zip(*(number.to_bytes(N_PARTS, "little") for number in at)):
        products = [table[byte] for table, byte in zip(tables, crc.to_bytes(8, "little"))]
        crc = functools.reduce(operator.xor, products, int.from_bytes(bytes(part), "little"))
    return crc_by_byte(crc, data[n * N_PARTS:], k)


class ContentHash:
    def __init__(self):
        self.crc = [0, 0]

    def add(self, data):
        way = crc_by_byte if len(data) < 64 * N_PARTS else crc_of_parts
        self.crc = [way(crc, data, k) for k, crc in enumerate(self.crc)]

    def add_zeros(self, n_bytes):
        self.crc = [multiply(crc, power_of(n_bytes, polynomial), polynomial) for crc, polynomial in zip(self.crc, POLYNOMIALS)]

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
