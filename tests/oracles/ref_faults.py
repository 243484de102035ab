# SPDX-License-Identifier: Apache-2.0
"""Index files with one planted fault each and every checksum right, so that only the check for
that very fault can find it; and harmless changes that a reader must accept."""

import struct

import ref_writer
from ref_reader import BLOCK_BYTES, Damaged, NewerFormat, NotADataset, round_up
from ref_xxh3 import xxh3_64

DOCUMENTS, BLOCKS, INPUTS, METADATA = 1, 2, 3, 4
N_DOCUMENTS = 1030  # 17 groups, the last of 6 documents: two levels


def base_arguments():
    lengths = [(i % 3) for i in range(N_DOCUMENTS)]
    n_tokens = sum(lengths)
    return dict(
        tokens=[i % 100 for i in range(n_tokens)],
        lengths=lengths,
        vocab=100,
        eod=99,
        inputs=[(b"ab", 30, sum(lengths[:30]), 1, 2), (b"c", N_DOCUMENTS, n_tokens, 3, 4)],
        metadata=b'{"a": 1}',
    )


def put(form, offset, value):
    def plant(index):
        struct.pack_into("<" + form, index, offset, value)

    return plant


def fill(offset, data):
    def plant(index):
        index[offset : offset + len(data)] = data

    return plant


def both(*plants):
    def plant(index):
        for p in plants:
            p(index)

    return plant


def sections_of(index):
    """(kind, flags, bytes) of the four sections of the base."""
    for at in range(256, 384, 32):
        kind, flags, offset, size = struct.unpack_from("<IIQQ", index, at)
        yield kind, flags, bytes(index[offset : offset + size])


def append_section(kind, flags, content):
    """A fifth entry in the table; what follows the table moves by one step of 64 bytes."""

    def plant(index):
        table, body = ref_writer.lay_out([*sections_of(index), (kind, flags, content)])
        header = bytearray(index[:256])
        struct.pack_into("<I", header, 28, 5)
        struct.pack_into("<Q", header, 32, 256 + len(table) + len(body))
        index[:] = header + table + body

    return plant


def replace_section(kind, content):
    def plant(index):
        table, body = ref_writer.lay_out([(k, f, content if k == kind else old) for k, f, old in sections_of(index)])
        index[256:] = table + body
        struct.pack_into("<Q", index, 32, len(index))

    return plant


def header_faults(ds):
    def suffix(text):
        return fill(104, text.ljust(16, b"\0")[:16])

    faults = [
        ("magic", fill(0, b"\x88"), NotADataset, None),
        ("byte_order", put("I", 8, 0x04030201), Damaged, 8),
        ("format_version 0", put("H", 12, 0), None, 12),
        ("lowest_reader 0", put("H", 14, 0), None, 14),
        ("lowest_reader 2", put("H", 14, 2), NewerFormat, None),
        ("must_understand bit 0", put("I", 16, 1), NewerFormat, None),
        ("must_understand bit 31", put("I", 16, 1 << 31), NewerFormat, None),
        ("header_bytes", put("I", 24, 320), Damaged, 24),
        ("n_sections 3", put("I", 28, 3), Damaged, 28),
        ("n_sections 33", put("I", 28, 33), Damaged, 28),
        ("index_bytes too small", put("Q", 32, ds.index_bytes - 1), Damaged, 32),
        ("index_bytes too large", put("Q", 32, ds.index_bytes + 1), Damaged, 32),
        ("n_tokens above the limit", put("Q", 56, 2**48 + 1), Damaged, 56),
        ("n_documents above the limit", put("Q", 64, 2**40 + 1), Damaged, 64),
        ("token_offset odd", put("Q", 72, 1), Damaged, 72),
        ("token_offset above the limit", put("Q", 72, 2**30 + 2), Damaged, 72),
        ("token_bytes 0", put("I", 80, 0), Damaged, 80),
        ("token_bytes 1", put("I", 80, 1), Damaged, 80),
        ("token_bytes 3", put("I", 80, 3), Damaged, 80),
        ("token_bytes 8", put("I", 80, 8), Damaged, 80),
        ("largest_id at vocab_size", put("Q", 88, 99), Damaged, 84),
        ("largest_id does not fit", both(put("I", 84, 65536), put("Q", 88, 0)), Damaged, 84),
        ("vocab_size above the limit", put("Q", 88, 2**31 + 1), Damaged, 88),
        ("eod_id at vocab_size", put("I", 96, 100), Damaged, 96),
        ("eod_id does not fit", both(put("I", 96, 65536), put("Q", 88, 0)), Damaged, 96),
        ("reserved bytes", fill(100, b"\0\0\0\1"), Damaged, 100),
        ("tokens_hash", put("Q", 128, 12345), Damaged, 120),
        ("documents_hash", put("Q", 136, 12345), Damaged, 136),
        ("last reserved byte", fill(175, b"\1"), Damaged, 152),
    ]
    bad_suffixes = (b"", b".", b"bin", b".tmi", b".b/n", b".b\0n", b".b\x80", b".123456789012345", b".x.tmi",
                    b".partial")
    for bad in bad_suffixes:
        faults.append(("token_suffix %s" % ascii(bad)[1:], suffix(bad), Damaged, 104))
    return faults


