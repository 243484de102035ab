#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python -m tokmap preprocess with the tokenizers that need no package. tests/frameworks/check_preprocess.py compares it
with Megatron's own tool."""

import json
import os
import subprocess
import sys

from package import ROOT
from ref_protocol import expect, expect_equal, run_in_folders

VOCAB = {**{chr(one): one - 32 for one in range(33, 127)}, "\u0120": 0, "\u010a": 95, "ab": 96, "<|endoftext|>": 99}
GPT2 = ("--tokenizer-type", "GPT2BPETokenizer", "--append-eod")


def write_gpt2(folder, vocab=VOCAB):
    """Returns the arguments that name its files."""
    (folder / "v.json").write_text(json.dumps(vocab))
    (folder / "m.txt").write_text("#version: 0.2\na b\n")
    return (*GPT2, "--vocab-file", folder / "v.json", "--merge-file", folder / "m.txt")


def preprocess(folder, path, *arguments, status=0):
    """Its stderr."""
    done = subprocess.run([sys.executable, "-m", "tokmap", "preprocess", "--input", path, "--output-prefix", folder / "out",
                           *arguments], env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True)
    expect_equal(done.returncode, status, "%s: %s" % (arguments, done.stderr))
    return done.stderr


def two_asterisks_are_refused(folder):
    """Megatron's glob reads ** as *."""
    good = write_gpt2(folder)
    for name in ("x", "a/x", "a/b/x"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text('{"text": "ab"}\n')
    for arguments in ((), ("--partitions", "2", "--keep-sequential-samples")):
        said = preprocess(folder, folder / "**/x", *good, *arguments, status=2)
        expect("/**/x: Megatron reads ** as *, the files of one level: write * for each level" in said, said)
    expect(not list(folder.glob("out*")), "files were written")


if __name__ == "__main__":
    sys.exit(run_in_folders("preprocess_"))
