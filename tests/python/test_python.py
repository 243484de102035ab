#!/usr/bin/env python3
"""The Python package against the C library: what is written is read back, views live, errors have kinds, and
the structs of _lib.py are those of the headers."""

import array
import copy
import ctypes
import gc
import importlib.util
import os
import pathlib
import pickle
import random
import re
import subprocess
import sys

from ref_protocol import Skip, run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TOKMAP_BUILD", ROOT / "build"))
os.environ["TOKMAP_LIBRARY"] = str(BUILD / "libtokmap.so")
sys.path.insert(0, str(ROOT / "python"))

if os.environ.get("TOKMAP_SANITIZED"):
    print("skip python: a sanitized library cannot be loaded into Python")
    sys.exit(77)
import tokmap  # noqa: E402
from tokmap import _lib  # noqa: E402


def make(prefix, vocab_size=50257):
    rng = random.Random(1)
    documents = [[rng.randrange(vocab_size) for _ in range(rng.randrange(50))] for _ in range(500)]
    with tokmap.Writer(prefix, vocab_size, eod_id=7) as w:
        for ids in documents:
            w.document(ids)
        w.source("input.txt", 11, 12)
        w.metadata({"key": "w\u00f6rd"})
    return documents


def raises(kind, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def written_documents_are_read_back(folder):
    for vocab_size in (50257, 100000):
        prefix = folder / f"d{vocab_size}"
        documents = make(prefix, vocab_size)
        with tokmap.Dataset(prefix) as ds:
            ds.verify()
            assert (ds.n_documents, ds.eod_id, ds.vocab_size) == (500, 7, vocab_size)
            assert ds.metadata == {"key": "w\u00f6rd"}
            assert ds.source(0) == (b"input.txt", 0, 500, 0, ds.n_tokens, 11, 12)
            for i, ids in enumerate(documents):
                document = ds.document(i)
                assert list(ds.tokens(document.first_token, document.n_tokens)) == ids
                if ids:
                    assert ds.find_document(document.first_token) == document
            raises(IndexError, ds.document, 500)
            raises(IndexError, ds.find_document, ds.n_tokens)
            raises(IndexError, ds.tokens, ds.n_tokens, 1)
            raises(IndexError, ds.tokens, -1, 1)
            for too_large in (2**64, 2**64 + 1):  # must not wrap around
                raises(IndexError, ds.document, too_large)
                raises(IndexError, ds.find_document, too_large)
                raises(IndexError, ds.source, too_large)
                raises(IndexError, ds.tokens, too_large, 1)
        raises(ValueError, ds.tokens, 0, 1)


def ids_may_be_any_iterable(folder):
    import array
    kinds = [b"abcd", bytearray(b"abcd"), (97, 98, 99, 100), iter([97, 98, 99, 100]),
             array.array("I", b"abcd"[:0]), array.array("H", [97, 98, 99, 100]), range(97, 101)]
    with tokmap.Writer(folder / "k", 257) as w:
        for ids in kinds:
            w.document(ids)
    with tokmap.Dataset(folder / "k") as ds:
        for i in range(len(kinds)):
            document = ds.document(i)
            expected = [] if i == 4 else [97, 98, 99, 100]
            assert list(ds.tokens(document.first_token, document.n_tokens)) == expected, i


def a_view_outlives_the_dataset(folder):
    ids = [x for document in make(folder / "v") for x in document]
    ds = tokmap.Dataset(folder / "v.bin")
    view = ds.tokens(10, 100)
    assert view.readonly and view.itemsize == 2
    ds.close()
    del ds
    gc.collect()
    assert list(view) == ids[10:110]


def a_failed_writer_leaves_nothing(folder):
    def write(bad):
        with tokmap.Writer(folder / "n", 100) as w:
            w.document([1, 2, bad])

    error = raises(tokmap.Error, write, 100)
    assert "id 100" in str(error), error
    raises(OverflowError, write, -1)
    assert list(folder.glob("n.*")) == []


def a_dataset_can_be_pickled(folder):
    import pickle
    make(folder / "p")
    ds = tokmap.Dataset(folder / "p")
    other = pickle.loads(pickle.dumps(ds))
    assert other.dataset_id == ds.dataset_id and other.dataset_id in repr(other)
    assert list(other.tokens(0, 9)) == list(ds.tokens(0, 9))


def numbers_and_paths_out_of_range_are_refused(folder):
    raises(ValueError, tokmap.Writer, folder / "o", 100, -1)
    raises(ValueError, tokmap.Writer, folder / "o", -1)
    raises(ValueError, tokmap.Dataset, "a\0b")


def errors_have_kinds(folder):
    make(folder / "e")
    data = bytearray((folder / "e.tmi").read_bytes())
    (folder / "e.bin").rename(folder / "f.bin")
    raises(tokmap.Error, tokmap.Dataset, folder / "e")
    data[60] ^= 1
    (folder / "e.tmi").write_bytes(data)
    assert raises(tokmap.Damaged, tokmap.Dataset, folder / "e").offset == 248
    (folder / "e.tmi").write_bytes(b"something else")
    raises(tokmap.NotADataset, tokmap.Dataset, folder / "e")
    assert raises(tokmap.Error, tokmap.Dataset, folder / "absent").errno == 2


def structs_are_those_of_the_headers(folder):
    headers = "".join((ROOT / "include" / name).read_text() for name in
                      ("tokmap.h", "tokmap_writer.h", "tokmap_loader.h"))
    names = {"ErrorDetail": "tokmap_error", "Info": "tokmap_dataset_info",
             "Document": "tokmap_document", "Source": "tokmap_source_info",
             "VerifyOptions": "tokmap_verify_options", "WriterOptions": "tokmap_writer_options",
             "LoaderSource": "tokmap_loader_source", "LoaderPhase": "tokmap_loader_phase",
             "LoaderOptions": "tokmap_loader_options", "Row": "tokmap_row", "Batch": "tokmap_batch",
             "LoaderSample": "tokmap_sample", "LoaderInfo": "tokmap_loader_info",
             "GatherOptions": "tokmap_gather_options"}
    lines = ['#include <stdio.h>', '#include "tokmap_writer.h"', '#include "tokmap_loader.h"',
             "int main(void) {"]
    expected = []
    for python_name, c_name in names.items():
        struct = getattr(_lib, python_name)
        lines.append(f'printf("%zu\\n", sizeof({c_name}));')
        expected.append(ctypes.sizeof(struct))
        for field, _ in struct._fields_:
            lines.append(f'printf("%zu\\n", __builtin_offsetof({c_name}, {field}));')
            expected.append(getattr(struct, field).offset)
    (folder / "sizes.c").write_text("\n".join(lines) + "return 0; }\n")
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, "-I", ROOT / "include", folder / "sizes.c", "-o", folder / "sizes"],
                   check=True)
    output = subprocess.run([folder / "sizes"], check=True, capture_output=True, text=True).stdout
    assert [int(line) for line in output.split()] == expected
    declared = set(re.findall(r"\b(tokmap_\w+)\(", headers))
    assert set(_lib.SIGNATURES) <= declared, set(_lib.SIGNATURES) - declared
    assert tokmap.__version__ in headers