def table_faults(ds):
    entry = {kind: 256 + 32 * (kind - 1) for kind in (1, 2, 3, 4)}
    inputs_at, inputs_size, _ = ds.sections[INPUTS]
    metadata_at, metadata_size, _ = ds.sections[METADATA]
    gap_at = inputs_at + inputs_size
    return [
        ("section kind 0", put("I", entry[1], 0), Damaged, 256),
        ("section kinds fall", put("I", entry[2], 1), Damaged, 288),
        ("section 4 missing", fill(entry[4], b"\5\0\0\0\0\0\0\0"), Damaged, 256),
        ("flag of section 1 not set", put("I", entry[1] + 4, 0), Damaged, 260),
        ("reserved section flag", put("I", entry[3] + 4, 3), Damaged, 324),
        ("section offset", put("Q", entry[4] + 8, metadata_at + 64), Damaged, entry[4] + 8),
        ("section size too large", put("Q", entry[4] + 16, 2**64 - 1), Damaged, entry[4] + 16),
        ("section size too small", put("Q", entry[4] + 16, metadata_size - 1), Damaged, 32),
        ("bytes between sections", fill(gap_at, b"\1"), Damaged, gap_at),
        ("a section that must be understood", append_section(9, 1, b"new"), NewerFormat, None),
        ("reserved flag of an unknown section", append_section(9, 2, b"new"), Damaged, 388),
    ]


def document_faults(ds):
    at, size, _ = ds.sections[DOCUMENTS]
    levels_at = at + ds.ends_bytes
    last_group = at + 256 * 16
    section = b"".join(struct.pack("<I", e) for e in ds.ends)
    levels = b"".join(level.tobytes() for level in ds.levels)
    as_wide = both(
        put("Q", at + 256, 0), fill(at + 264, bytes(244)), put("I", at + 256 + 252, 2**32 - 1)
    )
    return [
        ("document ends fall", put("I", at + 4, 2**31), Damaged, at),
        ("last document end", put("I", at + 252, ds.ends[63] + 1), Damaged, at + 256),
        ("fill of the last group", put("I", last_group + 200, 0), Damaged, last_group),
        ("start of a group", put("Q", levels_at + 8, 5), Damaged, at + 256),
        ("fill of level 0", put("Q", levels_at + 8 * 17, 0), Damaged, levels_at),
        ("level 1", put("Q", levels_at + 8 * 32 + 8, 1), Damaged, levels_at + 8 * 32),
        ("fill of level 1", put("Q", levels_at + 8 * 34, 7), Damaged, levels_at + 8 * 32),
        ("a wide group without wide ends", as_wide, Damaged, at + size),
        ("wide ends without a wide group",
         replace_section(DOCUMENTS, section + levels + bytes(512)), Damaged, None),
        ("half a record of wide ends",
         replace_section(DOCUMENTS, section + levels + bytes(256)), Damaged, at),
        ("documents cut short", replace_section(DOCUMENTS, section), Damaged, at),
        ("one document too few", put("Q", 64, N_DOCUMENTS - 1), Damaged, None),
        ("documents where there are none", put("Q", 64, 0), Damaged, at),
    ]  # fmt: skip


