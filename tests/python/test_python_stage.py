#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.Stage: what it hands out is what the Loader says, through ctypes, and NumPy, PyTorch and JAX where
these are there; what is let go of comes back, in any order and any thread, also while the interpreter ends.

The device is the host; test_python_driver.py has streams and a device that fails."""

import array
import copy
import ctypes
import gc
import os
import pickle
import re
import subprocess
import sys
import threading
import traceback
import types
import unittest.mock
import warnings

from grouped import grouped
from package import ROOT, check_structs, outputs_of, raises
from ref_protocol import Skip, need, run_in_folders

import numpy as np
import tokmap
from tokmap._device import dlpack as _dlpack
from tokmap._c import structs as _lib
from tokmap._device import core as _stage_core
from tokmap._device import stage as stage_module

LENGTH, ROWS = 23, 5
ALL = ("inputs", "labels", "position_ids", "document_ids", "cu_seqlens")
OUTPUTS = ("inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens")


def write(folder):
    """Documents of 1 to 36 tokens, all of them different, narrow and wide."""
    for name, first, n_tokens, vocab_size in (("a", 0, 3001, 65536), ("b", 100000, 1501, 200000)):
        with tokmap.Writer(folder / name, vocab_size) as w:
            i = 0
            while i < n_tokens:
                n = min(1 + i * 7 % 36, n_tokens - i)
                w.document(range(first + i, first + i + n))
                i += n


def sources(folder, max_epochs=None):
    return [tokmap.Source(folder / "a", 0.7, max_epochs=max_epochs),
            tokmap.Source(folder / "b", 0.3, masked=True)]


def loader(folder, rows=ROWS, max_epochs=None, **options):
    return tokmap.Loader(sources(folder, max_epochs), LENGTH, rows,
                         **grouped(**{"seed": 5, "outputs": OUTPUTS, **options}))


def stage(folder, rows=ROWS, **options):
    """And a loader of the same order, to compare with."""
    made = tokmap.Stage(loader(folder, rows), "host", **{"outputs": ALL, **options})
    return made, loader(folder, rows)


KINDS = {"int32": ctypes.c_int32, "int64": ctypes.c_int64}


def numbers(a):
    """What stands in the memory of an output."""
    n = a.shape[0] * (a.shape[1] if len(a.shape) > 1 else 1)
    return list((KINDS[a.dtype] * n).from_address(a.address))


def said_by_loader(batch, **options):
    """The outputs, put together from the rows of a Loader's batch."""
    said, longest = outputs_of(batch.rows, LENGTH, **options)
    del said["loss_mask"]
    n_documents, n = len(said["cu_seqlens"]), batch.n_rows * LENGTH
    said["cu_seqlens"] += [n] * (n + 1 - n_documents)
    return said, (batch.first_sample, batch.first_sample, batch.n_rows, n_documents, longest)


def check(batch, truth, **options):
    said, facts = said_by_loader(truth, **options)
    if set(batch._stage.outputs) <= {"inputs", "labels"}:
        facts = *facts[:3], 0, 0
    assert facts == (batch.first_sample, batch.step_sample, batch.n_rows, batch.n_documents,
                     batch.max_seqlen)
    for name in batch._stage.outputs:
        assert numbers(getattr(batch, name)) == said[name], name


# ---- What is handed out ----


def structs_are_those_of_the_header(folder):
    header = (ROOT / "include" / "tokmap_stage.h").read_text()
    names = {"StageOptions": "tokmap_stage_options", "StageBatch": "tokmap_stage_batch",
             "StageTensor": "tokmap_stage_tensor", "StageInfo": "tokmap_stage_info"}
    check_structs(folder, ["tokmap_stage.h"], [(getattr(_lib, name), c) for name, c in names.items()])
    assert set(_lib.STAGE_SIGNATURES) == set(re.findall(r"\b(tokmap_stage_\w+)\(", header))
    flags = dict(re.findall(r"TOKMAP_STAGE_(\w+) = (\d+)", header))
    for name, flag in {**stage_module._OUTPUTS, "row_positions": stage_module._ROW_POSITIONS}.items():
        assert int(flags[name.upper()]) == flag, name


