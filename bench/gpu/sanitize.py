#!/usr/bin/env python3
"""sanitize.py - E4: the expand kernel on a small case under compute-sanitizer, which looks for
accesses outside of memory and for races between threads. bench/gpu.sh runs it."""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

from figures import Rows

TOOLS = {"memcheck": r"ERROR SUMMARY: (\d+) error", "racecheck": r"RACECHECK SUMMARY: (\d+) hazard"}
PLACES = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer")


def find():
    for folder in (None, *PLACES):
        path = shutil.which("compute-sanitizer", path=folder)
        if path:
            return path
    return None


def run(sanitizer, tool, options):
    """The number of findings and, where there is none, why."""
    command = [sanitizer, "--tool", tool, "--report-api-errors", "no", options.gpubench, "expand",
               "--data", options.data, "--cases", str(options.cases)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                              timeout=options.seconds * 0.8)
    except subprocess.TimeoutExpired:
        return None, "it took too long"
    log = done.stdout + done.stderr
    print(log, flush=True)
    found = re.search(TOOLS[tool], log)
    if not found:
        return None, "it said: " + " ".join(log.split())[-300:]
    if done.returncode and found[1] == "0":
        return None, f"the program under it failed: {' '.join(log.split())[-300:]}"
    return int(found[1]), None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--gpubench", required=True, type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--cases", type=int, default=6)
    options = parser.parse_args()
    rows, sanitizer = Rows(options.rows), find()
    for tool in TOOLS:
        name = f"compute-sanitizer {tool}, {options.cases} random batches"
        if not sanitizer:
            rows.leave_out(name, "compute-sanitizer not found")
            continue
        n, why = run(sanitizer, tool, options)
        if why:
            rows.leave_out(name, why)
        else:
            rows.add(name, "findings", n, target=("at_most", 0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