def other_faults(ds):
    blocks_at = ds.sections[BLOCKS][0]
    at = ds.sections[INPUTS][0]
    names_at = at + 8 + 80
    long_name = struct.pack("<Q5Q", 1, N_DOCUMENTS, ds.n_tokens, 0, 0, 4097) + b"x" * 4097
    return [
        ("block checksums too many", replace_section(BLOCKS, bytes(16)), Damaged, blocks_at),
        ("block checksums missing", replace_section(BLOCKS, b""), Damaged, blocks_at),
        ("block checksum", put("Q", blocks_at, 1), Damaged, 0),
        ("inputs shorter than 8 bytes", replace_section(INPUTS, b"\0" * 7), Damaged, at),
        ("n_inputs above the size", put("Q", at, 3), Damaged, None),
        ("n_inputs 2^64 - 1", put("Q", at, 2**64 - 1), Damaged, at),
        ("bytes behind no inputs", put("Q", at, 0), Damaged, at),
        ("end_document falls", put("Q", at + 8, N_DOCUMENTS + 1), Damaged, at + 48),
        ("end_token falls", put("Q", at + 16, ds.n_tokens + 1), Damaged, at + 56),
        ("name_end falls", put("Q", at + 40, 4), Damaged, None),
        ("end_document of the last input", put("Q", at + 48, N_DOCUMENTS - 1), Damaged, at),
        ("end_token of the last input", put("Q", at + 56, ds.n_tokens - 1), Damaged, at),
        ("name_end of the last input", put("Q", at + 80, 2), Damaged, at),
        ("zero byte in a name", fill(names_at, b"\0"), Damaged, at + 40),
        ("name of 4097 bytes", replace_section(INPUTS, long_name), Damaged, at + 40),
        ("largest_id does not occur", put("I", 84, 98), Damaged, 84),
    ]


VALUES = [
    ("int", "int64", [d if d % 4 else None for d in range(N_DOCUMENTS)]),
    ("float", "float64", [d / 2 for d in range(N_DOCUMENTS)]),
    ("text", "string", [b"%d" % d if d % 5 else None for d in range(N_DOCUMENTS)]),
    ("word", "dictionary", [[b"a", None, b"", b"bc"][d % 4] for d in range(N_DOCUMENTS)]),
    ("null", "null", [None] * N_DOCUMENTS),
]
NAMES_AT = 16 + 48 * len(VALUES)


def values(*plants):
    """A section of values with these faults; the checksum of its directory is right."""
    section = bytearray(ref_writer.values_section(VALUES, N_DOCUMENTS))
    for plant in plants:
        plant(section)
    n_columns, names_bytes = struct.unpack_from("<II", section)
    directory = section[16 : 16 + 48 * n_columns + names_bytes]
    struct.pack_into("<Q", section, 8, xxh3_64(bytes(directory)))
    return append_section(5, 0, bytes(section))


def parts_of(column):
    """Where the parts of a column of VALUES begin in the section."""
    at = NAMES_AT + sum(len(name) for name, _, _ in VALUES)
    for i in range(column + 1):
        *_, parts = ref_writer.column_parts(*VALUES[i], N_DOCUMENTS)
        found = []
        for part in parts:
            found.append(round_up(at, 64))
            at = found[-1] + len(part)
    return found