def batches_hold_what_the_loader_says(folder):
    for windows in ("concat", "within_document"):
        for options in ({}, {"thread": False}, {"input_dtype": "int64", "label_dtype": "int32"},
                        {"n_slots": 2, "n_host_slots": 1},
                        {"pad_id": 9, "ignore_index": -1}, {"ignore_index": 0}, {"positions": "row"}):
            said = {name: options[name] for name in ("pad_id", "ignore_index") if name in options}
            staged = loader(folder, windows=windows)
            truth = loader(folder, windows=windows)
            with tokmap.Stage(staged, "host", ALL, **options) as s:
                for _ in range(40):
                    batch = s.next()
                    check(batch, next(truth), by_row="positions" in options, **said)
                    assert s.sample == truth.sample
                    batch.release()
            assert staged.sample == truth.sample
            assert list(next(staged).rows[0].tokens) == list(next(truth).rows[0].tokens)


def only_outputs_that_were_asked_for_are_there(folder):
    s, truth = stage(folder, outputs="labels")
    batch = next(s)
    assert s.outputs == ("labels",) and batch.inputs is None and batch.cu_seqlens is None
    check_one = said_by_loader(next(truth))[0]["labels"]
    assert numbers(batch.labels) == check_one and len(batch) == ROWS
    assert "labels: int64 (5, 23)" in repr(batch.labels)
    small, truth = stage(folder, outputs=["cu_seqlens"], max_boundaries=70)
    assert next(small).cu_seqlens.shape == (71,)


def a_state_goes_on_in_stages_and_loaders(folder):
    s, truth = stage(folder)
    for _ in range(7):
        next(s), next(truth)
    state = s.state()
    assert state == truth.state() and s.sample == 7 * ROWS
    for thread in (True, False):
        again, other = stage(folder, rows=3, thread=thread)
        held = next(again)
        first = numbers(held.inputs)
        again.restore(state)
        other.restore(state)
        for _ in range(20):
            check(again.next(), next(other))
        assert numbers(held.inputs) == first
        again.seek(4)
        other.seek(4)
        check(again.next(), next(other))
        raises(tokmap.Error, again.restore, bytes(128))
        raises(ValueError, again.restore, state[:-1])
        check(again.next(), next(other))
    resumed = loader(folder)
    resumed.restore(state)
    check(next(s), next(resumed))


def a_batch_has_the_state_after_it(folder):
    """As a framework that prefetches needs it, which has taken more than it has used."""
    for make in (lambda: loader(folder), lambda: tokmap.Stage(loader(folder), "host", n_slots=32)):
        ahead, truth = make(), loader(folder)
        batches = [next(ahead) for _ in range(9)]
        for batch in batches:
            truth.seek(batch.first_sample)
            next(truth)
            assert batch.state == truth.state()
        resumed = loader(folder)
        resumed.restore(batches[4].state)
        assert next(resumed).first_sample == batches[5].first_sample
        assert ahead.state() == batches[-1].state != batches[4].state


def an_interrupted_batch_comes_again(folder):
    s, truth = stage(folder)
    take, state = s._core.take, s.state()

    def take_and_stop(*arguments):
        take(*arguments)
        raise KeyboardInterrupt

    for _ in range(9):  # more than there are slots
        with unittest.mock.patch.object(s._core, "take", take_and_stop):
            raises(KeyboardInterrupt, next, s)
        assert s.state() == state
    check(next(s), next(truth))


