#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Objects that several threads use: each batch once and with its own content, documents that are not mixed, and
an exception instead of a crash when an object is closed meanwhile. Each runs in a process of its own, which a
failure may kill."""

import os
import signal
import subprocess
import sys
import threading
import weakref

from grouped import grouped
from package import raises
from ref_protocol import run_in_folders, tests_of_script

import numpy as np
import tokmap
from tokmap._data import dataset as _dataset
from tokmap._loader import loader as _loader

ALL = ("inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens")
N_THREADS = 4
N_TOKENS = 40001
LENGTH, ROWS = 16, 4


def prepare(folder):
    sys.setswitchinterval(1e-6)
    with tokmap.Writer(folder / "a", vocab_size=65536) as w:
        for i in range(0, N_TOKENS, 37):
            w.document(range(i, min(i + 37, N_TOKENS)))


def loader_of(folder, **options):
    return tokmap.Loader(folder / "a", LENGTH, ROWS, **grouped(**{"seed": 3, "max_epochs": 2, **options}))


def in_threads(work):
    """Runs work(number) in each thread; raises what they raise."""
    failures = []

    def run(number):
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def threads_share_the_batches_of_a_loader(folder):
    reference = loader_of(folder)
    for options in ({"io": "map"}, {"io": "read"}, {"outputs": ALL}, {"drop_last": False},
                    {"contiguous": False, "dtype": "uint16"}):
        with loader_of(folder, **options) as loader:
            taken = [[] for _ in range(N_THREADS)]

            def work(number):
                for batch in loader:
                    taken[number].append((batch.first_sample, batch.n_rows, batch.inputs.copy(), batch.state))

            in_threads(work)
            batches = sorted((batch for own in taken for batch in own), key=lambda batch: batch[0])
            assert [batch[0] for batch in batches] == list(range(0, 2 * 2500, ROWS)), options
            for first_sample, n_rows, inputs, state in batches:
                for row in range(n_rows):
                    first = reference.locate(first_sample + row).first_token
                    assert (inputs[row] == np.arange(first, first + LENGTH)).all(), (options, first_sample)
                reference.restore(state)
                assert reference.sample == first_sample + ROWS


def states_and_rows_are_asked_for_meanwhile(folder):
    with loader_of(folder, max_epochs=None) as loader:
        def work(number):
            for _ in range(1500):
                if number == 0:
                    loader.restore(loader.state())
                elif number == 1:
                    assert loader.sample % ROWS == 0 and len(loader.epochs) == 1 and loader.stats["n_samples"]
                else:
                    batch = next(loader)
                    try:
                        rows = batch.rows
                    except ValueError as error:
                        assert "are gone" in str(error)
                        continue
                    assert [row.first_token for row in rows] == [int(one[0]) for one in batch.inputs]

        in_threads(work)


def a_loader_is_closed_while_it_is_used(folder):
    for round_ in range(30):
        loader = loader_of(folder, io=("map", "read")[round_ % 2], max_epochs=None)
        started = threading.Barrier(N_THREADS)

        def work(number):
            started.wait()
            if number == 0:
                for _ in range(10):
                    loader.sample
                loader.close()
                return
            while True:
                try:
                    next(loader), loader.state(), loader.locate(3)
                except ValueError as error:
                    assert "the loader is closed" in str(error), error
                    return

        in_threads(work)
    loader = loader_of(folder)
    handle = weakref.ref(loader._own_handle)
    loader.close()
    assert handle() is None  # freed, although somebody still refers to the loader


def samples_are_shared_after_a_fork(folder):
    samples = tokmap.Samples(folder / "a", LENGTH, seed=3)
    pid = os.fork()
    if pid == 0:
        try:
            with loader_of(folder) as loader:
                def work(number):
                    for i in range(number, 400, 2):
                        first = loader.locate(i).first_token
                        assert samples[i]["inputs"][0] == first

                in_threads(work)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0


def documents_of_threads_are_not_mixed(folder):
    with tokmap.Writer(folder / "w", vocab_size=65536, meta=["who"]) as writer:
        def work(number):
            for i in range(2000):
                writer.document([number * 3000 + i] * 5, {"who": number})

        in_threads(work)
    with tokmap.open(folder / "w") as ds:
        assert ds.n_documents == N_THREADS * 2000
        assert all(len(document) == 5 and (document == document[0]).all() for document in ds)
        assert all(int(document[0]) // 3000 == who for document, who in zip(ds, ds.meta("who")))


def a_writer_is_closed_while_it_is_used(folder):
    for round_ in range(20):
        writer = tokmap.Writer(folder / "w", vocab_size=65536)
        writer.document([1])

        def work(number):
            try:
                for i in range(300):
                    writer.document(np.full(1000, i, np.uint32))
                    if number == 0 and i == 20:
                        writer.close()
            except ValueError as error:
                assert "the writer is closed" in str(error), error

        in_threads(work)
    assert not (folder / "w.bin").exists()


def a_dataset_is_closed_while_it_is_used(folder):
    library = _dataset.lib
    with tokmap.Writer(folder / "m", vocab_size=10) as w:
        w.document([1, 2])
        w.end_input("in", 2, 3)
        w.set_metadata({"made": "x" * 3000})
    for name, use in (("tokmap_dataset_metadata", lambda ds: ds.metadata["made"] == "x" * 3000),
                      ("tokmap_dataset_document", lambda ds: ds[0].tolist() == [1, 2]),
                      ("tokmap_dataset_document", lambda ds: ds.document(0).n_tokens == 2),
                      ("tokmap_dataset_find_document", lambda ds: ds.find_document(1).number == 0),
                      ("tokmap_dataset_get_input", lambda ds: ds.input(0).name == "in"),
                      ("tokmap_dataset_verify", lambda ds: ds.verify() is None)):
        ds = tokmap.open(folder / "m")
        closed = []

        def call(*arguments, function=getattr(library, name), ds=ds, closed=closed):
            closed.append(ds.close())  # as another thread would, just before the call
            return function(*arguments)

        setattr(library, name, call)
        try:
            assert use(ds) and closed, name
        finally:
            delattr(library, name)
            function = getattr(library, name)
            function.restype, function.argtypes = _dataset._lib.SIGNATURES[name]


def threads_share_a_stage(folder):
    loader, reference = loader_of(folder), loader_of(folder)
    with tokmap.Stage(loader, "host", n_slots=N_THREADS + 2) as stage:
        taken = []

        def work(number):
            for batch in stage:
                with batch:
                    inputs = np.from_dlpack(batch.inputs).copy()
                    taken.append((batch.first_sample, inputs, batch.state))

        in_threads(work)
    assert sorted(batch[0] for batch in taken) == list(range(0, 5000, ROWS))
    for first_sample, inputs, state in taken:
        for row in range(ROWS):
            assert inputs[row][0] == reference.locate(first_sample + row).first_token
        reference.restore(state)
        assert reference.sample == first_sample + ROWS


def a_child_of_fork_does_not_wait_for_a_thread_of_its_parent(folder):
    loader, writer = loader_of(folder), tokmap.Writer(folder / "w", vocab_size=10)
    stage = tokmap.Stage(loader_of(folder), "host")
    inside, over = threading.Event(), threading.Event()

    def hold():
        with loader._lock, writer._lock, stage._core.turn, stage._core as core, core.lock:
            inside.set()
            over.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(60)
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            raises(tokmap.ForkedError, next, loader)
            writer.close()  # which leaves the files to the parent
            raises(tokmap.ForkedError, next, stage)
            stage.close()
            os._exit(0)
        finally:
            os._exit(1)
    over.set()
    thread.join()
    assert os.waitpid(pid, 0)[1] == 0
    writer.close()


def a_signal_handler_may_ask_for_the_state_but_not_for_a_batch(folder):
    loader = loader_of(folder)
    batch_gather, seen = _loader._next, []

    def interrupt(call):
        def next_and_signal(*arguments):
            status = batch_gather(*arguments)
            _loader._next = batch_gather
            call()
            return status

        _loader._next = next_and_signal

    before = loader.state()
    interrupt(lambda: seen.append(loader.state()))
    batch = next(loader)
    assert seen == [before] and loader.state() == batch.state  # nobody has the batch yet
    interrupt(lambda: next(loader))
    assert "signal handler" in str(raises(RuntimeError, next, loader))


def in_a_process(test):
    def run(folder):
        found = subprocess.run([sys.executable, "-X", "faulthandler", __file__, test.__name__, str(folder)],
                               capture_output=True, text=True)
        if found.returncode:
            raise AssertionError(f"exit {found.returncode}: {found.stderr[-700:]}")

    run.__name__ = test.__name__
    return run


if len(sys.argv) > 2:
    import pathlib
    place = pathlib.Path(sys.argv[2])
    prepare(place)
    globals()[sys.argv[1]](place)
    sys.exit(0)
sys.exit(run_in_folders("python_threads_", [in_a_process(test) for test in tests_of_script(prepare)]))
