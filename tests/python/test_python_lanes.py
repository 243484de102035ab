#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lanes in the Python package: what is added is what is read, in the bytes of a second implementation of docs/FORMAT.md,
section 16. test_lanes.c tries the library itself."""

import os
import random
import subprocess
import sys
import threading
import warnings

import ref_reader
from package import raises
from ref_lane import NAMES, OtherTokens, lane_bytes, read_lane
from ref_protocol import expect, expect_equal, need, program, run_in_folders

import tokmap
import numpy as np

KINDS = {"uint8": "u8", "int8": "i8", "uint16": "u16", "int16": "i16", "uint32": "u32", "int32": "i32", "float16": "f16",
         "bfloat16": "bf16", "float32": "f32", "float8_e4m3": "f8_e4m3", "float8_e5m2": "f8_e5m2"}
STORED = {"bfloat16": "uint16", "float8_e4m3": "uint8", "float8_e5m2": "uint8"}


def write(path, n_documents=40, seed=1, longest=30):
    rng = random.Random(seed)
    with tokmap.Writer(path, vocab_size=1000, eod_id=999) as w:
        for _ in range(n_documents):
            w.document([rng.randrange(998) for _ in range(rng.choice((0, 1, rng.randrange(longest))))] + [999])
    return tokmap.open(path)


def call(*arguments):
    subprocess.run([program("tokmap"), *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def numbers(rng, type_name, shape):
    """Any bits but those of NaN, which is not equal to itself."""
    dtype = np.dtype(STORED.get(type_name, type_name))
    found = np.frombuffer(rng.randbytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    return np.where(np.isnan(found), 0, found).astype(dtype) if dtype.kind == "f" else found


def the_library_writes_the_bytes_of_the_specification(folder):
    n = 0
    for seed, (type_name, code) in enumerate(KINDS.items()):
        rng = random.Random(seed)
        path = folder / f"d{seed}"
        ds, ref = write(path, seed=seed), ref_reader.read(str(path))
        for count in (1, 2, 7, 300):
            for goes_with in ("label", "input"):
                values = numbers(rng, type_name, (ds.n_tokens, count) if count > 1 else ds.n_tokens)
                ds.add_lane("x", values, type=type_name, goes_with=goes_with, about={"teacher": "é"}, replace=True)
                about = '{"attention": "within documents", "teacher": "é"}'.encode()
                wanted = lane_bytes(ref.tokens_hash, ds.n_tokens, code, count, goes_with == "input", values.tobytes(), about)
                expect((folder / f"d{seed}.x.tml").read_bytes() == wanted, f"bytes of a lane of {count} {type_name}")
                read = read_lane(str(folder / f"d{seed}.x.tml"), ref.tokens_hash, ds.n_tokens)
                expect_equal((read.type, read.count, read.goes_with, read.values), (code, count, goes_with == "input", values.tobytes()), "read")
                lane = ds.lane("x")
                expect_equal((lane.type, lane.count, lane.goes_with, lane.n_tokens, len(lane)),
                             (type_name, count, goes_with, ds.n_tokens, ds.n_tokens), "what the lane says")
                expect_equal(lane.about, {"attention": "within documents", "teacher": "é"}, "about")
                expect(np.array_equal(lane.array, values) and lane.array.dtype == values.dtype, "values")
                n += 1
    expect_equal(list(KINDS.values()), NAMES[1:], "types")
    return f"{n} lanes"


def values_are_views_of_the_file(folder):
    ds = write(folder / "d")
    values = np.arange(ds.n_tokens * 3, dtype="f4").reshape(-1, 3)
    ds.add_lane("x", values)
    lane = ds.lane("x")
    expect_equal(repr(lane), "<tokmap.Lane x: 3 float32 of each label>", "repr")
    expect_equal(lane.paths, [str(folder / "d.x.tml")], "paths")
    array = lane.array
    expect(not array.flags.owndata and not array.flags.writeable and array.shape == (ds.n_tokens, 3), "a view")
    expect(np.shares_memory(array, lane[5:9]) and np.array_equal(lane[5:9], values[5:9]), "a part")
    expect(np.array_equal(lane[-1], values[-1]) and np.array_equal(lane[-7:], values[-7:]) and lane[9:3].shape == (0, 3), "from the end")
    for i in range(len(ds)):
        place = ds.document(i)
        expect(np.array_equal(lane.document(i), values[place.first_token:place.first_token + place.n_tokens]), "a document")
    ds.close()
    del ds, lane
    expect(np.array_equal(array, values), "an array outlives its dataset")


def lengths_spread_values_of_documents(folder):
    ds = write(folder / "d")
    expect_equal(ds.lengths().tolist(), [len(one) for one in ds], "lengths")
    scores = np.linspace(0, 1, len(ds))
    ds.add_lane("weight", np.repeat(scores, ds.lengths()), type="float16")
    lane = ds.lanes["weight"]
    expect_equal(list(ds.lanes), ["weight"], "names")
    for i, score in enumerate(scores):
        expect((lane.document(i) == np.float16(score)).all(), "the score of a document")


def what_does_not_fit_is_refused(folder):
    ds = write(folder / "d")
    n = ds.n_tokens
    cases = [
        (ValueError, "values has the shape", lambda: ds.add_lane("x", np.zeros(n + 1, "f4"))),
        (ValueError, "values has the shape", lambda: ds.add_lane("x", np.zeros((n, 2, 2), "f4"))),
        (TypeError, "say as which type", lambda: ds.add_lane("x", np.zeros(n))),
        (TypeError, "must be numbers", lambda: ds.add_lane("x", np.array(["a"] * n))),
        (TypeError, "must be numbers", lambda: ds.add_lane("x", np.ma.MaskedArray(np.zeros(n, "f4"), [True] + [False] * (n - 1)))),
        (TypeError, "bfloat16 takes its bits as uint16", lambda: ds.add_lane("x", np.zeros(n, "f4"), type="bfloat16")),
        (ValueError, "cannot be stored as float16", lambda: ds.add_lane("x", np.full(n, 1e5), type="float16")),
        (ValueError, "300 cannot be stored as uint8", lambda: ds.add_lane("x", np.full(n, 300), type="uint8")),
        (ValueError, "-1 cannot be stored as uint16", lambda: ds.add_lane("x", np.full(n, -1), type="uint16")),
        (ValueError, "0.5 cannot be stored as int32", lambda: ds.add_lane("x", np.full(n, 0.5), type="int32")),
        (ValueError, "type is 'float64'", lambda: ds.add_lane("x", np.zeros(n), type="float64")),
        (ValueError, "goes_with is 'token'", lambda: ds.add_lane("x", np.zeros(n, "f4"), goes_with="token")),
        (TypeError, "about is 'T'", lambda: ds.add_lane("x", np.zeros(n, "f4"), about="T")),
        (ValueError, "'a/b' is not the name of a lane", lambda: ds.add_lane("a/b", np.zeros(n, "f4"))),
        (ValueError, "there is no lane 'x'", lambda: ds.lane("x")),
        (ValueError, "about has", lambda: ds.add_lane("x", np.zeros(n, "f4"), about={"text": "x" * 4000})),
    ]
    for kind, text, what in cases:
        expect(text in str(raises(kind, what)), text)
    expect_equal([name for name in os.listdir(folder) if "tml" in name], [], "files that are left")
    ds.add_lane("x", np.full(n, np.inf), type="float16")
    expect(np.isinf(ds.lane("x").array).all(), "what is infinite stays so")
    expect("set replace=True" in str(raises(tokmap.ExistsError, lambda: ds.add_lane("x", np.zeros(n, "f4")))), "replace")
    lane = ds.lane("x")
    raises(IndexError, lambda: lane[n])
    raises(ValueError, lambda: lane[::2])


def a_writer_takes_tokens_in_any_order_from_any_thread(folder):
    ds = write(folder / "d", n_documents=300)
    values = np.arange(ds.n_tokens * 4, dtype="u4").reshape(-1, 4)
    ranges = [(at, min(ds.n_tokens, at + 37)) for at in range(0, ds.n_tokens, 37)]
    random.Random(3).shuffle(ranges)
    ds.add_lane("one", values, goes_with="input")
    with ds.lane_writer("many", "uint32", 4, goes_with="input") as w:
        def work(k):
            for first, end in ranges[k::5]:
                w.put(first, values[first:end])
        threads = [threading.Thread(target=work, args=(k,)) for k in range(5)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        expect(not (folder / "d.many.tml").exists(), "a lane that is not complete is not there")
    expect((folder / "d.one.tml").read_bytes() == (folder / "d.many.tml").read_bytes(), "the same bytes")
    with raises_in(ValueError, "has its values already"):
        with ds.lane_writer("x", "float32") as w:
            w.put(3, [1.0, 2.0])
            w.put(4, [2.0])
    with raises_in(ValueError, "token 2 of"):
        with ds.lane_writer("x", "float32") as w:
            w.put(0, [1.0, 2.0])
    with raises_in(ValueError, "must be [tokens, 2]"):
        with ds.lane_writer("x", "float32", 2) as w:
            w.put(0, [1.0, 2.0])
    with raises_in(KeyError, "mine"):
        with ds.lane_writer("x", "float32") as w:
            raise KeyError("mine")
    expect("closed" in str(raises(ValueError, lambda: w.put(0, [1.0]))), "a closed writer")
    expect_equal(sorted(ds.lanes), ["many", "one"], "lanes")
    with ds.lane_writer("some", "float32", partial=True) as w:
        w.put(5, [1.0, 2.0])
    expect_equal(ds.lane("some")[4:8].tolist(), [0, 1, 2, 0], "what is left out is 0")


class raises_in:
    def __init__(self, kind, text):
        self.kind, self.text = kind, text

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        expect(kind is not None and issubclass(kind, self.kind) and self.text in str(value), f"{self.text}: {value!r}")
        return True


def a_writer_takes_lanes_with_the_documents(folder):
    rng, wanted, n = np.random.default_rng(1), {"logprob": [], "topk": [], "late": []}, 0
    with tokmap.Writer(folder / "w", vocab_size=1000, lanes={"logprob": "float16", "topk": ("int32", 4, "input"), "late": ("uint8", 1)}) as w:
        for i in range(300):
            ids = rng.integers(0, 1000, int(rng.integers(0, 50)))
            lanes = {"logprob": -rng.random(len(ids)).astype("f2"), "topk": rng.integers(0, 1000, (len(ids), 4))}
            w.document(ids, lanes=lanes if i % 3 else {"topk": lanes["topk"]})
            wanted["logprob"].append(lanes["logprob"] if i % 3 else np.zeros(len(ids), "f2"))
            wanted["topk"].append(lanes["topk"])
            wanted["late"].append(np.zeros(len(ids), "u1"))
            n += len(ids)
        for wrong in ({"none": []}, {"logprob": [1.0] * 3}, {"topk": np.zeros((5, 3), int)}, {"late": [300] * 5}):
            raises(ValueError, lambda: w.document(range(5), lanes=wrong))
    ds = tokmap.open(folder / "w")
    expect_equal((ds.n_tokens, sorted(ds.lanes), ds.lane("topk").goes_with), (n, ["late", "logprob", "topk"], "input"), "lanes")
    for name, parts in wanted.items():
        expect(np.array_equal(ds.lane(name).array, np.concatenate(parts)), name)
    ds.verify()
    expect_equal(sorted(one.name for one in folder.iterdir() if one.name.startswith("w")),
                 ["w.bin", "w.late.tml", "w.logprob.tml", "w.tmi", "w.topk.tml"], "files")
    raises(tokmap.ExistsError, lambda: tokmap.Writer(folder / "w", vocab_size=1000, lanes={"x": "float16"}))
    for wrong in ({"x": "float17"}, {"x": ("float16", 0)}, {"x": ("float16", 1, "both")}, {"x": 3}):
        raises(ValueError, lambda: tokmap.Writer(folder / "v", vocab_size=9, lanes=wrong))
    expect(not list(folder.glob("v*")), "nothing is left")
    with tokmap.Writer(folder / "w", vocab_size=1000, replace=True, lanes={"logprob": "float32"}) as w:
        w.document([1, 2], lanes={"logprob": [0.5, 0.25]})
    expect_equal(tokmap.open(folder / "w").lane("logprob").array.tolist(), [0.5, 0.25], "replaced")


def several_and_joined_datasets_have_lanes(folder):
    (folder / "text").write_text("".join(f"line {i}\n" for i in range(100)))
    call("plan", "-q", "--lines", folder / "text", "--cell-size", 300, "--cells", folder / "cells", "-o", folder / "plan")
    call("pack", "-q", "--plan", folder / "plan")
    call("join", "-q", folder / "plan", "-o", folder / "all")
    many, joined = tokmap.open(folder / "cells/*"), tokmap.open(folder / "all")
    parts = many.shards
    expect(len(parts) > 2, "several cells")
    values = np.arange(many.n_tokens * 2, dtype="f4").reshape(-1, 2)
    many.add_lane("x", values)
    for ds in (many, joined):
        lane = ds.lane("x")
        expect(lane.array is None and np.array_equal(lane[:], values), "all values")
        for first, end in ((0, 1), (parts[0].n_tokens - 1, parts[0].n_tokens + 1), (5, ds.n_tokens - 3), (ds.n_tokens, ds.n_tokens)):
            expect(np.array_equal(lane[first:end], values[first:end]), "some values")
        expect(np.array_equal(lane.document(50), values[ds.document(50).first_token:][:ds.document(50).n_tokens]), "a document")
        lane.verify()
        expect_equal(list(ds.lanes), ["x"], "names")
    expect_equal(joined.lane("x").paths, [None], "paths")
    joined.add_lane("y", values[:, 0])
    expect_equal(sorted(joined.lanes), ["x", "y"], "names")
    expect(np.array_equal(joined.lane("y").array, values[:, 0]), "a lane over all token files")
    parts[1].add_lane("x", values[:parts[1].n_tokens, 0], replace=True)
    expect("another type" in str(raises(ValueError, lambda: many.lane("x"))), "another shape")
    raises(tokmap.MismatchError, lambda: joined.lane("x")[:])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expect_equal(list(many.lanes), [], "names")
    expect(len(caught) == 1 and caught[0].filename == __file__, "a warning where it was asked")


def damage_is_found(folder):
    ds, other = write(folder / "d"), write(folder / "e", seed=9)
    ds.add_lane("x", np.zeros(ds.n_tokens, "f4"))
    ds.verify()
    path = folder / "d.x.tml"
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    raises(tokmap.DamagedError, ds.lane("x").verify)
    raises(tokmap.DamagedError, ds.verify)
    data[-2] ^= 1
    (folder / "e.x.tml").write_bytes(data)
    raises(tokmap.MismatchError, lambda: other.lane("x"))
    raises(OtherTokens, lambda: read_lane(str(folder / "e.x.tml"), ref_reader.read(str(folder / "e")).tokens_hash, other.n_tokens))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expect_equal(list(other.lanes), [], "names")
    expect("other tokens" in str(caught[0].message), "a warning says why")


def tensors_of_torch_are_taken_as_they_are(folder):
    torch = need("torch")
    ds = write(folder / "d")
    values = torch.randn(ds.n_tokens, 3)
    for dtype, name in ((torch.bfloat16, "bfloat16"), (torch.float16, "float16"), (torch.float32, "float32"),
                        (torch.float8_e4m3fn, "float8_e4m3"), (torch.int32, "int32")):
        tensor = (values * 5).to(dtype)
        ds.add_lane("x", tensor, replace=True)
        lane = ds.lane("x")
        expect_equal(lane.type, name, "type")
        found = torch.from_numpy(lane.array.copy())
        expect(torch.equal(found.view(torch.uint8), tensor.view(torch.uint8)), f"bits of {name}")
    ds.add_lane("x", values, type="bfloat16", replace=True)
    expect(torch.equal(torch.from_numpy(ds.lane("x").array.view("i2").copy()), values.to(torch.bfloat16).view(torch.int16)), "rounded")


sys.exit(run_in_folders("python_lanes_"))
