#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stores.py --tokmap FILE [--mib N] [--seconds N] [--systems NAME...] [--out FILE] - shuffled rows of 8,193 tokens of 4 bytes
from a store of objects: tokmap beside LanceDB's StreamingDataset, MosaicML Streaming and litdata, with their defaults and
tuned. All read the same tokens, each from a copy in its own format, on the same server (tests/stores/byte_server.py), which
answers as slowly as S3.

Each runs in a process of its own until the epoch or the seconds have ended. All rows are checked. Then each is stopped after
20 batches and goes on in a new process from its state, and in two processes as two ranks; `1` says that the next 20 batches
had the same rows as those of the process that was not stopped. A system whose packages are missing, or that fails, is left
out, and the reason is said."""

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import pathlib
import pickle
import re
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench/scale"), str(ROOT / "tests/stores"), str(ROOT / "python")]
from store_peers import BUCKET, LENGTH, PEERS  # noqa: E402

LATENCY = {"p50": 0.12, "p99": 0.3, "one_in": 10000, "exactly": 5.0}
STEPS = 20          # before a state is saved, and after it


# ---- In the process of a system ----


def open_peer(job):
    peer = PEERS[job["system"]]
    options = peer.variants[job["variant"]]
    return peer(job["endpoint"], pathlib.Path(job["cache"]), job["batch_rows"], job["rank"], job["n_ranks"], **options)


def numbers_of(peer, rows):
    """The numbers of rows, after a look at all of their tokens."""
    import numpy

    places = rows[:, 0].astype(numpy.int64)
    if (places % peer.stride).any() or not (rows[:, 1:] - rows[:, :-1] == 1).all():
        raise ValueError("rows that are not in the dataset, such as %s" % rows[0, :4])
    return (places // peer.stride).tolist()


def processor_seconds():
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def measure(job):
    """Reads until the epoch or the seconds have ended. No time counts for imports, and no processor time for the look at the rows."""
    before, begun = processor_seconds(), time.monotonic()
    peer = open_peer(job)
    seen, first, taken = [], None, 0.0
    for batch in peer.batches():
        now = time.monotonic()
        first = now - begun if first is None else first
        rows = peer.rows(batch)
        looked = processor_seconds()
        seen += numbers_of(peer, rows)
        before += processor_seconds() - looked
        taken = now - begun
        if taken > job["seconds"]:
            break
    peer.close()
    del peer                # its workers end, and their time counts
    if len(set(seen)) != len(seen):
        raise ValueError("%d of %d rows came twice" % (len(seen) - len(set(seen)), len(seen)))
    return {"rows": len(seen), "first": first, "seconds": taken, "cpu": processor_seconds() - before}


def steps(job):
    """The rows of steps, after a state that is given; saves one in the middle if asked to."""
    if job["n_ranks"] > 1:
        join_ranks(job)
    peer = open_peer(job)
    if job["state_from"]:
        peer.restore(pickle.loads(pathlib.Path(job["state_from"]).read_bytes()))
    found = []
    for batch in peer.batches():
        found.append(numbers_of(peer, peer.rows(batch)))
        if len(found) == STEPS and job["state_to"]:
            pathlib.Path(job["state_to"]).write_bytes(pickle.dumps(peer.state()))
        if len(found) == job["n_steps"]:
            break
    return {"steps": found}


def join_ranks(job):
    """Only those that use PyTorch's group of ranks need it."""
    if job["system"] not in ("mds", "litdata"):
        return
    import torch.distributed

    torch.distributed.init_process_group("gloo", rank=job["rank"], world_size=job["n_ranks"],
                                         init_method="file://" + job["meeting"])


def run_job(job):
    for name in ("rank", "n_ranks"):
        os.environ[{"rank": "RANK", "n_ranks": "WORLD_SIZE"}[name]] = str(job[name])
    os.environ.update(LOCAL_RANK=str(job["rank"]), LOCAL_WORLD_SIZE=str(job["n_ranks"]))
    for package in PEERS[job["system"]].packages:
        importlib.import_module(package)
    result = {"measure": measure, "steps": steps}[job["what"]](job)
    pathlib.Path(job["result"]).write_text(json.dumps(result))


# ---- The driver ----


class Failure(Exception):
    """A system that could not be measured, and why."""


class Runner:
    """Starts processes of systems."""

    def __init__(self, given, folder, server):
        self.given, self.folder, self.server, self.n_jobs = given, folder, server, 0

    def start(self, **job):
        self.n_jobs += 1
        name = str(self.folder / ("job %d" % self.n_jobs))
        cache = pathlib.Path(job.get("cache", name + ".cache"))
        cache.mkdir(exist_ok=True)
        job = {"rank": 0, "n_ranks": 1, "batch_rows": self.given.batch_rows, "seconds": self.given.seconds, "state_from": None,
               "state_to": None, "n_steps": 2 * STEPS, "cache": str(cache), "endpoint": self.server.endpoint,
               "result": name + ".result", **job}
        process = subprocess.Popen([sys.executable, __file__, "--job", json.dumps(job)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, env=environment(self.given, self.server, self.folder))
        return process, job

    def wait(self, started):
        process, job = started
        try:
            _, said = process.communicate(timeout=self.given.seconds + self.given.patience)
        except subprocess.TimeoutExpired:
            raise Failure("took more than %d s" % (self.given.seconds + self.given.patience)) from None
        if process.returncode != 0:
            lines = [line.strip() for line in said.decode(errors="replace").split("\n") if line.strip()]
            errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
            raise Failure((errors or lines or ["status %d" % process.returncode])[-1][:300])
        return json.loads(pathlib.Path(job["result"]).read_text())

    def run(self, *jobs):
        """The results of jobs that run side by side."""
        started = [self.start(**job) for job in jobs]
        try:
            return [self.wait(one) for one in started]
        finally:
            for process, _ in started:
                if process.poll() is None:
                    process.kill()
                    process.communicate()


def environment(given, server, folder):
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": server.endpoint, "AWS_ALLOW_HTTP": "true", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false"}
    return {**os.environ, **keys, "TOKMAP_LIBRARY": str(given.tokmap.resolve().parent / "libtokmap.so"), "TMPDIR": str(folder)}


