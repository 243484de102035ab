#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of other programs byte by byte, from their layouts; shares no code with tokmap.

`python3 foreign_writers.py FOLDER` writes the first inputs of the fuzz targets there.
"""

import gzip
import os
import struct
import sys

NUMPY_MAGIC = b"\x93NUMPY"
MEGATRON_MAGIC = b"MMIDIDX\x00\x00"
LLMC_BEGIN = {2: 50256, 4: 128000}


def write_file(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return path


def token_bytes(tokens, size):
    return struct.pack("<%d%s" % (len(tokens), {2: "H", 4: "I"}[size]), *tokens)


def flat(documents):
    return [token for document in documents for token in document]


# ---- Megatron ----


def megatron_index(
    lengths, document_indices, size, code=None, version=1, starts=None, counts=None, modes=b""
):
    """lengths: tokens of each sequence; document_indices: 0, ..., number of sequences."""
    if code is None:
        code = {2: 8, 4: 4}[size]
    if starts is None:
        starts = [sum(lengths[:i]) * size for i in range(len(lengths))]
    if counts is None:
        counts = (len(lengths), len(document_indices))
    data = MEGATRON_MAGIC + struct.pack("<QBQQ", version, code, *counts)
    data += struct.pack("<%di" % len(lengths), *lengths)
    data += struct.pack("<%dq" % len(starts), *starts)
    data += struct.pack("<%dq" % len(document_indices), *document_indices)
    return data + modes


def megatron(prefix, documents, size=2, split=None):
    """split(document): its sequences; one when not given. Returns the path of the .bin."""
    lengths, indices = [], [0]
    for document in documents:
        sequences = split(document) if split else [document]
        assert flat(sequences) == list(document)
        lengths += [len(sequence) for sequence in sequences]
        indices.append(len(lengths))
    write_file(prefix + ".idx", megatron_index(lengths, indices, size))
    return write_file(prefix + ".bin", token_bytes(flat(documents), size))


# ---- NumPy ----


def numpy_head(literal, version=(1, 0), align=64):
    length_format = "<H" if version[0] == 1 else "<I"
    before = len(NUMPY_MAGIC) + 2 + struct.calcsize(length_format)
    padding = -(before + len(literal) + 1) % align
    text = literal.encode("utf-8") + b" " * padding + b"\n"
    return NUMPY_MAGIC + bytes(version) + struct.pack(length_format, len(text)) + text


def numpy_literal(descr, shape, fortran=False):
    text = "{'descr': %r, 'fortran_order': %r, 'shape': %r, }"
    return text % (descr, fortran, tuple(shape))


def numpy(path, tokens, size=2, version=(1, 0), descr=None):
    descr = descr or {2: "<u2", 4: "<u4"}[size]
    head = numpy_head(numpy_literal(descr, [len(tokens)]), version)
    return write_file(path, head + token_bytes(tokens, size))


# ---- llm.c ----


def llmc_head(size, n_tokens, magic=None, version=None):
    magic = magic or {2: 20240520, 4: 20240801}[size]
    version = version or {2: 1, 4: 7}[size]
    return struct.pack("<3i", magic, version, n_tokens) + bytes(1012)


def llmc(path, documents, size=2):
    """The end-of-text token is put before each document."""
    tokens = flat([[LLMC_BEGIN[size]] + list(document) for document in documents])
    return write_file(path, llmc_head(size, len(tokens)) + token_bytes(tokens, size))


# ---- datatrove ----


def datatrove_ends(documents):
    ends, end = [], 0
    for document in documents:
        end += len(document)
        ends.append(end)
    return ends


def datatrove(path, documents, size=2, first_line="gpt2|%d", count=None):
    """first_line: of the metadata, or None for no metadata at all."""
    ends = datatrove_ends(documents)
    write_file(path + ".index", struct.pack("<%dQ" % len(ends), *ends))
    if first_line is not None:
        first_line = first_line % size if "%" in first_line else first_line
        count = ends[-1] if count is None else count
        write_file(path + ".metadata", ("%s\n%d\n%d T" % (first_line, count, count)).encode())
    return write_file(path, token_bytes(flat(documents), size))


# ---- nanoGPT and OLMo ----


def raw(path, tokens, size=2):
    return write_file(path, token_bytes(tokens, size))


def olmo(prefix, documents, size=2, rows=None):
    """X.npy without a NumPy header, and X.csv.gz."""
    if rows is None:
        ends = [0] + datatrove_ends(documents)
        rows = ["%d,%d,id-%d,\"a, \"\"b\"\"\nc\",%d" % (ends[i], ends[i + 1], i, i)
                for i in range(len(documents))]
    with gzip.open(prefix + ".csv.gz", "wb") as f:
        f.write("".join(row + "\n" for row in rows).encode())
    return raw(prefix + ".npy", flat(documents), size)


# ---- First inputs for the fuzz targets ----


def megatron_seeds():
    good = megatron_index([2, 0, 3], [0, 2, 3, 3], 2)
    yield "good", struct.pack("<Q", 10) + good
    yield "empty", struct.pack("<Q", 0) + megatron_index([], [0], 4)
    yield "gap", struct.pack("<Q", 12) + megatron_index([2, 3], [0, 1, 2], 2, starts=[0, 6])
    yield "modes", struct.pack("<Q", 4) + megatron_index([2], [0, 1], 2, modes=b"\0")
    yield "counts", struct.pack("<Q", 4) + megatron_index([2], [0, 1], 2, counts=(2**61, 2**62))
    yield "truncated", (struct.pack("<Q", 10) + good)[:-5]


def numpy_seeds():
    for name, literal, version in (
        ("v1", numpy_literal("<u2", [3]), (1, 0)),
        ("v2", numpy_literal("<u4", [3], True), (2, 0)),
        ("v3", "{'shape': (3L,), \"descr\": '<i4', 'fortran_order': False}", (3, 0)),
        ("matrix", numpy_literal("<u2", [3, 4]), (1, 0)),
        ("scalar", numpy_literal("<u2", []), (1, 0)),
        ("records", "{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (3,), }", (1, 0)),
        ("huge", numpy_literal("<u4", [2**63]), (1, 0)),
    ):
        head = numpy_head(literal, version)
        size = 4 if "4" in literal else 2
        yield name, struct.pack("<Q", len(head) + 3 * size) + head + token_bytes([1, 2, 3], size)


def llmc_seeds():
    for name, head, size in (
        ("gpt2", llmc_head(2, 3), 2),
        ("llama3", llmc_head(4, 3), 4),
        ("eval", llmc_head(2, 3, magic=20240522), 2),
        ("version", llmc_head(2, 3, version=2), 2),
        ("negative", llmc_head(2, -1), 2),
    ):
        data = head + token_bytes([LLMC_BEGIN[size], 1, LLMC_BEGIN[size]], size)
        yield name, struct.pack("<Q", len(data)) + data


def datatrove_seeds():
    for name, ds_bytes, dtype, metadata, ends in (
        ("good", 10, 0, b"gpt2|2\n5\n5 T", (2, 2, 5)),
        ("u32", 20, 4, b"gpt2", (2, 5)),
        ("guess", 20, 0, b"", (5,)),
        ("empty", 0, 2, b"", ()),
        ("falls", 10, 0, b"a|b|2\n5", (3, 2, 5)),
        ("huge", 2**64 - 2, 2, b"", (2**63 - 1,)),
    ):
        head = struct.pack("<QBB", ds_bytes, dtype, len(metadata))
        yield name, head + metadata + struct.pack("<%dQ" % len(ends), *ends)


def csv_seeds():
    yield "good", b"\x07\x05" + b'0,2,"a, ""b""\nc",1\r\n2,2\n2,5'
    yield "gap", b"\x03\x05" + b"0,2\n3,5\n"
    yield "overflow", b"\x03\x05" + b"0,18446744073709551617\n"
    yield "open_quote", b"\x03\x05" + b'0,5,"'


def main(arguments):
    for target, seeds in (
        ("megatron", megatron_seeds),
        ("numpy", numpy_seeds),
        ("llmc", llmc_seeds),
        ("datatrove", datatrove_seeds),
        ("olmo_csv", csv_seeds),
    ):
        folder = os.path.join(arguments[0], target)
        os.makedirs(folder, exist_ok=True)
        for name, data in seeds():
            write_file(os.path.join(folder, name), data)


if __name__ == "__main__":
    main(sys.argv[1:])
