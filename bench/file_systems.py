#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""file_systems.py --old TREE --dir FOLDER --out FILE - io="auto" beside every other way of reading, on file systems.

A dataset is put on each file system, in a private namespace (so as root), and read by a Loader in a new process: as
fast as it can (one pass, at most --seconds), and in steps of 100 ms, of which the waits for a batch count. Each is done
with io="auto" and every other io, of this tree and of TREE, an older one that is built. After a round with all of them,
the best ones take turns with "auto" for the other rounds.

States: cold (after the page cache was dropped), hot, small (cold, in a control group of 1 GiB, with data of 2 GiB; the
others have 512 MiB, or 64 MiB cold over FUSE). A wait is the longest but one in a hundred, so of fewer steps the longest. A
ratio of waits adds a millisecond to both: what nobody notices makes no difference. Nothing else may run meanwhile."""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests/support"), str(HERE.parent / "tests/oracles")]
WAYS = ("auto", "map", "populate", "read", "direct")
LENGTH, ROWS = 4096, 8
KEPT = 2    # ways beside "auto" that take part in all rounds
FULL = (("full", "concat"),)
ALL = (("full", "concat"), ("block", "concat"), ("full", "best_fit"), ("block", "best_fit"))
# For each file system: its kind for tests/support/mounts.py, options, orders, and the dataset of each state.
USUAL, SMALL = {"cold": "data", "hot": "data"}, {"cold": "data", "hot": "data", "small": "large"}
REMOTE = {"cold": "little", "hot": "data"}
PLACES = {"ext4": ("", {}, ALL, SMALL), "overlayfs": ("overlay", {}, ALL, SMALL),
          "slow FUSE": ("fuse", {"latency": 0.03, "attributes": 1}, ALL, REMOTE), "xfs": ("xfs", {}, FULL, SMALL),
          "btrfs": ("btrfs", {}, FULL, USUAL), "tmpfs": ("tmpfs", {}, FULL, USUAL),
          "squashfs": ("squashfs", {}, FULL, USUAL), "quick FUSE": ("fuse", {"latency": 0.001, "attributes": 1}, FULL, REMOTE)}
MIB = {"little": 64, "data": 512, "large": 2048}
SMALL_MEMORY = 1 << 30
GROUP = pathlib.Path("/sys/fs/cgroup/memory/tokmap-file-systems")


def read(tree, prefix, io, shuffle, windows, measure, seconds, steps, rows):
    """In a process of its own: prints the figure of a Loader, the way that it took, and why."""
    sys.path.insert(0, tree + "/python")
    import tokmap
    start, n_steps, waits = time.perf_counter(), 0, []
    with tokmap.Loader(prefix, LENGTH, rows, seed=3, reading=tokmap.Reading(io=io), shuffle=shuffle, windows=windows,
                       max_epochs=1, rows=tokmap.Rows(contiguous=windows != "concat")) as loader:
        if measure == "rate":
            for batch in loader:
                batch.inputs
                n_steps += 1
                if time.perf_counter() - start > seconds:
                    break
            figure = n_steps * rows * LENGTH / (time.perf_counter() - start) / 1e6
        else:
            next(loader).inputs
            while len(waits) < steps:
                time.sleep(0.1)
                begin = time.perf_counter()
                next(loader).inputs
                waits.append((time.perf_counter() - begin) * 1e3)
            figure = sorted(waits)[int(len(waits) * 0.99)]
        stats = loader.stats
    print(json.dumps([figure, stats["io"], stats["look_ahead"], stats.get("io_reason", "")]))


def make_cold(limit):
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
    if limit:
        GROUP.mkdir(exist_ok=True)
        (GROUP / "memory.limit_in_bytes").write_text(str(limit))


def join_group():
    (GROUP / "cgroup.procs").write_text(str(os.getpid()))


def run_once(tree, io, state, prefix, order, measure, options):
    limit = SMALL_MEMORY if state == "small" else 0
    if state == "hot":
        subprocess.run(["cat", str(prefix) + ".bin"], stdout=subprocess.DEVNULL, check=True)
    else:
        make_cold(limit)
    words = [sys.executable, __file__, "--child", tree, str(prefix), io, *order, measure, str(options.seconds),
             str(options.steps)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=join_group if limit else None)
    if done.returncode != 0:
        return [float("nan"), "failed", 0, (done.stderr.strip().splitlines() or [str(done.returncode)])[-1]]
    return json.loads(done.stdout)


def measure_cell(name, state, order, measure, prefix, options):
    """The rows of a cell: "auto" of this tree, and the best of the others."""
    trees = {"new": str(HERE.parent), **({"old": options.old} if options.old else {})}
    better = max if measure == "rate" else min
    found = {}
    for round_ in range(options.rounds):
        for tree, io in ([(tree, io) for tree in trees for io in WAYS] if round_ == 0 else kept):
            found.setdefault((tree, io), []).append(run_once(trees[tree], io, state, prefix, order, measure, options))
        others = {way: got[0][0] for way, got in found.items() if way != ("new", "auto") and got[0][0] == got[0][0]}
        kept = [("new", "auto"), *sorted(others, key=others.get, reverse=measure == "rate")[:KEPT]]
    figures = {way: statistics.median(run[0] for run in found[way]) for way in found}
    best = better(kept[1:], key=figures.get)
    auto = found["new", "auto"]
    unit, label = ("M tokens/s", "rate") if measure == "rate" else ("ms", "p99")
    ratio = (figures["new", "auto"] / figures[best] if measure == "rate"
             else (figures[best] + 1) / (figures["new", "auto"] + 1))
    line = "%s, %s, %s, %s" % (name, state, *order)
    rows = [{"page": "file_systems", "line": line, "name": "%s, %s, %s %s" % (line, label, *way), "column": "%s, %s" % (label, what),
             "unit": unit, "median": figures[way], "values": [run[0] for run in found[way]], "system": "tokmap " + " ".join(way)}
            for what, way in (("auto", ("new", "auto")), ("before", ("old", "auto")), ("best other", best)) if way in found]
    rows[0]["note"] = "%s: %s" % (auto[-1][1], auto[-1][3])
    rows.append({"page": "file_systems", "line": line, "name": "%s, %s, auto by best" % (line, label), "column": label + ", ratio",
                 "unit": "x", "median": ratio, "values": [ratio], "target": {"at_least": 0.9, "reached": ratio >= 0.9}})
    print("%-40s %-4s auto %9.2f (%s, %s)  best %9.2f (%s %s)  %.2f  | %s" % (
        line, label, figures["new", "auto"], auto[-1][1], auto[-1][2], figures[best], *best, ratio,
        " ".join("%s:%s=%.1f" % (t[0], io, found[t, io][0][0]) for t, io in found)), flush=True)
    return rows


@contextlib.contextmanager
def place_of(mounts, kind, settings, source, names, folder):
    """A folder on a file system of this kind, with the datasets of these names."""
    if not kind:
        yield source
        return
    if kind == "fuse":
        place = folder / "fuse"
        place.mkdir(exist_ok=True)
        with mounts.fuse(source, place, **settings):
            yield place
        return
    shows = kind in ("overlay", "squashfs")  # what a folder below holds
    with mounts.mounted(kind, folder, **({"lower": source} if shows else {})) as place:
        for path in () if shows else [source / (name + suffix) for name in names for suffix in (".bin", ".tmi")]:
            subprocess.run(["cp", path, place], check=True)
        yield pathlib.Path(place)
    shutil.rmtree(folder / ("a_" + kind))


def make_data(tokmap, folder):
    """The datasets of MIB, each with documents of a natural distribution of lengths."""
    import numpy
    folder.mkdir(parents=True, exist_ok=True)
    for name, mib in MIB.items():
        random = numpy.random.default_rng(1)
        if (folder / (name + ".tmi")).exists():
            continue
        with tokmap.Writer(folder / name, vocab_size=50257, eod_id=0) as writer:
            left = mib * 2**19
            while left > 0:
                n = min(left, int(min(max(random.lognormal(6, 1), 8), 30000)))
                writer.document(random.integers(1, 50257, n, dtype=numpy.uint16))
                left -= n


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", help="an older tree, which is built")
    parser.add_argument("--dir", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--places", nargs="+", default=list(PLACES), choices=PLACES)
    parser.add_argument("--orders", nargs="+", default=["%s/%s" % order for order in ALL])
    parser.add_argument("--states", nargs="+", default=["cold", "hot", "small"])
    parser.add_argument("--measures", nargs="+", default=["rate", "wait"])
    options = parser.parse_args()
    import mounts
    sys.path.insert(0, str(HERE.parent / "python"))
    import tokmap
    mounts.enter_namespace()
    source = options.dir / "source"
    make_data(tokmap, source)
    rows = []
    for name in options.places:
        kind, settings, orders, states = PLACES[name]
        with place_of(mounts, kind, settings, source, set(states.values()), options.dir) as place:
            for order in orders:
                for state in states:
                    for measure in options.measures:
                        if (state in options.states and "/".join(order) in options.orders
                                and (state, measure) != ("hot", "wait")):
                            rows += measure_cell(name, state, order, measure, place / states[state], options)
                        if options.out:
                            write_results(rows, options)


def write_results(rows, options):
    from result_file import as_text, machine
    command = "file_systems.py --old TREE --seconds %g --steps %d --rounds %d" % (options.seconds, options.steps, options.rounds)
    options.out.write_text(as_text({"schema": 1, "command": command, "machine": machine(), "rows": rows}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        tree, prefix, io, shuffle, windows, measure, seconds, steps = sys.argv[2:10]
        read(tree, prefix, io, shuffle, windows, measure, float(seconds), int(steps), ROWS)
    else:
        main()
