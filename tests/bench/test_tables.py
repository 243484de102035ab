#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of bench/results/README.md show the committed results; every result has one."""

import pathlib
import re
import subprocess
import sys

from ref_protocol import run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = [sys.executable, str(ROOT / "bench/report.py"), "--document"]
DOCUMENT = ROOT / "bench/results/README.md"


def run(path, *options):
    return subprocess.run([*TABLES, str(path), *options], capture_output=True, text=True)


def tables_are_those_of_their_files(folder):
    done = run(DOCUMENT, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def every_result_has_a_table(folder):
    text = DOCUMENT.read_text()
    for path in DOCUMENT.parent.glob("*.json"):
        assert re.search(rf"<!-- \w+: bench/results/{re.escape(path.name)}\b.*? -->", text), path.name


def a_figure_that_was_changed_is_found_and_repaired(folder):
    text = DOCUMENT.read_text()
    begin = text.index("<!-- tokbench: ")
    at = next(i for i in range(text.index("| ---: |", begin) + 8, len(text)) if text[i] in "23456")
    copy = folder / "copy.md"
    copy.write_text(text[:at] + "1" + text[at + 1:])
    done = run(copy, "--check")
    assert done.returncode == 1 and "a table differs from" in done.stdout, done.stdout
    assert run(copy).returncode == 0 and copy.read_text() == text


sys.exit(run_in_folders("tables_"))
