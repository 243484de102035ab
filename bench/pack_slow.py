#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pack_slow.py --dir FOLDER [FILE...] - `tokmap pack` from slow file systems beside `cat FILE >/dev/null` there.

Each FILE (without any: a .jsonl.zst and two Parquet files, which are made) is read from a FUSE file system, on which
each request takes 30 ms, and through overlayfs, in a private namespace (so as root). `cat` and `pack` (with the byte
tokenizer) take turns; the page cache is dropped before each. Printed are the medians, the ratio of cat to
pack, and, of FUSE, the number of read requests and the most of them at one time. What pack makes is on FOLDER. A ratio
below 1 on a local disk may be the work of pack itself: "in memory" is the time of pack when the file is cached."""

import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests/support"), str(HERE.parent / "tests/oracles")]


def make_files(folder, n_documents):
    import pyarrow
    import pyarrow.parquet
    random.seed(1)
    words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(2, 9))) for _ in range(60000)]
    texts = [" ".join(random.choices(words, k=500)) for _ in range(n_documents)]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    subprocess.run(["zstd", "-q", "-f", "-o", folder / "a.jsonl.zst"], input=lines.encode(), check=True)
    table = pyarrow.table({"text": texts, "url": ["https://example.com/%d" % i for i in range(len(texts))]})
    pyarrow.parquet.write_table(table, folder / "large_groups.parquet", compression="zstd", row_group_size=20000)
    pyarrow.parquet.write_table(table, folder / "small_groups.parquet", compression="snappy", row_group_size=1000)
    return sorted(folder.iterdir())


def run(words, fuse=None, cold=True):
    """Seconds, read requests, the most at one time."""
    if cold:
        os.sync()
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
    before = fuse.n_reads()[0] if fuse else 0
    start = time.perf_counter()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    seconds = time.perf_counter() - start
    return (seconds, fuse.n_reads()[0] - before, fuse.n_reads()[1]) if fuse else (seconds, 0, 0)


def measure(name, place, files, options, fuse=None):
    """Rows of a result file."""
    rows = []
    for file in files:
        there = place / file.name
        pack = [options.tokmap, "pack", there, "-o", options.dir / "packed", "-f", "-q"]
        found = {"cat": [], "pack": []}
        for _ in range(options.rounds):
            found["cat"].append(run(["cat", there], fuse))
            found["pack"].append(run(pack, fuse))
        run(["cat", there], cold=False)
        hot = run(pack, cold=False)[0]
        cat, packed = (statistics.median(one[0] for one in found[way]) for way in ("cat", "pack"))
        print("%-9s %-22s %6.1f MB  cat %6.2f s  pack %6.2f s  cat/pack %5.2f  in memory %5.2f s%s" % (
            name, file.name, file.stat().st_size / 1e6, cat, packed, cat / packed, hot,
            "  requests %d, %d; at one time %d" % (found["cat"][0][1], *found["pack"][0][1:]) if fuse else ""), flush=True)
        line = "%s, %s of %.0f MB" % (name, file.name, file.stat().st_size / 1e6)
        for column, unit, median, values in (
                ("cat", "s", cat, [one[0] for one in found["cat"]]), ("pack", "s", packed, [one[0] for one in found["pack"]]),
                ("cat by pack", "x", cat / packed, [cat / packed]), ("pack, in memory", "s", hot, [hot])):
            rows.append({"page": "slow_inputs", "line": line, "name": line + ", " + column, "column": column,
                         "unit": unit, "median": median, "values": values})
        rows[-2]["target"] = {"at_least": 0.8, "reached": cat / packed >= 0.8}
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--dir", type=pathlib.Path, required=True)
    parser.add_argument("--tokmap", default=str(HERE.parent / "build/tokmap"))
    parser.add_argument("--documents", type=int, default=100000, help="of the files that are made, of 3 kB each")
    parser.add_argument("--latency", type=float, default=0.03, help="of FUSE, in seconds [0.03]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, help="a result file")
    options = parser.parse_args()
    import mounts
    mounts.enter_namespace()
    source, place = options.dir / "source", options.dir / "place"
    for folder in (source, place):
        folder.mkdir(parents=True, exist_ok=True)
    files = options.files
    if files:
        for file in files:
            subprocess.run(["cp", file, source], check=True)
    else:
        files = make_files(source, options.documents)
    with mounts.fuse(source, place, latency=options.latency) as fuse:
        rows = measure("slow FUSE", place, files, options, fuse)
    with mounts.mounted("overlay", options.dir, lower=source) as there:
        rows += measure("overlayfs", there, files, options)
    shutil.rmtree(options.dir / "a_overlay")
    if options.out:
        from result_file import as_text, machine
        command = "pack_slow.py --documents %d --latency %g --rounds %d" % (options.documents, options.latency, options.rounds)
        options.out.write_text(as_text({"schema": 1, "command": command, "machine": machine(), "rows": rows}))


if __name__ == "__main__":
    main()
