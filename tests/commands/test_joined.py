#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the commands do with joined datasets: the same as with the flat one, and no file of a segment is
replaced."""

import json
import os
import sys

import ref_reader
import ref_writer
from commands import said, tokmap
from ref_protocol import expect, expect_equal, program, run_in_folders, run_program

LENGTHS = [3, 0, 400, 7, 1, 1000]
TOKENS = [i * 7919 % 1000 for i in range(sum(LENGTHS))]
ARGUMENTS = dict(
    tokens=TOKENS,
    lengths=LENGTHS,
    vocab=1000,
    inputs=[(b"a", 2, 3, 0, 0), (b"b", 6, len(TOKENS), 0, 0)],
    metadata=b'{"created_by": "by hand"}',
)
SEGMENTS = [(b"cells/0.bin", 5, b""), (b"cells/1.npy", 1000, b"\x93NUMPY\0\0"), (b"last", len(TOKENS) - 1005, b"")]


def make(place):
    flat, joined = place / "flat", place / "joined"
    ref_writer.write(str(flat), **ARGUMENTS)
    ref_writer.write(str(joined), **ARGUMENTS, segments=SEGMENTS)
    return flat, joined


def info_lists_the_segments(folder):
    flat, joined = make(folder)
    a, b = (json.loads(said("info", "--json", p)) for p in (flat, joined))
    expect_equal(a["segments"], [], "segments of the flat one")
    seen = [(s["token_file"], s["first_token"], s["n_tokens"], s["token_offset"]) for s in b["segments"]]
    expect_equal(seen, [("cells/0.bin", 0, 5, 0), ("cells/1.npy", 5, 1000, 8), ("last", 1005, 406, 0)], "segments")
    expect_equal(b["token_file"], None, "token_file")
    expect_equal(b["token_file_bytes"], a["token_file_bytes"] + 8, "token_file_bytes")
    for key in ("dataset_id", "n_tokens", "n_documents", "inputs", "document_lengths", "metadata", "largest_id"):
        expect_equal(b[key], a[key], key)
    text = said("info", "--no-lengths", joined)
    expect("3 token files" in text and "cells/1.npy" not in text, text)
    lines = said("info", "--no-lengths", "--segments", joined).splitlines()
    expect_equal(lines[-2].split(), ["5:1005", "8", "cells/1.npy"], "line of a segment")
    expect("token file:" in said("info", "--no-lengths", "--segments", flat), "a flat one has its token file")


def cat_prints_the_same(folder):
    flat, joined = make(folder)
    for options in ([], ["--json"], ["--raw"], ["--tokens", "3:1200"], ["--documents", "2:4"], ["--with-index"]):
        one, other = (run_program("tokmap", "cat", *options, p, check=True) for p in (flat, joined))
        expect_equal(other.stdout, one.stdout, "cat %s" % options)
    os.remove(folder / "last")
    code, _, err = tokmap("cat", joined)
    expect(code == 3 and "last: cannot open: No such file" in err, err)
    expect(said("cat", "--tokens", "0:1005", joined), "what is there can be printed")


def verify_names_the_file(folder):
    _, joined = make(folder)
    expect("OK, 3 blocks" in said("verify", joined), "sound")
    with open(folder / "cells/1.npy", "r+b") as f:
        f.write(b"other...")
        expect("OK, " in said("verify", joined), "the bytes before the tokens do not count")
        f.write(b"\1")
    os.rename(folder / "last", folder / "away")
    code, out, _ = tokmap("verify", joined)
    lines = out.splitlines()
    expect_equal((code, len(lines)), (4, 3), out)
    expect("cells/1.npy: block 1 (bytes 8-2007) does not match its checksum; tokens 5-1004, documents 2-5"
           in lines[0], out)
    expect("last: cannot open: No such file or directory; tokens 1005-1410, documents 5-5" in lines[1], out)
    expect("DAMAGED: 2 of 3 blocks" in lines[2], out)
    damages = json.loads(tokmap("verify", "--json", joined)[1])["damages"]
    expect_equal([(d["kind"], d["block"], d["first_byte"], d["n_bytes"], d["first_token"]) for d in damages],
                 [("block", 1, 8, 2000, 5), ("unreadable", 2, 0, 812, 1005)], "damages")


def merge_and_export_read_all_segments(folder):
    flat, joined = make(folder)
    said("merge", joined, flat, "-o", folder / "both")
    ds = ref_reader.read(str(folder / "both"))
    expect(list(ds.tokens) == TOKENS + TOKENS, "tokens of both")
    for to in ("raw", "megatron", "llmc"):
        for name, p in (("a", flat), ("b", joined)):
            said("export", "--to", to, p, "-o", folder / (to + name))
        for suffix in (".bin", ".idx"):
            if (folder / (to + "a" + suffix)).exists():
                expect_equal((folder / (to + "b" + suffix)).read_bytes(), (folder / (to + "a" + suffix)).read_bytes(),
                             to + suffix)
    said("export", "--to", "llmc", "--shard-tokens", "501", joined, "-o", folder / "shard")
    shards = sorted(folder.glob("shard_*.bin"))
    expect_equal(b"".join(s.read_bytes()[1024:] for s in shards), (folder / "flat.bin").read_bytes(), "shards")
    report = json.loads(said("export", "--to", "raw", "--json", joined, "-o", folder / "again"))
    expect_equal(report["way"], "copy", "way")


def files_of_segments_are_never_outputs(folder):
    _, joined = make(folder)
    os.rename(folder / "last", folder / "last.bin")
    ref_writer.write(str(joined), **ARGUMENTS, segments=SEGMENTS[:2] + [(b"last.bin", SEGMENTS[2][1], b"")])
    before = (folder / "last.bin").read_bytes()
    for arguments in (("export", "--to", "raw", "--force", joined, "-o", folder / "last"),
                      ("merge", "--force", joined, "-o", folder / "last"),
                      ("merge", "--force", joined, "-o", folder / "cells/0")):
        code, _, err = tokmap(*arguments)
        expect(code == 2 and "is an input" in err, "%s: %d %s" % (arguments, code, err))
    with open(folder / "last.bin", "r+b") as f:
        done = run_program("tokmap", "cat", joined, stdout=f)
    expect(done.returncode == 2 and b"is an input" in done.stderr, done.stderr)
    expect_equal((folder / "last.bin").read_bytes(), before, "last.bin")


def a_joined_dataset_without_tokens(folder):
    ref_writer.write(str(folder / "none"), [], [0, 0], vocab=10, segments=[])
    expect("0 token files" in said("info", folder / "none"), "info")
    expect("OK, 0 blocks" in said("verify", folder / "none"), "verify")
    expect_equal(said("cat", folder / "none"), "\n\n", "cat")
    said("export", "--to", "raw", folder / "none", "-o", folder / "raw")
    expect_equal((folder / "raw.bin").read_bytes(), b"", "raw")
    said("merge", folder / "none", "-o", folder / "merged")
    expect_equal(ref_reader.read(str(folder / "merged")).documents, [(0, 0), (0, 0)], "documents")


if __name__ == "__main__":
    program("tokmap")
    sys.exit(run_in_folders("joined: "))