def an_end_is_told_and_can_be_left(folder):
    truth = loader(folder, max_epochs=1)
    s = tokmap.Stage(loader(folder, max_epochs=1), "host")
    n_steps = sum(1 for _ in truth)
    assert n_steps > 5 and sum(1 for _ in s) == n_steps
    assert s.next() is None and s.fill() is None
    assert s.fill(inputs=bytearray(4 * LENGTH * ROWS)) is None
    s.seek(0)
    truth.seek(0)
    check(next(s), next(truth))


# ---- Who holds what ----


def batches_are_held_and_released_in_any_order(folder):
    s, truth = stage(folder, n_slots=4)
    for _ in range(20):
        held = [(s.next(), next(truth)) for _ in range(1)]
        said = [said_by_loader(t)[0] for _, t in held]
        for _ in range(2):
            held.append((s.next(), next(truth)))
            said.append(said_by_loader(held[-1][1])[0])
        error = raises(tokmap.Error, s.next)
        assert "3 of the batches are held" in str(error) and error.status == -1
        for i in (1, 0, 2):
            for (batch, _), values in list(zip(held, said))[i:i + 1]:
                assert {name: numbers(getattr(batch, name)) for name in ALL} == values
                batch.release()
                batch.release()  # once more does nothing
                raises(BufferError, batch.inputs.__dlpack__)


def batches_that_nobody_looks_at_come_back(folder):
    s, truth = stage(folder, n_slots=2)
    for _ in range(30):
        batch = s.next()
        check(batch, next(truth))
        kept = batch.inputs
        del batch
        raises(tokmap.Error, s.next)  # an output keeps its batch
        del kept
    for _ in range(30):
        with s.next() as batch:
            check(batch, next(truth))
    batch = s.next()
    s.close()
    raises(ValueError, batch.release)
    raises(ValueError, batch.inputs.__dlpack__)
    raises(ValueError, s.next)
    s.close()


def batches_in_circles_are_collected_when_slots_are_short(folder):
    s, truth = stage(folder, n_slots=3)
    gc.disable()
    try:
        for _ in range(20):
            things = {"batch": s.next()}
            things["self"] = things
            check(things["batch"], next(truth))
    finally:
        gc.enable()
    del things
    held = [s.next(), s.next()]
    raises(tokmap.Error, s.next)
    del held


def a_batch_keeps_its_stage_open(folder):
    batch = next(stage(folder)[0])
    gc.collect()
    check(batch, next(loader(folder)))


def metrics_count_the_tokens_of_a_device(folder):
    need("torch")
    for options in ({"windows": "within_document"}, {"windows": "best_fit", "skip": [(8, 21)]},
                    {"windows": "best_fit", "align": 4, "cp_size": 4, "cp_mode": "zigzag", "sequence_length": 24}):
        length = options.pop("sequence_length", LENGTH)
        options = {"outputs": ("inputs", "labels"), "seed": 3, "rank": 0, "n_ranks": 1, **options}
        file = folder / "metrics"
        on_device = tokmap.Loader(sources(folder), length, ROWS, **grouped(device="host", mask_labels=True, metrics_file=file, metrics_seconds=0, **options))
        plain = tokmap.Loader(sources(folder), length, ROWS, **grouped(mask_labels=True, **options))
        for loader in (on_device, plain):
            loader.metrics()
        for _ in range(9):
            batch, wanted = next(on_device), next(plain)
            assert batch.sample_ids.tolist() == wanted.sample_ids.tolist()
            assert batch.source_ids.tolist() == wanted.source_ids.tolist()
            assert f"tokmap_run_position {plain.sample}\n" in file.read_text()
        assert on_device.metrics()["sources"] == plain.metrics()["sources"] and plain.metrics()["sources"][1]["process_tokens"] > 0
        assert "inputs of the first rows" in batch._repr_html_() and "next samples" in on_device._repr_html_()
        on_device.close()


