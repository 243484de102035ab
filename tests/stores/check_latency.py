#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_latency.py [--steps N] [--hour SECONDS] [--workers N] [--step-ms N] [--out FILE] - a training loop that takes a step
each 100 ms, 8 rows of 8,192 u32, from a store whose answers take as long as those of S3: lognormal, half of them 120 ms or
less and 99 % 300 ms or less, and one in 10,000 exactly 5 s. The server runs on one processor, all else on another one.

After the first 20 steps no step may wait: the rows are there when they are asked for. 99 % of all calls of `next` take less
than 1 ms. One that takes more than 20 ms is allowed only where a process beside it, which sleeps 1 ms again and again, was
late as well. The bytes of all answers are at most 1.02 of those that are used, and hedges at most 2 % of the requests.

With --hour, steps are taken for so many seconds, 1 % of the requests fail, and keys are refused after a minute; then all
that must hold is that no step fails and all rows are right. With --workers, the loop is a DataLoader of PyTorch with so many
workers, whose rows are compared, and whose batches must be there too.

Exit status 1 if anything is otherwise; --out writes the figures as a result file."""

import argparse
import collections
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import store_case
from byte_server import ByteServer
from store_case import BUCKET, NewKeys, need_obstore, set_environment, store_with_keys, write_hole

sys.path.append(str(store_case.ROOT / "bench/scale"))

LENGTH, ROWS, FIRST_STEPS = 8192, 8, 20
LATENCY = {"p50": 0.12, "p99": 0.3, "one_in": 10000, "exactly": 5.0}
# 1 % of the requests in all. Not those that would say that the object was replaced, and no wrong bytes.
FAULTS = {"status_500": 0.002, "slow_down": 0.003, "too_many": 0.001, "reset": 0.001, "reset_in_body": 0.001,
          "short_body": 0.0005, "length_too_large": 0.0005, "wrong_range": 0.0005, "stall": 0.0005}
KEY_SECONDS, NEW_KEY_SECONDS = 60, 63     # so that requests are refused for 3 s of each 63
# Prints when it woke up from each sleep of 1 ms, and how late that was, if it was late.
SLEEPER = """
import time
while True:
    begun = time.monotonic()
    time.sleep(0.001)
    ended = time.monotonic()
    if ended - begun > 0.011:
        print(begun, ended, flush=True)
