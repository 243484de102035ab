#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datasets and Loaders over a store: the same rows, order, states and documents as from the files, and what is not done there is
refused by name. Needs no obstore: the stores are functions over a folder."""

import functools
import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

from package import raises  # before NumPy
from ref_protocol import run_in_folders
from store_reads import run_in_child

import numpy as np

import tokmap

LENGTH = 64


class Folder:
    """A function over a folder, which can be pickled, also into a short process: this script is not its module there, so tokmap
    reads here. fail: a name whose ranges cannot be read."""

    fail = None
    calls = 0

    def __init__(self, folder):
        self.folder = str(folder)

    def __call__(self, name, offset, length):
        self.calls += 1
        if self.fail is not None and name.endswith(self.fail):
            raise OSError("the store is down")
        with open(os.path.join(self.folder, name), "rb") as file:
            return os.pread(file.fileno(), length, offset)

    def size(self, name):
        return os.stat(os.path.join(self.folder, name)).st_size


def write(path, n_documents=300, seed=1, vocab_size=60000, **options):
    numbers = random.Random(seed)
    with tokmap.Writer(path, vocab_size, **options) as writer:
        for i in range(n_documents):
            writer.document([numbers.randrange(vocab_size) for _ in range(numbers.randrange(1, 120))])


def read_file(folder, name, offset, length):
    with open(os.path.join(folder, name), "rb") as file:
        return os.pread(file.fileno(), length, offset)


def same_batches(a, b, n_steps):
    for _ in range(n_steps):
        one, other = next(a), next(b)
        for name in a.outputs:
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
        assert one.state == other.state


def rows_are_those_of_the_files(folder):
    write(folder / "a")
    write(folder / "b", seed=2)
    given = Folder(folder)
    outputs = ("inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens")
    for options in ({}, {"shuffle": "none"}, {"shuffle": "block"}, {"windows": "within_document"}, {"windows": "best_fit"},
                    {"outputs": outputs}, {"outputs": outputs, "windows": "best_fit"}, {"ranks": tokmap.Ranks(rank=1, n_ranks=3)}):
        local = tokmap.Loader([folder / "a", folder / "b"], LENGTH, 4, seed=3, **options)
        stored = tokmap.Loader(["a", "b.tmi"], LENGTH, 4, seed=3, store=given, **options)
        assert stored.n_samples == local.n_samples and stored.stats["io"] == "store", stored.stats
        same_batches(local, stored, 40)
        assert "reads by store" in repr(stored)
        for loader in (local, stored):
            loader.close()
    mixed = {"a": 0.7, "b": 0.3}
    same_batches(tokmap.Loader({folder / name: weight for name, weight in mixed.items()}, LENGTH, 4),
                 tokmap.Loader(mixed, LENGTH, 4, store=given), 40)
    same_batches(tokmap.Loader([tokmap.Source(folder / "a"), tokmap.Source(folder / "b", 2)], LENGTH, 4),
                 tokmap.Loader([tokmap.Source("a", store=given), tokmap.Source(folder / "b", 2)], LENGTH, 4), 40)  # one of each


def a_run_moves_between_store_and_disk(folder):
    write(folder / "a")
    given = Folder(folder)
    loader, whole = tokmap.Loader(folder / "a", LENGTH, 4, seed=7), tokmap.Loader(folder / "a", LENGTH, 4, seed=7)
    ledger = folder / "ledger"
    for i in range(6):
        same_batches(loader, whole, 7)
        state = loader.state()
        loader.close()
        of_store = {"store": given} if i % 2 == 0 else {}
        loader = tokmap.Loader("a" if of_store else folder / "a", LENGTH, 4, seed=7, ledger=ledger, **of_store)
        loader.restore(state)
    same_batches(loader, whole, 7)


def documents_are_those_of_the_files(folder):
    write(folder / "a")
    local, stored = tokmap.open(folder / "a"), tokmap.open("a", store=Folder(folder))
    assert len(stored) == len(local) and stored.n_tokens == local.n_tokens and stored.dataset_id == local.dataset_id
    assert stored.metadata == local.metadata and stored.paths == ["a.tmi"] and stored.inputs == local.inputs
    for i in (0, 7, -1):
        assert np.array_equal(stored[i], local[i]) and not stored[i].flags.writeable
    assert np.array_equal(stored.tokens(5, 1000), local.tokens(5, 1000))
    assert stored.find_document(500) == local.find_document(500) and np.array_equal(stored.lengths(), local.lengths())
    assert np.array_equal(np.asarray(stored), np.asarray(local))


def what_needs_files_is_refused_by_name(folder):
    write(folder / "a")
    given = Folder(folder)
    stored = tokmap.open("a", store=given)
    for call in (lambda: stored.verify(), lambda: stored.add_column("x", np.zeros(len(stored), int)), lambda: stored.lanes,
                 lambda: stored.scan("x", duplicates=True), lambda: stored.add_lane("x", np.zeros(stored.n_tokens, np.uint8)),
                 lambda: stored.lane_writer("x", "uint8"), lambda: stored.write_view(keep=np.ones(len(stored), bool))):
        error = raises(tokmap.UnsupportedError, call)
        assert "a.tmi" in str(error) or "a:" in str(error), error
    for io in ("map", "direct", "populate", "read", "copy"):
        raises(tokmap.Error, lambda io=io: tokmap.Loader("a", LENGTH, store=given, reading=tokmap.Reading(io=io)))
    raises(ValueError, lambda: tokmap.Loader(tokmap.Source(folder / "a"), LENGTH, store=given))
    raises(ValueError, lambda: tokmap.Source(stored, store=given))
    raises(TypeError, lambda: tokmap.open("a", store="s3"))
    for wrong in (0, -1, float("nan"), 1e9):
        raises(ValueError, lambda wrong=wrong: tokmap.Reading(deadline=wrong))
    assert "is named twice" in str(raises(ValueError, lambda: tokmap.Loader(["a", "a"], LENGTH, store=given)))
    error = raises(tokmap.FileError, lambda: tokmap.open("missing", store=given))
    assert isinstance(error, FileNotFoundError) and "missing.tmi" in str(error), error
    os.remove(folder / "a.bin")
    error = raises(tokmap.FileError, lambda: tokmap.open("a", store=given))
    assert isinstance(error, FileNotFoundError) and "a.bin" in str(error), error


def after_an_error_the_loader_is_as_before(folder):
    write(folder / "a", 3000)
    given = Folder(folder)
    local = tokmap.Loader(folder / "a", LENGTH, 4)
    stored = tokmap.Loader("a", LENGTH, 4, store=given, reading=tokmap.Reading(deadline=0.5))
    same_batches(local, stored, 3)
    given.fail = ".bin"
    for _ in range(2000):  # what was read ahead comes first
        before = stored.sample
        try:
            next(stored)
            next(local)
        except tokmap.FileError as error:
            begun = time.monotonic()
            assert isinstance(error, TimeoutError) and "a.bin: bytes " in str(error) and "the store is down" in str(error), error
            break
    assert stored.sample == before == local.sample
    raises(tokmap.FileError, lambda: next(stored))
    assert time.monotonic() - begun < 20
    given.fail = None
    same_batches(local, stored, 20)
    assert stored.stats["store"]["failures"] > 0


def blocks_are_compared_if_asked_for(folder):
    write(folder / "a", 3000)
    data = bytearray((folder / "a.bin").read_bytes())
    data[len(data) // 2] ^= 1
    given = Folder(folder)
    local = tokmap.Loader(folder / "a", LENGTH, 4, shuffle="none", max_epochs=1)
    stored = tokmap.Loader("a", LENGTH, 4, shuffle="none", max_epochs=1, store=given, reading=tokmap.Reading(verify=True))
    same_batches(local, stored, 3)
    stored.close()
    (folder / "a.bin").write_bytes(data)
    stored = tokmap.Loader("a", LENGTH, 4, shuffle="none", max_epochs=1, store=given, reading=tokmap.Reading(verify=True))
    assert "a.bin" in str(raises(tokmap.DamagedError, lambda: list(stored)))
    assert len(list(tokmap.Loader("a", LENGTH, 4, shuffle="none", max_epochs=1, store=given))) > 100  # not compared


def requests_are_counted(folder):
    write(folder / "a", 3000)
    given = Folder(folder)
    loader = tokmap.Loader("a", LENGTH, 4, store=given, reading=tokmap.Reading(look_ahead=4))
    for _ in range(20):
        next(loader)
    found = loader.stats
    assert found["io"] == "store" and found["store"]["requests"] >= 20 and found["store"]["failures"] == 0, found
    assert found["store"]["bytes"] >= 20 * 4 * LENGTH * 2
    assert "store" not in tokmap.Loader(folder / "a", LENGTH).stats


def pickles_open_again(folder):
    write(folder / "a")
    (folder / "users_store.py").write_text(textwrap.dedent(f"""
        import os

        def read(name, offset, length):
            with open(os.path.join({str(folder)!r}, name), "rb") as file:
                return os.pread(file.fileno(), length, offset)
    """))
    sys.path.insert(0, str(folder))
    import users_store

    dataset = tokmap.open("a", store=users_store.read)
    again = pickle.loads(pickle.dumps(dataset))
    assert again.dataset_id == dataset.dataset_id and np.array_equal(again[3], dataset[3])
    loader = tokmap.Loader("a", LENGTH, 4, store=users_store.read)
    next(loader)
    copy = pickle.loads(pickle.dumps(loader))
    same_batches(loader, copy, 10)
    raises((pickle.PicklingError, AttributeError), pickle.dumps, tokmap.open("a", store=lambda *given: users_store.read(*given)))
    write(folder / "a2", seed=9)
    pickled = pickle.dumps(dataset)
    os.replace(folder / "a2.bin", folder / "a.bin")
    os.replace(folder / "a2.tmi", folder / "a.tmi")
    raises(tokmap.MismatchError, pickle.loads, pickled)


def an_index_on_a_disk_is_used(folder):
    (folder / "here").mkdir()
    write(folder / "a")
    with_files = tokmap.open(folder / "a")
    os.rename(folder / "a.tmi", folder / "here/a.tmi")
    store = functools.partial(read_file, str(folder))
    raises(tokmap.FileError, tokmap.open, "a", store=store)
    dataset = tokmap.Dataset("a", store=store, index=folder / "here/a.tmi")
    assert np.array_equal(dataset.tokens(0, 500), with_files.tokens(0, 500))
    same_batches(tokmap.Loader(dataset, LENGTH, 4, windows="best_fit"), tokmap.Loader(with_files, LENGTH, 4, windows="best_fit"), 20)
    again = pickle.loads(pickle.dumps(dataset))
    assert again.dataset_id == dataset.dataset_id and np.array_equal(again[3], dataset[3])
    for wrong in (dict(path="here/a", index="here/a.tmi"), dict(path=["a", "b"], store=store, index="here/a.tmi")):
        raises(ValueError, lambda wrong=wrong: tokmap.Dataset(**wrong))


def a_large_index_that_cannot_be_read_is_not_called_damaged(folder):
    with tokmap.Writer(folder / "a", 100, meta=["text"]) as writer:
        for i in range(1100):  # 64 MiB, which are read when they are needed
            writer.document([1, 2, 3], {"text": f"{i} " + "x" * 64000})
    for look_up in (lambda dataset: dataset[3], lambda dataset: dataset.metadata, lambda dataset: dataset.meta("text")):
        given = Folder(folder)
        dataset = tokmap.Dataset("a", store=given)
        given.fail = ".tmi"
        dataset._shards()[0].source.deadline = 0.5
        assert isinstance(raises(tokmap.FileError, look_up, dataset), TimeoutError)
        given.fail = None
        look_up(dataset)


def two_stores_may_have_datasets_of_one_name(folder):
    both = []
    for name in "ab":
        (folder / name).mkdir()
        write(folder / name / "train", seed=ord(name))
        both.append(tokmap.Dataset("train", store=functools.partial(read_file, str(folder / name))))
    with tokmap.Loader(both, LENGTH, 4) as loader, tokmap.Loader([folder / "a/train", folder / "b/train"], LENGTH, 4) as with_files:
        same_batches(loader, with_files, 10)
    raises(tokmap.ArgumentError, tokmap.Loader, [both[0], tokmap.Dataset("train", store=both[0]._shards()[0].source.store)], LENGTH, 4)


def a_view_on_a_disk_goes_with_a_name_without_a_folder(folder):
    write(folder / "a")
    (folder / "here").mkdir()
    with_files = tokmap.open(folder / "a")
    with_files.write_view(folder / "here/v.tmw", keep=np.arange(300) % 3 == 0)
    dataset = tokmap.Dataset("a", store=lambda name, *where: read_file(str(folder), "./" + name, *where))
    for data in (dataset, with_files):
        loader = tokmap.Loader(tokmap.Source(data, view=folder / "here/v.tmw"), LENGTH, 4)
        first = next(loader).inputs if data is dataset else first
    assert np.array_equal(first, next(loader).inputs)


def datasets_that_are_opened_together_are_read_by_one_call(folder):
    names = [f"part-{i}" for i in range(6)]
    for seed, name in enumerate(names):
        write(folder / name, seed=seed)
    given = Folder(folder)
    together = tokmap.Dataset(names, store=given)
    sources = [shard.source for shard in together._shards()]
    assert len({source.struct.context for source in sources}) == 1
    assert tokmap.Dataset(names[0], store=given)._shards()[0].source.struct.context != sources[0].struct.context
    with tokmap.Loader(together, LENGTH, 64) as loader, tokmap.Loader([folder / name for name in names], LENGTH, 64) as with_files:
        same_batches(loader, with_files, 10)
        assert loader.stats["store"]["requests"] == sources[0].counters["requests"]


def datasets_that_are_opened_together_share_a_process(folder):
    for name in "abc":
        write(folder / name)
    (folder / "counted_store.py").write_text(textwrap.dedent(f"""
        import os

        def read(name, offset, length):
            with open(os.path.join({str(folder)!r}, "pids"), "a") as file:
                print(os.getpid(), file=file)
            with open(os.path.join({str(folder)!r}, name), "rb") as file:
                return os.pread(file.fileno(), length, offset)
    """))
    sys.path.insert(0, str(folder))
    import counted_store

    def check():
        loader = tokmap.Loader({"a": 1, "b": 1, "c": 1}, LENGTH, store=counted_store.read)
        pids = set((folder / "pids").read_text().split())
        assert len(pids) == 1 and str(os.getpid()) not in pids, pids
        next(loader)
        assert str(os.getpid()) in (folder / "pids").read_text().split()

    run_in_child(check)


def a_loader_is_closed_with_reads_in_flight(folder):
    write(folder / "a", 3000)
    given, hung = Folder(folder), threading.Event()
    dataset = tokmap.Dataset("a", store=given)
    given.__class__ = type("Hangs", (Folder,), {"__call__": lambda self, *_: hung.wait() and b""})
    for close in (lambda loader: loader.close(), lambda loader: None):
        loader = tokmap.Loader(dataset, LENGTH, 4)
        time.sleep(0.2)
        begun = time.monotonic()
        close(loader)
        del loader
        gc.collect()
        assert time.monotonic() - begun < 20
    hung.set()


def ctrl_c_ends_a_wait_for_rows(folder):
    """A signal comes again and again, to a call of next that waits for a store, which then answers."""
    write(folder / "a", 3000)
    given, answers = Folder(folder), threading.Event()
    dataset = tokmap.Dataset("a", store=given)
    given.__class__ = type("Waits", (Folder,), {"__call__": lambda self, *read: answers.wait() and Folder.__call__(self, *read)})
    stored, local = tokmap.Loader(dataset, LENGTH, 4), tokmap.Loader(folder / "a", LENGTH, 4)
    for _ in range(5):
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        begun = time.monotonic()
        raises(KeyboardInterrupt, lambda: next(stored))
        assert time.monotonic() - begun < 20
        timer.join()
        assert stored.sample == 0
    answers.set()
    same_batches(local, stored, 20)


def a_forked_child_opens_and_reads(folder):
    write(folder / "a")
    given = Folder(folder)
    dataset = tokmap.open("a", store=given)
    first = dataset[0]

    def check():
        assert np.array_equal(dataset[0], first)
        for data, of_store in (("a", {"store": given}), (dataset, {})):
            same_batches(tokmap.Loader(data, LENGTH, 4, **of_store), tokmap.Loader(folder / "a", LENGTH, 4), 10)

    run_in_child(check)


def python_ends_while_a_loader_reads(folder):
    write(folder / "a", 3000)
    (folder / "script.py").write_text(textwrap.dedent(f"""
        import os, time
        import package
        import tokmap

        def read(name, offset, length):
            if name.endswith(".bin"):
                time.sleep(0.05)
            with open(os.path.join({str(folder)!r}, name), "rb") as file:
                return os.pread(file.fileno(), length, offset)

        loaders = [tokmap.Loader("a", {LENGTH}, 4, store=read) for _ in range(4)]
        for loader in loaders:
            next(loader)
    """))
    for _ in range(20):
        begun = time.monotonic()
        done = subprocess.run([sys.executable, folder / "script.py"], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stderr)
        assert time.monotonic() - begun < 40


sys.exit(run_in_folders("store_"))
