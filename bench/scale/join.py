#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""join.py --tokmap FILE --dir DIR [--cells 10000] [--megabytes 200] [--words 60] [--out FILE] - what a plan, its
tasks and its join cost: time, memory, and what they ask the file system for.

Packs a generated corpus of JSON lines, in documents of --words words, in so many cells in DIR, and joins them. The
cells and the joined dataset stay in DIR, for loader_ranks.py; cells that are there are not packed again. Most of the time goes
into cells when these are small, and into documents when there are few cells with many documents."""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import rows

WORDS = ("the of and to in a is that it was for on are as with his they at be this from have or by one had not but what "
         "all were when we there can an your which their said if do will each about how up out them then she many some "
         "so these would other into has more her two like him see time could no make than first been its who now").split()
METADATA = {"openat", "open", "newfstatat", "fstat", "stat", "lstat", "statx", "unlink", "unlinkat", "rename", "renameat",
            "renameat2", "link", "linkat", "mkdir", "mkdirat", "access", "faccessat", "faccessat2", "getdents64",
            "readlink", "readlinkat", "flock", "ftruncate", "fallocate", "fsync", "fdatasync"}


def run(command, folder):
    """(seconds, largest memory in MiB)"""
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status != 0:
        sys.exit("%s: wait status %d" % (" ".join(command), status))
    return seconds, usage.ru_maxrss / 1024


def calls_of(command, folder):
    """{system call: how often}, of all threads; only with a path or a descriptor of a file in the folder."""
    with tempfile.NamedTemporaryFile("r") as log:
        subprocess.run(["strace", "-f", "-y", "-o", log.name, *command], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        counts = collections.Counter()
        for line in log:
            match = re.match(r"\d+ +(\w+)\((.*)", line)
            if not match or not re.search(re.escape(str(folder)) + r'|"(?!/)[^"]*(cells|joined|run\.plan)', match[2]):
                continue
            above = re.search(r', "(/[^"]*)"', match[2])
            counts["stat of a folder above" if above and (str(folder / "cells") + "/").startswith(above[1] + "/") and
                   match[1] == "newfstatat" else match[1]] += 1
    return counts


def write_corpus(path, megabytes, n_words):
    rng, left = random.Random(1), megabytes * 1e6
    with open(path, "w") as out:
        while left > 0:
            line = '{"text": "%s"}\n' % " ".join(rng.choices(WORDS, k=max(1, int(rng.expovariate(1 / n_words)))))
            left -= len(line)
            out.write(line)


def count_documents(tokmap, folder):
    done = subprocess.run([tokmap, "info", "--json", "joined"], cwd=folder, check=True, capture_output=True)
    return json.loads(done.stdout)["n_documents"]


def call_rows(row, what, counts, n):
    """Calls that concern metadata, all together and the most frequent ones; folders above are usually in a cache."""
    above = counts.pop("stat of a folder above", 0)
    counts = {name: count for name, count in counts.items() if name in METADATA and count >= n / 100}
    found = [row("%s: calls for metadata" % what, "calls", [sum(counts.values()) / n])]
    found.append(row("%s: stats of folders above" % what, "calls", [above / n]))
    for name, count in sorted(counts.items(), key=lambda item: -item[1])[:7]:
        found.append(row("%s: %s" % (what, name), "calls", [count / n]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokmap", type=pathlib.Path, required=True)
    parser.add_argument("--dir", type=pathlib.Path, required=True)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--words", type=float, default=60)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--column", default="all", help="a name for this run in the table")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    tokmap, folder = str(arguments.tokmap.resolve()), arguments.dir.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    corpus, found = folder / "corpus.jsonl", []
    if not corpus.exists():
        write_corpus(corpus, arguments.megabytes, arguments.words)
    plan = [tokmap, "plan", "-q", "corpus.jsonl", "--cells", "cells", "-o", "run.plan", "--force", "--cell-size",
            str(corpus.stat().st_size // arguments.cells)]
    plans = [run(plan, folder) for _ in range(arguments.rounds)]
    text = (folder / "run.plan").read_text(errors="surrogateescape")
    n_cells = len(re.findall(r"^cell \d", text, re.MULTILINE))

    def row(name, unit, values):
        return rows.row("cells", name, unit, values, arguments.column)

    found += [row("cells", "cells", [n_cells]), row("tokmap plan", "s", [each[0] for each in plans]),
              row("tokmap plan, memory", "MiB", [each[1] for each in plans]),
              row("plan, for each cell", "bytes", [len(text) / n_cells])]

    def task(i, n):
        return [tokmap, "pack", "-q", "--plan", "run.plan", "--task", "%d/%d" % (i, n), "-j", "1"]

    is_new, begin = not (folder / "cells").exists(), time.perf_counter()
    for i in range(arguments.tasks):
        run(task(i, arguments.tasks), folder)
    seconds = time.perf_counter() - begin
    if is_new:
        found.append(row("packing a cell, one after the other", "ms", [1000 * seconds / n_cells]))
    again = [run(task(0, 1), folder)[0] for _ in range(arguments.rounds)]
    found.append(row("a task whose cells are all done", "s", again))
    join = [tokmap, "join", "-q", "--force", "run.plan", "-o", "joined"]
    joins = [run(join, folder) for _ in range(arguments.rounds)]
    found += [row("tokmap join", "s", [each[0] for each in joins]),
              row("tokmap join, memory", "MiB", [each[1] for each in joins]),
              row("documents", "documents", [count_documents(tokmap, folder)]),
              row("joined index", "MiB", [(folder / "joined.tmi").stat().st_size / 2**20])]
    status = [run([tokmap, "status", "run.plan"], folder) for _ in range(arguments.rounds)]
    found.append(row("tokmap status", "s", [each[0] for each in status]))
    found += call_rows(row, "join of a cell", calls_of(join, folder), n_cells)
    n_again = min(n_cells, 100)
    for path in (folder / "cells").iterdir():
        if int(path.name[:6]) < n_again:
            path.unlink()
    found += call_rows(row, "packing a cell", calls_of(task(0, max(1, n_cells // n_again)), folder), n_again)
    run(task(0, 1), folder)
    rows.finish(found, "join.py --cells %d --megabytes %g --words %g --tasks %d --rounds %d" % (
        arguments.cells, arguments.megabytes, arguments.words, arguments.tasks, arguments.rounds), arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