"""


class Late:
    """When this processor was taken from a process that only sleeps."""

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-I", "-c", SLEEPER], stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        lines = self.process.stdout.read().split("\n")
        self.process.stdout.close()
        self.process.wait()
        self.times = [tuple(map(float, line.split())) for line in lines if len(line.split()) == 2]

    def was(self, begun, ended):
        """Whether it was late at some moment between these."""
        return any(first < ended and last > begun for first, last in self.times)


def check_rows(numpy, local, sample, inputs):
    """The rows of a batch are the numbers of their places."""
    for r, row in enumerate(inputs):
        (first, _), = local._parts(sample + r)
        if not numpy.array_equal(row, numpy.arange(first, first + LENGTH)):
            raise AssertionError("row %d of sample %d is not that of token %d: it begins with %s" % (r, sample, first, row[:4]))


class Run:
    """What was measured: the times at which each call of next began and ended."""

    def __init__(self):
        self.calls, self.n_rows, self.failed = [], 0, []
        self.waits_of_first = self.waits = None


def take_steps(take, step_seconds, may_go_on, after_step):
    """A training loop. `take` returns a batch, and `after_step` sees its number and the batch. A step that was late makes no later one
    shorter. Returns when each call began and ended."""
    calls, begun = [], time.monotonic()
    step, due = 0, begun
    while may_go_on(step, time.monotonic() - begun):
        time.sleep(max(0, due - time.monotonic()))
        before = time.monotonic()
        try:
            batch = take()
        except StopIteration:
            break
        calls.append((before, time.monotonic()))
        due = max(due, before) + step_seconds
        after_step(step, batch)
        step += 1
    return calls


def run_loop(given, folder, server, store):
    """The loop of one process. Returns a Run."""
    import numpy
    import tokmap

    run, named = Run(), {} if store is None else {"store": store}
    options = dict(sequence_length=LENGTH, batch_rows=ROWS, seed=1, max_epochs=1, outputs=("inputs",))
    local = tokmap.Loader(folder / "train", **options)
    loader = tokmap.Loader("s3://%s/train" % BUCKET, **named, **options)

    def after_step(step, batch):
        run.n_rows += len(batch.inputs)
        check_rows(numpy, local, loader.sample - ROWS, batch.inputs)
        if step == FIRST_STEPS - 1:
            run.waits_of_first = loader.stats["n_waits"]

    run.calls = take_steps(lambda: next(loader), given.step_ms / 1000,
                           lambda step, passed: passed < given.hour if given.hour else step < given.steps, after_step)
    run.stats = loader.stats
    run.waits = run.stats["n_waits"] - (run.waits_of_first or 0)
    loader.close()
    return run


def run_workers(given, folder, server, store):
    """The loop over a DataLoader with workers. A batch waits if it takes longer than it takes to hand over one that is
    there."""
    import numpy
    import tokmap
    import tokmap.torch

    run, options = Run(), dict(sequence_length=LENGTH, batch_rows=ROWS, seed=1, max_epochs=1, outputs=("inputs",))
    local = tokmap.Loader(folder / "train", **options)
    named = {} if store is None else {"store": store}
    dataset = tokmap.torch.IterableDataset("s3://%s/train" % BUCKET, **named, **options)
    loader = tokmap.torch.data_loader(dataset, num_workers=given.workers, multiprocessing_context="forkserver")
    batches = iter(loader)

    def after_step(step, batch):
        inputs = batch["inputs"].numpy()
        check_rows(numpy, local, step * ROWS, inputs)
        run.n_rows += len(inputs)

    run.calls = take_steps(lambda: next(batches), given.step_ms / 1000,
                           lambda step, passed: passed < given.hour if given.hour else step < given.steps, after_step)
    run.stats = {}
    run.waits = sum(ended - begun > 0.05 for begun, ended in run.calls[FIRST_STEPS:])
    return run


def count_again(log):
    """How many requests were for a range that had been asked for before: hedges, and after a fault retries."""
    ranges = collections.Counter(tuple(request["range"]) for request in log
                                 if request["object"].endswith(".bin") and request["kind"] == "GET" and request["range"])
    return sum(ranges.values()) - len(ranges)


def figures(given, run, counts, log, late):
    """{name: (unit, value)}"""
    waits = sorted(ended - begun for begun, ended in run.calls[FIRST_STEPS:]) or [0.0]
    slow = [(begun, ended) for begun, ended in run.calls[FIRST_STEPS:] if ended - begun > 0.02]
    used, tokens = 4 * run.n_rows * (LENGTH + 1), counts["objects"][BUCKET + "/train.bin"]
    body, n_gets = tokens["body_bytes"], tokens["requests"].get("GET", 0)
    found = {
        "steps": ("steps", len(run.calls)),
        "steps that waited, after the first 20": ("steps", run.waits),
        "next: half of the calls": ("ms", 1000 * waits[len(waits) // 2]),
        "next: 99 % of the calls": ("ms", 1000 * waits[int(0.99 * len(waits))]),
        "next: the slowest": ("ms", 1000 * waits[-1]),
        "calls above 20 ms": ("calls", len(slow)),
        "calls above 20 ms, while the processor was not late": ("calls", sum(not late.was(*times) for times in slow)),
        "bytes of answers, of those used": ("x", body / max(1, used)),
        "GETs of rows": ("requests", n_gets),
        "requests in flight, most": ("requests", counts["most_in_flight"]),
        "requests refused for an old key": ("requests", counts["statuses"].get("403", 0)),
        "requests with a fault": ("requests", sum(counts["faults"].values())),
        "processor's time of the server, for a request": ("us", 1e6 * counts["cpu_seconds"] / max(1, sum(counts["requests"].values()))),
    }
    return found if given.hour else {**found, "GETs for a range that was asked for before": ("%", 100 * count_again(log) / n_gets)}


def unlike(given, found, run):
    """What is not as it must be."""
    def value(name):
        return found[name][1]

    wrong = []
    if not given.hour and value("steps") < given.steps:
        wrong.append("only %d steps" % value("steps"))
    if given.hour:
        needed = ["requests with a fault"] + ["requests refused for an old key"] * (given.hour > 2 * NEW_KEY_SECONDS)
        return wrong + ["%s: none" % name for name in needed if value(name) == 0]
    if run.waits:
        wrong.append("%d steps waited" % run.waits)
    if value("calls above 20 ms, while the processor was not late"):
        wrong.append("%d calls took more than 20 ms" % value("calls above 20 ms, while the processor was not late"))
    if not given.workers and value("next: 99 % of the calls") >= 1:
        wrong.append("99 %% of the calls took up to %.2f ms" % value("next: 99 % of the calls"))
    if value("bytes of answers, of those used") > 1.02:
        wrong.append("%.3f bytes for each that was used" % value("bytes of answers, of those used"))
    if value("GETs for a range that was asked for before") > 2:
        wrong.append("%.2f %% hedges" % value("GETs for a range that was asked for before"))
    return wrong


def measure(given):
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, processors[:-1] or processors)
    with tempfile.TemporaryDirectory(prefix="tokmap_latency_") as name:
        folder = pathlib.Path(name)
        # An epoch is a little longer than the loop, so that nothing is read ahead for nothing.
        n_steps = given.steps if not given.hour else int(1.2e3 * given.hour / given.step_ms) + 100
        n_tokens = n_steps * ROWS * LENGTH + 1
        write_hole(folder / "train", n_tokens)
        with ByteServer({BUCKET: folder}, {BUCKET + "/train.bin": 4 * n_tokens}, processor=processors[-1],
                        log=not given.hour, latency=LATENCY) as server, Late() as late:
            set_environment(server)
            store = None
            if given.hour:
                server.set(faults=FAULTS, ending=".bin", key_seconds=KEY_SECONDS)
                store = store_with_keys(server, NewKeys(NEW_KEY_SECONDS))
            run = (run_workers if given.workers else run_loop)(given, folder, server, store)
            server.set(faults={}, key_seconds=None, latency={})
            counts, log = server.counts(), server.log()
    return figures(given, run, counts, log, late), run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--step-ms", type=float, default=100)
    parser.add_argument("--hour", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--out")
    given = parser.parse_args()
    name = "store_hour" if given.hour else "latency" if not given.workers else "latency_workers"
    need_obstore(name)
    if given.workers and importlib.util.find_spec("torch") is None:
        print("skip %s: there is no Python package torch" % name)
        return 77
    found, run = measure(given)
    if given.out:
        import rows

        words = "--hour %g" % given.hour if given.hour else "--steps %d" % given.steps
        rows.finish([rows.row(name, line, unit, [value]) for line, (unit, value) in found.items()],
                    "check_latency.py %s%s" % (words, " --workers %d" % given.workers if given.workers else ""), given.out)
    else:
        for line, (unit, value) in found.items():
            print("%-70s %12.6g %s" % (line, value, unit))
    wrong = unlike(given, found, run)
    for text in wrong:
        print("FAIL %s: %s" % (name, text))
    if not wrong:
        print("ok %s" % name)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