def write_numbers(prefix, first, n_tokens, document):
    with tokmap.Writer(prefix, vocab_size=65536) as w:
        for i in range(0, n_tokens, document):
            w.document(range(first + i, first + min(i + document, n_tokens)))


def a_loader_serves_each_window_once_and_resumes(folder):
    write_numbers(folder / "a", 0, 1001, 37)
    write_numbers(folder / "b", 5000, 501, 50)
    a, b = tokmap.Dataset(folder / "a"), tokmap.Dataset(folder / "b")
    with tokmap.Loader([a, b], sequence_length=10, batch_rows=3, seed=7,
                       parts=["documents", "loss_mask"]) as loader:
        seen = set()
        for _ in range(50):
            batch = next(loader)
            for row in (batch[i] for i in range(len(batch))):
                first = (0, 5000)[row.dataset] + row.first_token
                assert list(row.tokens) == list(range(first, first + 11))
                assert row.cu_seqlens[0] == 0 and row.cu_seqlens[row.n_documents] == 10
                seen.add((row.epoch, row.window))
        assert seen == {(0, w) for w in range(150)}
        state, inputs, labels = loader.state(), array.array("q", [0] * 30), array.array("q", [0] * 30)
        batch = next(loader)
        batch.gather("i64", inputs, labels, ignore_index=-100)
        for i in range(30):
            row = batch[i // 10]
            assert inputs[i] == row.tokens[i % 10]
            assert labels[i] == (row.tokens[i % 10 + 1] if row.loss_mask[i % 10] else -100)
        assert batch[1].epoch == 1 and loader.locate(151).window == batch[1].window
        next(loader)
        raises(ValueError, batch.__getitem__, 0)
    with loader_of(a, b) as loader, loader_of(a, b) as plain:
        wide = [array.array("q", [0] * 30) for _ in range(4)]
        for n, first in enumerate(loader.fill("i64", wide[0], wide[1])):
            batch = next(plain)
            batch.gather("i64", wide[2], wide[3])
            assert first == batch.first_sample and wide[0] == wide[2] and wide[1] == wide[3]
            raises(BufferError, wide[0].append, 1)  # its memory is the loop's
            if n == 20:
                loader.seek(300)
                plain.seek(300)
            if n == 40:
                break
        assert loader.position == plain.position
        raises(ValueError, next, loader.fill("i64", wide[0], wide[1][:-1]))
        raises(ValueError, next, loader.fill("i64", bytes(240)))
        loader.close()
        raises(ValueError, next, loader.fill("i64", wide[0]))
    write_numbers(folder / "empty", 0, 0, 1)  # a shard that has nothing
    empty = tokmap.Dataset(folder / "empty")
    rows = [batch[0] for _, batch in zip(range(150), tokmap.Loader([empty, a, empty, b], 10))]
    assert {row.dataset for row in rows} == {1, 3} and {len(row.tokens) for row in rows} == {11}
    wanted = [w.window for w in (loader_of(a, b).locate(150 + i) for i in range(12))]
    got = []
    for rank in range(2):
        again = loader_of(a, b, batch_rows=6, rank=rank, n_ranks=2)
        again.restore(state)
        batch = next(again)
        got += [batch[i].window for i in range(6)]
        assert again.position == 162
    assert got == wanted
    raises(tokmap.Error, loader_of(a, b, seed=8).restore, state)
    raises(ValueError, again.restore, state[:-1])
    for io in ("map", "direct", "populate", "read"):
        other = loader_of(a, b, batch_rows=12, io=io, look_ahead=2)
        other.restore(state)
        batch = next(other)
        assert [batch[i].window for i in range(12)] == wanted
        assert batch[5].tokens[0] == (0, 5000)[batch[5].dataset] + batch[5].first_token
        assert other.info()["io"] in (io, "populate")


def loader_of(a, b, batch_rows=3, **options):
    return tokmap.Loader([a, b], 10, batch_rows, **{"seed": 7, **options})


def arrays_are_new_and_those_of_gather(folder):
    if importlib.util.find_spec("numpy") is None:
        raise Skip("there is no numpy for this Python")
    write_numbers(folder / "a", 0, 1001, 37)
    write_numbers(folder / "b", 5000, 501, 50)
    a, b = tokmap.Dataset(folder / "a"), tokmap.Dataset(folder / "b")
    options = {"parts": ["loss_mask"]}
    for format, letter in (("i64", "q"), ("i32", "i"), ("tokens", "H")):
        width = 10 + (format == "tokens")
        loader, plain, kept = loader_of(a, b, **options), loader_of(a, b, **options), []
        ignore = None if format == "tokens" else -7
        for got in loader.arrays(format, ignore_index=ignore):
            wanted = [array.array(letter, [0] * 3 * width) for _ in range(2 - (format == "tokens"))]
            next(plain).gather(format, *wanted, ignore_index=ignore)
            kept.append((got if isinstance(got, tuple) else (got,), wanted))
            if len(kept) == 8:
                break
        assert loader.position == plain.position
        for arrays, wanted in kept:  # none was written again
            assert [x.shape for x in arrays] == [(3, width)] * len(wanted)
            assert [x.tobytes() for x in arrays] == [x.tobytes() for x in wanted], format
            assert all(x.flags.writeable and x.dtype.char in (letter, "l") for x in arrays)
    ends = tokmap.Loader(tokmap.LoaderSource(a, max_epochs=1), 10, 3)
    assert sum(len(inputs) for inputs, _ in ends.arrays()) == 100 - 100 % 3
    raises(ValueError, next, loader_of(a, b).arrays("i32", ignore_index=2**40))


def a_mixture_ends_with_the_source_that_has_no_more(folder):
    write_numbers(folder / "a", 0, 101, 20)
    write_numbers(folder / "b", 1000, 301, 20)
    sources = [tokmap.LoaderSource(tokmap.Dataset(folder / "a"), weight=0.5, max_epochs=1),
               tokmap.LoaderSource([tokmap.Dataset(folder / "b")], weight=0.5)]
    loader = tokmap.Loader(sources, sequence_length=10, phases={8: [0.25, 0.75]})
    rows = [batch[0].source for batch in loader]
    assert rows.count(0) == 10 and len(rows) == loader.n_samples
    assert rows[:8].count(0) == 4 and rows[8:28].count(0) == 5
    raises(tokmap.Error, tokmap.Loader, sources, 0)
    raises(ValueError, lambda: tokmap.Loader(sources, 10, phases={8: [1]}))
    weights = [0.25, 0.75]
    loader = tokmap.Loader(sources, sequence_length=10, phases={8: weights})
    state, sources[0].weight, weights[0] = loader.state(), 5.0, 9.0
    loader.set_batch(3)  # what the loader was made of was copied
    assert loader.state() == state


def loader_views_outlive_all_else(folder):
    write_numbers(folder / "a", 0, 1001, 37)
    for io in ("map", "direct", "populate", "read"):
        with tokmap.Dataset(folder / "a") as a:
            loader = tokmap.Loader(a, 10, 4, io=io, random_offset=True, parts=["position_ids"])
        row = next(loader)[1]  # the dataset is closed, the loader keeps it
        wanted = list(row.tokens), list(row.position_ids)
        loader.set_batch(2)
        assert loader.position == 4
        other = next(loader)[0]
        loader.close()
        del loader
        gc.collect()
        assert (list(row.tokens), list(row.position_ids)) == wanted
        assert list(other.tokens) == [(other.first_token + i) % 1001 for i in range(11)]


def what_a_loader_cannot_take_is_refused(folder):
    write_numbers(folder / "a", 0, 1001, 37)
    a = tokmap.Dataset(folder / "a")
    loader = tokmap.Loader(a, 10, 4, parts=["loss_mask"])
    batch = next(loader)
    inputs = array.array("i", [0] * 40)
    for call in (lambda: tokmap.Loader(a, 2**32 + 16, 4), lambda: tokmap.Loader(a, 10, 2**32 + 1),
                 lambda: tokmap.Loader(a, 10, 1, n_ranks=2**32), lambda: loader.seek(2**64 + 5),
                 lambda: loader.locate(2**64), lambda: tokmap.Loader(a, 10, 1, seed=-1),
                 lambda: batch.gather("i32", inputs, ignore_index=2**31),
                 lambda: batch.gather("i64", array.array("d", [0] * 40)), lambda: batch.gather("i16", inputs),
                 lambda: batch.gather("i64", memoryview(bytearray(320)).cast("I")),
                 lambda: tokmap.Loader(a, 10, shuffle="x"), lambda: tokmap.Loader(a, 10, windows="x"),
                 lambda: tokmap.Loader(a, 10, io="x"), lambda: tokmap.Loader(a, 10, parts=["x"]),
                 lambda: batch.gather("i32", inputs[:-1]), lambda: batch.gather("i32", bytes(160)),
                 lambda: tokmap.Loader(tokmap.LoaderSource(a, max_epochs=2**64), 10)):
        raises(ValueError, call)
    for call in (copy.copy, copy.deepcopy, pickle.dumps):
        raises(TypeError, call, loader)
    raises(TypeError, tokmap.Loader, str(folder / "a"), 10)
    raises(TypeError, tokmap.Loader, [folder / "a"], 10)
    raises(TypeError, tokmap.Loader, [(a, 1.0)], 10)
    raises(TypeError, lambda: tokmap.Loader(a, 10, phases=[(100, [1.0])]))
    raises(TypeError, lambda: tokmap.Loader(a, 10, parts="loss_mask"))
    batch.gather("i32", inputs)
    assert list(inputs[:10]) == list(batch[0].tokens[:10])
    here = loader.position
    raises(ValueError, next, loader.fill("i32", inputs[:-1]))
    raises(ValueError, next, loader.fill("i16", inputs))
    assert loader.position == here and next(loader.fill("i32", inputs)) == here  # no batch was lost
    batch = next(loader)
    with open(folder / "a.bin", "r+b") as f:
        f.truncate(0)
    reading = tokmap.Loader(a, 10, 4, io="read")
    raises(tokmap.Error, next, reading)
    loader.close()
    raises(ValueError, next, loader)
    raises(ValueError, batch.__getitem__, 0)


sys.exit(run_in_folders("python_", (
    loader_views_outlive_all_else, what_a_loader_cannot_take_is_refused,
    a_loader_serves_each_window_once_and_resumes, arrays_are_new_and_those_of_gather,
    a_mixture_ends_with_the_source_that_has_no_more, written_documents_are_read_back, ids_may_be_any_iterable,
    a_view_outlives_the_dataset, a_failed_writer_leaves_nothing, a_dataset_can_be_pickled,
    numbers_and_paths_out_of_range_are_refused, errors_have_kinds, structs_are_those_of_the_headers)))
