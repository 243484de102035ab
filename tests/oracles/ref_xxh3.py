# SPDX-License-Identifier: Apache-2.0
"""XXH3-64 and XXH3-128 with seed 0 and the default secret, in plain Python: the checksums of
docs/FORMAT.md. Standard library only."""

import struct
from operator import mul

M64 = 2**64 - 1
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
RRMXMX_PRIME = 0x9FB21C651E98DF25
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
STRIPES_PER_BLOCK = 16
HASH_BLOCK_BYTES = 64 * STRIPES_PER_BLOCK
# Stripe n of a block is mixed with the secret from byte 8n: one XOR with this does a whole block.
BLOCK_KEY = b"".join(SECRET[8 * n : 8 * n + 64] for n in range(STRIPES_PER_BLOCK))


def r32(data, at=0):
    return int.from_bytes(data[at : at + 4], "little")


def r64(data, at=0):
    return int.from_bytes(data[at : at + 8], "little")


def swap64(x):
    return int.from_bytes(x.to_bytes(8, "little"), "big")


def rotl64(x, n):
    return (x << n | x >> (64 - n)) & M64


def fold64(a, b):
    product = a * b
    return (product & M64) ^ (product >> 64)


def avalanche(h):
    h ^= h >> 37
    h = h * 0x165667919E3779F9 & M64
    return h ^ h >> 32


def avalanche_xxh64(h):
    h ^= h >> 33
    h = h * P64_2 & M64
    h ^= h >> 29
    h = h * P64_3 & M64
    return h ^ h >> 32


def mix16(data, at, key_at):
    return fold64(r64(data, at) ^ r64(SECRET, key_at), r64(data, at + 8) ^ r64(SECRET, key_at + 8))


def combine_1to3(data):
    n = len(data)
    return data[0] << 16 | data[n >> 1] << 24 | data[-1] | n << 8


def short64(data):
    n = len(data)
    if n == 0:
        return avalanche_xxh64(r64(SECRET, 56) ^ r64(SECRET, 64))
    if n <= 3:
        return avalanche_xxh64(combine_1to3(data) ^ r32(SECRET, 0) ^ r32(SECRET, 4))
    if n <= 8:
        h = (r32(data, n - 4) + (r32(data) << 32)) ^ r64(SECRET, 8) ^ r64(SECRET, 16)
        h ^= rotl64(h, 49) ^ rotl64(h, 24)
        h = h * RRMXMX_PRIME & M64
        h ^= (h >> 35) + n
        h = h * RRMXMX_PRIME & M64
        return h ^ h >> 28
    low = r64(data) ^ r64(SECRET, 24) ^ r64(SECRET, 32)
    high = r64(data, n - 8) ^ r64(SECRET, 40) ^ r64(SECRET, 48)
    return avalanche((n + swap64(low) + high + fold64(low, high)) & M64)


