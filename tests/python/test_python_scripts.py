#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of docs/examples that need NumPy alone run, and print what the data have. The others: make test-frameworks."""

import os
import random
import subprocess
import sys

from package import ROOT
from ref_protocol import expect_equal, run_in_folders

import tokmap


def write(folder):
    rng = random.Random(5)
    for name in ("web", "code"):
        with tokmap.Writer(folder / name, vocab_size=257, eod_id=256) as w:
            for _ in range(40):
                w.document([rng.randrange(256) for _ in range(rng.randrange(20, 200))] + [256])


def run(name, folder, *arguments):
    done = subprocess.run([sys.executable, "-W", "error", ROOT / "docs/examples" / name, *arguments], cwd=folder,
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def a_mixture_is_amended(folder):
    lines = run("amend.py", folder, "web", "code")
    assert "phases: {0: [0.9, 0.1], 40: [0.5, 0.5]}" in lines and "goes on at sample 83" in lines, lines
    sources = [eval(line.partition("of ")[2]) for line in lines if line.startswith("step ") and "samples of" in line]
    n_code = [sum(sum(step) for step in part) for part in (sources[:10], sources[10:])]
    expect_equal(n_code, [4, 20], "samples of code in 40 samples at 10 %, and in 40 at 50 %")
    assert "step 12 had the samples [48, 49, 53, 54]" in lines, lines  # 50 to 52 are left out
    tokens = sum(int(line.split()[1]) for line in lines if line[:2] in ("0:", "1:"))
    expect_equal(tokens, (40 + 40 + 4) * 64, "labels of all steps")


def a_stage_gives_the_samples_of_its_loader(folder):
    lines = run("stage_on_host.py", folder, "web", "5")
    expect_equal(lines[:2], ["step 0: samples 0 to 7", "step 1: samples 8 to 15"], "the first two steps")
    expect_equal(lines[-1], "the loader goes on at sample 40", "after five steps")


sys.exit(run_in_folders("scripts_", prepare=write))
