#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The vectors of section 8 of docs/FORMAT.md, decoded from the document: what ref_reader and the
command `tokmap` see in them is what the document says."""

import json
import os
import re
import sys
import tempfile

import ref_reader
import ref_writer
from ref_protocol import call, expect, expect_equal, program, run_tests

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "FORMAT.md")


class Vector:
    """heading; seen: the JSON line; files: bytes by name, which begins with P or is that of a segment."""

    def __init__(self, heading, text):
        self.heading = heading
        self.seen = json.loads(re.search(r"^```json\n(.*)\n```$", text, re.M).group(1))
        dumps = re.findall(r"^`([^`]*)`\n\n```hex\n(.*?)^```$", text, re.M | re.S)
        self.files = {name: decode_dump(dump) for name, dump in dumps}

    def write(self, folder):
        for name, data in self.files.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)


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


def vectors_of(document):
    section = re.search(r"^## 8\. .*?(?=^## )", document, re.M | re.S).group(0)
    parts = re.split(r"^### (8\.\d .*)\n", section, flags=re.M)[1:]
    vectors = [Vector(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]
    expect_equal(len(vectors), 5, "number of vectors")
    return vectors


def load():
    with open(DOCUMENT, encoding="utf-8") as f:
        return vectors_of(f.read())


def seen_by_reader(vector, folder):
    prefix = os.path.join(folder, "P")
    vector.write(folder)
    return json.loads(ref_writer.what_a_reader_sees(ref_reader.read(prefix)))


def test_reader(number, folder):
    vector = load()[number]
    segments = [segment["name"] for segment in vector.seen.get("segments", [])]
    files = ["P.tmi"] + (segments or ["P" + vector.seen["token_suffix"]])
    expect_equal(sorted(vector.files), sorted(files), "files")
    expect_equal(seen_by_reader(vector, folder), vector.seen, "what ref_reader sees")


def test_writer(number):
    """Covers what no reader looks at: the foreign bytes before the tokens, the text of the JSON."""
    heading, arguments = ref_writer.VECTORS[number]
    with open(DOCUMENT, encoding="utf-8") as f:
        document = f.read()
    expect(ref_writer.vector_text(heading, arguments) in document, "ref_writer writes other text")


def test_command(number, folder):
    program("tokmap")
    vector = load()[number]
    prefix = os.path.join(folder, "P")
    vector.write(folder)
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


def test_document_has_vectors():
    expect_equal([v.heading for v in load()], [h for h, _ in ref_writer.VECTORS], "headings")


def main():
    tests = [("FORMAT.md holds five vectors", test_document_has_vectors)]
    for i, name in enumerate("vector 8.%d" % n for n in range(1, 6)):
        tests += [
            (name + ": ref_reader sees what FORMAT.md says", lambda i=i: test_reader(i, FOLDER)),
            (name + ": ref_writer writes its bytes", lambda i=i: test_writer(i)),
            (name + ": tokmap sees what FORMAT.md says", lambda i=i: test_command(i, FOLDER)),
        ]
    global FOLDER
    with tempfile.TemporaryDirectory() as FOLDER:
        return run_tests(tests)


FOLDER = ""

if __name__ == "__main__":
    sys.exit(main())
