#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""loader_ranks.py P [--ranks 64] [--of 16384] [--out FILE] - the start of many ranks of a training run, on one machine.

Starts so many processes; each opens the dataset P as one of --of ranks, spread evenly, takes its first batch, and then
more. P is in the page cache. A round starts all of them at once; before that, one alone. Reports seconds from before
the open until the first batch is there, and what a rank holds afterwards: maps, descriptors, memory of its own. Then
one rank runs under strace, which counts what it asks the system for, and whether it talks to anyone."""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import rows

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = {"openat", "open", "newfstatat", "fstat", "stat", "lstat", "statx", "mmap", "pread64", "read", "readlink"}
NETWORK = {"socket", "connect", "accept", "accept4", "bind", "listen", "sendto", "sendmsg", "recvfrom", "recvmsg",
           "shmget", "shmat", "semget", "msgget", "pipe", "pipe2", "flock", "kill"}


def own_memory():
    """Bytes that are not of files."""
    text = pathlib.Path("/proc/self/smaps_rollup").read_text()
    return 1024 * int(re.search(r"^Anonymous: +(\d+) kB", text, re.MULTILINE)[1])


def count_maps(folder):
    return sum(str(folder) in line for line in pathlib.Path("/proc/self/maps").read_text().splitlines())


def count_descriptors(folder):
    links = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink("/proc/self/fd/" + fd))
        except OSError:
            pass
    return sum(link.startswith(str(folder)) for link in links)


def run_rank(arguments):
    """In a process of its own: says that it is ready, waits for a line, and writes what it has seen."""
    sys.path.insert(0, str(ROOT / "python"))
    import tokmap

    folder, before = pathlib.Path(arguments.prefix).resolve().parent, own_memory()
    print("ready", flush=True)
    sys.stdin.readline()
    begin = time.perf_counter()
    loader = tokmap.Loader(arguments.prefix, sequence_length=arguments.length, batch_rows=arguments.rows, seed=1,
                           ranks=tokmap.Ranks(rank=arguments.rank, n_ranks=arguments.of))
    opened = time.perf_counter()
    next(loader)
    first = time.perf_counter()
    at_start = count_maps(folder)
    for _ in range(arguments.batches):
        next(loader)
    end = time.perf_counter()
    print(json.dumps({"open": opened - begin, "first": first - begin, "more": (end - first) / arguments.batches,
                      "maps at the first batch": at_start, "maps": count_maps(folder),
                      "descriptors": count_descriptors(folder), "memory": own_memory() - before}), flush=True)


def command(arguments, rank):
    return [sys.executable, __file__, arguments.prefix, "--rank", str(rank), "--of", str(arguments.of), "--length",
            str(arguments.length), "--rows", str(arguments.rows), "--batches", str(arguments.batches)]


def run_ranks(arguments, ranks):
    """What each saw; all begin when all are ready."""
    running = [subprocess.Popen(command(arguments, rank), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
               for rank in ranks]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    found = [json.loads(process.communicate(timeout=300)[0]) for process in running]
    assert all(process.returncode == 0 for process in running)
    return found


def count_calls(arguments):
    """{system call: how often} between the open and the end of one rank, in files of the dataset; calls that talk."""
    with tempfile.NamedTemporaryFile("r") as log:
        done = subprocess.run(["strace", "-f", "-y", "-o", log.name, *command(arguments, 0)], input="\n", text=True,
                              capture_output=True, check=True)
        assert done.stdout.startswith("ready\n")
        lines = log.read().splitlines()
    after = next(i for i, line in enumerate(lines) if 'write(1' in line and "ready" in line)
    end = next(i for i, line in enumerate(lines) if "/proc/self/maps" in line and i > after)
    folder, counts, talks = str(pathlib.Path(arguments.prefix).resolve().parent), collections.Counter(), []
    for line in lines[after + 1:end]:
        match = re.match(r"\d+ +(\w+)\(", line)
        if match and match[1] in NETWORK:
            talks.append(line)
        elif match and match[1] in FILES and folder in line:
            counts[match[1]] += 1
    return counts, talks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--of", type=int, default=16384)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rank", type=int, help="be this rank")
    parser.add_argument("--column", default="all", help="a name for this run in the table")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.rank is not None:
        return run_rank(arguments)
    step = arguments.of // arguments.ranks
    alone, together = [], []
    for _ in range(arguments.rounds):
        alone += run_ranks(arguments, [0])
        together.append(run_ranks(arguments, range(0, arguments.of, step)))

    def row(name, unit, values):
        return rows.row("ranks", name, unit, values, arguments.column)

    def of_all(function, name):
        return [function(each[name] for each in found) for found in together]

    found = [
        row("a rank alone: open", "ms", [1000 * each["open"] for each in alone]),
        row("a rank alone: first batch", "ms", [1000 * each["first"] for each in alone]),
        row("%d ranks at once: first batch of the last" % arguments.ranks, "ms",
                 [1000 * value for value in of_all(max, "first")]),
        row("maps at the first batch", "maps", of_all(max, "maps at the first batch")),
        row("maps after %d batches" % (arguments.batches + 1), "maps", of_all(max, "maps")),
        row("descriptors then", "descriptors", of_all(max, "descriptors")),
        row("memory of its own then", "MiB", [value / 2**20 for value in of_all(max, "memory")]),
    ]
    counts, talks = count_calls(arguments)
    for name, n in sorted(counts.items()):
        found.append(row("until the first batch: " + name, "calls", [n]))
    found.append(row("calls that talk to another process", "calls", [len(talks)]))
    for line in talks:
        print(line)
    rows.finish(found, "loader_ranks.py P --ranks %d --of %d --length %d --rows %d --batches %d" % (
        arguments.ranks, arguments.of, arguments.length, arguments.rows, arguments.batches), arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
