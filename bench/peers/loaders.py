#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""loaders.py --tokmap FILE --tokbench FILE - tokmap's loader beside those that people use.

One token file is made; each system reads it, or a copy in its own format. First
all rows of an epoch of a small file, and some of the large one, are compared with the file: a
system that hands out anything else is WRONG and is not timed. Then all take turns, each in a
process of its own, in an order that rotates; ratios are taken within rounds, between systems that
do equal work.

Pages: hot (the file is in the page cache), resume (a new process resumes at a saved step), startup
(to the first batch, by size of the file) and cold (a file larger than the memory that is allowed).
tokmap's C loader and the rates of the device come from tokbench, in the same rounds."""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import shutil
import signal
import statistics
import sys
import tempfile

import loader_data
import loader_process
import loader_report
import loader_rows
import loader_run
from loader_data import Failure
from result_file import as_text, machine  # whose folder loader_report adds

PAGES = ("hot", "resume", "startup", "cold")
SMALL_WINDOWS = 512
LEFT_OUT = loader_report.LEFT_OUT


def number(text):
    return int(float(text))


def parse_arguments(words):
    lines = __doc__.split("\n\n")
    parser = argparse.ArgumentParser(
        description=lines[0].split(" - ")[1],
        epilog="\n\n".join(lines[1:]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--tokmap", help="the program; needed to measure")
    add("--library", help="libtokmap.so [beside the program]")
    add("--tokbench", help="the program; without it, what it measures is left out")
    add("--pages", nargs="+", choices=PAGES, default=list(PAGES))
    add("--systems", nargs="+", help="only these beside tokmap; or 'all' [the usual ones]")
    add("--adapters", nargs="*", default=[], help="files with more systems: loader_adapter.py")
    add("--list", action="store_true", help="the names of all systems")
    add("--rounds", type=int, default=3)
    add("--slow-seconds", type=float, default=8, help="a process that takes longer is slow ...")
    add("--slow-rounds", type=int, default=2, help="... and its system runs so many rounds")
    add("--seconds", type=float, default=0.3, help="that each configuration is measured for")
    add("--tokens", type=number, default=10**8, help="of the hot file [1e8]")
    add("--lengths", type=int, nargs="+", default=[1024, 4096])
    add("--batches", type=int, nargs="+", default=[32], help="rows of a batch [32]")
    add("--check-batches", type=int, default=20, help="compared on the large file")
    add("--resume-step", type=int, default=1000)
    add("--startup-tokens", type=number, nargs="+", default=[10**8, 10**9])
    far = "of a file that those whose start grows with it open once; 0: reckoned [1e12]"
    add("--far-tokens", type=number, default=loader_rows.FAR_TOKENS, help=far)
    add("--cold-mib", type=int, default=4096, help="of the cold file [4096]")
    add("--cold-memory-mib", type=int, default=1024, help="that cold systems may use [1024]")
    add("--cold-seconds", type=float, default=2)
    add("--cold-lengths", type=int, nargs="+", default=[8192])
    add("--plain-malloc", action="store_true", help="malloc gives arrays back to the system")
    add("--timeout", type=float, default=300, help="seconds for a process")
    add("--core", type=int, help="run all on this processor [any; loaders have workers]")
    add("--dir", help="where data are made and removed again [$TMPDIR or /tmp]")
    add("--out", help="write all figures to this file, as JSON")
    add("--markdown", action="store_true", help="tables as Markdown")
    add("--from", dest="source", help="show this file and measure nothing")
    options = parser.parse_args(words)
    if not options.source and not options.list and not options.tokmap:
        parser.error("--tokmap or --from is needed")
    return options


def choose(options):
    """Systems by name; tokmap's first."""
    options.adapters = [os.path.abspath(path) for path in options.adapters]
    adapters = loader_process.all_adapters(options.adapters)
    wanted = set(options.systems or (name for name, a in adapters.items() if a.usual))
    if "all" in wanted:
        wanted = set(adapters)
    unknown = sorted(wanted - set(adapters))
    if unknown:
        raise Failure("no system %s; --list tells them" % ", ".join(unknown))
    wanted |= {*loader_run.EQUALS.values(), loader_run.COLD_EQUAL}
    return [
        loader_run.System(name, adapter, options)
        for name, adapter in adapters.items()
        if name in wanted and any(page in options.pages for page in adapter.pages)
    ]


def measure(options, systems):
    """The pages of tokbench, and the conditions that the cold page reports."""
    pages, folder = options.pages, options.folder
    loader_run.say("making %g tokens" % options.tokens)
    data = loader_data.make(folder / "hot", options.tokens, options.tokmap)
    small = {
        n: loader_data.make(folder / ("small-%d" % n), SMALL_WINDOWS * n + 1, options.tokmap)
        for n in options.lengths
    }
    loader_run.check(systems, data, small)
    load_mib = max(16, min(1024, 2 * options.tokens >> 20))  # the same size, up to a gibibyte
    load = tokbench_page(options, "load", "--load-mib", load_mib)
    start = tokbench_page(options, "start", "--load-mib", load_mib)
    if "hot" in pages:
        loader_run.measure_hot(systems, data, load)
    if "resume" in pages:
        loader_run.measure_resume(systems, data)
    if "startup" in pages and start:
        for round_number in range(options.rounds):
            start(round_number)
    for n_tokens in options.startup_tokens if "startup" in pages else ():
        hole = loader_data.make_hole(folder / ("hole-%d" % n_tokens), n_tokens, options.tokmap)
        loader_run.measure_start(systems, hole)
    if "startup" in pages and options.far_tokens not in (0, *options.startup_tokens):
        with going_on_without(options, "the far size"):
            far = loader_data.make_hole(folder / "far", options.far_tokens)
            loader_run.measure_far(systems, far)
        # What was killed has left its gigabytes there.
        shutil.rmtree(folder / "far", ignore_errors=True)
    cold, conditions = None, {}
    if "cold" in pages:
        with going_on_without(options, "the cold page"):
            loader_run.say("making %d MiB" % options.cold_mib)
            data = loader_data.make(folder / "cold", options.cold_mib << 19, options.tokmap)
            # The rate of the device is measured with the same file that the systems read.
            cold = tokbench_page(options, "cold", "--data", data["prefix"])
            conditions = loader_run.measure_cold(systems, data, cold)
    return [page for page in (load, start, cold) if page], conditions


@contextlib.contextmanager
def going_on_without(options, part):
    """A part that needs much room, and may fail; the rest of the run goes on and is written."""
    try:
        yield
    except (OSError, Failure) as e:
        reason = getattr(e, "strerror", None) or str(e)
        options.failed[part] = reason
        print("loaders.py: %s: %s" % (part, reason), file=sys.stderr, flush=True)


def tokbench_page(options, page, *more):
    return loader_run.Tokbench(options, page, *more) if options.tokbench else None


def described(system):
    about = {
        "system": system.name,
        "work": system.adapter.work,
        "workers": system.adapter.workers,
        "note": system.adapter.note,
        "versions": system.versions,
        "copies": system.copies,
        "epochs_compared": system.epochs,
    }
    for name, values in system.imports.items():
        about[name] = statistics.median(values)
    return {**about, "resumed": system.resumed} if system.resumed else about


def command_line(words):
    """Without paths, which depend on the machine."""
    words = [os.path.basename(word) if "/" in word else word for word in words]
    return " ".join(["loaders.py", *words])


def run(options, words):
    systems = choose(options)
    options.stopped, options.running, options.failed = False, set(), {}
    with tempfile.TemporaryDirectory(prefix="tokmap-loaders-", dir=options.dir) as folder:
        options.folder = pathlib.Path(folder).absolute()
        library = options.library or pathlib.Path(options.tokmap).parent / "libtokmap.so"
        options.tokmap = os.path.abspath(options.tokmap)
        options.environment = loader_run.environment(
            options.folder, os.path.abspath(library), not options.plain_malloc
        )
        pages, conditions = measure(options, systems)
    result = {
        "schema": 1,
        "command": command_line(words),
        "machine": {**machine(), "python": platform.python_version()},
        "tokens": options.tokens,
        "cold": conditions,
        "systems": [described(system) for system in systems],
    }
    for kind in LEFT_OUT:
        result[kind] = {
            s.name: s.left_out[1] for s in systems if s.left_out and s.left_out[0] == kind
        }
    result["failed"].update(options.failed)
    result["failed"].update({"tokbench " + p.page: p.failed for p in pages if p.failed})
    tokbench = [row for page in pages for row in page.finished()]
    result["rows"] = loader_rows.all_rows(systems, tokbench, options)
    return result


def main():
    words = sys.argv[1:]
    options = parse_arguments(words)
    if options.source:
        loaded = json.loads(pathlib.Path(options.source).read_text())
        loader_report.show(loaded, sys.stdout, options.markdown)
        return 0
    if options.list:
        for name, adapter in loader_process.all_adapters(options.adapters).items():
            print("%-28s %-6s %s" % (name, adapter.work, " ".join(adapter.pages)))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # cleans up
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    try:
        result = run(options, words)
    except Failure as e:
        print("loaders.py: %s" % e, file=sys.stderr)
        return 1
    if options.out:
        pathlib.Path(options.out).write_text(as_text(result))
    loader_report.show(result, sys.stdout, options.markdown)
    for name, reason in result["wrong"].items():
        print("loaders.py: %s is WRONG: %s" % (name, reason), file=sys.stderr)
    return 1 if result["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