def a_loader_that_is_lent_says_so(folder):
    l, truth = loader(folder), loader(folder)
    old = next(l)
    next(truth)
    s = tokmap.Stage(l, "host")
    raises(ValueError, lambda: old.rows)
    for call in (l.__next__, l.state, lambda: l.stats, lambda: l.seek(0), lambda: l.sample,
                 lambda: tokmap.Stage(l, "host"), lambda: l.locate(0)):
        assert "a stage uses this loader" in str(raises(ValueError, call))
    check(next(s), next(truth))
    s.close()
    assert list(next(l).rows[0].tokens) == list(next(truth).rows[0].tokens)
    s = tokmap.Stage(l, "host")
    l.close()  # the stage has what it needs
    kept = next(s)
    check(kept, next(truth))
    s.close()
    raises(ValueError, l.__next__)
    for call in (copy.copy, copy.deepcopy, pickle.dumps):
        raises(TypeError, call, s)
        raises(TypeError, call, kept)  # a copy would release it


def collected_together_all_are_closed_in_their_order(folder):
    """The collector may begin with any of them; the stage reads from the loader until it is closed."""
    for _ in range(60):
        things = {"stage": stage(folder)[0]}
        things["batch"], things["self"] = next(things["stage"]), things
        del things
        gc.collect()
    gc.collect()
    assert not [t for t in gc.get_objects() if isinstance(t, _stage_core.Core)]


# ---- DLPack ----


def a_capsule_that_nobody_takes_costs_nothing(folder):
    s, truth = stage(folder, n_slots=2)
    for i in range(200):
        batch = s.next()
        next(truth)
        for name in ALL:
            getattr(batch, name).__dlpack__()
        kept = batch.inputs.__dlpack__() if i == 100 else None
        batch.release() if i % 2 else None
        del batch
        if kept:
            raises(tokmap.Error, s.next)  # it may still be taken
            _dlpack.delete(_dlpack.take(kept))
    assert not _dlpack.orphans


def a_tensor_keeps_its_memory(folder):
    s, truth = stage(folder, n_slots=3)
    batch = s.next()
    said = said_by_loader(next(truth))[0]
    tensors = {name: _dlpack.take(getattr(batch, name).__dlpack__()) for name in ALL}
    batch.release()
    for _ in range(9):
        s.next()
    two = s.next()
    raises(tokmap.Error, s.next)
    s.close()
    del two
    for name, t in tensors.items():
        kind = ctypes.c_int64 if t.type_bits == 64 else ctypes.c_int32
        shape = t.shape[:t.n_dimensions]
        n = shape[0] * (shape[1] if len(shape) == 2 else 1)
        assert (t.device_type, t.device_id, t.type_code, t.type_lanes, t.byte_offset) == (1, 0, 0, 1, 0)
        assert list((kind * n).from_address(t.data)) == said[name]
        assert shape == ([ROWS * LENGTH + 1] if name == "cu_seqlens" else [ROWS, LENGTH])
        assert t.strides[:len(shape)] == ([1] if len(shape) == 1 else [LENGTH, 1])
    for t in tensors.values():
        _dlpack.delete(t)


def what_dlpack_asks_for_is_answered(folder):
    a = next(stage(folder)[0]).inputs
    assert a.__dlpack_device__() == (1, 0)
    for named in ({}, {"stream": None}, {"stream": -1}, {"max_version": (1, 0)}, {"copy": False},
                  {"dl_device": (1, 0)}):
        assert "dltensor" in repr(a.__dlpack__(**named))
    for named in ({"copy": True}, {"dl_device": (2, 0)}):
        raises(BufferError, a.__dlpack__, **named)
    for stream in (0, 1, 2, 77, -2, True, "1"):
        raises(ValueError, a.__dlpack__, stream=stream)


