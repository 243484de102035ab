#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arguments of a wrong type or out of range: the exception names the parameter, in Python's words, and says what it
must be."""

import contextlib
import inspect
import os
import re
import sys
import unittest.mock

from grouped import grouped, open_loader
from package import raises
from ref_protocol import run_in_folders, run_program

import numpy as np
import tokmap

OF_C = re.compile(r"TOKMAP_|row_parts|NULL|struct_size|label_bytes|input_bytes to|ctypes|c_ubyte")


def prepare(folder):
    with tokmap.Writer(folder / "a", vocab_size=1000, eod_id=0) as w:
        for i in range(0, 1000, 40):
            w.document(range(i, i + 40))


def refused(kind, name, function, *arguments, **named):
    """The exception is of this kind and begins with the name of the parameter."""
    text = str(raises(kind, function, *arguments, **named))
    assert text.startswith(name) and not OF_C.search(text), text
    return text


def only_integers_are_integers(folder):
    a = folder / "a"
    numbers = ("sequence_length", "batch_rows", "seed", "max_epochs", "block_windows", "group_blocks", "look_ahead",
               "pad_id", "ignore_index", "rank", "n_ranks", "n_slots", "max_boundaries")
    for name in numbers:
        for wrong in (15.9, "16", None, np.float32(3), b"1"):
            if wrong is None and name in ("max_epochs", "rank", "n_ranks"):
                continue
            options = {"sequence_length": 8, **({"rank": 0, "n_ranks": 2} if "rank" in name else {}), name: wrong}
            text = refused(TypeError, name, open_loader, a, **options)
            assert repr(wrong) in text and "integer" in text, text
    loader = tokmap.Loader(a, np.int64(8), np.uint8(2), seed=np.uint64(2**64 - 1), max_epochs=np.int32(1))
    assert len(list(loader)) == len(loader) == 62 and type(loader.sequence_length) is int
    stage = tokmap.Stage(tokmap.Loader(a, 8), "host")
    samples, ds = tokmap.Samples(a, 8), tokmap.open(a)
    writer = tokmap.Writer(folder / "w", 10)
    for name, call in (
            ("sample", loader.seek), ("sample", loader.locate), ("sample", stage.seek), ("sample", samples.__getitem__),
            ("index", ds.document), ("index", ds.input), ("token", ds.find_document), ("first", ds.tokens),
            ("n_tokens", lambda n: ds.tokens(0, n)), ("threads", ds.verify), ("index", ds.document_meta),
            ("vocab_size", lambda n: tokmap.Writer(folder / "x", n)),
            ("eod_id", lambda n: tokmap.Writer(folder / "x", 10, n)),
            ("input_bytes", lambda n: writer.end_input("x", n)),
            ("input_checksum", lambda n: writer.end_input("x", 0, n)),
            ("id", tokmap.Tokenizer("bytes").token),
            ("threads", lambda n: tokmap.Tokenizer("bytes").encode_batch(["x"], threads=n)),
            ("max_epochs", lambda n: tokmap.Loader(tokmap.Source(a, max_epochs=n), 8)),
            ("the sample of a phase", lambda n: tokmap.Loader(a, 8, order=tokmap.Order(phases={n: [1.0]}))),
            ("n_host_slots", lambda n: tokmap.Stage(tokmap.Loader(a, 8), "host", n_host_slots=n)),
            ("ignore_index", lambda n: tokmap.Stage(tokmap.Loader(a, 8), "host", ignore_index=n))):
        for wrong in (1.5, "1"):
            refused(TypeError, name, call, wrong)
    assert ds.tokens(np.int64(3), np.uint8(2)).tolist() == [3, 4]
    writer.close()


def a_flag_is_no_text(folder):
    a = folder / "a"
    for name in ("contiguous", "mask_labels", "drop_last", "random_offset", "drop_behind", "mixed_tokenizers"):
        assert "True or False" in refused(TypeError, name, open_loader, a, 8, **{name: "false"})
        assert tokmap.Loader(a, 8, **grouped(**{name: np.bool_(False)})).batch_rows == 1
    for name, call in (("masked", lambda: tokmap.Source(a, masked="no")),
                       ("replace", lambda: tokmap.Writer(folder / "w", 10, replace="false")),
                       ("mixed_tokenizers", lambda: tokmap.open(a, mixed_tokenizers="")),
                       ("thread", lambda: tokmap.Stage(tokmap.Loader(a, 8), "host", thread="false"))):
        refused(TypeError, name, call)
    refused(tokmap.ArgumentError, "batch_rows", tokmap.Loader, a, 2**15, 2**16, outputs=["cu_seqlens"])


def each_argument_is_named(folder):
    """Whatever is given, the loader opens, or the exception names the argument; also where it is not used."""
    parameters = inspect.signature(tokmap.Loader).parameters
    wrong = (1, -1, 2.5, "x", b"x", None, True, float("nan"), np.zeros(2), np.zeros((2, 2)), [], (), {}, [1], ["x"], {"x": 1}, {1}, object(),
             [(1, 2, 3)], [("x", "y")], {"weights": 1}, iter("ab"))
    n_named = 0
    for device in ({}, {"device": "host"}):
        for name in parameters.keys() - {"sources"}:
            given = {"sources": folder / "a", "sequence_length": 8, **device}
            if name in ("rank", "n_ranks"):
                given.update(rank=0, n_ranks=1)
            for value in wrong:
                value = iter("ab") if hasattr(value, "__next__") else value
                try:
                    tokmap.Loader(**grouped(**{**given, name: value})).close()
                except tokmap.DeviceError:
                    pass  # number 1
                except (ValueError, TypeError, FileNotFoundError) as error:
                    assert re.search(rf"\b{name}\b", str(error)) and not OF_C.search(str(error)), (name, value, error)
                    n_named += 1
        for name, value in (("outputs", 1), ("dims", 1), ("ledger", 1), ("metrics_file", 1), ("amend", "x"), ("mesh", "x"), ("dims", ()),
                            ("contiguous", np.zeros(2)), ("micro_batches", -1), ("metrics_seconds", "no"), ("amend_from", "no"),
                            ("framework", "tf"), ("log", 1)):
            refused((ValueError, TypeError, FileNotFoundError), name, open_loader, folder / "a", 8,
                    **{**device, name: value})
    return "%d named" % n_named


def a_path_a_text_or_a_list_of_another_kind_is_refused_by_its_name(folder):
    """A number is no path: open() takes it for the descriptor of an open file, and closes it."""
    a, ds = folder / "a", tokmap.open(folder / "a")
    descriptor = os.open(folder / "a.tmi", os.O_RDONLY)
    writer = tokmap.Writer(folder / "w", 10, meta=["x"])
    files = sorted(os.listdir(folder))
    texts = [5, True, np.int64(descriptor), 2**70, 0.5, "a\0b", "\ud800", object(), int, [1], {1: 1}]
    paths, lists = [*texts, ""], [5, 0.5, object(), str]
    for name, call, wrong in (
            ("path", tokmap.open, [one for one in paths if one != [1]]), ("path", tokmap.open, [[1], ["\ud800"]]),
            ("ledger", tokmap.Run, paths), ("dataset", tokmap.View, [5, "x", None, str]),
            ("paths", lambda one: tokmap.View(ds, paths=one), ["x", b"x", 5, *([one] for one in texts)]),
            ("where", lambda one: tokmap.View(ds, one), texts), ("where", ds.where, texts),
            ("path", lambda one: ds.write_view(one, keep=np.ones(len(ds))), paths),
            ("name", lambda one: ds.add_column(one, np.ones(len(ds))), texts), ("name", ds.meta, texts),
            ("name", lambda one: ds.scan(one, duplicates=True), texts),
            ("against", lambda one: ds.scan("x", against=one), [5, 0.5, b"x", object, [1], "a\0b", "\ud800", ""]),
            ("pattern", lambda one: ds.scan("x", against=["a"], pattern=one), texts),
            ("index", ds.__getitem__, ["x", 0.5, None]), ("index", ds.labels, ["x", 0.5, None]),
            ("prefix", lambda one: tokmap.Writer(one, 10), paths),
            ("meta", lambda one: tokmap.Writer(folder / "v", 10, meta=one), ["x", b"x", *lists]),
            ("a name of meta", lambda one: tokmap.Writer(folder / "v", 10, meta=[one]), texts),
            ("name", writer.end_input, paths), ("meta", lambda one: writer.document([1], one), [5, "x", [1], object()]),
            ("ids", writer.document, [5, None, object(), [2**62], [2**70], np.array([2**63], np.uint64), [0.5], ["x"], [[1]]]),
            ("train", lambda one: writer.document([1, 2], None, one), [5, "x", [(0, 1), (1,)], np.ma.array([1, 1], mask=[0, 1])]),
            ("file", tokmap.Tokenizer, paths), ("pattern", lambda one: tokmap.Tokenizer("bytes", pattern=one), texts),
            ("specials_file", lambda one: tokmap.Tokenizer("bytes", specials_file=one), paths),
            ("outputs", lambda one: tokmap.Loader(a, 8, outputs=one), ["inputs", *lists]),
            ("ledger", lambda one: tokmap.Loader(a, 8, ledger=one), paths),
            ("rows_files", lambda one: tokmap.Source(a, rows_files=one), ["a\0b", "\ud800", 5])):
        for one in wrong:
            try:
                call(one)
            except (TypeError, ValueError, OverflowError) as error:
                assert name in str(error) and not OF_C.search(str(error)), (name, one, error)
                assert not isinstance(error, UnicodeError), (name, one)
            else:
                raise AssertionError(f"{name}={one!r} is taken")
    os.fstat(descriptor)
    os.close(descriptor)
    assert sorted(os.listdir(folder)) == files
    writer.close()


def weights_of_nothing_are_refused(folder):
    a = folder / "a"
    for wrong in ([(a, 0)], [(a, 0.0)], [tokmap.Source(a, 0)], tokmap.Source(a, 0), [(a, 0), (a, 0)]):
        text = str(raises(ValueError, tokmap.Loader, wrong, 8))
        assert "weight" in text and "above 0" in text, text
    assert tokmap.Loader([(a, 0), (a, 1)], 8).phases == {0: [0, 1]}


def sources_are_counted_before_files_are_opened(folder):
    """65,536 open files would be too many for most systems."""
    a = folder / "a"
    for call in (lambda: tokmap.Loader([(a, 1)] * 65536, 8), lambda: tokmap.Loader([a] * 65536, 8), lambda: tokmap.Source([a] * 65536),
                 lambda: tokmap.Loader([tokmap.Source(a)] * 65536, 8)):
        text = str(raises(tokmap.ArgumentError, call))
        assert "65536" in text and "1 to 65,535" in text, text


def each_range_is_said_once(folder):
    a = folder / "a"
    for name, wrong, says in (("sequence_length", 0, "1 to 2^24"), ("sequence_length", 2**24 + 1, "1 to 2^24"),
                              ("sequence_length", 2**32 + 16, "1 to 2^24"), ("sequence_length", -1, "1 to 2^24"),
                              ("batch_rows", 0, "1 to 2^24"), ("batch_rows", 2**32 + 1, "1 to 2^24"),
                              ("seed", -1, "0 to 2^64 - 1"), ("seed", 2**64, "0 to 2^64 - 1"),
                              ("look_ahead", 1025, "0 to 1024"), ("look_ahead", 2**33, "0 to 1024"),
                              ("pad_id", -1, "0 to 2^32 - 1"), ("max_epochs", -1, "0 to 2^64 - 1")):
        text = refused(ValueError, name, open_loader, a, **{"sequence_length": 8, name: wrong})
        assert f"is {wrong}: must be {says}" in text, text
    for name, wrong in (("rank", 2), ("rank", -1), ("n_ranks", 0), ("n_ranks", 2**32)):
        refused(ValueError, name, open_loader, a, 8, **{"rank": 0, "n_ranks": 2, name: wrong})
    endless = tokmap.Loader(a, 8, max_epochs=0)
    assert endless.n_samples is None  # as without it
    assert "0" in tokmap.Source.__doc__.split("max_epochs")[1]


def weights_and_states_are_named(folder):
    a = folder / "a"
    for wrong in ("x", None, [1]):
        refused(TypeError, "weight is", tokmap.Loader, [(a, wrong), (a, 1)], 8)
        refused(TypeError, "phases: a weight is", open_loader, [(a, 1), (a, 1)], 8, phases={8: [1, wrong]})
    for wrong in (1, {0: 1, 1: 0}, {1, 2}, frozenset([1, 2])):  # whose keys, in any order, would be weights
        assert "list" in refused(TypeError, "phases", open_loader, [(a, 1), (a, 1)], 8, phases={8: wrong})
    for wrong in ({"inputs", "labels"}, frozenset(["labels"])):  # whose order differs from run to run
        assert "list" in refused(TypeError, "outputs", tokmap.Loader, a, 8, outputs=wrong)
    for wrong in ([tokmap.Source(a), a], [(a, 1), a], [tokmap.Source(a), (a, 1)], (a, 0.5), {a}, (x for x in [a])):
        text = str(raises(TypeError, tokmap.Loader, wrong, 8))
        assert "neither a path nor a Dataset" in text and "list of (path, weight)" in text, text
    for wrong in (-1.0, float("nan"), float("inf")):
        assert "weights" in str(raises(ValueError, tokmap.Loader, [(a, wrong), (a, 1)], 8))
    loader = tokmap.Loader(a, 8)
    for one in (loader, tokmap.Stage(tokmap.Loader(a, 8), "host")):
        state = one.state()
        for wrong in (state.hex(), None, 7, {"state": state.hex()}, list(state)):
            refused(TypeError, "state is", one.restore, wrong)
        refused(ValueError, "state has 127 bytes", one.restore, state[:127])
        for same in (bytearray(state), memoryview(state), np.frombuffer(state, np.uint8)):
            one.restore(same)
    for wrong in ({}, state, None, "x", {"state": 7}, {"state": state}, {"state": "no digits"}):
        refused((TypeError, ValueError), "state_dict", loader.load_state_dict, wrong)


def python_speaks_python(folder):
    a, plain = folder / "a", folder / "plain"
    with tokmap.Writer(plain, 70000) as w:
        w.document(range(100))
    np.arange(100, dtype=np.uint16).tofile(folder / "raw.bin")
    np.arange(2**32 - 101, 2**32 - 1, dtype=np.uint32).tofile(folder / "wide.bin")
    for name, dtype in (("raw.bin", "u16"), ("wide.bin", "u32")):
        run_program("tokmap", "index", "-q", "--dtype", dtype, "--eod", "none", folder / name, check=True)
    loader = tokmap.Loader(a, 8)
    for call in (lambda: tokmap.Loader(a, 8, order=tokmap.Order(block_windows=3)), lambda: tokmap.Loader(a, 8, order=tokmap.Order(group_blocks=3)),
                 lambda: tokmap.Loader(folder / "raw", 8, outputs=["loss_mask"]),
                 lambda: tokmap.Loader(folder / "raw", 8, windows="within_document"),
                 lambda: tokmap.Loader(a, 8, windows="within_document", order=tokmap.Order(random_offset=True)),
                 lambda: tokmap.Loader(a, 8, shuffle="block", order=tokmap.Order(block_windows=2**63)),
                 lambda: tokmap.Loader(a, 8, slots=tokmap.Slots(n_slots=3)), lambda: tokmap.Loader(a, 8, slots=tokmap.Slots(log=print)),
                 lambda: tokmap.Stage(loader, "host", ["cu_seqlens"]), lambda: tokmap.Stage(loader, "host", n_slots=1),
                 lambda: tokmap.Stage(loader, "host", ["inputs"], positions="row"),
                 lambda: tokmap.Stage(tokmap.Loader(folder / "wide", 8), "host"),
                 lambda: tokmap.Stage(loader, "host", pad_id=2**31), lambda: tokmap.open([a, plain]),
                 lambda: next(tokmap.Loader(folder / "wide", 8, dtype="int32")),
                 lambda: tokmap.Loader(a, 8, 2**24, reading=tokmap.Reading(look_ahead=1024, io="read"))):
        text = str(raises(ValueError, call))
        assert not OF_C.search(text), text
    one = tokmap.Writer(folder / "one", 10)
    for i in range(20):
        one.document([1])
    one.finish()
    text = str(raises(ValueError, tokmap.Loader, folder / "one", 8, windows="within_document"))
    assert "two tokens" in text and "too few" not in text, text
    exists = str(raises(tokmap.ExistsError, tokmap.Writer, a, 10))
    assert exists.endswith("already exists: set replace=True to replace it"), exists
    os.remove(folder / "one.tmi")
    assert "replace=True" in str(raises(tokmap.ExistsError, tokmap.Writer, folder / "one", 10))


def what_is_no_dataset_says_what_to_do(folder):
    (folder / "text.txt").write_text("hello\n")
    (folder / "folder").mkdir()
    (folder / "index.tmi").write_text("hello" * 100)
    for name, says in (("text.txt", "pack"), ("folder", "folder"), ("folder/", "folder")):
        error = raises(tokmap.NotADatasetError, tokmap.open, folder / name)
        assert "not a dataset" in str(error) and says in str(error) and not isinstance(error, OSError), error
        assert "No such file" not in str(error) and error.file == str(folder / name), error
    assert "No such file" in str(raises(FileNotFoundError, tokmap.open, folder / "nothing"))
    raises(tokmap.NotADatasetError, tokmap.open, folder / "index")


def memory_for_two_batches_is_kept(folder):
    with tokmap.Writer(folder / "lengths", 1000) as w:
        for i in range(4000):
            w.document(range(1 + i * 7919 % 97))
    loader = tokmap.Loader(folder / "lengths", 64, 64, outputs=["inputs", "cu_seqlens"], max_epochs=1)
    lengths = {len(batch.cu_seqlens) for batch in loader}
    kept = loader._gatherer._kept
    assert len(lengths) > 10 and set(kept) == {"ids", "cu_seqlens"} and all(len(one) <= 2 for one in kept.values())
    return "boundaries of %d lengths" % len(lengths)


def what_a_killed_writer_left_is_removed(folder):
    for left in ("a.bin.partial", "a.tmv.partial"):  # without a.tmi.partial
        (folder / left).write_text("x")
        raises(tokmap.ExistsError, tokmap.Writer, folder / "a", 10)
        assert sorted(path.name for path in folder.iterdir()) == ["a.bin", "a.tmi"]
    assert len(tokmap.open(folder / "a")) == 25


class OldTensor:
    """What tensors of PyTorch 1.13 have: no nbytes."""

    def __init__(self, shape, dtype, array=None):
        self.array = np.empty(shape, dtype) if array is None else array
        self.shape = self.array.shape

    def __getitem__(self, key):
        return OldTensor(None, None, self.array[key])

    def data_ptr(self):
        return self.array.ctypes.data


def torch_before_2_0_is_enough(folder):
    class Torch:
        int64, int32, uint8 = "int64", "int32", "uint8"

        inference_mode = contextlib.nullcontext

        @staticmethod
        def empty(shape, dtype, pin_memory):
            return OldTensor(shape, dtype)

        @staticmethod
        def from_numpy(array):
            return OldTensor(None, None, array)

    outputs = ["inputs", "labels", "position_ids", "loss_mask", "cu_seqlens"]
    for pinned in (False, True):
        loader, wanted = (tokmap.Loader(folder / "a", 16, 4, outputs=outputs) for _ in range(2))
        gatherer = loader._gatherer
        gatherer._torch = Torch
        if pinned:
            gatherer._make = gatherer._pinned_memory
        else:
            gatherer._as_output = Torch.from_numpy
        batch, reference = next(loader), next(wanted)
        for name in outputs:
            assert (getattr(batch, name).array == getattr(reference, name)).all(), name


def a_loader_with_a_device_takes_the_options_of_its_stage(folder):
    lines = []
    loader = tokmap.Loader(folder / "a", 8, device="host", slots=tokmap.Slots(n_slots=5, max_boundaries=7, log=lines.append))
    assert loader._stage.stats["n_slots"] == 5 and loader._stage.stats["max_boundaries"] == 7
    assert loader._stage._core.user_log == lines.append


def without_torch_it_says_what_to_install(folder):
    path = folder / "a"
    batch = next(tokmap.Loader(path, 8))
    with unittest.mock.patch.dict(sys.modules, torch=None):
        for call in (lambda: tokmap.Loader(path, 8, framework="torch"), lambda: batch.to("cpu")):
            error = raises(ModuleNotFoundError, call)
            assert str(error).endswith(". Install it: pip install torch") and "torch" in error.name, error


sys.exit(run_in_folders("python_arguments_", prepare=prepare))
