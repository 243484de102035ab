#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_first_batch.py [--out FILE] - how many times one request waits for another until the first batch of 10^13 tokens is there,
as the server counts it: ten datasets of 10^12 tokens and 10^6 documents, joined. Two for opening: the beginning of the index, and its
sections. One for the rows; with rows that look documents up, one or two more, for the rest of the index. The rows are compared with the
numbers of their places.

Exit status 1 if anything is otherwise; --out writes the figures as a result file."""

import argparse
import pathlib
import sys
import tempfile
import time

import store_case
from byte_server import ByteServer, round_trips
from ref_protocol import run_program
from store_case import BUCKET, need_obstore, set_environment

sys.path.append(str(store_case.ROOT / "bench/scale"))
import rows  # noqa: E402

N_PARTS, PART_TOKENS, PART_DOCUMENTS = 10, 10**12, 10**6
LENGTH, ROWS = 8192, 8
SECONDS = 0.1       # of each answer
# For each kind of windows: the most trips for the rows.
KINDS = {"concat": 1, "within_document": 3}


def make(folder):
    done = run_program("tool_make_sparse", str(folder / "train"), str(N_PARTS), str(PART_TOKENS), str(PART_DOCUMENTS))
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())


class Clock:
    """The time of a piece of work, and what the server did in it."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        self.server.reset()
        self.begun = time.monotonic()
        return self

    def __exit__(self, *_):
        self.ended, self.n_bytes = time.monotonic(), self.server.counts()["body_bytes"]

    def lines(self, what):
        # Read-ahead goes on; only what had arrived was waited for.
        log = [request for request in self.server.log() if request["ended"] <= self.ended]
        return {what + ": requests, one after another": ("trips", round_trips(log)),
                what + ": time": ("ms", 1000 * (self.ended - self.begun)),
                what + ": bytes, with those read ahead": ("MB", self.n_bytes / 1e6)}


def check_rows(kind, inputs, places):
    import numpy

    for row, place in zip(inputs, places):
        expected = (numpy.arange(place % PART_TOKENS, place % PART_TOKENS + LENGTH) % 2**32).astype(numpy.int64)
        if not numpy.array_equal(row, expected):
            raise AssertionError("%s: the row of token %d begins with %s" % (kind, place, row[:4]))


def measure(server, kind):
    """{line: (unit, value)} of opening the dataset, and of taking a batch."""
    import tokmap

    with Clock(server) as opening:
        dataset = tokmap.Dataset("s3://%s/train" % BUCKET)
    if dataset.n_tokens != N_PARTS * PART_TOKENS:
        raise AssertionError("%d tokens" % dataset.n_tokens)
    found = opening.lines("open")
    with Clock(server) as taking:
        loader = tokmap.Loader(dataset, LENGTH, ROWS, seed=1, outputs=("inputs",), windows=kind)
        batch = next(loader)
    time.sleep(2 * SECONDS)  # so that all requests of the batch are in the log
    found.update(taking.lines("rows"))
    check_rows(kind, batch.inputs, [loader.locate(sample).first_token for sample in range(ROWS)])
    loader.close()
    for what, most in (("open", 2), ("rows", KINDS[kind])):
        trips = found[what + ": requests, one after another"][1]
        if not 0 < trips <= most:
            raise AssertionError("%s: %s takes %d requests one after another, not 1 to %d" % (kind, what, trips, most))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out")
    given = parser.parse_args()
    need_obstore("first_batch")
    with tempfile.TemporaryDirectory(prefix="tokmap_first_") as name:
        folder = pathlib.Path(name)
        make(folder)
        made = {"%s/train.%d.bin" % (BUCKET, i): 4 * PART_TOKENS for i in range(N_PARTS)}
        with ByteServer({BUCKET: folder}, made, log=True, latency={"constant": SECONDS}) as server:
            set_environment(server)
            columns = {kind: measure(server, kind) for kind in KINDS}
    rows.finish([rows.row("first_batch", line, unit, [value], kind) for kind, lines in columns.items()
                 for line, (unit, value) in lines.items()], "check_first_batch.py", given.out)
    print("ok first_batch")


if __name__ == "__main__":
    main()
