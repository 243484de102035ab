#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tokmap datasets byte by byte as docs/FORMAT.md says; the twin of ref_reader.py.

    ref_writer.write("data/x", [1, 2, 3], [2, 1], vocab=100, eod=0)

`python3 ref_writer.py --vectors` prints docs/FORMAT-EXAMPLES.md, section 8 of the document. It makes no
promise about crashes (section 7 of the document): for tests only. Standard library only.
"""

import array
import json
import os
import struct
import sys
import tempfile

import ref_reader
from ref_reader import BLOCK_BYTES, FILL, MAGIC, NO_ID, WIDE, round_up
from ref_content import ContentHash
from ref_xxh3 import xxh3_64, xxh3_128


class Zeros:
    """n tokens of id 0, kept as a sparse file, so that a document can have more than 2^32."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n


def little_endian(numbers, size):
    data = array.array({2: "H", 4: "I", 8: "Q"}[size], numbers)
    if sys.byteorder == "big":
        data.byteswap()
    return data.tobytes()


# ---- Sections ----


def documents_section(lengths):
    ends = []
    total = 0
    for n in lengths:
        total += n
        ends.append(total)
    records, starts, wide_ends = [], [], []
    for first in range(0, len(ends), 64):
        start = ends[first - 1] if first > 0 else 0
        group = [end - start for end in ends[first : first + 64]]
        group += group[-1:] * (64 - len(group))
        starts.append(start)
        if group[63] < WIDE:
            records.append(little_endian(group, 4))
        else:
            n_wide_before = len(wide_ends)
            records.append(struct.pack("<Q61II", n_wide_before, *[0] * 61, WIDE))
            wide_ends.append(little_endian(group, 8))
    return b"".join(records) + levels_part(starts) + b"".join(wide_ends)


def levels_part(starts):
    if not starts:
        return b""
    levels = [starts]
    while len(levels[-1]) > 16:
        levels.append(levels[-1][::16])
    part = b""
    for level in levels:
        part += little_endian(level + [FILL] * (-len(level) % 16), 8)
    return part


def block_checksums_section(token_bytes_of_file):
    part = []
    for at in range(0, len(token_bytes_of_file), BLOCK_BYTES):
        part.append(xxh3_64(token_bytes_of_file[at : at + BLOCK_BYTES]))
    return little_endian(part, 8)


def zero_block_checksums_section(n_bytes):
    n_full, rest = divmod(n_bytes, BLOCK_BYTES)
    part = struct.pack("<Q", xxh3_64(bytes(BLOCK_BYTES))) * n_full if n_full > 0 else b""
    return part + (struct.pack("<Q", xxh3_64(bytes(rest))) if rest > 0 else b"")


def inputs_section(inputs):
    entries, names = b"", b""
    for name, end_document, end_token, input_bytes, input_checksum in inputs:
        names += name
        entries += struct.pack(
            "<5Q", end_document, end_token, input_bytes, input_checksum, len(names)
        )
    return struct.pack("<Q", len(inputs)) + entries + names


def inputs_of(lengths, parts):
    """Inputs from (name, n_documents, input_bytes, input_checksum)."""
    inputs = []
    document = 0
    for name, n_documents, input_bytes, input_checksum in parts:
        document += n_documents
        inputs.append((name, document, sum(lengths[:document]), input_bytes, input_checksum))
    return inputs


def values_section(columns, n_documents):
    """columns: list of (name, type or None, values), where a value is None, int, float or bytes. A
    type is that of ref_reader.COLUMN_TYPES; None: the one that tokmap chooses."""
    entries, names = b"", b""
    columns = [column_parts(*column, n_documents) for column in columns]
    end = 16 + 48 * len(columns) + sum(len(name) for name, *_ in columns)
    parts = b""
    for name, column_type, code_bytes, n_nulls, n_strings, column in columns:
        names += name
        at = 0
        for i, part in enumerate(column):
            gap = -end % 64
            parts += bytes(gap) + part
            at = end + gap if i == 0 else at
            end += gap + len(part)
        text_bytes = len(column[-1]) if column_type >= 3 else 0
        entries += struct.pack(
            "<IIQQQQQ", column_type, code_bytes, at, n_nulls, n_strings, text_bytes, len(names)
        )
    checksum = xxh3_64(entries + names)
    return struct.pack("<IIQ", len(columns), len(names), checksum) + entries + names + parts