def numpy_takes_arrays(folder):
    np = need("numpy")
    if not hasattr(np, "from_dlpack"):
        raise Skip(f"NumPy {np.__version__} has no from_dlpack")
    s, truth = stage(folder)
    for _ in range(10):
        batch = s.next()
        said = said_by_loader(next(truth))[0]
        arrays = {name: np.from_dlpack(getattr(batch, name)) for name in ALL}
        assert arrays["labels"].dtype == np.int64 and arrays["inputs"].shape == (ROWS, LENGTH)
        assert arrays["inputs"].ctypes.data == batch.inputs.address
        del batch
        s.next(), next(truth)
        for name, a in arrays.items():
            assert a.flatten().tolist() == said[name]
    inputs = np.zeros((ROWS, LENGTH), np.int32)
    s.fill(inputs=inputs)
    assert inputs.flatten().tolist() == said_by_loader(next(truth))[0]["inputs"]
    s.close()
    assert arrays["labels"].flatten().tolist() == said["labels"]


def torch_takes_batches(folder):
    torch = need("torch")
    s, truth = stage(folder)
    kept = []
    for _, batch in zip(range(12), s):
        said = said_by_loader(next(truth))[0]
        tensors = batch.torch()
        assert tensors._fields == ALL and tensors.labels.dtype == torch.int64
        assert tensors.inputs.data_ptr() == batch.inputs.address
        assert tensors.cu_seqlens[:batch.n_documents + 1].tolist()[-1] == ROWS * LENGTH
        kept = kept[-1:] + [(tensors, said)]
        for tensors, said in kept:
            assert {n: getattr(tensors, n).flatten().tolist() for n in ALL} == said
    table = torch.nn.Embedding(200000, 2)
    with tokmap.Stage(loader(folder), torch.device("cpu"), input_dtype=torch.int64) as other:
        for _, batch in zip(range(9), other):
            inputs, labels = batch.torch()
            del batch
            table(inputs).sum().backward()
    targets = {"inputs": torch.zeros(ROWS, LENGTH, dtype=torch.int32),
               "labels": torch.zeros(ROWS, LENGTH, dtype=torch.int64)}
    s.seek(0)
    s.fill(**targets)
    truth.seek(0)
    said = said_by_loader(next(truth))[0]
    assert {n: t.flatten().tolist() for n, t in targets.items()} == {n: said[n] for n in targets}
    for bad in (targets["labels"], targets["inputs"][:, 1:], targets["inputs"][1:],
                torch.zeros(LENGTH, ROWS, dtype=torch.int32).t()):
        raises(ValueError, s.fill, inputs=bad)
    assert s.sample == ROWS


def jax_takes_arrays(folder):
    jax = need("jax")
    s, truth = stage(folder)
    for _ in range(5):
        with s.next() as batch:
            said = said_by_loader(next(truth))[0]
            for name in ("inputs", "position_ids", "cu_seqlens"):
                a = jax.dlpack.from_dlpack(getattr(batch, name))
                assert a.flatten().tolist() == said[name]
        del a


# ---- Fill, edit, log ----


def fill_writes_where_it_is_told(folder):
    for options in ({}, {"thread": False}, {"n_slots": 2}):
        s, truth = stage(folder, max_boundaries=ROWS * LENGTH, **options)
        n = ROWS * LENGTH
        targets = {"inputs": bytearray(4 * n), "labels": array.array("q", [0] * n),
                   "position_ids": array.array("i", [0] * n),
                   "cu_seqlens": (ctypes.c_int32 * (n + 1))()}
        number = (ctypes.c_int32 * n)()
        for i in range(20):
            filled = s.fill(document_ids=ctypes.addressof(number), **targets)
            said, facts = said_by_loader(next(truth))
            assert facts == (filled.first_sample, filled.step_sample, filled.n_rows,
                             filled.n_documents, filled.max_seqlen)
            assert list(number) == said["document_ids"]
            assert memoryview(targets["inputs"]).cast("i").tolist() == said["inputs"]
            for name in ("labels", "position_ids", "cu_seqlens"):
                assert list(targets[name]) == said[name], name
    for target in (bytearray(4 * n - 1), bytes(4 * n), bytearray(8 * n)):
        raises(ValueError, s.fill, inputs=target)
    raises(TypeError, s.fill, inputs=1.5)
    raises(ValueError, s.fill, input=targets["inputs"])
    assert s.sample == 20 * ROWS


