#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.measure: its arithmetic with a clock of the test; and, with the real clock, what it counts of any loader."""

import json
import multiprocessing
import os
import sys
import time

import package  # noqa: F401 - finds tokmap
import mounts
import numpy as np
import ref_writer
from ref_protocol import expect, expect_equal, run_in_folders

import tokmap
from tokmap._run import measure as module


class Clock:
    """Time that passes only when the test says so."""

    def __init__(self):
        self.now = 0.0

    def pass_by(self, seconds):
        self.now += seconds

    def __enter__(self):
        self.kept = module._now, module._sleep
        module._now, module._sleep = (lambda: self.now), self.pass_by
        return self

    def __exit__(self, *_):
        module._now, module._sleep = self.kept


def batches_of(clock, waits):
    for wait in waits:
        clock.pass_by(wait)
        yield np.zeros((4, 128), np.int32)


def near(found, wanted, what):
    expect(abs(found - wanted) < 1e-9, "%s: %r in place of %r" % (what, found, wanted))


def waits_and_steps_add_up(folder):
    """5 ms of each 25 ms are a wait; kept batches come at once."""
    with Clock() as clock:
        m = tokmap.measure(batches_of(clock, [3] + [0.005] * 207), step_ms=20, replay=2)
    expect_equal((m.n_steps, m.n_tokens, m.ended, round(m.utilisation, 12), m.replay.utilisation), (200, 200 * 512, False, 0.8, 1.0), "what was taken")
    near(m.first_batch_s, 3, "the first batch")
    near(m.step_s, 0.02, "a step")
    near(m.tokens_per_second, 512 / 0.025, "tokens/s")
    for name in ("p50", "p99", "p999", "max"):
        near(getattr(m.wait, name), 0.005, name)
    expect("waits: 20.0 % of the time; of each step of 25 ms the loader costs 5 ms, and with kept batches a step takes 20 ms" in
           str(m), str(m))


def percentiles_are_waits_that_were_measured(folder):
    with Clock() as clock:
        m = tokmap.measure(batches_of(clock, [k / 1000 for k in range(1000, 0, -1)]), step_ms=0, steps=1000, warm_up=0, tokens=7)
    for name, wanted in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1)):
        near(getattr(m.wait, name), wanted, name)
    expect_equal((m.utilisation, m.n_tokens), (0, 7000), "without steps")


def a_step_of_the_model_counts_as_long_as_it_takes(folder):
    with Clock() as clock:
        m = tokmap.measure(batches_of(clock, [0.01] * 30), model_step=lambda batch: clock.pass_by(batch.size / 51200), steps=20,
                           warm_up=2, tokens=lambda batch: 3 * len(batch))
    expect_equal((m.n_steps, m.n_tokens, m.simulated), (20, 20 * 12, False), "what was taken")
    near(m.utilisation, 0.5, "utilisation")


def a_loader_that_ends_is_measured_as_far_as_it_goes(folder):
    with Clock() as clock:
        m = tokmap.measure(batches_of(clock, [0.01] * 30), step_ms=10)
        expect_equal((m.n_steps, m.ended), (22, True), "steps")
        expect("then the loader ended" in str(m), str(m))
        refused(lambda: tokmap.measure(batches_of(clock, [0.01] * 8), step_ms=10), "a smaller warm_up")


def refused(call, words):
    try:
        call()
    except ValueError as e:
        expect(words in str(e), str(e))
    else:
        raise AssertionError("not refused: " + words)


def what_makes_no_sense_is_refused(folder):
    refused(lambda: tokmap.measure([]), "give one of step_ms=")
    refused(lambda: tokmap.measure([], step_ms=1, model_step=print), "give one of step_ms=")
    for options in ({"steps": 0}, {"replay": -1}, {"warm_up": -1}):
        refused(lambda: tokmap.measure([], **{"step_ms": 1, **options}), "at least")
    refused(lambda: tokmap.measure([(x for x in ())] * 9, step_ms=0, replay=1), "cannot be copied")


def tokens_are_found_in_what_loaders_give(folder):
    ids = np.zeros((2, 8), np.int64)
    for batch, wanted in ((ids, 16), ({"input_ids": ids, "attention_mask": ids}, 16), ({"ids": ids[0]}, 8),
                          (({"input": ids}, ids), 16), ([ids, ids], 16), ([1, 2, 3], 3), ({"input_ids": [[1, 2], [3, 4]]}, 4),
                          ([{"input_ids": [1, 2]}] * 3, 6), ([np.int64(1)] * 5, 5), ("text", None), ({}, None), ([], None)):
        m = tokmap.measure([batch] * 3, step_ms=0, warm_up=1)
        expect_equal((m.n_steps, m.n_tokens), (2, wanted and 2 * wanted), str(batch))


def kept_batches_are_copies(folder):
    memory, seen = np.zeros(4, np.int32), []

    def batches():
        for k in range(12):
            memory[:] = k
            yield memory

    tokmap.measure(batches(), model_step=lambda batch: seen.append(int(batch[0])), steps=6, warm_up=0, replay=3)
    expect_equal(seen, [0, 1, 2, 3, 4, 5, 0, 1, 2, 0, 1, 2], "the steps")


def works(pipe):
    """A worker that uses a fifth of a second of a processor, and stays."""
    while time.process_time() < 0.2:
        pass
    pipe.send(None)
    pipe.recv()


def a_loader_with_workers_has_their_time_counted(folder):
    def batches():
        here, there = multiprocessing.Pipe()
        worker = multiprocessing.get_context("fork").Process(target=works, args=(there,), daemon=True)
        worker.start()
        here.recv()
        yield [1]
        yield [1]
        here.send(None)
        worker.join()

    m = tokmap.measure(batches(), step_ms=0, steps=2, warm_up=0)
    expect(0.1 < m.cpu_children_s < 1, "of children: %r" % m.cpu_children_s)
    expect(0 < m.memory_bytes < 1 << 36, "memory: %r" % m.memory_bytes)


def the_loaders_of_tokmap(folder):
    ref_writer.write(str(folder / "a"), [i % 251 for i in range(50000)], [500] * 100, vocab=256)
    with tokmap.Loader(folder / "a", 64, 4) as loader:
        m = tokmap.measure(loader, step_ms=1, steps=20, replay=2)
    expect_equal((m.n_steps, m.n_tokens, m.replay.n_tokens), (20, 20 * 256, 20 * 256), "steps and tokens")
    found = json.loads(m.to_json())
    expect_equal((found["schema_version"], found["kind"], found["n_steps"], found["replay"]["n_steps"]), (1, "measure", 20, 20), str(found))
    expect(found["wait_p50_us"] <= found["wait_p99_us"] <= found["wait_p999_us"] <= found["wait_max_us"], str(found))
    page = m._repr_html_()
    expect("wait, p99.9" in page and "waits in us" in page, page)


def a_slow_disk_is_seen(folder):
    """Each read takes 20 ms."""
    mounts.enter_namespace()
    for name in ("shown", "mount"):
        (folder / name).mkdir()
    ref_writer.write(str(folder / "shown/a"), [i % 251 for i in range(2000000)], [500] * 4000, vocab=256)
    with mounts.fuse(folder / "shown", folder / "mount", latency=0.02):
        with open(folder / "mount/a.bin") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with tokmap.Loader(folder / "mount/a", 64, 4, reading=tokmap.Reading(io="map")) as loader:
            m = tokmap.measure(loader, step_ms=1, steps=4, warm_up=0)
    expect(m.wait.max >= 0.02 and m.utilisation < 0.9, str(m))


sys.exit(run_in_folders("measure_"))
