#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python_costs.py [NAME=CHECKOUT]... - what Python adds: importing tokmap beyond NumPy, from Loader(...) to the first batch
in a new process, and a batch of one row above its two calls of the library.

Each CHECKOUT (without any: this one), built with `make`, has new processes in turn with the others. Printed are medians."""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LENGTH, BATCHES = 64, 20000
# In a process of its own. The names that begin with _ are those of the calls of the library in a batch.
CODE = """
import sys, time
clock = time.perf_counter
import numpy
begin = clock()
import tokmap
imported = clock() - begin
what, prefix, length, n = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
options = {"dtype": "uint16", "rows": tokmap.Rows(contiguous=False)} if what == "u16" else {}
begin = clock()
loader = tokmap.Loader(prefix, length, **options)
next(loader)
first = clock() - begin
print(imported * 1e6, first * 1e6)
if what == "batches":
    from tokmap._loader import gather, loader as module
    batch = next(loader)
    def each(function, *arguments):
        rounds = []
        for _ in range(10):
            begin = clock()
            for _ in range(n // 10):
                function(*arguments)
            rounds.append((clock() - begin) / (n // 10))
        return min(rounds)
    whole = each(next, loader)
    calls = each(module._next, loader._handle.pointer, *loader._references)
    calls += each(gather._batch_gather, *loader._gatherer._references)
    print(whole * 1e6, (whole - calls) * 1e6)
"""
ROWS = (("import beyond NumPy", "i64", 0, 0), ("first batch, int64", "i64", 0, 1), ("first batch, u16", "u16", 0, 1),
        ("a batch of one row, int64", "batches", 1, 0), ("above its two calls", "batches", 1, 1))


def run(tree, what, prefix):
    """Lines of figures."""
    done = subprocess.run([sys.executable, "-c", CODE, what, prefix, str(LENGTH), str(BATCHES)], stdout=subprocess.PIPE, text=True,
                          check=True, env={"PYTHONPATH": f"{tree}/python", "TOKMAP_LIBRARY": f"{tree}/build/libtokmap.so"})
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", metavar="NAME=CHECKOUT")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--out", type=pathlib.Path, help="a result file")
    options = parser.parse_args()
    trees = dict(one.split("=", 1) for one in options.trees) or {"tokmap": str(HERE.parent)}
    found = {name: [] for name in trees}
    with tempfile.TemporaryDirectory() as folder:
        text, prefix = pathlib.Path(folder, "text"), f"{folder}/data"
        text.write_text("".join(f"{i:07}\n" for i in range(250000)))
        subprocess.run([f"{HERE.parent}/build/tokmap", "pack", text, "-o", prefix, "--tokenizer", "bytes", "-q"], check=True)
        for _ in range(options.rounds):
            for name, tree in trees.items():
                found[name].append({what: run(tree, what, prefix) for what in ("i64", "u16", "batches")})
    rows = []
    for line, what, i, k in ROWS:
        for name, rounds in found.items():
            values = [one[what][i][k] for one in rounds]
            print(f"{line:26} {name:10} {statistics.median(values):10.2f} us", flush=True)
            rows.append({"page": "python_costs", "line": line, "name": f"{line}, {name}", "column": name, "unit": "us",
                         "median": statistics.median(values), "values": values})
    if options.out:
        from result_file import as_text, machine
        command = f"python_costs.py {' '.join(f'{name}=...' for name in trees)} --rounds {options.rounds}"
        options.out.write_text(as_text({"schema": 1, "command": command, "machine": machine(), "rows": rows}))


if __name__ == "__main__":
    main()