def edit_changes_what_is_staged(folder):

    def turn(rows, first_sample):
        for i, row in enumerate(rows):
            if (first_sample + i) % 3 == 0:
                row.tokens = array.array("H" if row.tokens.itemsize == 2 else "I",
                                         list(row.tokens)[::-1])
            if (first_sample + i) % 2 == 0:
                row.loss_mask = bytes(j % 2 for j in range(LENGTH))

    for thread in (True, False):
        s, truth = stage(folder, edit=turn, thread=thread)
        for _ in range(30):
            batch, rows = s.next(), next(truth)
            said = {"inputs": [], "labels": []}
            for i in range(ROWS):
                sample, tokens = rows.first_sample + i, list(rows.rows[i].tokens)
                tokens = tokens[::-1] if sample % 3 == 0 else tokens
                mask = rows.rows[i].loss_mask if sample % 2 else [j % 2 for j in range(LENGTH)]
                said["inputs"] += tokens[:-1]
                said["labels"] += [t if m else -100 for t, m in zip(tokens[1:], mask)]
            assert {name: numbers(getattr(batch, name)) for name in said} == said


def what_edit_raises_comes_with_its_step(folder):
    bad = [4 * ROWS]

    def fail(rows, first_sample):
        if first_sample in bad:
            raise KeyError(first_sample)
        if bad == ["size"]:
            rows[1].tokens = rows[1].tokens[1:]

    for thread in (True, False):
        bad[:] = [4 * ROWS]
        s, truth = stage(folder, edit=fail, thread=thread)
        for _ in range(4):
            check(s.next(), next(truth))
        for _ in range(2):
            assert raises(KeyError, s.next).args == (4 * ROWS,)
        assert s.sample == 4 * ROWS
        bad.clear()
        check(s.next(), next(truth))
        bad[:] = ["size"]
        s.seek(0)
        assert "tokens has" in str(raises(ValueError, s.next))


def info_counts(folder):
    s, _ = stage(folder)
    for _ in range(5):
        s.next().release()
    info = s.stats
    assert (info["n_batches"], info["n_tokens"]) == (5, 5 * ROWS * LENGTH)
    assert info["device"] == "host" and info["pinned"] is True and info["n_slots"] == 4
    assert info["bytes_moved"] >= 5 * ROWS * (LENGTH + 1) * 2 and info["host_bytes"] > 0


def cuda_is_the_current_device(folder):
    for cuda, wanted in ((dict(is_available=lambda: True, current_device=lambda: 5), 5), (dict(is_available=lambda: False), 0)):
        torch = types.SimpleNamespace(cuda=types.SimpleNamespace(**cuda))
        with unittest.mock.patch.dict(sys.modules, torch=torch):
            assert stage_module._device("cuda") == wanted and stage_module._device("cuda:3") == 3
    with unittest.mock.patch.dict(sys.modules, torch=None):
        assert stage_module._device("cuda") == 0


def what_a_stage_cannot_take_is_refused(folder):
    l = loader(folder, outputs=["loss_mask"])
    for named in ({"device": -1}, {"device": "cuda:"}, {"device": 2**31}, {"device": True},
                  {"outputs": ()}, {"outputs": ["input"]}, {"input_dtype": "int16"},
                  {"label_dtype": "int32", "ignore_index": 2**31},
                  {"n_slots": -1}, {"pad_id": 2**32}):
        raises(ValueError, tokmap.Stage, l, **{"device": "host", **named})
    for named in ({"n_slots": 65}, {"n_host_slots": 99}):
        raises(tokmap.Error, tokmap.Stage, l, **{"device": "host", **named})
    for kind, stream in ((ValueError, -1), (ValueError, 2), (TypeError, True), (TypeError, "x")):
        raises(kind, tokmap.Stage(loader(folder), "host").next, stream)
    raises(ValueError, tokmap.Stage, loader(folder, drop_last=False), "host")  # it would lose the last rows
    next(l)  # none of them has taken it
    l.close()
    raises(ValueError, tokmap.Stage, l, "host")


