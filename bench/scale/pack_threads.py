#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pack_threads.py --dir FOLDER --corpus FILE.jsonl.zst --tokenizer FILE [-o RESULT] - one `tokmap pack` on a machine with many
processors: its rate with 1, 2, 4 ... encoding threads up to one for each processor, beside as many tasks of a plan, for

    16 and 64 files of .jsonl.zst     copies of FILE, and of FILE at level 3
    16 files of .jsonl.gz
    16 files of Parquet (snappy), and one
    one file of .jsonl

FOLDER should be in memory (/dev/shm), and again on a disk. For each run: MB/s of text, the processor seconds of each kind of
threads for a GB of text, the stage that limited the run, and what was in the file for tokens that are ahead. Cases that the
--minutes do not reach are left out, and named."""

import argparse
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from result_file import as_text, machine  # noqa: E402


def decompressed(path):
    return subprocess.run(["zstd", "-dc", path], stdout=subprocess.PIPE, check=True).stdout


def copies(folder, name, data, n):
    """n files of the same bytes; each is a file of its own, as for the page cache."""
    place = folder / name
    place.mkdir()
    for i in range(n):
        (place / ("%02d.%s" % (i, name.split("-", 1)[1]))).write_bytes(data)
    return place


def write_parquet(place, texts, n_files):
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return None
    place.mkdir()
    table = pyarrow.table({"text": texts})
    for i in range(n_files):
        pyarrow.parquet.write_table(table, place / ("%02d.parquet" % i), compression="snappy", row_group_size=20000)
    return place


def corpora(options):
    """(name, a function that makes its folder, or None without what it needs)"""
    folder, packed = options.dir / "corpora", options.corpus.read_bytes()
    folder.mkdir(parents=True)
    plain = decompressed(options.corpus)
    quick = subprocess.run(["zstd", "-3", "-c"], input=plain, stdout=subprocess.PIPE, check=True).stdout
    texts = [json.loads(line)["text"] for line in plain.splitlines()]
    few = options.copies
    yield "%d .jsonl.zst" % few, lambda: copies(folder, "a-jsonl.zst", packed, few)
    yield "%d .jsonl.zst, level 3" % few, lambda: copies(folder, "b-jsonl.zst", quick, few)
    yield "%d Parquet" % few, lambda: write_parquet(folder / "c", texts, few)
    yield "1 Parquet", lambda: write_parquet(folder / "d", texts * few, 1)
    yield "1 .jsonl", lambda: copies(folder, "e-jsonl", plain * few, 1)
    yield "%d .jsonl.gz" % few, lambda: copies(folder, "f-jsonl.gz", gzip.compress(plain, 6), few)
    yield "%d .jsonl.zst" % (4 * few), lambda: copies(folder, "g-jsonl.zst", packed, 4 * few)


def run(words):
    start = time.perf_counter()
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - start, done.stdout


def clear(out):
    for path in out.parent.glob(out.name + "*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def pack(options, inputs, n_threads):
    out = options.dir / "out"
    clear(out)
    seconds, _ = run([options.tokmap, "pack", inputs, "--tokenizer", options.tokenizer, "-j", str(n_threads), "-q", "--report",
                      str(out) + ".json", "-o", out])
    report = json.loads(pathlib.Path(str(out) + ".json").read_text())
    return seconds, report


def pack_by_tasks(options, inputs, n):
    """A plan, n tasks with one thread each, and the join."""
    out, plan = options.dir / "out", options.dir / "out.plan"
    clear(out)
    start = time.perf_counter()
    run([options.tokmap, "plan", inputs, "--tokenizer", options.tokenizer, "--cell-size", "50M", "--cells", str(out) + ".cells", "-q",
         "-o", plan])
    tasks = [subprocess.Popen([options.tokmap, "pack", "-q", "-j", "1", "--plan", plan, "--task", "%d/%d" % (i, n)])
             for i in range(n)]
    if any(task.wait() for task in tasks):
        raise SystemExit("a task failed")
    run([options.tokmap, "join", plan, "-q", "-o", str(out) + ".joined"])
    return time.perf_counter() - start


def measure(options, name, inputs, numbers):
    rows, text_bytes = [], 0
    for n in numbers:
        found = [pack(options, inputs, n) for _ in range(options.rounds)]
        seconds, report = sorted(found, key=lambda one: one[0])[len(found) // 2]
        text_bytes = report["text_bytes"]
        values = [round(text_bytes / one[0] / 1e6, 1) for one in found]
        per_gb = {kind: round(used / text_bytes * 1e9, 3) for kind, used in report["cpu_seconds"].items()}
        rows.append({"page": "pack_threads", "name": "%s, -j %d" % (name, n), "unit": "MB/s", "values": values,
                     "median": round(text_bytes / seconds / 1e6, 1), "cpu_seconds_per_gb": per_gb,
                     "limited_by": report["limited_by"], "spilled_bytes": report["spilled_bytes"]})
        print("%-28s -j %-3d %7.1f MB/s   limited by %-10s cpu s/GB %s, spilled %d" % (
            name, n, rows[-1]["median"], report["limited_by"], per_gb, report["spilled_bytes"]), flush=True)
    tasks = pack_by_tasks(options, inputs, numbers[-1])
    rows.append({"page": "pack_threads", "name": "%s, %d tasks of a plan" % (name, numbers[-1]), "unit": "MB/s",
                 "values": [round(text_bytes / tasks / 1e6, 1)], "median": round(text_bytes / tasks / 1e6, 1)})
    print("%-28s %d tasks %5.1f MB/s" % (name, numbers[-1], rows[-1]["median"]), flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=pathlib.Path, required=True)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--tokmap", default=str(HERE.parents[1] / "build/tokmap"))
    parser.add_argument("--copies", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=12)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    most = len(os.sched_getaffinity(0))
    numbers = sorted({n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n < most} | {most})
    rows = []
    for name, make in corpora(options):
        if time.monotonic() > end:
            print("%-28s left out: the time is over" % name)
            continue
        inputs = make()
        if inputs is None:
            print("%-28s left out: needs pyarrow" % name)
            continue
        rows += measure(options, name, inputs, numbers)
        shutil.rmtree(inputs)
    clear(options.dir / "out")
    shutil.rmtree(options.dir / "corpora")
    if options.output:
        command = "bench/scale/pack_threads.py --copies %d --rounds %d" % (options.copies, options.rounds)
        version = run([options.tokmap, "--version"])[1].decode().split()[1]
        options.output.write_text(as_text({"schema": 1, "tokmap": version, "command": command, "machine": machine(), "rows": rows}))


if __name__ == "__main__":
    main()
