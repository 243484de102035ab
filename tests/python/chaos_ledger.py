#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chaos_ledger.py [N [SEED]]: N runs (default 20) whose processes are killed at any time, which change and go back.
Afterwards the ledger says of every run what its batches were.

A process is killed while it opens, writes the ledger or takes batches; sometimes the ledger loses the end of its last
line, as if the machine had stopped. `make chaos` runs it."""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import warnings

import package  # noqa: F401: finds tokmap
from grouped import grouped
import tokmap

LENGTH = 8


def open_loader(folder, plan, **options):
    return tokmap.Loader([(folder / name, weight) for name, weight in plan["sources"]], LENGTH, plan["rows"],
                         **grouped(seed=1, io="map", skip=[tuple(pair) for pair in plan["skip"]], **options))


def train(folder, plan):
    """The process that is killed: writes a line for each step, behind its batch."""
    ledger = folder / "run.ledger"
    loader = open_loader(folder, plan, ledger=ledger, on_mismatch="amend",
                         amend_from=ledger if plan["state"] and ledger.exists() else None)
    if plan["state"]:
        loader.restore(bytes.fromhex(plan["state"]))
    with open(folder / "steps", "a", encoding="ascii") as file:
        while True:
            batch = next(loader)
            file.write(json.dumps([plan["state"], batch.state.hex(), batch.sample_ids.tolist()]) + "\n")
            file.flush()
            plan["state"] = batch.state.hex()
            time.sleep(0.001)


def next_plan(rng, plan, at):
    if rng.random() < 0.3:
        plan["sources"] = [(name, rng.choice((1, 2, 0.5))) for name, _ in plan["sources"]] + (
            [("b", 1)] if len(plan["sources"]) < 2 and rng.random() < 0.5 else [])
    if rng.random() < 0.3:
        first = at + rng.randint(0, 20)
        plan["skip"] = [(first, first + rng.randint(1, 50))]
    if rng.random() < 0.3:
        plan["rows"] = rng.randint(1, 6)


def one_run(folder, seed):
    rng = random.Random(seed)
    for name, n_tokens in (("a", 4000), ("b", 2000)):
        with tokmap.Writer(folder / name, vocab_size=65536) as w:
            w.document(range(n_tokens))
    plan = {"state": "", "sources": [("a", 1)], "skip": [], "rows": 2}
    came_from, n_lines = {}, 0  # of each state: the one before, and the samples of the step
    for _ in range(rng.randint(2, 8)):
        ledger, n_said = folder / "run.ledger", 0
        if ledger.exists():
            n_said = ledger.read_bytes().count(b"\n")
        child = subprocess.Popen([sys.executable, __file__, "train", str(folder), json.dumps(plan)])
        time.sleep(rng.choice((0.2, 0.3, 0.4)) + rng.random() * 0.2)
        child.kill()
        child.wait()
        lines = (folder / "steps").read_text().splitlines() if (folder / "steps").exists() else []
        for before, state, samples in map(json.loads, lines[n_lines:]):
            came_from[state] = before, samples
        is_known = len(lines) > n_lines or not ledger.exists() or ledger.read_bytes().count(b"\n") == n_said
        n_lines = len(lines)
        if not came_from:
            continue
        if not is_known:
            return check(folder, None, came_from)  # killed between its first batch and the line for it
        if rng.random() < 0.2 and len(ledger.read_bytes().splitlines()) > 1:
            os.truncate(ledger, ledger.stat().st_size - 1 - rng.randrange(100))
            return check(folder, None, came_from)  # the run knows less than the process did: only that it can be read
        final = json.loads(lines[-1])[1]  # not the newest key: a state may be reached again, after a step back
        # Not a state that the run gave up: if a later attempt was killed, the ledger does not know that it came less far.
        plan["state"] = final if rng.random() < 0.6 else rng.choice([at for at, _ in way_to(came_from, final)])
        next_plan(rng, plan, int.from_bytes(bytes.fromhex(plan["state"])[24:32], "little"))
    return check(folder, final, came_from) if came_from else 0


def way_to(came_from, at):
    """The states that led to this one, and the samples of the step before each."""
    found = []
    while at:
        before, samples = came_from[at]
        found.insert(0, (at, samples))
        at = before
    return found


def check(folder, final, came_from):
    with warnings.catch_warnings():
        warnings.simplefilter("error" if final else "ignore")
        if final is None:
            tokmap.Run(folder / "run.ledger", until=1)
            return 0
        wanted = [samples for _, samples in way_to(came_from, final)]
        run = tokmap.Run(folder / "run.ledger", until=bytes.fromhex(final))
        found = [[row.sample for row in run.step(step)] for step in range(run.n_steps)]
    if found != wanted:
        raise AssertionError("the ledger says otherwise: see %s" % folder)
    return len(found)


def main():
    if sys.argv[1:2] == ["train"]:
        return train(pathlib.Path(sys.argv[2]), json.loads(sys.argv[3]))
    n_runs, first = (int(value) for value in [*sys.argv[1:], *("20", "1")[len(sys.argv) - 1:]])
    n_steps = 0
    for seed in range(first, first + n_runs):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tokmap_ledger_"))
        n_steps += one_run(folder, seed)
        subprocess.run(["rm", "-r", folder], check=True)
    print("%d runs, %d steps: none wrong" % (n_runs, n_steps))


main()