# ---- Threads, forks and ends ----


def batches_are_let_go_of_in_other_threads(folder):
    s, truth = stage(folder, n_slots=8)
    boxes = [[] for _ in range(3)]
    stop = threading.Event()

    def empty(box):
        while not stop.is_set():
            while box:
                box.pop(0)
            stop.wait(0.0001)

    threads = [threading.Thread(target=empty, args=(box,)) for box in boxes]
    for t in threads:
        t.start()
    try:
        n = n_refused = 0
        while n < 200:
            try:
                batch = s.next()
            except tokmap.Error:  # all slots are with the threads
                n_refused += 1
                assert n_refused < 1000000, "what the threads have let go of does not come back"
                continue
            check(batch, next(truth))
            box = boxes[n % 3]
            box.append(batch if n % 2 else _Freed(batch.labels.__dlpack__()))
            del batch
            n += 1
    finally:
        stop.set()
        for t in threads:
            t.join()


class _Freed:
    """A tensor of another library."""

    def __init__(self, capsule):
        self.tensor = _dlpack.take(capsule)

    def __del__(self):
        _dlpack.delete(self.tensor)


def a_stage_may_be_collected_in_its_own_thread(folder):
    collected = threading.Event()

    def edit(rows, first_sample):
        if first_sample >= 6 * ROWS and dropped.wait(20):
            gc.collect()
            collected.set()

    for _ in range(5):
        collected.clear()
        dropped = threading.Event()
        things = {"stage": stage(folder, edit=edit, n_slots=16, n_host_slots=64)[0]}
        things["self"], things["batch"] = things, next(things["stage"])
        reference = things["stage"]._core
        del things
        dropped.set()
        assert collected.wait(20) or not reference.pointer
        gc.collect()
        for _ in range(2000):
            if not reference.pointer and reference.loader is None:
                break
            threading.Event().wait(0.01)
        assert reference.loader is None


def a_stage_is_not_closed_under_a_call(folder):
    inside, go_on = threading.Event(), threading.Event()

    def edit(rows, first_sample):
        inside.set()
        go_on.wait()

    s, truth = stage(folder, edit=edit)
    box = []
    thread = threading.Thread(target=lambda: box.append(s.next()))
    thread.start()
    inside.wait()
    while s._core.n_users == 0:
        pass
    assert "another thread" in str(raises(ValueError, s.close))
    go_on.set()
    thread.join()
    check(box.pop(), next(truth))
    s.close()


def a_child_leaves_the_stage_of_its_parent_alone(folder):
    s, truth = stage(folder)
    batch = s.next()
    next(truth)
    tensor = _Freed(batch.labels.__dlpack__())
    with warnings.catch_warnings():  # threads do not survive a fork: that is what this is about
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        status = 1
        try:
            assert raises(tokmap.Error, s.next).status == -11
            assert raises(tokmap.Error, s.state).status == -11
            raises(tokmap.Error, batch.inputs.__dlpack__)
            s.close()
            junk = [ctypes.create_string_buffer(b"\xff" * n, n) for n in range(100, 40000, 8)]
            del batch, s, tensor, junk
            gc.collect()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    for _ in range(5):
        check(s.next(), next(truth))


BEGIN = """
import gc, os, sys, threading, time
sys.path.insert(0, {python!r})
import tokmap
from tokmap._device import dlpack as _dlpack
def loader():
    return tokmap.Loader(tokmap.Dataset({folder!r} + "/a"), 23, 5, seed=5, outputs=["cu_seqlens"])
def slow(rows, first_sample):
    sum(range(1000))
"""