def strings_parts(strings):
    ends = [0]
    for string in strings:
        ends.append(ends[-1] + len(string))
    return [little_endian(ends, 8), b"".join(strings)]


def chosen_type(values, n_documents):
    given = [v for v in values if v is not None]
    if not given:
        return "null"
    if not isinstance(given[0], bytes):
        return "float64" if any(isinstance(v, float) for v in given) else "int64"
    different = list(dict.fromkeys(given))
    code_bytes = 1 if len(different) <= 256 else 2
    dictionary = code_bytes * n_documents + 8 * (len(different) + 1) + sum(map(len, different))
    fits = len(different) <= 65536 and sum(map(len, different)) <= 2**24
    plain = 8 * (n_documents + 1) + sum(map(len, given))
    return "dictionary" if fits and dictionary < plain else "string"


def column_parts(name, type_name, values, n_documents):
    """(name, type, code_bytes, n_nulls, n_strings, parts)."""
    assert len(values) == n_documents
    type_name = type_name or chosen_type(values, n_documents)
    column_type = ref_reader.COLUMN_TYPES.index(type_name)
    n_nulls = values.count(None)
    parts = []
    if n_nulls > 0 and column_type > 0:
        bits = sum(1 << d for d, v in enumerate(values) if v is not None)
        parts.append(bits.to_bytes(-(-n_documents // 8), "little"))
    code_bytes = n_strings = 0
    if type_name == "int64":
        parts.append(struct.pack("<%dq" % n_documents, *[v or 0 for v in values]))
    elif type_name == "float64":
        parts.append(struct.pack("<%dd" % n_documents, *[v or 0.0 for v in values]))
    elif type_name == "string":
        n_strings = n_documents
        parts += strings_parts([v or b"" for v in values])
    elif type_name == "dictionary":
        different = {}
        for v in values:
            if v is not None:
                different.setdefault(v, len(different))
        n_strings = len(different)
        code_bytes = 1 if n_strings <= 256 else 2
        codes = [0 if v is None else different[v] for v in values]
        parts.append(struct.pack("<%d%s" % (n_documents, " BH"[code_bytes]), *codes))
        parts += strings_parts(list(different))
    return name.encode(), column_type, code_bytes, n_nulls, n_strings, parts


def spans_section(spans, n_tokens):
    """spans: (first token, token after the last, role), in order; none is on two pages."""
    roles, runs = {role for _, _, role in spans}, []
    for first, end, role in spans:
        if role != 1 and role < 128 and runs and runs[-1][1] == first:
            runs[-1][1] = end
        elif role != 1 and role < 128:
            runs.append([first, end])
    spans_hash = xxh3_64(b"".join(struct.pack("<QQ", *run) for run in runs)) if runs else 0
    head = struct.pack("<QQII", len(spans), spans_hash, 255 if len(roles) > 1 else min(roles, default=0), 0)
    starts = [sum(first // 2**32 < page for first, _, _ in spans) for page in range(-(-n_tokens // 2**32))]
    section = head + little_endian(starts, 8)
    section += b"".join(struct.pack("<II", first % 2**32, (end - 1) % 2**32) for first, end, _ in spans)
    return section + (bytes(role for _, _, role in spans) if len(roles) > 1 else b"")


def segments_section(segments):
    """segments: (name, number of tokens, bytes before the first token), as write takes them."""
    entries, names = b"", b""
    end = 0
    for name, n_tokens, foreign in segments:
        end += n_tokens
        names += name
        entries += struct.pack("<3Q", end, len(foreign), len(names))
    return struct.pack("<Q", len(segments)) + entries + names


# ---- The index ----


def lay_out(sections):
    """The section table and what follows it. sections: list of (kind, flags, bytes)."""
    table, body = b"", b""
    body_at = 256 + 32 * len(sections)
    for kind, flags, content in sections:
        offset = round_up(body_at + len(body), 64)
        body += bytes(offset - body_at - len(body)) + content
        table += struct.pack("<IIQQQ", kind, flags, offset, len(content), xxh3_64(content))
    return table, body


def sign(index):
    """Sets the checksums of the sections and the table, the dataset id and the checksum of the
    header; tests use it after planting a fault."""
    index = bytearray(index)
    n_sections = struct.unpack_from("<I", index, 28)[0]
    for at in range(256, min(256 + 32 * n_sections, len(index) - 31), 32):
        offset, size = struct.unpack_from("<QQ", index, at + 8)
        struct.pack_into("<Q", index, at + 24, xxh3_64(index[offset : offset + size]))
    index[40:56] = xxh3_128(index[56:72] + index[120:152])
    struct.pack_into("<Q", index, 240, xxh3_64(index[256 : 256 + 32 * n_sections]))
    struct.pack_into("<Q", index, 248, xxh3_64(index[:248]))
    return bytes(index)


def hashes_of(tokens, lengths):
    """Of the tokens, and of the lengths of documents, as the header has them."""
    of_tokens, of_lengths = ContentHash(), ContentHash()
    if isinstance(tokens, Zeros):
        of_tokens.add_zeros(4 * len(tokens))
    else:
        of_tokens.add_tokens(tokens)
    of_lengths.add_lengths(lengths)
    return of_tokens.stored() + of_lengths.stored()


def build_index(counts, ids, token_place, hashes, sections):
    """counts: n_tokens, n_documents. hashes: from hashes_of. ids: largest, vocab or None, eod or None.
    token_place: token_bytes, token_offset, suffix. sections: (kind, bytes) in ascending order."""
    n_tokens, n_documents = counts
    largest, vocab, eod = ids
    token_bytes, token_offset, suffix = token_place
    table, body = lay_out([(kind, int(kind != 5), content) for kind, content in sections])
    header = bytearray(256)
    struct.pack_into("<8sIHHIIII", header, 0, MAGIC, 0x01020304, 1, 1, 0, 0, 256, len(sections))
    struct.pack_into("<Q", header, 32, 256 + len(table) + len(body))
    struct.pack_into("<QQQ", header, 56, n_tokens, n_documents, token_offset)
    struct.pack_into("<IIQ", header, 80, token_bytes, largest, vocab or 0)
    struct.pack_into("<I4x16s", header, 96, NO_ID if eod is None else eod, suffix.encode("ascii"))
    header[120:152] = hashes
    return sign(bytes(header) + table + body)


def write(
    prefix,
    tokens,
    lengths=(),
    *,
    vocab=None,
    eod=None,
    inputs=(),
    metadata=b"{}",
    values=(),
    token_bytes=None,
    foreign=b"",
    suffix=".bin",
    segments=None,
    spans=None
):
    """lengths: tokens of each document, none for no boundaries. inputs: as inputs_of makes them.
    values: columns as values_section takes them. foreign: the bytes before the first token. token_bytes must be given when vocab is not.
    segments: None, or those of a joined dataset, as segments_section takes them. spans: None, or as spans_section
    takes them."""
    token_bytes = token_bytes or (2 if vocab <= 65536 else 4)
    if isinstance(tokens, Zeros):
        blocks = zero_block_checksums_section(len(tokens) * token_bytes)
        stored = b""
        largest = 0
    else:
        stored = little_endian(tokens, token_bytes)
        blocks = block_checksums_section(stored)
        largest = max(tokens, default=0)
    if not isinstance(lengths, list):
        lengths = list(lengths)
    if segments is not None:
        blocks = write_segments(os.path.dirname(prefix), segments, stored, token_bytes)
    kinds = [documents_section(lengths), blocks, inputs_section(inputs), metadata]
    sections = [(i + 1, content) for i, content in enumerate(kinds)]
    if values:
        sections.append((5, values_section(values, len(lengths))))
    if segments is not None:
        sections.append((6, segments_section(segments)))
    if spans is not None:
        sections.append((7, spans_section(spans, len(tokens))))
    index = build_index(
        (len(tokens), len(lengths)),
        (largest, vocab, eod),
        (token_bytes, len(foreign), suffix),
        hashes_of(tokens, lengths),
        sections,
    )
    if segments is None:
        with open(prefix + suffix, "wb") as f:
            f.write(foreign + stored)
            f.truncate(len(foreign) + len(tokens) * token_bytes)
    with open(prefix + ".tmi", "wb") as f:
        f.write(index)


def write_segments(folder, segments, stored, token_bytes):
    """Writes the token files. Returns the block checksums."""
    blocks = b""
    at = 0
    for name, n_tokens, foreign in segments:
        tokens = stored[at : at + n_tokens * token_bytes]
        at += len(tokens)
        path = os.path.join(folder, os.fsdecode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(foreign + tokens)
        blocks += block_checksums_section(tokens)
    assert at == len(stored)
    return blocks


# ---- Vectors for the document ----

VECTORS = (
    (
        "8.1 No tokens, no documents",
        dict(tokens=[], vocab=50257),
    ),
    (
        "8.2 Two bytes a token, an empty document, an input",
        dict(
            tokens=[15496, 11, 995, 50256, 50256],
            lengths=[4, 0, 1],
            vocab=50257,
            eod=50256,
            inputs=[(b"hello.txt", 3, 5, 12, xxh3_64(b"Hello, world"))],
            metadata=b'{"created_by": "by hand"}',
        ),
    ),
    (
        "8.3 Four bytes a token, an adopted file with a foreign header, two inputs",
        dict(
            tokens=[69999, 0, 1, 65536, 258, 69999],
            lengths=[1, 5],
            vocab=70000,
            eod=69999,
            inputs=[(b"a", 1, 1, 0, 0), ("été".encode(), 2, 6, 0, 0)],
            foreign=b"foreign\n",
            suffix=".ds",
        ),
    ),
    (
        "8.4 Values of documents: all types, with and without nulls",
        dict(
            tokens=[1, 2, 3, 4],
            lengths=[1, 0, 2, 1],
            vocab=5,
            values=[
                ("score", None, [0.5, None, -1.25, 3.0]),
                ("year", None, [-1, 2**62 + 1, 0, 2026]),
                ("lang", None, [b"en", b"de", b"en", b"en"]),
                ("page", "string", ["é".encode(), b"", None, b"p4"]),
                ("source", "dictionary", [b"web", None, b"web", b"books"]),
                ("nothing", None, [None] * 4),
            ],
        ),
    ),
    (
        "8.5 A joined dataset of two token files",
        dict(
            tokens=[15496, 11, 995, 50256, 50256],
            lengths=[4, 1],
            vocab=50257,
            eod=50256,
            inputs=[(b"hello.txt", 1, 4, 0, 0), (b"nothing.txt", 2, 5, 0, 0)],
            segments=[(b"cells/000000.bin", 4, b""), ("été.npy".encode(), 1, b"foreign\n")],
        ),
    ),
)


def hex_dump(data):
    """16 bytes on each line, after their offset; `*` for repeated lines; at the end the size."""
    lines = []
    before = None
    for at in range(0, len(data), 16):
        line = data[at : at + 16]
        if line != before:
            lines.append("%08x  %s" % (at, line.hex(" ")))
        elif lines[-1] != "*":
            lines.append("*")
        before = line
    lines.append("%08x" % len(data))
    return "\n".join(lines)


def what_a_reader_sees(ds):
    """One line of JSON with everything that a vector fixes."""
    seen = ds.summary()
    seen["documents"] = [list(d) for d in ds.documents]
    seen["tokens"] = list(ds.tokens)
    return json.dumps(seen, ensure_ascii=False)


PAGE = """<!-- run by tests/format/test_format_vectors.py -->

# Examples of the format

<!-- Made by `python3 tests/oracles/ref_writer.py --vectors`; tests/format/test_format_vectors.py decodes it. -->

Section 8 of [FORMAT.md](FORMAT.md). The JSON line is what a reader must see: the header under the names of section 3.1
(`eod_id` is null if there is none), `dtype`, the size of the token file (of all of them in 8.5), `inputs` (checksums in
hex digits), `metadata`, `values` (columns, if there are any), `segments` (of a joined dataset), `documents` as `[first,
end]`, and `tokens`. The dumps have the offset and 16 bytes per line, all in hex; `*` stands for repetitions of the
previous line up to the next offset; the last line is the size.

"""


def vector_text(heading, arguments):
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "P")
        write(prefix, **arguments)
        ds = ref_reader.read(prefix)
        parts = ["## " + heading, "", "```json", what_a_reader_sees(ds), "```"]
        for path in [ds.index_path] + [file.path for file in ds.files]:
            with open(path, "rb") as f:
                name = os.path.relpath(path, folder)
                parts += ["", "`%s`" % name, "", "```hex", hex_dump(f.read()), "```"]
    return "\n".join(parts) + "\n"


def page():
    return PAGE + "\n".join(vector_text(heading, arguments) for heading, arguments in VECTORS)


def main(arguments):
    if arguments != ["--vectors"]:
        print("usage: ref_writer.py --vectors", file=sys.stderr)
        return 2
    print(page(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
