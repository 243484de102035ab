#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of docs/examples that need NumPy alone run, and print what the data have. The others: make test-frameworks.
docs/trained-on.md shows what its commands print; `test_python_scripts.py --write` writes it there."""

import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

from package import ROOT
from ref_protocol import expect_equal, program, run_in_folders

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


PAGE = ROOT / "docs/trained-on.md"


def shown(place):
    """The page with what the commands in it print, if they run in this folder."""
    for path in [*(ROOT / "docs/demo").glob("*.txt"), ROOT / "docs/examples/trained_on.py"]:
        shutil.copy(path, place)
    (place / "bin").mkdir()
    for name, text in (("python", f'exec "{sys.executable}" "$@"'),  # and commands in Python run by this one
                       ("tokmap", f'case $1 in trace | report) exec python -m tokmap "$@" ;; esac\nexec "{program("tokmap")}" "$@"')):
        (place / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / "bin" / name).chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PATH": f"{place}/bin:{os.environ['PATH']}",
                   "PYTHONUNBUFFERED": "1"}

    def with_output(match):
        done = subprocess.run(["bash", "-ec", match[1]], cwd=place, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, (match[1], done.stderr)
        return f"```sh\n{match[1]}```\n\n```\n{done.stdout.replace(os.path.realpath(place), '/runs')}```\n"

    return re.sub(r"```sh\n(.*?)```\n\n```\n.*?```\n", with_output, PAGE.read_text(), flags=re.DOTALL)


def the_page_shows_what_a_run_was_trained_on(folder):
    expect_equal(shown(folder), PAGE.read_text(), "docs/trained-on.md")


if sys.argv[1:] == ["--write"]:
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(shown(pathlib.Path(folder)))
    sys.exit()
sys.exit(run_in_folders("scripts_", prepare=write))