ENDS = {  # what is still there when the interpreter ends
    "a stage": "s = tokmap.Stage(loader(), 'host')",
    "a batch": "b = next(tokmap.Stage(loader(), 'host'))",
    "a batch of a closed stage": "s = tokmap.Stage(loader(), 'host'); b = next(s); s.close()",
    "an output and a capsule": "s = tokmap.Stage(loader(), 'host'); b = next(s); a = b.inputs\n"
                               "c = a.__dlpack__(); sys.keep = c",
    "a tensor": "s = tokmap.Stage(loader(), 'host'); t = _dlpack.take(next(s).inputs.__dlpack__())",
    "a tensor of a closed stage": "s = tokmap.Stage(loader(), 'host')\n"
                                  "t = _dlpack.take(next(s).inputs.__dlpack__()); s.close()",
    "a circle": "s = tokmap.Stage(loader(), 'host'); s.circle = [s, next(s), s.next().labels]",
    "a stage in edit": "s = tokmap.Stage(loader(), 'host', edit=slow); b = next(s)",
    "a stage kept by a module": "sys.keep = os.keep = gc.keep = next(tokmap.Stage(loader(), 'host'))",
    "a thread that goes on": "s = tokmap.Stage(loader(), 'host')\n"
                             "def work():\n    while True:\n        try: s.next().release()\n"
                             "        except (ValueError, tokmap.Error): break\n"
                             "for _ in range(3):\n"
                             "    threading.Thread(target=work, daemon=True).start()\n"
                             "time.sleep(0.05)",
    "a thread and edit": "s = tokmap.Stage(loader(), 'host', edit=slow, log=print)\n"
                         "def work():\n    while True:\n        try: s.next().release()\n"
                         "        except ValueError: break\n"
                         "threading.Thread(target=work, daemon=True).start(); time.sleep(0.05)",
    "a thread that waits in next": "s = tokmap.Stage(loader(), 'host', edit=lambda *_: time.sleep(999))\n"
                                   "threading.Thread(target=s.next, daemon=True).start()\n"
                                   "while s._core.n_users == 0: pass",
    "an exception": "s = tokmap.Stage(loader(), 'host'); b = next(s)\n"
                    "try: s.no_such_name\nexcept AttributeError as e: kept = e",
    "sys.exit": "s = tokmap.Stage(loader(), 'host', edit=slow); b = next(s); sys.exit(0)",
    "a fork": "s = tokmap.Stage(loader(), 'host'); b = next(s); c = b.inputs.__dlpack__()\n"
              "pid = os.fork()\nif pid: sys.exit(os.waitpid(pid, 0)[1])",
}

LIBRARIES_AT_THE_END = {
    "numpy": "import numpy\ns = tokmap.Stage(loader(), 'host'); b = next(s)\n"
             "x = numpy.from_dlpack(b.inputs); y = numpy.from_dlpack(b.labels)",
    "torch": "import torch\ns = tokmap.Stage(loader(), 'host'); b = next(s); x = b.torch()\n"
             "s.circle = [s, next(s).torch()]",
}


def run_end(folder, name, script):
    text = BEGIN.format(python=str(ROOT / "python"), folder=str(folder)) + script + "\n"
    done = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", text],
                          capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), (name, done.returncode, done.stderr)


def an_interpreter_may_end_with_anything_alive(folder):
    for name, script in ENDS.items():
        run_end(folder, name, script)


def an_interpreter_may_end_with_arrays_alive(folder):
    np = need("numpy")
    if not hasattr(np, "from_dlpack"):
        raise Skip(f"NumPy {np.__version__} has no from_dlpack")
    run_end(folder, "numpy", LIBRARIES_AT_THE_END["numpy"])


def an_interpreter_may_end_with_torch_tensors_alive(folder):
    need("torch")
    run_end(folder, "torch", LIBRARIES_AT_THE_END["torch"])


if __name__ == "__main__":
    sys.exit(run_in_folders("python_", prepare=write))
