#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Orders that the caller gives, in the Python package: lists of documents and of windows are compared with a second
implementation of docs/ORDER.md; runs that go on with them, and what ledgers say. test_lists.c tries the loader itself."""

import json
import os
import pickle
import random
import subprocess
import sys
import warnings

from grouped import open_loader
from ordered_rows import check_rows
from package import raises
from ref_order import DocumentList, Order, Phase, Source, quotas_of
from ref_protocol import program, run_in_folders

import numpy as np
import tokmap

N_RUNS = 1500 if os.environ.get("TOKMAP_LONG") == "all" else 20
OUTPUTS = ["inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens"]
NAMES = ("a", "b")


def prepare(folder):
    rng = random.Random(2)
    for name in NAMES:
        with tokmap.Writer(folder / name, vocab_size=50000) as w:
            for _ in range(60):
                w.document(rng.choices(range(50000), k=rng.choice((0, 1, 2, rng.randint(0, 40)))))


def documents_of(ds):
    return [(d.first_token, d.first_token + d.n_tokens) for d in map(ds.document, range(len(ds)))]


def any_list(rng, n):
    numbers = rng.choices(range(n), k=rng.randint(1, 90))
    return DocumentList(numbers, rng.random() < 0.5)


def as_given(rng, listed):
    kind = rng.choice((np.int32, np.uint32, np.int64, np.uint16, ">i8", list))
    numbers = listed.numbers if kind is list else np.array(listed.numbers, kind)
    return tokmap.DocumentList(numbers, keeps_rest=listed.keeps_rest)


def lists_have_the_order_of_the_specification(folder):
    opened, n_rows, n_short = {name: tokmap.open(folder / name) for name in NAMES}, 0, 0
    for seed in range(N_RUNS):
        rng = random.Random(seed)
        windows = rng.choice(("concat", "concat", "concat", "within_document", "best_fit"))
        shuffle, length, batch_rows = rng.choice(("full", "none")), rng.choice((4, 16, 30)), rng.randint(1, 5)
        names = [rng.sample(NAMES, rng.randint(1, 2)) for _ in range(rng.randint(1, 2))]
        lists = [[any_list(rng, 60) if windows == "concat" and rng.random() < 0.8 else None for _ in some] for some in names]
        masked = [rng.random() < 0.2 for _ in names]

        def order_of(window_lists):
            sources = [Source([bytes.fromhex(opened[name].dataset_id) for name in some], [opened[name].n_tokens for name in some],
                              [documents_of(opened[name]) for name in some], lists=listed, window_list=ordered, masked=mask)
                       for some, listed, ordered, mask in zip(names, lists, window_lists, masked)]
            return Order(sources, [Phase(0, quotas_of([1] * len(names)))], length, 3, windows=windows, shuffle=shuffle)

        try:
            n_windows = [one.n for one in order_of([None] * len(names)).windows]
        except ValueError:
            continue  # a source has no windows
        window_lists = [rng.choices(range(n), k=rng.randint(1, 50)) if rng.random() < 0.6 else None for n in n_windows]
        order = order_of(window_lists)
        given = [tokmap.Source([opened[name] for name in some], masked=mask, window_list=ordered and np.array(ordered),
                               document_list=[one and as_given(rng, one) for one in listed] if any(listed) else None)
                 for some, listed, ordered, mask in zip(names, lists, window_lists, masked)]
        with open_loader(given, length, seed=3, windows=windows, shuffle=shuffle, batch_rows=batch_rows, outputs=OUTPUTS,
                         io=rng.choice(("map", "populate", "read", "direct", "copy"))) as loader:
            loader.seek(rng.choice((0, 0, rng.randint(0, 1000))))
            for _ in range(60 // batch_rows):
                found = check_rows(next(loader), order, lambda source, dataset: opened[names[source][dataset]].tokens(), seed)
                n_rows += len(found)
                n_short += sum(windows == "concat" and wanted.row.n_inputs < length for wanted, _ in found)
    assert n_short > N_RUNS // 3
    return "%d rows, %d of them rests of lists" % (n_rows, n_short)


def source_of(folder, **more):
    numbers = np.arange(59, -1, -1)
    return tokmap.Source(folder / "a", document_list=tokmap.DocumentList(numbers, **more), window_list=[5, 1, 3, 3, 0])


def a_mapped_array_is_pickled_as_its_path(folder):
    numbers = np.random.default_rng(1).integers(0, 60, 500000, np.int32)
    np.save(folder / "order.npy", numbers)
    mapped = np.load(folder / "order.npy", mmap_mode="r")
    windows = np.load(folder / "order.npy", mmap_mode="r")[1000:]
    for given in (mapped, mapped[77:], numbers):
        source = tokmap.Source(folder / "a", document_list=tokmap.DocumentList(given), window_list=windows)
        with open_loader(source, 8, batch_rows=3) as loader:
            data = pickle.dumps(loader)
            assert (len(data) < 10000) == (given is not numbers), len(data)
            with pickle.loads(data) as again:
                for _ in range(50):
                    assert np.array_equal(next(loader).inputs, next(again).inputs)
                assert loader.state() == again.state()
    numbers[1], data = 59 - numbers[1], pickle.dumps(tokmap.DocumentList(mapped))
    for wrong in (numbers, numbers[:-1]):
        np.save(folder / "new.npy", wrong)
        os.replace(folder / "new.npy", folder / "order.npy")
        assert "order.npy: has other numbers" in str(raises(tokmap.MismatchError, pickle.loads, data))


def an_array_below_64_mib_is_copied(folder):
    """A loader that is pickled takes the arrays as they are then, so its state does not go with them."""
    numbers, windows = np.arange(60), np.arange(5)
    lengths = [d[1] - d[0] for d in documents_of(tokmap.open(folder / "a"))]
    starts = np.array([(place, token) for place in range(60) for token in range(lengths[place])][:-1:8][:(sum(lengths) - 1) // 8])
    source = tokmap.Source(folder / "a", document_list=tokmap.DocumentList(numbers, starts), window_list=windows)
    with open_loader(source, 8) as loader, open_loader(tokmap.Source(folder / "a", window_list=list(range(5))), 8) as plain:
        for array in (numbers, starts, windows):
            array[:] = 1
        for _ in range(10):
            assert np.array_equal(next(loader).inputs, next(plain).inputs)
        assert "does not go with its starts" in str(raises(tokmap.MismatchError, pickle.loads, pickle.dumps(loader)))


def starts_are_those_of_the_windows(folder):
    lengths = [d[1] - d[0] for d in documents_of(tokmap.open(folder / "a"))]
    numbers = [i * 7 % 60 for i in range(100)]
    places = [(place, token) for place, number in enumerate(numbers) for token in range(lengths[number])]
    starts = np.array(places[:len(places) - 1:8][:(len(places) - 1) // 8], np.int32)
    without, given = (open_loader(tokmap.Source(folder / "a", document_list=tokmap.DocumentList(numbers, one)), 8, shuffle="none")
                      for one in (None, starts))
    assert without.state() == given.state()  # starts are not part of the order
    for _ in range(len(starts)):
        assert np.array_equal(next(without).inputs, next(given).inputs)
    starts[3, 1] += 1
    with open_loader(tokmap.Source(folder / "a", document_list=tokmap.DocumentList(numbers, starts)), 8, shuffle="none") as loader:
        next(loader)
        next(loader)
        assert "does not go with its starts at window 2" in str(raises(tokmap.MismatchError, next, loader))


def wrong_lists_are_refused(folder):
    ds, listed = tokmap.open(folder / "a"), tokmap.DocumentList([1, 2])
    raises(TypeError, tokmap.DocumentList, [])
    raises(TypeError, tokmap.DocumentList, [0.5])
    raises(TypeError, tokmap.DocumentList, "abc")
    raises(ValueError, tokmap.DocumentList, [[1, 2]])
    raises(ValueError, tokmap.DocumentList, [1, 2], [0, 1])
    raises(TypeError, tokmap.Source, ds, document_list=[1, 2])
    raises(ValueError, tokmap.Source, ds, document_list=[listed, listed])
    raises(ValueError, tokmap.Source, ds, window_list=np.array([[1]]))
    for one_each in ([[1], [2]], [np.arange(3), np.arange(3)], ([1], None)):
        assert "one list of windows" in str(raises(TypeError, tokmap.Source, [ds, folder / "b"], window_list=one_each))
    raises(TypeError, tokmap.Source, ds, window_list=["x"])
    for text, options, more in (
            ("-1", {}, {"window_list": [0, -1]}), ("60 at place 1", {}, {"document_list": tokmap.DocumentList([3, 60])}),
            ("another kind than concat", {"windows": "best_fit"}, {}), ("another kind than concat", {"windows": "within_document"}, {}),
            ("list of windows does not work with weights", {"weights": "tokens"}, {"document_list": None, "window_list": [1]}), ("random_offset", {"random_offset": True}, {}),
            ("shares of tokens", {"weights": "tokens"}, {}), ("a range of documents", {}, {"documents": (3, 50)}),
            ("a view", {}, {"keep": [i % 2 for i in range(60)]}),
            ("shuffle in blocks", {"shuffle": "block"}, {"window_list": [1]})):
        given = {"document_list": tokmap.DocumentList(range(40)), **more}
        error = raises(tokmap.ArgumentError, open_loader, tokmap.Source(ds, **given), 4, **options)
        assert text.replace("-1", str(2**64 - 1)) in str(error), error
    raises(ValueError, open_loader, source_of(folder, keeps_rest=True), 8, contiguous=False)


def a_run_goes_on_with_its_lists(folder):
    ledger = folder / "run.ledger"
    with open_loader(source_of(folder), 8, batch_rows=2, ledger=ledger) as loader:
        for _ in range(4):
            next(loader)
        state, wanted = loader.state(), next(loader).inputs
        run = tokmap.Run(loader)
        assert [loader.locate(g).window for g in range(8)] == [5, 1, 3, 3, 0, 5, 1, 3]
        document = run.documents(run.row(1))[0].number
        assert 1 in [row.sample for row in run.samples(folder / "a", document)]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert run.report() == [] and "not counted: source 0 " in str(said[0].message)
    assert b'{"ledger":3,' in ledger.read_bytes() and b'"window_list":{"hash":"' in ledger.read_bytes()
    with open_loader(source_of(folder), 8, batch_rows=1, n_ranks=2, rank=1) as again:
        again.restore(state)
        assert np.array_equal(next(again).inputs, wanted[1:])
    other = tokmap.Source(folder / "a", document_list=tokmap.DocumentList(np.arange(60)), window_list=[5, 1, 3, 3, 0])
    with open_loader(other, 8, batch_rows=2) as changed:
        assert "lists" in str(raises(tokmap.MismatchError, changed.restore, state))
    assert "only the hash" in str(raises(tokmap.MismatchError, lambda: tokmap.Run(ledger, 8).row(1)))
    assert "only the hash" in str(raises(tokmap.MismatchError, tokmap.Run, ledger, state))
    assert "another run" in str(raises(tokmap.MismatchError, lambda: next(open_loader(other, 8, batch_rows=2, ledger=ledger))))


def a_report_goes_on_without_sources_with_lists(folder):
    """Also if only the ledger is there, which says neither their epochs nor their rows. The source that is counted has as
    many labels as if the others had no lists."""
    plain, (a, b) = tokmap.Source(folder / "b"), [folder / name for name in NAMES]
    listed = [tokmap.Source(a, 2, document_list=tokmap.DocumentList([3, 1, 4, 1, 5, 9, 2, 6]), max_epochs=30), tokmap.Source(b, 1, window_list=[1, 0])]
    with open_loader([listed[0], plain, listed[1]], 8, batch_rows=4, ledger=folder / "run.ledger") as loader, \
            open_loader([tokmap.Source(a, 2), plain, tokmap.Source(b)], 8, batch_rows=4) as other:
        for _ in range(60):
            next(loader)
            next(other)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [tokmap.Run(one, 240).report(by) for one in (loader, folder / "run.ledger") for by in ("source", "input")]
            wanted = [one for one in tokmap.Run(other).report() if one.name == 1]
        assert found[0] == found[2] == wanted and wanted[0].n_labels == 60 * 8
        assert found[1] == found[3] == [wanted[0]._replace(name=None)]
        assert all(list(one.not_counted) == [0, 2] for one in found) and "not counted" in found[3]._repr_html_()
        run = tokmap.Run(folder / "run.ledger", 240)
        assert "epoch" in run._repr_html_() and len([sample for sample in range(240) if loader.locate(sample).source == 1]) == 60
        samples = {loader.locate(sample).source: sample for sample in range(20)}
        assert run.row(samples[1])[:-1] == tokmap.Run(loader).row(samples[1])[:-1]
        raises(tokmap.MismatchError, run.row, samples[0])
        raises(tokmap.MismatchError, run.samples, b, 0)
    told = subprocess.run([program("tokmap"), "report", "--ledger", folder / "run.ledger", *("--json",)], check=True, capture_output=True)
    told = json.loads(told.stdout)
    assert [one["source"] for one in told["not_counted"]] == [0, 2] and told["n_labels"] == 480 and len(told["shares"]) == 1
    told = subprocess.run([program("tokmap"), "report", "--ledger", folder / "run.ledger"], check=True, capture_output=True, text=True)
    assert told.stdout.endswith("480 tokens in all\n") and told.stderr.count("tokmap report: not counted: source ") == 2, told


def a_phase_leads_out_of_a_list(folder):
    sources = [source_of(folder), tokmap.Source([folder / name for name in NAMES], 0)]
    with open_loader(sources[0], 8, batch_rows=2, ledger=folder / "run.ledger") as loader:
        for _ in range(4):
            next(loader)
        state = loader.state()
    with open_loader(sources, 8, batch_rows=2, phases={8: [0, 1]}, amend=state, amend_from=folder / "run.ledger") as loader:
        assert {row.source for _ in range(10) for row in next(loader).rows} == {1}
        assert loader.state()[8] == 3
    plain = [tokmap.Source(folder / "a"), tokmap.Source(folder / "b", 0, window_list=[0, 0])]
    with open_loader(plain[0], 8, batch_rows=2) as loader:
        next(loader)
        state = loader.state()
    assert state[8] == 1
    with open_loader(plain, 8, batch_rows=2, phases={2: [0, 1]}, amend=state) as loader:
        assert [row.window for row in next(loader).rows] == [0, 0]


sys.exit(run_in_folders("python_orders_", prepare=prepare))