def value_faults():
    good = ref_writer.values_section(VALUES, N_DOCUMENTS)
    entry = [16 + 48 * i for i in range(len(VALUES))]
    ints, floats, texts, words = (parts_of(i) for i in range(4))

    def rename(to):
        return fill(NAMES_AT, to)

    wrong = [
        ("no columns", put("I", 0, 0)),
        ("65 columns", put("I", 0, 65)),
        ("names_bytes", put("I", 4, 1)),
        ("type 5", put("I", entry[0], 5)),
        ("type int64 of strings", put("I", entry[2], 1)),
        ("null type with values", put("I", entry[0], 0)),
        ("code_bytes 3", put("I", entry[3] + 4, 3)),
        ("code_bytes 2 of codes of 1", put("I", entry[3] + 4, 2)),
        ("code_bytes of numbers", put("I", entry[0] + 4, 1)),
        ("offset", put("Q", entry[1] + 8, floats[0] + 64)),
        ("offset of a null column", put("Q", entry[4] + 8, 64)),
        ("n_nulls all", put("Q", entry[0] + 16, N_DOCUMENTS)),
        ("n_nulls 0", put("Q", entry[0] + 16, 0)),
        ("n_nulls one more", put("Q", entry[0] + 16, 259)),
        ("n_nulls 2^63", put("Q", entry[0] + 16, 2**63)),
        ("n_nulls of a null column", put("Q", entry[4] + 16, 5)),
        ("n_strings of strings", put("Q", entry[2] + 24, N_DOCUMENTS - 1)),
        ("n_strings of numbers", put("Q", entry[0] + 24, 1)),
        ("n_strings 0", put("Q", entry[3] + 24, 0)),
        ("n_strings 257 with codes of 1", put("Q", entry[3] + 24, 257)),
        ("text_bytes 2^64 - 1", put("Q", entry[2] + 32, 2**64 - 1)),
        ("text_bytes one less", put("Q", entry[2] + 32, len(b"".join(v or b"" for v in VALUES[2][2])) - 1)),
        ("text_bytes of numbers", put("Q", entry[0] + 32, 1)),
        ("name_end falls", put("Q", entry[1] + 40, 2)),
        ("an empty name", put("Q", entry[0] + 40, 0)),
        ("the last name_end", put("Q", entry[4] + 40, 1)),
        ("a name with a zero byte", rename(b"i\0t")),
        ("a name that is not UTF-8", rename(b"i\xfft")),
        ("a name that is a surrogate", rename(b"\xed\xa0\x80")),
        ("a name twice", fill(NAMES_AT + 8, b"word")),
        ("a byte before a part", fill(ints[0] - 1, b"\1")),
        ("bits after the last document", fill(ints[0] + 128, bytes([good[ints[0] + 128] | 0x80]))),
        ("one null more than n_nulls", both(fill(ints[0], bytes([good[ints[0]] & ~2])), put("Q", ints[1] + 8, 0))),
        ("a null that is not 0", put("Q", ints[1], 1)),
        ("a null that has a string", put("Q", texts[1] + 8, 1)),
        ("a null with a code", fill(words[1] + 1, b"\1")),
        ("a code without a string", fill(words[1], b"\3")),
        ("offsets fall", put("Q", texts[1] + 8 * 40, 2**32)),
        ("the first offset", put("Q", words[2], 1)),
        ("the last offset", put("Q", words[2] + 8 * 3, 1)),
    ]
    found = [("values: " + name, values(plant), Damaged, None) for name, plant in wrong]
    text = b"x" * 65537
    column = [("long", "string", [text] + [b""] * (N_DOCUMENTS - 1))]
    long = ref_writer.values_section(column, N_DOCUMENTS)
    return found + [
        ("values: flag bit 0", append_section(5, 1, good), Damaged, None),
        ("values: 15 bytes", append_section(5, 0, good[:15]), Damaged, None),
        ("values: cut short", append_section(5, 0, good[:-1]), Damaged, None),
        ("values: a byte more", append_section(5, 0, good + b"\0"), Damaged, None),
        ("values: a string of 65537 bytes", append_section(5, 0, long), Damaged, None),
        ("values: directory checksum", append_section(5, 0, good[:8] + b"\0" * 8 + good[16:]), Damaged, None),
    ]


def segments(content):
    return append_section(6, 1, content)


