#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second, naive reader for tokmap datasets, written from docs/FORMAT.md alone.

    import ref_reader
    dataset = ref_reader.read("data/train")

or `python3 ref_reader.py data/train` for a summary in JSON. It checks everything that the document
tells a reader or `verify` to check, and it is slow: a companion to the document, not a tool.
Standard library only.
"""

import array
import json
import bisect
import os
import re
import struct
import sys
from collections import namedtuple
from itertools import islice

from ref_content import ContentHash
from ref_xxh3 import r64, xxh3_64, xxh3_128

MAGIC = b"\x89TMI\r\n\x1a\n"
HEADER_BYTES = 256
KIND_DOCUMENTS, KIND_BLOCKS, KIND_INPUTS, KIND_METADATA, KIND_VALUES, KIND_SEGMENTS, KIND_SPANS = 1, 2, 3, 4, 5, 6, 7
REQUIRED_KINDS = (KIND_DOCUMENTS, KIND_BLOCKS, KIND_INPUTS, KIND_METADATA)
BLOCK_BYTES = 2**20
NO_ID = 2**32 - 1
WIDE = 2**32 - 1
FILL = 2**64 - 1
# Name, offset and size of the header's plain numbers.
HEADER_FIELDS = (
    ("byte_order", 8, 4), ("format_version", 12, 2), ("lowest_reader", 14, 2),
    ("must_understand", 16, 4), ("header_bytes", 24, 4), ("n_sections", 28, 4),
    ("index_bytes", 32, 8), ("n_tokens", 56, 8), ("n_documents", 64, 8),
    ("token_offset", 72, 8), ("token_bytes", 80, 4), ("largest_id", 84, 4),
    ("vocab_size", 88, 8), ("eod_id", 96, 4), ("table_checksum", 240, 8),
    ("header_checksum", 248, 8),
)  # fmt: skip
SUMMARY_FIELDS = (
    "format_version", "dtype", "n_tokens", "n_documents", "n_inputs", "vocab_size", "largest_id",
    "eod_id", "token_offset", "token_bytes", "token_suffix", "index_bytes", "token_file_bytes",
)  # fmt: skip


class NotADataset(Exception):
    """The file is something else."""


class NewerFormat(Exception):
    """A dataset that only a newer reader understands."""


class Damaged(Exception):
    def __init__(self, why, path, offset):
        super().__init__("%s: damaged at byte %d: %s" % (path, offset, why))
        self.path = path
        self.offset = offset


Input = namedtuple("Input", "name end_document end_token input_bytes input_checksum")
# values: for each document None, int, float or bytes.
Column = namedtuple("Column", "name type values")
# Of a joined dataset. name: as stored.
Segment = namedtuple("Segment", "name end_token token_offset")
# A token file: its path, and its tokens [first, end) of the dataset.
File = namedtuple("File", "path first end token_offset")
COLUMN_TYPES = ("null", "int64", "float64", "string", "dictionary")


class Dataset:
    """Header fields under the names of the document, and:

    documents   list of (first, end); inputs   list of Input
    metadata    the JSON object or None; metadata_bytes   as stored
    values      list of Column
    segments    list of Segment, or None if the dataset is not a joined one
    files       list of File
    tokens      array, read when asked for
    """

    def __init__(self, prefix):
        self.prefix = prefix
        # Section 7. What happens while files are being opened is left out: tests have one process at a time.
        self.set_aside = not os.path.exists(prefix + ".tmi") and os.path.exists(prefix + ".tmi.replaced")
        self.index_path = prefix + (".tmi.replaced" if self.set_aside else ".tmi")

    @property
    def dtype(self):
        return "u16" if self.token_bytes == 2 else "u32"

    @property
    def n_inputs(self):
        return len(self.inputs)

    @property
    def tokens(self):
        stored = b""
        for file in self.files:
            with open(file.path, "rb") as f:
                f.seek(file.token_offset)
                stored += f.read((file.end - file.first) * self.token_bytes)
        return decode_numbers(stored, self.token_bytes)

    def find_document(self, token):
        """(document, first, end) of a token, from the stored levels alone."""
        if not 0 <= token < self.n_tokens or self.n_documents == 0:
            raise IndexError(token)
        entry = 0
        for level in reversed(self.levels):
            children = level[16 * entry : 16 * entry + 16]
            entry = 16 * entry + sum(1 for start in children if start <= token) - 1
        group, start = entry, self.levels[0][entry]
        j = sum(1 for end in self.group_ends(group) if end <= token - start)
        ends = self.group_ends(group)
        return 64 * group + j, start + (ends[j - 1] if j > 0 else 0), start + ends[j]

    def group_ends(self, group):
        record = self.ends[64 * group : 64 * group + 64]
        if record[63] != WIDE:
            return record
        wide_index = record[0] | record[1] << 32
        return self.wide_ends[64 * wide_index : 64 * wide_index + 64]

    def summary(self):
        summary = {name: getattr(self, name) for name in SUMMARY_FIELDS}
        summary["dataset_id"] = self.dataset_id.hex()
        summary["inputs"] = [entry._asdict() for entry in self.inputs]
        for entry in summary["inputs"]:
            entry["name"] = entry["name"].decode("utf-8", "backslashreplace")
            entry["input_checksum"] = "%016x" % entry["input_checksum"]
        summary["metadata"] = self.metadata
        if self.values:
            summary["values"] = [
                {"name": c.name, "type": c.type, "values": [shown_value(v) for v in c.values]}
                for c in self.values
            ]
        if self.segments is not None:
            summary["segments"] = [segment._asdict() for segment in self.segments]
            for segment in summary["segments"]:
                segment["name"] = os.fsdecode(segment["name"])
        return summary


def shown_value(value):
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def decode_numbers(data, size):
    numbers = array.array({2: "H", 4: "I", 8: "Q"}[size])
    assert numbers.itemsize == size
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def round_up(n, step):
    return (n + step - 1) // step * step


def read(prefix, with_tokens=True):
    """Reads and checks a whole dataset. Raises NotADataset, NewerFormat, Damaged or OSError.
    Without tokens, everything but the content of the token file is checked."""
    if prefix.endswith(".tmi"):
        prefix = prefix[:-4]
    ds = Dataset(prefix)
    with open(ds.index_path, "rb") as f:
        index = f.read()

    def check(condition, why, offset):
        if not condition:
            raise Damaged(why, ds.index_path, offset)

    read_header(ds, index, check)
    read_section_table(ds, index, check)
    list_files(ds, index, check)
    check_sizes(ds, check)
    check_token_file_sizes(ds)
    for kind, (offset, size, checksum) in ds.sections.items():
        computed = xxh3_64(index[offset : offset + size])
        check(computed == checksum, "checksum of section %d" % kind, offset)
    read_documents(ds, section_bytes(ds, index, KIND_DOCUMENTS), check)
    read_inputs(ds, section_bytes(ds, index, KIND_INPUTS), check)
    ds.metadata_bytes = section_bytes(ds, index, KIND_METADATA)
    ds.metadata = decode_metadata(ds.metadata_bytes)
    ds.values = []
    if KIND_VALUES in ds.sections:
        read_values(ds, section_bytes(ds, index, KIND_VALUES), check)
    ds.spans = []
    if KIND_SPANS in ds.sections:
        read_spans(ds, section_bytes(ds, index, KIND_SPANS), check)
    if with_tokens:
        check_tokens(ds, section_bytes(ds, index, KIND_BLOCKS))
    return ds


def section_of(index, kind):
    """The bytes of a section of an index, which is taken to be sound."""
    for at in range(256, 256 + 32 * struct.unpack_from("<I", index, 28)[0], 32):
        found, _, offset, size = struct.unpack_from("<IIQQ", index, at)
        if found == kind:
            return index[offset : offset + size]
    raise AssertionError("no section of kind %d" % kind)


def section_bytes(ds, index, kind):
    offset, size, _ = ds.sections[kind]
    return index[offset : offset + size]


def read_header(ds, index, check):
    if index[:8] != MAGIC:
        raise NotADataset(ds.index_path + ": not a tokmap index")
    check(len(index) >= HEADER_BYTES, "shorter than a header", len(index))
    for name, offset, size in HEADER_FIELDS:
        setattr(ds, name, int.from_bytes(index[offset : offset + size], "little"))
    ds.dataset_id = index[40:56]
    ds.tokens_hash, ds.documents_hash = index[120:136], index[136:152]
    check(xxh3_64(index[:248]) == ds.header_checksum, "header checksum", 248)

    check(ds.byte_order == 0x01020304, "byte order", 8)
    check(ds.format_version >= 1, "a development file", 12)
    check(ds.lowest_reader >= 1, "lowest_reader", 14)
    if ds.lowest_reader > 1:
        raise NewerFormat("%s: needs a reader of version %d" % (ds.index_path, ds.lowest_reader))
    if ds.must_understand != 0:
        raise NewerFormat("%s: unknown flags %#x" % (ds.index_path, ds.must_understand))

    check(ds.header_bytes == HEADER_BYTES, "header_bytes", 24)
    check(4 <= ds.n_sections <= 32, "n_sections", 28)
    check(ds.index_bytes == len(index), "index_bytes is not the size of the file", 32)
    check(ds.n_tokens <= 2**48, "n_tokens", 56)
    check(ds.n_documents <= 2**40, "n_documents", 64)
    check(ds.token_bytes in (2, 4), "token_bytes", 80)
    check(ds.token_offset <= 2**30 and ds.token_offset % ds.token_bytes == 0, "token_offset", 72)
    id_limit = 2 ** (8 * ds.token_bytes)
    check(ds.largest_id < id_limit, "largest_id does not fit", 84)
    check(ds.n_tokens > 0 or ds.largest_id == 0, "largest_id without tokens", 84)
    check(ds.vocab_size <= 2**31, "vocab_size", 88)
    known = ds.vocab_size != 0
    check(not known or ds.n_tokens == 0 or ds.largest_id < ds.vocab_size, "largest_id", 84)
    if ds.eod_id == NO_ID:
        ds.eod_id = None
    else:
        check(ds.eod_id < id_limit, "eod_id does not fit", 96)
        check(not known or ds.eod_id < ds.vocab_size, "eod_id", 96)
    check(not any(index[100:104]), "reserved bytes", 100)
    suffix = index[104:120].rstrip(b"\0")
    check(re.fullmatch(rb"\.[A-Za-z0-9._-]{1,14}", suffix), "token_suffix", 104)
    check(not suffix.endswith((b".tmi", b".partial")), "token_suffix", 104)
    ds.token_suffix = suffix.decode("ascii")
    ds.token_path = ds.prefix + ds.token_suffix
    check(not any(index[152:176]), "reserved bytes", 152)


def read_section_table(ds, index, check):
    table = index[HEADER_BYTES : HEADER_BYTES + 32 * ds.n_sections]
    check(len(table) == 32 * ds.n_sections, "the section table ends early", len(index))
    check(xxh3_64(table) == ds.table_checksum, "section table checksum", 240)
    ds.sections = {}
    last_kind = 0
    end = HEADER_BYTES + len(table)
    for i in range(ds.n_sections):
        kind, flags, offset, size, checksum = struct.unpack_from("<IIQQQ", table, 32 * i)
        at = HEADER_BYTES + 32 * i
        check(kind > last_kind, "section kinds do not rise from 1", at)
        check(flags & ~1 == 0, "reserved section flags", at + 4)
        if kind in REQUIRED_KINDS or kind in (KIND_SEGMENTS, KIND_SPANS):
            check(flags == 1, "section %d must have flag bit 0" % kind, at + 4)
        elif kind == KIND_VALUES:
            check(flags == 0, "section 5 must not have flag bit 0", at + 4)
        elif flags & 1:
            raise NewerFormat("%s: unknown section %d" % (ds.index_path, kind))
        check(offset == round_up(end, 64), "section offset", at + 8)
        check(offset <= len(index) and size <= len(index) - offset, "section size", at + 16)
        check(not any(index[end:offset]), "bytes between sections", end)
        ds.sections[kind] = (offset, size, checksum)
        last_kind = kind
        end = offset + size
    for kind in REQUIRED_KINDS:
        check(kind in ds.sections, "section %d is missing" % kind, HEADER_BYTES)
    check(end == ds.index_bytes, "the last section does not end at index_bytes", 32)


def list_files(ds, index, check):
    ds.segments = None
    path = ds.prefix + ds.token_suffix
    if ds.set_aside and ds.token_suffix == ".bin" and os.path.exists(path + ".replaced"):
        path += ".replaced"
    ds.files = [File(path, 0, ds.n_tokens, ds.token_offset)]
    if KIND_SEGMENTS not in ds.sections:
        return
    check(ds.token_offset == 0, "token_offset of a joined dataset", 72)
    check(ds.token_suffix == ".bin", "token_suffix of a joined dataset", 104)
    read_segments(ds, section_bytes(ds, index, KIND_SEGMENTS), check)
    folder = os.path.dirname(ds.index_path)
    ds.files = []
    first = 0
    for name, end, token_offset in ds.segments:
        ds.files.append(File(os.path.join(folder, os.fsdecode(name)), first, end, token_offset))
        first = end


def read_segments(ds, section, check):
    base, _, checksum = ds.sections[KIND_SEGMENTS]
    check(len(section) >= 8, "size of the segments", base)
    check(xxh3_64(section) == checksum, "checksum of the segments", base)
    n_segments = r64(section)
    check(n_segments <= 2**20, "n_segments", base)
    check(8 + 24 * n_segments <= len(section), "segments end early", base)
    names = section[8 + 24 * n_segments :]
    ds.segments = []
    last_token = last_name = 0
    for i in range(n_segments):
        at = base + 8 + 24 * i
        end_token, token_offset, name_end = struct.unpack_from("<3Q", section, 8 + 24 * i)
        check(last_token < end_token <= ds.n_tokens, "end_token of a segment", at)
        check(token_offset <= 2**30 and token_offset % ds.token_bytes == 0, "token_offset", at)
        check(last_name < name_end <= len(names), "name_end of a segment", at)
        name = names[last_name:name_end]
        check(len(name) <= 4096 and b"\0" not in name, "name of a segment", at)
        check(name[:1] != b"/", "name of a segment is no relative path", at)
        ds.segments.append(Segment(name, end_token, token_offset))
        last_token, last_name = end_token, name_end
    check(last_token == ds.n_tokens, "end_token of the last segment", base)
    check(last_name == len(names), "bytes after the names of the segments", base)


def blocks_of(ds):
    """Of each block: the file, and its tokens [first, end) of the dataset."""
    block_tokens = BLOCK_BYTES // ds.token_bytes
    for file in ds.files:
        for first in range(file.first, file.end, block_tokens):
            yield file, first, min(first + block_tokens, file.end)


def level_sizes(n_groups):
    """Entries of each level, without fill."""
    sizes = [n_groups]
    while sizes[-1] > 16:
        sizes.append(-(-sizes[-1] // 16))
    return sizes


def check_sizes(ds, check):
    n_groups = -(-ds.n_documents // 64)
    ds.ends_bytes = 256 * n_groups
    ds.levels_bytes = sum(8 * round_up(n, 16) for n in level_sizes(n_groups))
    offset, size, _ = ds.sections[KIND_DOCUMENTS]
    wide_bytes = size - ds.ends_bytes - ds.levels_bytes
    check(wide_bytes >= 0 and wide_bytes % 512 == 0, "size of the documents", offset)
    check(n_groups > 0 or size == 0, "documents where there are none", offset)
    check(wide_bytes <= 512 * n_groups, "more wide groups than groups", offset)

    offset, size, _ = ds.sections[KIND_BLOCKS]
    n_blocks = sum(-(-(file.end - file.first) * ds.token_bytes // BLOCK_BYTES) for file in ds.files)
    check(size == 8 * n_blocks, "size of the block checksums", offset)
    offset, size, _ = ds.sections[KIND_INPUTS]
    check(size >= 8, "size of the inputs", offset)
    offset, size, _ = ds.sections[KIND_METADATA]
    check(size <= 64 * 2**20, "size of the metadata", offset)
    identity = struct.pack("<2Q", ds.n_tokens, ds.n_documents) + ds.tokens_hash + ds.documents_hash
    check(xxh3_128(identity) == ds.dataset_id, "dataset id", 40)


def check_token_file_sizes(ds):
    ds.token_file_bytes = 0
    for file in ds.files:
        n_bytes = os.stat(file.path).st_size
        expected = file.token_offset + (file.end - file.first) * ds.token_bytes
        if n_bytes != expected:
            raise Damaged("size is not %d" % expected, file.path, min(expected, n_bytes))
        ds.token_file_bytes += n_bytes


def read_documents(ds, section, check):
    base = ds.sections[KIND_DOCUMENTS][0]
    ds.ends = decode_numbers(section[: ds.ends_bytes], 4)
    n_groups = len(ds.ends) // 64
    ds.levels = []
    at = ds.ends_bytes
    for n in level_sizes(n_groups) if n_groups > 0 else []:
        n_bytes = 8 * round_up(n, 16)
        ds.levels.append(decode_numbers(section[at : at + n_bytes], 8))
        at += n_bytes
    wide_at = base + at
    ds.wide_ends = decode_numbers(section[at:], 8)

    ds.documents = []
    start = n_wide = 0
    for group in range(n_groups):
        record_at = base + 256 * group
        record = ds.ends[64 * group : 64 * group + 64]
        check(ds.levels[0][group] == start, "start of group %d" % group, record_at)
        wide = record[63] == WIDE
        if wide:
            check(record[0] | record[1] << 32 == n_wide, "number of wide groups", record_at)
            check(not any(record[2:63]), "zeros of a wide group", record_at)
            check(64 * (n_wide + 1) <= len(ds.wide_ends), "wide ends are missing", wide_at)
            n_wide += 1
        ends = ds.group_ends(group)
        check((ends[63] >= WIDE) == wide, "a wide group that is not", record_at)
        n_here = min(64, ds.n_documents - 64 * group)
        check(all(e == ends[63] for e in ends[n_here - 1 :]), "fill of the ends", record_at)
        last = 0
        for end in islice(ends, n_here):
            check(end >= last, "document ends fall", record_at)
            ds.documents.append((start + last, start + end))
            last = end
        start += last
    check(len(ds.wide_ends) == 64 * n_wide, "number of wide groups", wide_at)
    check_documents_hash(ds, check)
    if n_groups > 0:
        check(start == ds.n_tokens, "the last document does not end at n_tokens", base)
    check_levels(ds, n_groups, check)


def check_documents_hash(ds, check):
    content = ContentHash()
    content.add_lengths(end - first for first, end in ds.documents)
    check(content.stored() == ds.documents_hash, "hash of the document lengths", 136)


def check_levels(ds, n_groups, check):
    at = ds.sections[KIND_DOCUMENTS][0] + ds.ends_bytes
    for i, level in enumerate(ds.levels):
        n = level_sizes(n_groups)[i]
        check(all(x == FILL for x in level[n:]), "fill of level %d" % i, at)
        if i > 0:
            below = ds.levels[i - 1][: level_sizes(n_groups)[i - 1]]
            check(level[:n] == below[::16], "level %d" % i, at)
        at += 8 * len(level)


def read_inputs(ds, section, check):
    base = ds.sections[KIND_INPUTS][0]
    n_inputs = r64(section)
    check(n_inputs <= 2**24, "n_inputs", base)
    check(8 + 40 * n_inputs <= len(section), "inputs end early", base)
    names = section[8 + 40 * n_inputs :]
    ds.inputs = []
    last_document = last_token = last_name = 0
    for i in range(n_inputs):
        at = 8 + 40 * i
        entry = struct.unpack_from("<5Q", section, at)
        end_document, end_token, n_bytes, checksum, name_end = entry
        check(end_document >= last_document, "end_document falls", base + at)
        check(end_token >= last_token, "end_token falls", base + at + 8)
        check(last_name <= name_end <= len(names), "name_end", base + at + 32)
        name = names[last_name:name_end]
        check(len(name) <= 4096 and b"\0" not in name, "name of an input", base + at + 32)
        ds.inputs.append(Input(name, end_document, end_token, n_bytes, checksum))
        last_document, last_token, last_name = end_document, end_token, name_end
    if n_inputs > 0:
        check(last_document == ds.n_documents, "end_document of the last input", base)
        check(last_token == ds.n_tokens, "end_token of the last input", base)
    check(last_name == len(names), "bytes after the names of the inputs", base)


class Parts:
    """The parts of the columns, one after another, each at a multiple of 64."""

    def __init__(self, section, end, check, base):
        self.section, self.end, self.check, self.base = section, end, check, base

    def next(self, n_bytes):
        start = round_up(self.end, 64)
        self.check(not any(self.section[self.end : start]), "zeros before a part", self.base)
        self.check(start + n_bytes <= len(self.section), "a part ends late", self.base)
        self.end = start + n_bytes
        return self.section[start : self.end]


def read_spans(ds, section, check):
    """ds.spans: (first token, token after the last, role)."""
    base, n_pages = ds.sections[KIND_SPANS][0], -(-ds.n_tokens // 2**32)
    check(len(section) >= 24, "size of the spans", base)
    n_spans, spans_hash, role, reserved = struct.unpack_from("<QQII", section)
    check(n_spans <= 2**40 and role <= 255 and reserved == 0, "head of the spans", base)
    check(len(section) == 24 + 8 * n_pages + (9 if role == 255 else 8) * n_spans, "size of the spans", base)
    starts = [*struct.unpack_from("<%dQ" % n_pages, section, 24), n_spans]
    check(starts == sorted(starts) and starts[0] == 0, "starts of the spans", base)
    numbers = decode_numbers(section[24 + 8 * n_pages : 24 + 8 * n_pages + 8 * n_spans], 4)
    roles = section[24 + 8 * n_pages + 8 * n_spans :] if role == 255 else bytes([role]) * n_spans
    ends, runs, last = [end for _, end in ds.documents], [], (0, 0, -1)
    for page in range(n_pages):
        for i in range(starts[page], starts[page + 1]):
            first, end = page * 2**32 + numbers[2 * i], page * 2**32 + numbers[2 * i + 1] + 1
            d = bisect.bisect_right(ends, first)
            check(last[1] <= first < end <= ds.n_tokens and end <= ends[d], "a span", base)
            together = first == last[1] and roles[i] == last[2] and ds.documents[d][0] < first
            check(not together or first % 2**32 == 0, "two spans that are one", base)
            last = first, end, roles[i]
            ds.spans.append(last)
            if roles[i] != 1 and roles[i] < 128 and runs and runs[-1][1] == first:
                runs[-1][1] = end
            elif roles[i] != 1 and roles[i] < 128:
                runs.append([first, end])
    hashed = b"".join(struct.pack("<QQ", *run) for run in runs)
    check(spans_hash == (xxh3_64(hashed) if runs else 0), "spans_hash", base)


def read_values(ds, section, check):
    base = ds.sections[KIND_VALUES][0]
    check(len(section) >= 16, "size of the values", base)
    n_columns, names_bytes, checksum = struct.unpack_from("<IIQ", section)
    check(1 <= n_columns <= 64, "n_columns", base)
    names_at = 16 + 48 * n_columns
    names = section[names_at : names_at + names_bytes]
    check(len(names) == names_bytes, "names of columns end early", base)
    check(xxh3_64(section[16 : names_at + names_bytes]) == checksum, "directory checksum", base + 8)
    parts = Parts(section, names_at + names_bytes, check, base)
    last_name = 0
    for i in range(n_columns):
        entry = struct.unpack_from("<IIQQQQQ", section, 16 + 48 * i)
        name_end = entry[6]
        check(last_name < name_end <= min(last_name + 255, names_bytes), "name_end", base)
        try:
            name = names[last_name:name_end].decode("utf-8")
        except ValueError:
            check(False, "name of a column", base)
        check("\0" not in name, "name of a column", base)
        check(all(name != column.name for column in ds.values), "two columns of one name", base)
        check_column_entry(ds, entry, check, ds.sections[KIND_VALUES][0])
        column_type, _, offset = entry[:3]
        first_part = round_up(parts.end, 64) if column_type != 0 else 0
        check(offset == first_part, "offset of a column", base)
        values = read_column(ds, entry, parts, check, base)
        ds.values.append(Column(name, COLUMN_TYPES[column_type], values))
        last_name = name_end
    check(last_name == names_bytes, "bytes after the names of columns", base)
    check(parts.end == len(section), "bytes after the last column", base)


def check_column_entry(ds, entry, check, base):
    column_type, code_bytes, _, n_nulls, n_strings, text_bytes, _ = entry
    check(column_type <= 4, "type of a column", base)
    check(code_bytes in (1, 2) if column_type == 4 else code_bytes == 0, "code_bytes", base)
    if column_type == 0:
        check(n_nulls == ds.n_documents, "n_nulls", base)
    else:
        check(n_nulls < ds.n_documents, "n_nulls", base)
    if column_type == 3:
        check(n_strings == ds.n_documents, "n_strings", base)
    elif column_type == 4:
        check(1 <= n_strings <= (256 if code_bytes == 1 else 65536), "n_strings", base)
    else:
        check(n_strings == 0 and text_bytes == 0, "strings of a column without strings", base)


def read_column(ds, entry, parts, check, base, number_bytes=8):
    column_type, code_bytes, _, n_nulls, n_strings, text_bytes, _ = entry
    n = ds.n_documents
    if column_type == 0:
        return [None] * n
    valid = [True] * n
    if n_nulls > 0:
        bits = parts.next(-(-n // 8))
        valid = [bits[d // 8] >> d % 8 & 1 == 1 for d in range(n)]
        rest = range(n, 8 * len(bits))
        check(not any(bits[d // 8] >> d % 8 & 1 for d in rest), "bits after the last", base)
    check(valid.count(False) == n_nulls, "n_nulls", base)
    if column_type in (1, 2):
        stored = parts.next(number_bytes * n)
        kind = {1: "b", 2: "h", 4: "i", 8: "q"} if column_type == 1 else {4: "f", 8: "d"}
        values = struct.unpack("<%d%s" % (n, kind[number_bytes]), stored)
        for d in range(n):
            at = number_bytes * d
            check(valid[d] or not any(stored[at : at + number_bytes]), "a null that is not 0", base)
    else:
        codes = None
        if column_type == 4:
            stored = parts.next(code_bytes * n)
            codes = struct.unpack("<%d%s" % (n, "B" if code_bytes == 1 else "H"), stored)
        offsets = struct.unpack("<%dQ" % (n_strings + 1), parts.next(8 * (n_strings + 1)))
        text = parts.next(text_bytes)
        check(offsets[0] == 0 and offsets[-1] == text_bytes, "first or last offset", base)
        for a, b in zip(offsets, offsets[1:]):
            check(a <= b <= a + 65536, "offsets of strings", base)
        strings = [text[a:b] for a, b in zip(offsets, offsets[1:])]
        check(not codes or max(codes) < n_strings, "a code without a string", base)
        for d in range(n):
            empty = codes[d] == 0 if codes else strings[d] == b""
            check(valid[d] or empty, "a null that is not empty", base)
        values = [strings[code] for code in codes] if codes else strings
    return [values[d] if valid[d] else None for d in range(n)]


class LateParts:
    """The parts of a late column, each with its checksum: section 14."""

    def __init__(self, data, checksums, has, check):
        self.data, self.end, self.check = data, 128, check
        self.checksums = [one for one, there in zip(checksums, has) if there]

    def next(self, size):
        start, self.end = self.end, round_up(self.end + size, 64)
        part = self.data[start : self.end]
        self.check(len(part) == self.end - start, "a part ends early", start)
        self.check(xxh3_64(part) == self.checksums.pop(0), "checksum of a part", start)
        self.check(not any(part[size:]), "bytes after a part", start + size)
        return part[:size]


def read_late(ds, name):
    """The late column NAME of a dataset that was read, as a Column, and the size of its numbers."""
    path = "%s.%s.tmc" % (ds.prefix, name)
    with open(path, "rb") as f:
        data = f.read()

    def check(condition, why, offset):
        if not condition:
            raise Damaged(why, path, offset)

    check(re.fullmatch("[A-Za-z0-9_-]{1,64}", name), "name", 0)
    check(len(data) >= 128 and data[:8] == b"\x89TMC\r\n\x1a\n", "magic", 0)
    version, kind, number_bytes, code_bytes = struct.unpack_from("<4I", data, 8)
    n_documents, n_nulls, n_strings, text_bytes, file_bytes = struct.unpack_from("<5Q", data, 40)
    checksums = struct.unpack_from("<4Q", data, 80)
    check(xxh3_64(data[:120]) == struct.unpack_from("<Q", data, 120)[0], "header checksum", 120)
    if version != 1 or any(data[112:120]):
        raise NewerFormat(path)
    check(data[24:40] == ds.dataset_id and n_documents == ds.n_documents, "another dataset", 24)
    check(number_bytes in {1: (1, 2, 4, 8), 2: (4, 8)}.get(kind, (0,)), "number_bytes", 16)
    check(file_bytes == len(data), "file_bytes", 72)
    entry = (kind, code_bytes, 0, n_nulls, n_strings, text_bytes, 0)
    check_column_entry(ds, entry, check, 0)
    has = [kind != 0 and n_nulls > 0, kind in (1, 2, 4), kind in (3, 4), kind in (3, 4)]
    check(all(there or one == 0 for one, there in zip(checksums, has)), "checksum of no part", 80)
    parts = LateParts(data, checksums, has, check)
    values = read_column(ds, entry, parts, check, 0, number_bytes)
    check(parts.end == len(data), "bytes after the last part", parts.end)
    return Column(name, COLUMN_TYPES[kind], values), number_bytes


def decode_metadata(section):
    """None for what is not an object: section 6 does not count the syntax among the checks."""
    try:
        metadata = json.loads(section.decode("utf-8"))
    except ValueError:
        return None
    return metadata if isinstance(metadata, dict) else None


def read_block(ds, file, first, end):
    with open(file.path, "rb") as f:
        f.seek(file.token_offset + (first - file.first) * ds.token_bytes)
        return f.read((end - first) * ds.token_bytes)


def check_tokens(ds, section):
    zero_block = bytes(BLOCK_BYTES)
    zero_checksum = None
    largest = 0
    content = ContentHash()
    expected = decode_numbers(section, 8)
    for i, (file, first, end) in enumerate(blocks_of(ds)):
        block = read_block(ds, file, first, end)
        if block == zero_block:
            # Tests use sparse files of many GB; one such block is like another.
            zero_checksum = zero_checksum or xxh3_64(block)
            checksum = zero_checksum
            content.add_zeros(len(block) // ds.token_bytes * 4)
        else:
            checksum = xxh3_64(block)
            tokens = decode_numbers(block, ds.token_bytes)
            largest = max(largest, max(tokens))
            content.add_tokens(tokens)
        if checksum != expected[i]:
            at = file.token_offset + (first - file.first) * ds.token_bytes
            raise Damaged("checksum of block %d" % i, file.path, at)
    if content.stored() != ds.tokens_hash:
        raise Damaged("hash of the tokens", ds.index_path, 120)
    if largest != ds.largest_id:
        raise Damaged("largest_id is not the largest id, %d" % largest, ds.index_path, 84)


def main(arguments):
    if len(arguments) != 1:
        print("usage: ref_reader.py P", file=sys.stderr)
        return 2
    try:
        print(json.dumps(read(arguments[0]).summary(), indent=2))
    except (NotADataset, NewerFormat, Damaged, OSError) as e:
        print(e, file=sys.stderr)
        return 3 if isinstance(e, OSError) else 4
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
