#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap pack and inputs that are bad: all of them are named before the work, and one that is found in the middle is
repaired, replaced or removed without losing what was packed. The result is what a run over the final inputs writes."""

import gzip
import os
import random
import re
import subprocess
import sys

import pack_corpus
import ref_protocol
from ref_protocol import Skip, expect, expect_equal


def call(folder, *arguments, code=0, checkpoint_ms="0"):
    done = subprocess.run([ref_protocol.program("tokmap"), *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=300,
                          env={**os.environ, "TOKMAP_CHECKPOINT_MS": checkpoint_ms})
    expect_equal(done.returncode, code, "exit status of %s; it said %s" % (arguments, done.stdout + done.stderr))
    return done.stdout + done.stderr


def files(folder, prefix="out"):
    return {re.sub("^" + prefix, "", path.name): path.read_bytes() for path in folder.glob(prefix + "[.-]*")}


def write_gzip(path, text):
    with gzip.GzipFile(path, "wb", mtime=0) as out:
        out.write(text.encode())


# ---- Before the work ----


def all_bad_inputs_are_named_before_anything_is_written(folder):
    names = pack_corpus.write_inputs(folder, random.Random(3), 1)
    bad = {"g.arrow": lambda data: data[:-9], "h.parquet": lambda data: data[:-9], "d.jsonl": lambda data: b'{"x": 1}\n',
           "f.tar": lambda data: b"PK\x03\x04" + data, "c.gz": lambda data: b"\x1f\x8b\x08\x04" + data[:20]}
    bad = {name: change for name, change in bad.items() if name in names}
    for name, change in bad.items():
        (folder / name).write_bytes(change((folder / name).read_bytes()))
    for arguments in (["-o", "out"], ["-o", "out", "--dry-run"], ["--cells", "cells", "-o", "out.plan"]):
        command = "plan" if "--cells" in arguments else "pack"
        said = call(folder, command, *names, *arguments, code=3)
        for name in names:
            expect_equal(name + ": " in said, name in bad, "%s: whether %s is named; it said %s" % (arguments, name, said))
        expect("%d inputs cannot be packed" % len(bad) in said, said)
        expect_equal(files(folder), {}, "files")
    said = call(folder, "pack", "no1", "a.jsonl", "no2", "-o", "out", code=3)
    expect("no1: No such file" in said and "no2: No such file" in said, said)


TESTS = [
    all_bad_inputs_are_named_before_anything_is_written,
]

if __name__ == "__main__":
    sys.exit(ref_protocol.run_in_folders("", TESTS))