def segment_faults(ds):
    """The base as a joined dataset of one segment, its own token file."""
    n_tokens = ds.n_tokens

    def of(*entries):
        """Of (end_token, token_offset, name)."""
        names = b""
        section = struct.pack("<Q", len(entries))
        for end, offset, name in entries:
            names += name
            section += struct.pack("<3Q", end, offset, len(names))
        return section + names

    good = of((n_tokens, 0, b"fault.bin"))
    two = [(5, 0, b"a"), (n_tokens, 0, b"b")]
    wrong = [
        ("7 bytes", good[:7]),
        ("no segments", of()),
        ("n_segments above the size", struct.pack("<Q", 3) + good[8:]),
        ("n_segments 2^64 - 1", struct.pack("<Q", 2**64 - 1) + good[8:]),
        ("n_segments 2^20 + 1", struct.pack("<Q", 2**20 + 1) + bytes(24 * (2**20 + 1))),
        ("an empty segment", of((0, 0, b"a"), (n_tokens, 0, b"b"))),
        ("end_token falls", of((n_tokens + 1, 0, b"a"), (n_tokens, 0, b"b"))),
        ("end_token twice", of((n_tokens, 0, b"a"), (n_tokens, 0, b"b"))),
        ("tokens without a segment", of((n_tokens - 1, 0, b"fault.bin"))),
        ("too many tokens", of((n_tokens + 1, 0, b"fault.bin"))),
        ("an odd token_offset", of((n_tokens, 1, b"fault.bin"))),
        ("token_offset above the limit", of((n_tokens, 2**30 + 2, b"fault.bin"))),
        ("an empty name", of((n_tokens, 0, b""))),
        ("a name of 4097 bytes", of((n_tokens, 0, b"x" * 4097))),
        ("a name with a zero byte", of((n_tokens, 0, b"fault\0bin"))),
        ("an absolute name", of((n_tokens, 0, b"/fault.bin"))),
        ("name_end falls", good[:24] + struct.pack("<Q", 2**64 - 1) + good[32:]),
        ("name_end of the last", good[:24] + struct.pack("<Q", 3) + good[32:]),
        ("a byte after the names", good + b"x"),
        ("a name cut short", good[:-1]),
        ("one block checksum for two segments", of(*two)),
    ]
    found = [("segments: " + name, segments(content), Damaged, None) for name, content in wrong]
    return found + [
        ("segments: flag bit 0 not set", append_section(6, 0, good), Damaged, 388),
        ("segments: token_offset in the header",
         both(segments(good), put("Q", 72, 2)), Damaged, 72),
        ("segments: another suffix", both(segments(good), fill(104, b".dat")), Damaged, 104),
    ]


def harmless_segments(ds):
    section = struct.pack("<Q3Q", 1, ds.n_tokens, 0, 11) + b"./fault.bin"
    return segments(section)


def faults(ds):
    """(name, function that plants it into a bytearray, exception, offset or None) for the base.
    No exception: the document says that it is refused, and not as which of the three kinds."""
    assert BLOCK_BYTES > ds.n_tokens * ds.token_bytes
    return (header_faults(ds) + table_faults(ds) + document_faults(ds) + other_faults(ds)
            + value_faults() + segment_faults(ds))


def harmless_changes(ds):
    """The document counts neither the syntax of the metadata nor whether an input's end_token fits
    its end_document among the checks."""
    at = ds.sections[INPUTS][0]
    changes = [
        ("format_version 2, lowest_reader 1", put("H", 12, 2)),
        ("may_ignore", put("I", 20, 2**32 - 1)),
        ("ignorable bytes", fill(176, b"\xff" * 64)),
        ("vocab_size not known", put("Q", 88, 0)),
        ("eod_id none", put("I", 96, 2**32 - 1)),
        ("an unknown section", append_section(9, 0, b"new")),
        ("values of documents", values()),
        ("one segment", harmless_segments(ds)),
        ("an unknown section of no bytes", append_section(2**32 - 1, 0, b"")),
        ("end_token beside a document boundary", put("Q", at + 16, 1)),
    ]
    for text in (b"", b"[]", b"{} ", b"{}{}", b'{"a": NaN}', b'{"\xff": 1}', b"{"):
        changes.append(("metadata " + ascii(text)[1:], replace_section(METADATA, text)))
    return changes