def measured(runner, system, variant):
    """Rows of results: {line: (unit, value)}"""
    runner.server.reset()
    found, = runner.run({"what": "measure", "system": system, "variant": variant})
    counts = runner.server.counts()
    used = 4 * (LENGTH + 1) * found["rows"]
    return {"tokens a second": ("million", found["rows"] * LENGTH / found["seconds"] / 1e6),
            "rows": ("rows", found["rows"]),
            "first batch": ("s", found["first"]),
            "bytes of answers, of those used": ("x", counts["body_bytes"] / used),
            "requests for a row": ("requests", sum(counts["requests"].values()) / found["rows"]),
            "requests in flight, most": ("requests", counts["most_in_flight"]),
            "processor's time for a million tokens": ("ms", 1e3 * found["cpu"] / (found["rows"] * LENGTH / 1e6))}


def resumed(runner, system):
    """Whether it goes on with the same rows: {line: (unit, 1 or 0)}, and {line: why not}."""
    # One cache, as the states of some name it.
    state, cache = str(runner.folder / (system + ".state")), str(runner.folder / (system + ".cache"))
    job = {"what": "steps", "system": system, "variant": "", "cache": cache}
    whole = runner.run({**job, "state_to": state})[0]["steps"][STEPS:]
    job.update(state_from=state, n_steps=STEPS)
    found, why = {}, {}

    def one():
        return runner.run(job)[0]["steps"] == whole

    def two_ranks():
        shared = {"n_ranks": 2, "batch_rows": runner.given.batch_rows // 2,
                  "meeting": str(runner.folder / (system + ".meeting"))}
        rows = [result["steps"] for result in runner.run(*({**job, **shared, "rank": rank} for rank in (0, 1)))]
        return [sorted(a + b) for a, b in zip(*rows)] == [sorted(step) for step in whole]

    for line, goes_on in (("goes on exactly", one), ("goes on exactly as two ranks", two_ranks)):
        try:
            found[line] = ("1 is yes", int(goes_on()))
        except Failure as failure:
            found[line], why[line] = ("1 is yes", 0), str(failure)
    return found, why


def missing(system):
    return [name for name in PEERS[system].packages if name != "tokmap" and importlib.util.find_spec(name.partition(".")[0]) is None]


def write_copy(given, folder, system):
    n_rows = (given.mib << 20) // (4 * (LENGTH + 1))
    (folder / system).mkdir()
    os.environ["TOKMAP_LIBRARY"] = str(given.tokmap.resolve().parent / "libtokmap.so")
    PEERS[system].write(folder / system, n_rows)


def compare(given, folder, server):
    """[(column, {line: (unit, value)})]"""
    columns, runner = [], Runner(given, folder, server)
    for system in given.systems:
        absent = missing(system)
        if absent:
            print("skip %s: there is no Python package %s" % (system, ", ".join(absent)), flush=True)
            continue
        try:
            write_copy(given, folder / "bucket", system)
            resuming, why = resumed(runner, system)
            for line, text in why.items():
                print("note %s: %s: no: %s" % (system, line, text), flush=True)
        except Failure as failure:
            print("skip %s: %s" % (system, failure), flush=True)
            continue
        for variant, options in PEERS[system].variants.items():
            try:
                lines = measured(runner, system, variant)
            except Failure as failure:
                print("skip %s %s: %s" % (system, variant, failure), flush=True)
                continue
            if variant:
                print("note %s %s: %s" % (system, variant, options), flush=True)
            columns.append((" ".join([system, variant]).strip(), {**lines, **(resuming if not variant else {})}))
    return columns


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokmap", type=pathlib.Path, help="the program; its library is beside it")
    parser.add_argument("--mib", type=int, default=4096, help="of the dataset [4096]")
    parser.add_argument("--seconds", type=float, default=60, help="that each may read [60]")
    parser.add_argument("--patience", type=float, default=300, help="seconds more, after which a system has failed [300]")
    parser.add_argument("--batch-rows", type=int, default=8)
    parser.add_argument("--systems", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--latency", type=json.loads, default=LATENCY, help="of the server, as JSON [as S3]")
    parser.add_argument("--dir", help="where copies are made and removed again")
    parser.add_argument("--out", help="write all figures to this file, as JSON")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    given = parse_arguments()
    if given.job:
        run_job(given.job)
        return
    import rows
    from byte_server import ByteServer

    processors = sorted(os.sched_getaffinity(0))
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=given.dir)))
        (folder / "bucket").mkdir()
        server = stack.enter_context(ByteServer({BUCKET: folder / "bucket"}, processor=processors[-1], latency=given.latency))
        columns = compare(given, folder, server)
    found = [rows.row("stores", line, unit, [value], column) for column, lines in columns for line, (unit, value) in lines.items()]
    rows.finish(found, "stores.py --mib %d --seconds %g" % (given.mib, given.seconds), given.out)


if __name__ == "__main__":
    main()
