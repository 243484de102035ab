#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap pack --also megatron: the .idx beside each output, byte for byte, for any number of threads; how wide tokens
are; what a killed run did not come to; what is refused. chaos.py kills such runs too, and
tests/frameworks/check_preprocess.py compares them with those of Megatron."""

import json
import os
import random
import subprocess
import sys

import chaos
import foreign_writers
import pack_corpus
import ref_protocol
import ref_reader
from ref_protocol import Skip, expect, expect_equal

ALSO = ["--also", "megatron"]


def texts(folder, name, n=3000):
    rng = random.Random(1)
    lines = [json.dumps({"text": "word " * rng.choice((0, 0, 1, 7, 900)) + str(i % 9) * (i % 3)}) for i in range(n)]
    (folder / name).write_text("\n".join(lines) + "\n")
    return name


def wanted_index(folder, prefix):
    """Of the dataset's own documents, of which those without tokens are no sequences."""
    ds = ref_reader.read(str(folder / prefix))
    lengths = [end - first for first, end in ds.documents]
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + (length > 0))
    return foreign_writers.megatron_index([n for n in lengths if n], ends, ds.token_bytes)


def the_index_is_that_of_the_documents(folder):
    run, name, splits = pack_corpus.Packing(folder), texts(folder, "a.jsonl"), ["--split", "v=0.3"]
    for options in (["--bos", "1"], ["--eod", "none"], []):
        files = []
        for threads in "1", "3":
            run.remove("o")
            said = run.pack("o", name, *ALSO, *splits, *options, "-j", threads)
            files.append(run.outputs("o"))
        expect_equal(files[0], files[1], "files")
        expect_equal(sorted(files[0]), ["-v.bin", "-v.idx", "-v.tmi", ".bin", ".idx", ".tmi"], "names")
        expect("o.idx: Megatron index" in said and "o-v.idx" in said, said)
        for prefix in "o", "o-v":
            expect_equal((folder / (prefix + ".idx")).read_bytes(), wanted_index(folder, prefix), prefix)
    lengths = [end - first for prefix in ("o", "o-v") for first, end in ref_reader.read(str(folder / prefix)).documents]
    expect_equal((len(lengths), 1 in lengths), (3000, False), "an empty document got an end")


def tokens_are_as_wide_as_megatron_has_them(folder):
    run = pack_corpus.Packing(folder)
    (folder / "ids.jsonl").write_text('{"ids": [1, 2]}\n{"ids": []}\n')
    for size, also, token_bytes in ((65499, ALSO, 2), (65500, ALSO, 4), (65536, ALSO, 4), (65536, [], 2)):
        run.remove("o")
        run.pack("o", "ids.jsonl", "--tokens", "ids", "--eod", "7", "--vocab-size", str(size), *also)
        expect_equal((folder / "o.bin").stat().st_size, token_bytes * (3 if also else 4), "bytes")
        if also:
            expect_equal((folder / "o.idx").read_bytes(), foreign_writers.megatron_index([3], [0, 1, 1], token_bytes),
                         "index")
        expect("u%d" % (8 * token_bytes) in run.pack("o", "ids.jsonl", "--tokens", "ids", "--vocab-size", str(size),
                                                    "--dry-run", *also), "another width")


def what_a_killed_run_left_out_is_written_by_the_next(folder):
    """The .idx are written last; a run with --force may write them for other tokens."""
    run, name = pack_corpus.Packing(folder), texts(folder, "a.jsonl", 300)
    arguments = [name, *ALSO, "--split", "v=0.3"]
    run.pack("o", *arguments)
    files = run.outputs("o")
    for lost in ([], ["-v.idx"], [".idx", "-v.idx"]):
        for suffix in lost:
            (folder / ("o" + suffix)).unlink()
        said = run.pack("o", *arguments, code=5)
        expect("nothing to resume" in said, said)
        expect_equal(said.count("was missing, and is written now"), len(lost), said)
        expect_equal(run.outputs("o"), files, "files")
    run.pack("o", *arguments, "--bos", "9", "--force")
    expect((folder / "o.idx").read_bytes() != files[".idx"], "an old index is beside new tokens")
    for prefix in "o", "o-v":
        expect_equal((folder / (prefix + ".idx")).read_bytes(), wanted_index(folder, prefix), prefix)
    files = run.outputs("o")
    said = run.pack("o", name, "--split", "v=0.3", "--force", code=5)
    expect(".idx: exists, and would be a Megatron index beside other tokens" in said, said)
    expect_equal(run.outputs("o"), files, "files")


def what_is_missing_is_written_or_the_run_says_why(folder):
    """Each read of such a run fails once: where it calls the dataset complete, the .idx is there."""
    if not chaos.CAN_FAIL:
        raise Skip("libfailures.so is missing, or this is a build with a sanitizer")
    run, arguments = pack_corpus.Packing(folder), [texts(folder, "a.jsonl", 100), *ALSO, "-j", "1"]
    run.pack("o", *arguments)
    files = run.outputs("o")

    def again(environment):
        (folder / "o.idx").unlink()
        return subprocess.run(run.command("o", *arguments), cwd=folder, capture_output=True, text=True, env=environment)

    again(chaos.counting(folder))
    n_not_written = 0
    for number in range(1, chaos.read_counts(folder)["read"] + 1):
        done = again({**os.environ, "LD_PRELOAD": chaos.LIBRARY, "FAIL": "read:%d" % number})
        is_written = run.outputs("o") == files
        expect_equal("is written now" in done.stderr, is_written, done.stderr)
        if not is_written:
            n_not_written += 1
            expect((done.returncode, "nothing to resume" in done.stderr) != (5, True), done.stderr)
            run.pack("o", *arguments, code=5)
        expect_equal(run.outputs("o"), files, "files")
    expect(n_not_written > 0, "no read failed")


def refusals_name_the_option_and_leave_nothing(folder):
    run, name = pack_corpus.Packing(folder), texts(folder, "a.jsonl", 3)
    (folder / "o-v.idx").write_bytes(b"of the user")
    said = run.pack("o", name, *ALSO, "--split", "v=0.3", code=5)
    expect("o-v.idx: already exists" in said, said)
    expect_equal(run.outputs("o"), {"-v.idx": b"of the user"}, "files")
    for options in (["--parts", "x"], ["--tokens", "x", "--vocab-size", "9", "--labels", "y"],
                    ["--tokens", "x", "--vocab-size", "9", "--loss-mask", "y"]):
        said = run.pack("p", name, *ALSO, *options, code=2)
        expect("--also megatron does not work with %s" % (options[-2] if options[-1] == "y" else "--parts") in said, said)
    (folder / "q.idx").write_text("an input")
    expect("q.idx" in run.pack("q", "q.idx", *ALSO, "--force", code=2), "another message")
    expect("--also does not work with --plan" in run.pack("p", "--plan", "x", *ALSO, code=2), "another message")
    expect_equal([*run.outputs("p"), (folder / "q.idx").read_text()], ["an input"], "files")


sys.exit(ref_protocol.run_in_folders("pack_also_"))
