#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datasets and writers of the Python package against the C library: what is written is read back, views live,
errors have kinds, and the structs of _c/structs.py are those of the headers."""

import array
import gc
import itertools
import os
import pickle
import random
import re
import sys
import unittest.mock

from package import ROOT, check_structs, raises
import ref_writer
from ref_protocol import run_in_folders

import numpy as np
import tokmap
from tokmap._data import dataset as _dataset
from tokmap._c import structs as _lib
from tokmap._c import find as _native
from tokmap._data.dataset import find_paths


def make(prefix, vocab_size=50257):
    rng = random.Random(1)
    documents = [[rng.randrange(vocab_size) for _ in range(rng.randrange(50))] for _ in range(500)]
    with tokmap.Writer(prefix, vocab_size, eod_id=7) as w:
        for ids in documents:
            w.document(ids)
        w.end_input("input.txt", 11, 12)
        w.set_metadata({"key": "w\u00f6rd"})
    return documents


def written_documents_are_read_back(folder):
    for vocab_size in (50257, 100000):
        prefix = folder / f"d{vocab_size}"
        documents = make(prefix, vocab_size)
        with tokmap.open(prefix) as ds:
            ds.verify()
            assert (len(ds), ds.n_documents, ds.eod_id, ds.vocab_size) == (500, 500, 7, vocab_size)
            assert ds.dtype == (np.uint16 if vocab_size < 65536 else np.uint32)
            assert ds.metadata == {"key": "w\u00f6rd"}
            assert ds.inputs == [tokmap.Input("input.txt", 0, 500, 0, ds.n_tokens, 11, 12)]
            assert [list(ids) for ids in ds] == documents
            assert [list(ids) for ids in ds[490:]] == documents[490:] and list(ds[-1]) == documents[-1]
            assert np.asarray(ds).tolist() == [x for ids in documents for x in ids]
            for i, ids in enumerate(documents):
                document = ds.document(i)
                assert list(ds[i]) == list(ds.tokens(document.first_token, document.n_tokens)) == ids
                if ids:
                    assert ds.find_document(document.first_token) == document
            for call in (lambda: ds[500], lambda: ds[-501], lambda: ds.document(500), lambda: ds.input(1),
                         lambda: ds.find_document(ds.n_tokens), lambda: ds.tokens(ds.n_tokens, 1),
                         lambda: ds.tokens(-1, 1)):
                raises(IndexError, call)
            for too_large in (2**64, 2**64 + 1):  # must not wrap around
                for function in (ds.document, ds.find_document, ds.input, ds.__getitem__):
                    raises(IndexError, function, too_large)
                raises(IndexError, ds.tokens, too_large, 1)
            raises(TypeError, ds.__getitem__, "0")
        for call in (lambda: ds.tokens(0, 1), lambda: ds[0], lambda: np.asarray(ds)):
            raises(ValueError, call)
        assert "closed" in repr(ds)


def several_datasets_are_one_sequence(folder):
    documents = []
    for i in range(3):
        with tokmap.Writer(folder / f"part-{i}", 1000) as w:
            for k in range(i * 5):  # the first has nothing
                documents.append([i, k] * k)
                w.document(documents[-1])
            w.end_input(f"{i}.txt")
    flat = [x for ids in documents for x in ids]
    parts = [folder / f"part-{i}" for i in range(3)]
    for path in (str(folder / "part-*"), folder / "part-*", str(folder / "part-?.tmi"), folder / "*.bin", parts,
                 [parts[0], str(folder / "part-[12]")]):
        ds = tokmap.open(path)
        assert [list(ids) for ids in ds] == documents and ds.n_tokens == len(flat), path
    (folder / "part-1.tmi").rename(folder / "part-1.tmi.replaced")  # as a killed writer may leave it
    for path in (str(folder / "part-*"), folder / "part-?.tmi"):
        assert [list(ids) for ids in tokmap.open(path)] == documents, path
    (folder / "part-1.tmi.replaced").rename(folder / "part-1.tmi")
    look = _dataset.match_pattern
    for pattern in ("part-*", "part-?", "part-*.tmi", "part-*.bin"):
        for step in range(1, 6):  # a dataset is replaced between two looks at the folder
            calls = itertools.count()

            def look_meanwhile(name):
                moves = {step - 1: ("", ".replaced"), step: (".replaced", "")}.get(next(calls))
                for suffix in (".bin", ".tmi") if moves else ():
                    (folder / f"part-1{suffix}{moves[0]}").rename(folder / f"part-1{suffix}{moves[1]}")
                return look(name)

            with unittest.mock.patch.object(_dataset, "match_pattern", look_meanwhile):
                assert len(find_paths(folder / pattern)) == 3, (pattern, step)
            if (folder / "part-1.tmi.replaced").exists():
                look_meanwhile("")
    assert isinstance(raises(FileNotFoundError, tokmap.open, folder / "none-*"), tokmap.FileError)
    (folder / "in" / "a").mkdir(parents=True)
    (folder / "in" / "a" / "d.tmi").symlink_to(folder / "part-1.tmi")
    (folder / "in" / "file").touch()
    for pattern in ("in/*/d", "in/*/*", "i?/a/d", "in/?/[d]"):
        assert find_paths(folder / pattern) == [str(folder / "in" / "a" / "d")], pattern
    for target, kind in (("/not/there", FileNotFoundError), ("b", OSError)):  # the second leads to itself
        (folder / "in" / "b").symlink_to(target)
        for pattern in ("in/*/d", "in/*/*", "in/?/d.tmi"):
            assert "in/b: " in str(raises(kind, tokmap.open, folder / pattern)), pattern
        (folder / "in" / "b").unlink()
    for first in range(len(flat)):
        for n in (0, 1, 7, len(flat) - first):
            if first + n <= len(flat):
                got = ds.tokens(first, n)
                assert list(got) == flat[first:first + n] and not got.flags.writeable
        found = ds.find_document(first)
        assert found.first_token <= first < found.first_token + found.n_tokens
        assert list(ds[found.number]) == flat[found.first_token:found.first_token + found.n_tokens]
        assert ds.document(found.number) == found
    assert [i.name for i in ds.inputs] == ["0.txt", "1.txt", "2.txt"] and ds.n_inputs == 3
    assert ds.inputs[-1].first_document == 5 and ds.inputs[-1].n_documents == 10
    for call in (lambda: np.asarray(ds), lambda: ds.metadata, lambda: ds.dataset_id):
        assert "3 datasets" in str(raises(ValueError, call))
    assert [len(one) for one in ds.shards] == [0, 5, 10]
    assert list(ds.shards[2][3]) == documents[8] and "2 more" in repr(ds)
    with tokmap.Writer(folder / "part-9", 100000) as w:
        w.document([70000])
    assert "part-9" in str(raises(ValueError, tokmap.open, folder / "part-*"))
    error = raises(FileNotFoundError, tokmap.open, folder / "none-*")
    assert error.filename == str(folder / "none-*")
    raises(ValueError, tokmap.open, [])


def a_joined_dataset_is_read_like_a_flat_one(folder):
    tokens, lengths = list(range(1000)), [400, 0, 100, 300, 200]
    segments = [(b"c/0.bin", 450, b""), (b"1.npy", 50, b"12345678"), (b"c/2.bin", 500, b"")]
    ref_writer.write(str(folder / "flat"), tokens, lengths, vocab=1000)
    ref_writer.write(str(folder / "joined"), tokens, lengths, vocab=1000, segments=segments)
    with tokmap.open(folder / "joined") as ds, tokmap.open(folder / "flat") as flat:
        assert ds.dataset_id == flat.dataset_id and ds.n_tokens == 1000 and len(ds) == 5
        assert flat.segments == [] and ds.dtype == flat.dtype
        assert [os.path.relpath(s.path, folder) for s in ds.segments] == ["c/0.bin", "1.npy", "c/2.bin"]
        assert [s[1:] for s in ds.segments] == [(0, 450, 0), (450, 50, 8), (500, 500, 0)]
        for a, b in zip(ds, flat):
            assert list(a) == list(b) and not a.flags.writeable and a.dtype == b.dtype
        assert not ds[0].flags.owndata and ds[2].flags.owndata  # in one file, and in two
        for first, n in ((0, 1000), (449, 1), (449, 2), (450, 50), (499, 502 - 499), (1000, 0), (0, 0), (500, 500)):
            assert list(ds.tokens(first, n)) == tokens[first:first + n], (first, n)
        whole = np.asarray(ds)
        assert list(whole) == tokens and not whole.flags.writeable
        assert np.array(ds, dtype=np.int64).dtype == np.int64 and list(ds.shards[0].tokens()) == tokens
        ds.verify()
    both = tokmap.open([folder / "flat", folder / "joined"])
    assert list(both.tokens(990, 20)) == tokens[990:] + tokens[:10] and both.segments[1].first_token == 1450
    view = tokmap.open(folder / "joined").tokens(500, 500)
    gc.collect()
    assert list(view) == tokens[500:]
    os.remove(folder / "1.npy")
    ds = tokmap.open(folder / "joined")
    assert list(ds[0]) == tokens[:400]
    for call in (lambda: ds[2], lambda: np.asarray(ds), lambda: ds.tokens(450, 1), ds.verify):
        error = raises(tokmap.FileError, call)
        assert error.filename == str(folder / "1.npy") and isinstance(error, FileNotFoundError), error
    (folder / "1.npy").write_bytes(bytes(107))
    assert "1.npy: has 107 bytes" in str(raises(tokmap.DamagedError, ds.tokens, 450, 1))


def ids_may_be_any_iterable(folder):
    kinds = [b"abcd", bytearray(b"abcd"), (97, 98, 99, 100), iter([97, 98, 99, 100]), [],
             array.array("H", [97, 98, 99, 100]), range(97, 101), np.arange(97, 101), np.arange(97, 105)[::2] // 2 + 49,
             np.arange(97, 101, dtype=np.uint32), np.arange(97, 101, dtype=np.uint16)]
    with tokmap.Writer(folder / "k", 257) as w:
        for ids in kinds:
            w.document(ids)
        raises(TypeError, w.document, [1.5])
        raises(ValueError, w.document, np.zeros((2, 2), int))
        for out_of_range in ([-1], [2**32], np.array([-1]), np.array([2**40]), [2**70]):
            raises((OverflowError, TypeError), w.document, out_of_range)
    with tokmap.open(folder / "k") as ds:
        for i in range(len(kinds)):
            assert list(ds[i]) in ([97, 98, 99, 100], [] if i == 4 else [97, 98, 99, 100]), i


def metadata_is_an_object_of_json(folder):
    with tokmap.Writer(folder / "m", 10) as w:
        w.set_metadata({"a": [1, None]})
        raises(TypeError, w.set_metadata, [1])
        raises(ValueError, w.set_metadata, {"a": float("nan")})
    assert tokmap.open(folder / "m").metadata == {"a": [1, None]}


def a_view_outlives_the_dataset(folder):
    ids = [x for document in make(folder / "v") for x in document]
    ds = tokmap.open(folder / "v.bin")
    view, document = ds.tokens(10, 100), ds[3]
    expected = list(document)
    assert not view.flags.writeable and view.itemsize == 2 and not view.flags.owndata
    ds.close()
    del ds
    gc.collect()
    assert list(view) == ids[10:110] and list(document) == expected


def threads_of_a_writer_change_no_byte(folder):
    ids = np.arange(3_000_000, dtype=np.uint32) % 60000
    for name, n_threads in (("without", 0), ("with", 3)):
        with tokmap.Writer(folder / name, 60000, threads=n_threads) as w:
            for at in range(0, len(ids), 300_000):
                w.document(ids[at:at + 300_000])
    for suffix in (".bin", ".tmi"):
        assert (folder / f"with{suffix}").read_bytes() == (folder / f"without{suffix}").read_bytes()
    assert "threads is 8" in str(raises(ValueError, tokmap.Writer, folder / "w", 10, threads=8))


def a_failed_writer_leaves_nothing(folder):
    def write(bad):
        with tokmap.Writer(folder / "n", 100) as w:
            w.document([1, 2, bad])

    error = raises(tokmap.Error, write, 100)
    assert "id 100" in str(error), error
    raises(OverflowError, write, -1)
    assert list(folder.glob("n.*")) == []
    w = tokmap.Writer(folder / "n", 100)
    w.document([1])
    assert isinstance(raises(BlockingIOError, tokmap.Writer, folder / "n", 100), tokmap.LockedError)
    pid = os.fork()
    if pid == 0:
        raises(tokmap.ForkedError, w.document, [2])
        raises(tokmap.ForkedError, w.finish)
        w.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert list(folder.glob("n.*"))  # a child does not write to, publish or remove the files of its parent
    del w
    gc.collect()
    assert list(folder.glob("n.*")) == []
    make(folder / "n")
    raises(FileExistsError, make, folder / "n")
    os.chdir(folder)
    with tokmap.Writer("q", 100) as w, tokmap.Writer("r", 100) as left:
        w.document([1])
        os.chdir("/")
        left.close()
    assert len(tokmap.open(folder / "q")) == 1 and list(folder.glob("r.*")) == []


def a_dataset_can_be_pickled(folder):
    make(folder / "p")
    ds = tokmap.open(folder / "p")
    other = pickle.loads(pickle.dumps(ds))
    assert other.dataset_id == ds.dataset_id and repr(other) == repr(ds)
    assert list(other.tokens(0, 9)) == list(ds.tokens(0, 9))
    os.chdir(folder)
    ds, samples = tokmap.open("p"), tokmap.Samples("p", 9)
    os.chdir("/")
    pickled = [pickle.dumps(ds), pickle.dumps(samples)]  # that are to find the files of the other folder
    assert [len(pickle.loads(one)) for one in pickled] == [len(ds), len(samples)]
    with tokmap.Writer(folder / "p", 10, replace=True) as w:
        w.document([1] * ds.n_tokens)
    for one in pickled:
        assert "when it was pickled" in str(raises(tokmap.MismatchError, pickle.loads, one))


def numbers_and_paths_out_of_range_are_refused(folder):
    raises(ValueError, tokmap.Writer, folder / "o", 100, -1)
    raises(ValueError, tokmap.Writer, folder / "o", -1)
    raises(ValueError, tokmap.open, "a\0b")
    with tokmap.Writer(folder / "o", 100) as w:
        raises(ValueError, w.end_input, "a\0b")
        raises(ValueError, w.document, np.ma.array([1, 2], mask=[0, 1]))
        w.set_metadata({"name": "value"})
    index = (folder / "o.tmi").read_bytes()
    (folder / "o.tmi").write_bytes(index.replace(b'"value"', b'"value,'))
    raises(tokmap.DamagedError, lambda: tokmap.open(folder / "o").metadata)


def errors_have_kinds(folder):
    make(folder / "e")
    data = bytearray((folder / "e.tmi").read_bytes())
    (folder / "e.bin").rename(folder / "f.bin")
    error = raises(FileNotFoundError, tokmap.open, folder / "e")
    assert isinstance(error, tokmap.FileError) and isinstance(error, OSError)
    assert (error.errno, error.status, error.file) == (2, -3, error.filename) and "e.bin" in error.file, error.file
    data[60] ^= 1
    (folder / "e.tmi").write_bytes(data)
    error = raises(ValueError, tokmap.open, folder / "e")
    assert isinstance(error, tokmap.DamagedError)
    assert (error.offset, error.status, error.file) == (248, -6, str(folder / "e.tmi"))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.offset, again.file) == (type(error), str(error), 248, error.file)
    (folder / "e.tmi").write_bytes(b"something else")
    raises(tokmap.NotADatasetError, tokmap.open, folder / "e")
    error = raises(FileNotFoundError, tokmap.open, folder / "absent")
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, FileNotFoundError) and (again.errno, str(again)) == (2, str(error))
    if os.geteuid() != 0:
        (folder / "e.tmi").chmod(0)
        raises(PermissionError, tokmap.open, folder / "e")


def structs_are_those_of_the_headers(folder):
    headers = "".join((ROOT / "include" / name).read_text() for name in
                      ("tokmap.h", "tokmap_writer.h", "tokmap_loader.h"))
    names = {"ErrorDetail": "tokmap_error", "Info": "tokmap_dataset_info",
             "Document": "tokmap_document", "Segment": "tokmap_segment_info", "Input": "tokmap_input_info",
             "MetaColumn": "tokmap_meta_column", "Value": "tokmap_value",
             "VerifyOptions": "tokmap_verify_options", "WriterOptions": "tokmap_writer_options",
             "ViewOptions": "tokmap_view_options", "ViewInfo": "tokmap_view_info",
             "LaneInfo": "tokmap_lane_info", "LaneOptions": "tokmap_lane_options",
             "LoaderSource": "tokmap_loader_source", "LoaderPhase": "tokmap_loader_phase",
             "LoaderOptions": "tokmap_loader_options", "Row": "tokmap_row", "Batch": "tokmap_batch",
             "LoaderSample": "tokmap_sample", "LoaderSourceInfo": "tokmap_loader_source_info",
             "LoaderInfo": "tokmap_loader_info", "ByteRead": "tokmap_byte_read", "ByteSource": "tokmap_byte_source",
             "GatherOptions": "tokmap_gather_options"}
    check_structs(folder, ("tokmap_writer.h", "tokmap_loader.h"), [(getattr(_lib, name), c) for name, c in names.items()])
    declared = set(re.findall(r"\b(tokmap_\w+)\(", headers))
    assert set(_lib.SIGNATURES) <= declared, set(_lib.SIGNATURES) - declared
    assert tokmap.__version__ in headers
    assert f"\nABI := {_native.ABI}\n" in (ROOT / "Makefile").read_text()


sys.exit(run_in_folders("python_"))