def middle64(data):
    n = len(data)
    acc = n * P64_1
    if n <= 128:
        for i in range((n - 1) // 32 + 1):
            acc += mix16(data, 16 * i, 32 * i) + mix16(data, n - 16 * (i + 1), 32 * i + 16)
        return avalanche(acc & M64)
    for i in range(8):
        acc += mix16(data, 16 * i, 16 * i)
    acc = avalanche(acc & M64)
    for i in range(8, n // 16):
        acc += mix16(data, 16 * i, 16 * (i - 8) + 3)
    acc += mix16(data, n - 16, 136 - 17)
    return avalanche(acc & M64)


def accumulate(acc, data, key):
    """Adds whole 64-byte stripes. Between scrambles the accumulators are plain sums, so each lane
    is summed over all stripes at once."""
    keyed = int.from_bytes(data, "little") ^ int.from_bytes(key[: len(data)], "little")
    halves = struct.unpack("<%dI" % (len(data) // 4), keyed.to_bytes(len(data), "little"))
    plain = struct.unpack("<%dQ" % (len(data) // 8), data)
    for lane in range(8):
        products = map(mul, halves[2 * lane :: 16], halves[2 * lane + 1 :: 16])
        acc[lane] = (acc[lane] + sum(products) + sum(plain[lane ^ 1 :: 8])) & M64


def long_accumulators(data):
    acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]
    scramble_key = struct.unpack("<8Q", SECRET[128:])
    n_blocks = (len(data) - 1) // HASH_BLOCK_BYTES
    for at in range(0, n_blocks * HASH_BLOCK_BYTES, HASH_BLOCK_BYTES):
        accumulate(acc, data[at : at + HASH_BLOCK_BYTES], BLOCK_KEY)
        for lane in range(8):
            a = acc[lane]
            acc[lane] = ((a ^ a >> 47) ^ scramble_key[lane]) * P32_1 & M64
    tail = n_blocks * HASH_BLOCK_BYTES
    n_stripes = (len(data) - 1 - tail) // 64
    if n_stripes > 0:
        accumulate(acc, data[tail : tail + 64 * n_stripes], BLOCK_KEY)
    accumulate(acc, data[-64:], SECRET[121:185])
    return acc


def merge(acc, key_at, start):
    total = start
    for i in range(4):
        at = key_at + 16 * i
        total += fold64(acc[2 * i] ^ r64(SECRET, at), acc[2 * i + 1] ^ r64(SECRET, at + 8))
    return avalanche(total & M64)


def xxh3_64(data):
    """XXH3-64 as a number."""
    data = bytes(data)
    if len(data) <= 16:
        return short64(data)
    if len(data) <= 240:
        return middle64(data)
    return merge(long_accumulators(data), 11, len(data) * P64_1)


def short128(data):
    n = len(data)
    if n == 0:
        low, high = r64(SECRET, 64) ^ r64(SECRET, 72), r64(SECRET, 80) ^ r64(SECRET, 88)
        return avalanche_xxh64(low), avalanche_xxh64(high)
    if n <= 3:
        low = combine_1to3(data)
        high = int.from_bytes(low.to_bytes(4, "little"), "big")
        high = (high << 13 | high >> 19) & 0xFFFFFFFF
        low ^= r32(SECRET, 0) ^ r32(SECRET, 4)
        high ^= r32(SECRET, 8) ^ r32(SECRET, 12)
        return avalanche_xxh64(low), avalanche_xxh64(high)
    if n <= 8:
        keyed = (r32(data) + (r32(data, n - 4) << 32)) ^ r64(SECRET, 16) ^ r64(SECRET, 24)
        product = keyed * (P64_1 + (n << 2))
        low, high = product & M64, product >> 64
        high = (high + (low << 1)) & M64
        low ^= high >> 3
        low = (low ^ low >> 35) * RRMXMX_PRIME & M64
        return low ^ low >> 28, avalanche(high)
    first, last = r64(data), r64(data, n - 8)
    product = (first ^ last ^ r64(SECRET, 32) ^ r64(SECRET, 40)) * P64_1
    low, high = (product + ((n - 1) << 54)) & M64, product >> 64
    last ^= r64(SECRET, 48) ^ r64(SECRET, 56)
    high = (high + last + (last & 0xFFFFFFFF) * (P32_2 - 1)) & M64
    low ^= swap64(high)
    product = (low | high << 64) * P64_2
    return avalanche(product & M64), avalanche(product >> 64 & M64)


def mix32(acc, data, at_1, at_2, key_at):
    low = (acc[0] + mix16(data, at_1, key_at) & M64) ^ (r64(data, at_2) + r64(data, at_2 + 8) & M64)
    high = acc[1] + mix16(data, at_2, key_at + 16) & M64
    return low, high ^ (r64(data, at_1) + r64(data, at_1 + 8) & M64)


def middle128(data):
    n = len(data)
    acc = (n * P64_1 & M64, 0)
    if n <= 128:
        for i in reversed(range((n - 1) // 32 + 1)):
            acc = mix32(acc, data, 16 * i, n - 16 * (i + 1), 32 * i)
    else:
        for i in range(4):
            acc = mix32(acc, data, 32 * i, 32 * i + 16, 32 * i)
        acc = (avalanche(acc[0]), avalanche(acc[1]))
        for i in range(4, n // 32):
            acc = mix32(acc, data, 32 * i, 32 * i + 16, 3 + 32 * (i - 4))
        acc = mix32(acc, data, n - 16, n - 32, 136 - 17 - 16)
    low, high = acc
    mixed = (low * P64_1 + high * P64_4 + n * P64_2) & M64
    return avalanche((low + high) & M64), -avalanche(mixed) & M64


def xxh3_128(data):
    """XXH3-128 as 16 bytes in canonical form."""
    data = bytes(data)
    n = len(data)
    if n <= 16:
        low, high = short128(data)
    elif n <= 240:
        low, high = middle128(data)
    else:
        acc = long_accumulators(data)
        low = merge(acc, 11, n * P64_1)
        high = merge(acc, 192 - 64 - 11, ~(n * P64_2) & M64)
    return (high << 64 | low).to_bytes(16, "big")
