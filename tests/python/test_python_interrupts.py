#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""After any exception out of next, state(), sample, batch_rows and the next batch are those of a loader whose next was not
called: a signal before each instruction, each call of the library that fails, and warnings that are errors."""

import contextlib
import ctypes
import dis
import importlib.util
import os
import pathlib
import subprocess
import sys
import sysconfig
import unittest.mock
import warnings

from grouped import grouped
from package import COMPILER, ROOT, raises
from ref_protocol import Skip, run_in_folders

import numpy as np
import tokmap
from tokmap._c.structs import lib
from tokmap._device import stage as _stage
from tokmap._loader import gather as _gather
from tokmap._loader import loader as _loader
from tokmap._loader import metrics as _metrics

ALL = ("inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens")
OF_STAGE = ALL[:4]
LENGTH, ROWS, N_RANKS = 8, 2, 2
SCHEDULE = [(8, 8)]


def prepare(folder):
    with tokmap.Writer(folder / "a", vocab_size=65536) as w:
        for i in range(0, 26 * LENGTH + 1, 13):
            w.document(range(i, min(i + 13, 26 * LENGTH + 1)))


# What to open, the worker and how many there are, where to begin, and how many batches to take before the one that is interrupted.
KINDS = {
    "plain": ({}, (0, 1), 0, 1),
    "all outputs": ({"outputs": ALL, "max_epochs": 1}, (0, 1), 0, 1),
    "rows of a view": ({"contiguous": False, "dtype": "uint16"}, (0, 1), 0, 1),
    "tokens are counted": ({"windows": "within_document", "metrics": True}, (0, 1), 0, 1),
    "skips": ({"skip": [(7, 9), (12, 15)]}, (0, 1), 4, 1),
    "schedule": ({"batch_schedule": SCHEDULE, "outputs": ALL}, (0, 1), 4, 1),
    "schedule, read ahead": ({"batch_schedule": SCHEDULE, "io": "read"}, (0, 1), 4, 1),
    "schedule, a worker": ({"batch_schedule": SCHEDULE}, (1, 2), 4, 0),
    "worker": ({}, (1, 2), 0, 1),
    "end": ({"max_epochs": 1, "drop_last": False, "outputs": ALL}, (0, 1), 20, 1),
    "end, a worker": ({"max_epochs": 1, "drop_last": False}, (0, 2), 16, 1),
    "end without a row": ({"max_epochs": 1, "drop_last": False, "rank": 1}, (0, 1), 20, 1),
    "ledger": ({"ledger": "ledger"}, (0, 1), 4, 0),
    "ledger and schedule": ({"ledger": "ledger", "batch_schedule": SCHEDULE}, (0, 1), 4, 1),
    "metrics": ({"metrics_file": "metrics", "metrics_seconds": 0}, (0, 1), 4, 1),
    "torch": ({"framework": "torch", "outputs": ALL}, (0, 1), 4, 1),
    "device": ({"device": "host", "outputs": OF_STAGE}, (0, 1), 4, 1),
    "device and schedule": ({"device": "host", "batch_schedule": SCHEDULE}, (0, 1), 4, 1),
}


def of_numpy(batch):
    """DeviceBatch.torch() without PyTorch."""
    return batch._stage._torch_batch(*(np.from_dlpack(getattr(batch, name)) for name in batch._stage.outputs))


class Case:
    """A loader before an interesting step, and what that step has."""

    def __init__(self, folder, options, workers, begin, n_before):
        options = {"seed": 5, "rank": 0, "n_ranks": N_RANKS, "io": "map", **options}
        for name in {"ledger", "metrics_file"} & options.keys():
            options[name] = folder / options[name]
        self.counts, self.workers = options.pop("metrics", False), workers
        self.open = lambda: tokmap.Loader(folder / "a", LENGTH, ROWS, **grouped(**options))
        self.ledger, self.loader = options.get("ledger"), self.open()
        self.begin, self.n_before = begin, n_before
        self.go_to()
        self.before, self.wanted, self.after = self.now(), self.take(), self.now()
        assert workers != (0, 1) or self.wanted is None or len(self.wanted[1]) in (self.loader.batch_rows, 1)

    def go_to(self):
        if self.ledger is not None:  # which would get lines for each way back
            self.loader._recorder.ledger.is_open = False
            self.ledger.unlink(missing_ok=True)
            self.loader = self.open()
        if self.counts:
            self.loader.metrics()
        if self.workers != (0, 1):
            self.loader._take_turns(*self.workers)
        self.loader.seek(self.begin)
        for _ in range(self.n_before):
            next(self.loader)
        self.counted = 0
        self.counted = self.now()[3]

    def now(self):
        loader = self.loader
        return loader.state(), loader.sample, loader.batch_rows, sum(loader._place.now[2] or ()) - self.counted

    def take(self):
        batch = next(self.loader, None)
        return batch and ([np.asarray(array).tolist() for array in batch], batch.sample_ids.tolist(), batch.state)

    def expect_step(self):
        """After an exception: nothing has changed, and the step comes now."""
        assert self.now() == self.before, (self.now(), self.before)
        found = self.take()
        assert found == self.wanted, (found, self.wanted)
        assert self.now() == self.after, (self.now(), self.after)
        if self.ledger is not None:
            found = self.begin + (0 if self.n_before == 0 else SCHEDULE[0][0] - self.begin)
            lines = tokmap._loader.ledger.read(self.ledger)
            assert [line.begin for line in lines] == sorted({self.begin, found}), lines


def cases(place, without=()):
    for name, (options, *more) in KINDS.items():
        if options.keys() & set(without):
            continue
        if options.get("framework") == "torch" and importlib.util.find_spec("torch") is None:
            continue
        with unittest.mock.patch.object(_stage.DeviceBatch, "torch", of_numpy), unittest.mock.patch.object(os, "fsync", int):
            yield name, Case(place, options, *more)


# ---- Signals ----


def interrupter(place):
    """The functions of tests/support/interrupt_at.c."""
    include = sysconfig.get_paths()["include"]
    if not (pathlib.Path(include) / "Python.h").exists():
        raise Skip(f"there is no {include}/Python.h")
    subprocess.run([*COMPILER, "-shared", "-fPIC", "-I", include, ROOT / "tests/support/interrupt_at.c", "-o",
                    place / "interrupt_at.so"], check=True)
    return ctypes.PyDLL(str(place / "interrupt_at.so"))


def remains(error):
    """Whether the signal came where `with` and `try` of CPython 3.9 and 3.10 leave their block before the end of the function."""
    if sys.version_info >= (3, 11):
        return False
    frames = []
    at = error.__traceback__
    while at is not None:
        frames.append(at)
        at = at.tb_next
    for at in frames:
        code = [one for one in dis.get_instructions(at.tb_frame.f_code) if one.offset <= at.tb_lasti]
        if any(one.opname in ("POP_BLOCK", "WITH_EXCEPT_START") for one in code[-7:]):
            return True
    return False


def a_signal_before_any_instruction_loses_nothing(folder):
    """CPython handles a signal at some of them. What it handles after next has returned is of the caller."""
    c = interrupter(folder)
    # A stage that a signal left in use could not be closed; CPython 3.9 and 3.10 may leave the ledger open and locked.
    without = ("device",) if sys.version_info >= (3, 11) else ("device", "ledger")
    for name, case in cases(folder, without):
        n, n_raised, n_remained = 0, 0, 0
        reached = True
        while reached:
            n += 1
            case.go_to()
            error = None
            c.interrupt_at(n)
            try:
                next(case.loader, None)
                reached = c.interrupt_end()
            except KeyboardInterrupt as found:
                c.interrupt_end()
                error = found
            if error is None or error.__traceback__.tb_next is None:
                assert case.now() == case.after, (name, n)
                continue
            try:
                case.expect_step()
            except AssertionError:
                if not remains(error):
                    raise
                n_remained += 1
            n_raised += 1
        assert n_raised > 20 and n_remained < 6, (name, n, n_raised, n_remained)
        case.loader.close()


def a_signal_leaves_no_metrics_file_open_or_locked(folder):
    place = folder / "place"
    place.mkdir()
    c, metrics = interrupter(folder), _metrics.MetricsFile(place / "metrics", 0, True)
    n, n_raised, n_open, reached = 0, 0, len(os.listdir("/proc/self/fd")), True
    with warnings.catch_warnings(), unittest.mock.patch.object(_metrics, "as_text", lambda found, *_: found):
        warnings.simplefilter("error", UserWarning)
        while reached:
            n += 1
            c.interrupt_at(n)
            try:
                metrics.update(lambda: f"{n}")
                reached = c.interrupt_end()
            except KeyboardInterrupt:
                c.interrupt_end()
                n_raised += 1
            metrics.update(lambda: f"after {n}")
            assert (place / "metrics").read_text() == f"after {n}"
            assert os.listdir(place) == ["metrics"] and len(os.listdir("/proc/self/fd")) == n_open, n
    assert n_raised > 20, n_raised


# ---- Errors ----


def fails_at(n):
    """Makes the n-th call of the library fail, from 1 on; what it returns counts the calls."""
    calls, patches = [], []

    def wrapped(real):
        def call(*arguments):
            calls.append(real.__name__)
            if len(calls) != n:
                return real(*arguments)
            arguments[-1]._obj.status, arguments[-1]._obj.text = -2, b"made to fail"
            return -2

        return call

    for owner, name in ((_loader, "_next"), (_gather, "_batch_gather"), (_gather, "_set_parts"), *((lib, f"tokmap_{name}") for name in (
            "loader_next", "loader_seek", "loader_set_batch", "loader_ledger_line", "stage_open", "stage_next", "stage_save"))):
        patches.append(unittest.mock.patch.object(owner, name, wrapped(getattr(owner, name))))
    return calls, patches


def a_call_of_the_library_that_fails_loses_nothing(folder):
    for name, case in cases(folder):
        n, n_calls = 0, 1
        while n < n_calls:
            n += 1
            case.go_to()
            calls, patches = fails_at(n)
            with contextlib.ExitStack() as stack:
                for patch in patches:
                    stack.enter_context(patch)
                error = None
                try:
                    next(case.loader, None)
                except tokmap.Error as found:
                    error = str(found)
            n_calls = len(calls) if error is None else n + 1
            if error is not None:
                assert error == "made to fail", (name, n, error)
                case.expect_step()
        assert n >= (2 if name != "end without a row" else 1), (name, n, calls)
        case.loader.close()


def a_warning_that_is_an_error_loses_nothing(folder):
    """The metrics cannot be written for a while, and another run has gone on in the ledger."""
    place = folder / "there"
    alone = dict(seed=5, rank=0, n_ranks=1, batch_schedule=[(2 * ROWS, 2 * ROWS)])
    options = dict(ledger=folder / "ledger", metrics_file=place / "metrics", metrics_seconds=0)
    truth, loader, other = (tokmap.Loader(folder / "a", LENGTH, ROWS, **grouped(**alone, **more))
                            for more in ({}, options, {"ledger": options["ledger"]}))
    wanted, end = [next(truth) for _ in range(3)], truth.state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert "cannot be written" in str(raises(UserWarning, next, loader)) and loader.sample == 0
        place.mkdir()
        got = [next(loader), next(loader)]
        other.seek(ROWS)
        next(other)
        assert "another run" in str(raises(UserWarning, next, loader))
        assert loader.sample == 2 * ROWS and loader.batch_rows == ROWS
        got.append(next(loader))
    assert [batch.inputs.tolist() for batch in got] == [batch.inputs.tolist() for batch in wanted]
    assert loader.state() == end
    for one in (loader, other):
        one._recorder.ledger.is_open = False


sys.exit(run_in_folders("python_interrupts_", prepare=prepare))
