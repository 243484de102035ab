#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The vectors of docs/FORMAT-EXAMPLES.md, decoded from the document: what ref_reader and the
command `tokmap` see in them is what the document says."""

import json
import pathlib
import random
import re
import sys

import ref_content
import ref_reader
import ref_writer
from ref_protocol import call, expect, expect_equal, run_in_folders

DOCUMENT = (pathlib.Path(__file__).resolve().parents[2] / "docs/FORMAT-EXAMPLES.md").read_text("utf-8")


class Vector:
    """heading; seen: the JSON line; files: bytes by name, which begins with P or is that of a segment."""

    def __init__(self, heading, text):
        self.heading = heading
        self.seen = json.loads(re.search(r"^```json\n(.*)\n```$", text, re.M).group(1))
        dumps = re.findall(r"^`([^`]*)`\n\n```hex\n(.*?)^```$", text, re.M | re.S)
        self.files = {name: decode_dump(dump) for name, dump in dumps}

    def write(self, folder):
        """Returns its prefix."""
        for name, data in self.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
        return str(folder / "P")


def decode_dump(text):
    data = b""
    repeat = False
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line == "*":
            repeat = True
            continue
        offset_digits, _, digits = line.partition("  ")
        offset = int(offset_digits, 16)
        expect(offset < 2**16, "offset too large: %r" % line)
        if repeat:
            data += data[-16:] * ((offset - len(data)) // 16)
        repeat = False
        expect_equal(len(data), offset, "offset of the line %r" % line)
        expect(len(digits) > 0 or i == len(lines) - 1, "a line without bytes: %r" % line)
        data += bytes.fromhex(digits)
    expect_equal(lines[-1], "%08x" % len(data), "last line of a dump")
    return data


def vectors():
    parts = re.split(r"^## (8\.\d .*)\n", DOCUMENT, flags=re.M)[1:]
    return [Vector(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]


def the_document_is_what_ref_writer_prints(folder):
    """Covers what no reader looks at: the foreign bytes before the tokens, the text of the JSON."""
    expect_equal([v.heading for v in vectors()], [h for h, _ in ref_writer.VECTORS], "headings")
    expect_equal(len(ref_writer.VECTORS), 5, "number of vectors")
    expect(ref_writer.page() == DOCUMENT, "ref_writer.py --vectors prints another text")


def ref_reader_sees_what_the_document_says(folder):
    for vector in vectors():
        segments = [segment["name"] for segment in vector.seen.get("segments", [])]
        files = ["P.tmi"] + (segments or ["P" + vector.seen["token_suffix"]])
        expect_equal(sorted(vector.files), sorted(files), "files of " + vector.heading)
        seen = json.loads(ref_writer.what_a_reader_sees(ref_reader.read(vector.write(folder))))
        expect_equal(seen, vector.seen, "what ref_reader sees in " + vector.heading)


def tokmap_sees_what_the_document_says(folder):
    for vector in vectors():
        check_command(vector, vector.write(folder))


def check_command(vector, prefix):
    call("tokmap", "verify", prefix)
    info = json.loads(call("tokmap", "info", "--json", prefix)[1])
    for key in (
        "format_version", "dtype", "n_tokens", "n_documents", "n_inputs", "vocab_size",
        "largest_id", "eod_id", "dataset_id", "token_offset", "token_bytes", "index_bytes",
        "token_file_bytes",
    ):  # fmt: skip
        expect_equal(info.get(key), vector.seen[key], key)
    for column in vector.seen.get("values", []):
        shown = {c["name"]: c for c in info["meta"]}[column["name"]]
        expect_equal(shown["type"], column["type"].replace("dictionary", "string"), "type")
        expect_equal(shown["n_nulls"], column["values"].count(None), "n_nulls")
    if "values" in vector.seen:
        lines = call("tokmap", "cat", "--json", "--meta", prefix)[1].decode().splitlines()
        rows = [json.loads(line)["meta"] for line in lines]
        for column in vector.seen["values"]:
            expect_equal([row[column["name"]] for row in rows], column["values"], column["name"])
    first = 0
    for shown, segment in zip(info["segments"], vector.seen.get("segments", [])):
        wanted = {"token_file": segment["name"], "first_token": first,
                  "n_tokens": segment["end_token"] - first, "token_offset": segment["token_offset"]}
        expect_equal(shown, wanted, "segment")
        first = segment["end_token"]
    expect_equal(len(info["segments"]), len(vector.seen.get("segments", [])), "segments")
    output = call("tokmap", "cat", "--json", prefix)[1].decode()
    wanted = [vector.seen["tokens"][first:end] for first, end in vector.seen["documents"]]
    expect_equal([json.loads(line) for line in output.splitlines()], wanted, "cat --json")


def a_crc_of_parts_equals_the_crc_by_byte(folder):
    """The two ways of the second reader; the first is the document's."""
    rng = random.Random(1)
    for n in (0, 1, 255, 256, 257, 5000, 70001):
        data, crc = rng.randbytes(n), rng.getrandbits(64)
        for k in (0, 1):
            expect_equal(ref_content.crc_of_parts(crc, data, k), ref_content.crc_by_byte(crc, data, k), "of %d bytes" % n)
    whole, parts = ref_content.ContentHash(), ref_content.ContentHash()
    whole.add(b"abc" + bytes(1000))
    parts.add(b"abc")
    parts.add_zeros(1000)
    expect_equal(parts.crc, whole.crc, "zeros")


if __name__ == "__main__":
    sys.exit(run_in_folders(""))
