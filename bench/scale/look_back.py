#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""look_back.py [--documents N] [--dir DIR] [--out FILE] - how long a report on a run takes, how long it takes to find
the sample of a window, and to pack rows of several documents and to find what is in one, in a dataset of N documents of
1,000 tokens on average, whose tokens are a hole in a file. `tokbench lookup` makes it. Each figure is of a process of its
own; its memory has the part of the index that it read."""

import argparse
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import rows

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TOKMAP_BUILD", ROOT / "build"))
LENGTH, EPOCHS, WINDOWS = 4096, 1.5, 100
PARTS = [(windows, shuffle) for windows in ("concat", "within_document", "best_fit") for shuffle in ("full", "block")]
SOURCES, ROWS = 200, 20000


def make_dataset(folder, n_documents):
    """Links the larger one of two before it is removed."""
    made = subprocess.Popen([BUILD / "tokbench", "lookup", "--documents", str(n_documents), "--rounds", "1", "--dir", folder],
                            stdout=subprocess.DEVNULL)
    while made.poll() is None:
        for source in folder.glob("*/load-0.*"):
            link = folder / f"kept{source.suffix}"
            if not (link.exists() and source.samefile(link)):
                link.unlink(missing_ok=True)
                os.link(source, link)
        time.sleep(0.001)
    assert made.returncode == 0


def pack(prefix):
    """Seconds, MiB of memory, and bytes of the file for each document."""
    begin = time.perf_counter()
    packing = subprocess.Popen([BUILD / "tokmap", "rows", "--json", "-l", str(LENGTH), prefix], stdout=subprocess.PIPE)
    said = json.loads(packing.stdout.read())
    _, status, usage = os.wait4(packing.pid, 0)
    assert status == 0
    return [time.perf_counter() - begin, usage.ru_maxrss / 1024, said["n_bytes"] / said["n_pieces"]]


def measure(prefix, what, windows, shuffle):
    """In a process of its own."""
    if what == "pack":
        return pack(prefix)
    os.environ["TOKMAP_LIBRARY"] = str(BUILD / "libtokmap.so")
    sys.path.insert(0, str(ROOT / "python"))
    import resource
    import tokmap
    from tokmap._run.trace import find_samples

    if what == "open":
        dataset = tokmap.open(prefix)
        sources = [tokmap.Source(dataset) for _ in range(SOURCES)]
        begin = time.perf_counter()
        loader = tokmap.Loader(sources, LENGTH, windows=windows, shuffle=shuffle, reading=tokmap.Reading(io="map"))
        opened = time.perf_counter() - begin
        samples = random.sample(range(10**6), ROWS)
        begin = time.perf_counter()
        for sample in samples:
            loader.pieces(sample)
        found = time.perf_counter() - begin
        return [opened * 1e3, loader.stats["resident_bytes"] / SOURCES / 2**20, found / ROWS * 1e6]
    begin = time.perf_counter()
    loader = tokmap.Loader(prefix, LENGTH, windows=windows, shuffle=shuffle, reading=tokmap.Reading(io="map"))
    if what == "report":
        tokmap.Run(loader, until=int(EPOCHS * loader._source_infos()[0].n_windows)).report()
        return [time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]
    n_tokens, n_found, begin = tokmap.open(prefix).n_tokens, 0, time.perf_counter()
    for epoch in range(1000):
        n_found += len(find_samples(loader, 0, 0, epoch, random.randrange(n_tokens - WINDOWS * LENGTH), WINDOWS * LENGTH))
    return [(time.perf_counter() - begin) / n_found * 1e6]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=10**8)
    parser.add_argument("--dir")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return print(json.dumps(measure(*arguments.measure)))
    found, kinds = [], {
        "pack": (("pack rows", "s"), ("pack rows, memory", "MiB"), ("rows file, for each document", "bytes")),
        "open": ((f"open {SOURCES} sources", "ms"), ("memory of a source", "MiB"), ("find a row", "us")),
        "report": (("report", "s"), ("report, memory", "MiB")), "find": (("find, for each window", "us"),)}
    with tempfile.TemporaryDirectory(dir=arguments.dir) as name:
        make_dataset(pathlib.Path(name), arguments.documents)
        for what, part in itertools.product(kinds, PARTS):
            if part not in {"pack": PARTS[-1:], "open": PARTS[-2:]}.get(what, PARTS):
                continue
            call = [sys.executable, __file__, "--measure", os.path.join(name, "kept"), what, *part]
            values = zip(*[json.loads(subprocess.check_output(call)) for _ in range(arguments.rounds)])
            found += [rows.row("answers", line, unit, some, ", ".join(part)) for (line, unit), some in zip(kinds[what], values)]
    rows.finish(found, f"look_back.py --documents {arguments.documents} --rounds {arguments.rounds}", arguments.out)


if __name__ == "__main__":
    main()
