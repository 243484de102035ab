# SPDX-License-Identifier: Apache-2.0
"""XXH3-64 and XXH3-128 with seed 0 and the default secret, the checksums of docs/FORMAT.md, from the libxxhash that the
build needs. The vectors of that document and the files of tests/release have values that never change."""

import ctypes


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


LIBRARY = ctypes.CDLL("libxxhash.so.0")
for function, result in ((LIBRARY.XXH3_64bits, ctypes.c_uint64), (LIBRARY.XXH3_128bits, Hash128)):
    function.argtypes = ctypes.c_char_p, ctypes.c_size_t
    function.restype = result


def r64(data, at=0):
    return int.from_bytes(data[at : at + 8], "little")


def xxh3_64(data):
    data = bytes(data)
    return LIBRARY.XXH3_64bits(data, len(data))


def xxh3_128(data):
    """XXH3-128 as 16 bytes in canonical form."""
    data = bytes(data)
    result = LIBRARY.XXH3_128bits(data, len(data))
    return (result.high << 64 | result.low).to_bytes(16, "big")
