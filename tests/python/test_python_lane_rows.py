#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The numbers of lanes beside rows: for each label, or each input, those of its token, in every kind of rows and way of
reading. The ids of the data are the numbers of their tokens, so the arrays of a batch say which numbers a lane must have."""

import collections
import itertools
import os
import random
import sys

import ref_writer
from grouped import open_loader
from package import raises
from ref_protocol import expect, run_in_folders

import numpy as np
import tokmap

N_CASES = {"all": 100000}.get(os.environ.get("TOKMAP_LONG"), 120)
CASES_OF_DATA = 60
KINDS = {"a": ("uint8", 1, "label"), "b": ("uint16", 1, "input"), "c": ("uint8", 3, "label"), "d": ("int32", 1, "input"),
         "e": ("uint32", 3, "label"), "f": ("uint32", 48, "input"), "g": ("int8", 2, "input"), "h": ("uint32", 48, "label")}
IO = ("map", "populate", "read", "direct", "copy")


def numbers(name, first, n_tokens):
    """Of the tokens from `first` on: of each other tokens, lanes and columns other ones."""
    dtype, count, _ = KINDS[name]
    at = np.arange(first * count, (first + n_tokens) * count, dtype=np.uint64) + ord(name)
    found = (at * 2654435761 >> 9).astype(dtype)
    return found if count == 1 else found.reshape(-1, count)


def add_lanes(path, first):
    ds = tokmap.open(path)
    for name, (dtype, _, goes_with) in KINDS.items():
        ds.add_lane(name, numbers(name, first, ds.n_tokens), type=dtype, goes_with=goes_with)


def write(path, first, lengths, vocab):
    """Token i has the id i + 1, so that 0 is no token."""
    with tokmap.Writer(path, vocab_size=vocab) as w:
        for n in lengths:
            w.document(np.arange(first + 1, first + 1 + n, dtype=np.uint32))
            first += n
    return first


def make_data(folder, rng):
    """The paths of a flat dataset and of one that is joined from files, each with lanes beside it; ids are different in all."""
    vocab, first = rng.choice((60000, 70000)), 0
    for name in ("flat", "other"):
        begin, first = first, write(folder / name, first, [rng.choice((0, 1, 2, rng.randint(1, 60))) for _ in range(rng.randint(3, 60))] + [99], vocab)
        add_lanes(folder / name, begin)
    begin, all_lengths, segments = first, [], []
    for k in range(3):
        lengths = [rng.choice((0, 1, rng.randint(1, 60))) for _ in range(rng.randint(3, 20))] + [70]
        before, first = first, write(folder / f"c{k}", first, lengths, vocab)
        add_lanes(folder / f"c{k}", before)
        segments.append((f"c{k}.bin".encode(), first - before, b""))
        all_lengths += lengths
    ref_writer.write(str(folder / "joined"), list(range(begin + 1, first + 1)), all_lengths, vocab=vocab, segments=segments)
    return {"flat": 60, "joined": 40, "other": 60}


def draw(rng, folder, name, has_lists, lanes):
    """A Source and the lanes that it lacks."""
    path, ds, how = folder / name, tokmap.open(folder / name), {}
    kept = rng.random()
    if has_lists:
        documents = list(range(len(ds)))
        rng.shuffle(documents)
        how = rng.choice(({"document_list": tokmap.DocumentList(np.array(documents), keeps_rest=rng.random() < 0.5)}, {}))
    elif kept < 0.3:
        keep = np.array([rng.random() < 0.7 for _ in range(len(ds))])
        keep[-1] = True
        how["keep"] = keep
    elif kept < 0.5:
        begin = rng.randint(0, len(ds) - 1)
        how["documents"] = (begin, len(ds))
    lacks = [one for one in lanes if rng.random() < 0.1]
    if rng.random() < 0.8 or len(lacks) == len(lanes):
        return tokmap.Source(path, **how), []
    return tokmap.Source(path, lanes=[one for one in lanes if one not in lacks], **how), lacks


def check(batch, lanes, lacks):
    """How many numbers were compared."""
    n = 0
    for name in lanes:
        _, count, goes_with = KINDS[name]
        found = batch.lanes[name]
        ids = batch.labels if goes_with == "label" else batch.inputs
        none = ids <= 0
        none |= np.array([name in lacks[source] for source in batch.source_ids])[:, None]
        wanted = numbers(name, 0, max(int(ids.max()), 0) + 1)[np.maximum(ids - 1, 0)]
        wanted[none] = 0
        expect(found.shape == wanted.shape and found.dtype == wanted.dtype and (found == wanted).all(), f"lane {name}")
        n += int((~none).sum())
    return n


def try_case(rng, folder, seen):
    lanes = rng.sample(sorted(KINDS), rng.randint(1, 3))
    windows = rng.choice(("concat", "concat", "within_document", "best_fit"))
    has_lists = windows == "concat" and rng.random() < 0.25
    names = rng.sample(("flat", "joined", "other"), rng.choice((1, 1, 2)))
    sources, lacks = zip(*(draw(rng, folder, name, has_lists, lanes) for name in names))
    if any(all(name in some for some in lacks) for name in lanes):
        return 0
    cp_size = rng.choice((1, 1, 1, 2, 4))
    mode = rng.choice(("contiguous", "zigzag") + (("documents",) if windows == "best_fit" else ()))
    io, shuffle = rng.choice(IO), rng.choice(("full", "none") + (() if has_lists else ("block",)))
    options = {"windows": windows, "shuffle": shuffle, "seed": rng.randrange(99), "io": io,
               "random_offset": windows == "concat" and not has_lists and rng.random() < 0.4, "cp_size": cp_size, "cp_mode": mode if cp_size > 1 else "contiguous",
               "cp_rank": rng.randrange(cp_size), "rank": 0, "n_ranks": rng.choice((1, 1, 2)), "max_epochs": rng.choice((None, 1)),
               "align": 2 * cp_size if mode == "documents" and cp_size > 1 else rng.choice((1, 4)) if windows == "best_fit" else 1}
    if shuffle == "block":
        options["block_windows"] = rng.choice((0, 2))
    outputs = ["inputs", "labels"] + (["position_ids"] if rng.random() < 0.3 else []) + [f"lane:{name}" for name in lanes]
    try:
        loader = open_loader(list(sources), rng.choice((8, 16, 32)), rng.randint(1, 5), outputs=outputs, **options)
    except ValueError as error:  # a source has no window
        expect("window" in str(error) or "documents" in str(error), error)
        return 0
    n = 0
    with loader:
        if loader.n_samples is None and rng.random() < 0.3:
            loader.seek(rng.randrange(1000))
        for batch in itertools.islice(loader, 4):
            n += check(batch, lanes, lacks)
        seen[windows, loader.stats["io"]] += 1
    return n


def each_number_is_that_of_its_token(folder):
    n, seen = 0, collections.Counter()
    for seed in range(N_CASES // CASES_OF_DATA):
        data, rng = folder / str(seed), random.Random(seed)
        data.mkdir()
        make_data(data, rng)
        for case in range(CASES_OF_DATA):
            rng = random.Random(seed * CASES_OF_DATA + case)
            try:
                n += try_case(rng, data, seen)
            except Exception as error:
                raise AssertionError(f"seed {seed}, case {case}: {error}") from error
    expect(n > 50 * N_CASES, n)
    return "%d numbers, %s" % (n, dict(seen))


def weights_are_numbers_of_labels_that_count(folder):
    with tokmap.Writer(folder / "p", vocab_size=60000, spans=True) as w:
        at = 0
        for n in [3, 40, 7, 90, 1, 30] * 4:
            w.document(np.arange(at + 1, at + 1 + n, dtype=np.uint32), train=np.arange(at, at + n) % 5 > 0)
            at += n
    write(folder / "web", at, [50] * 9, 60000)
    ds, scores = tokmap.open(folder / "p"), np.random.default_rng(1).random(at).astype("f2")
    scores[7] = np.nan  # in no label that counts, or else its weight
    ds.add_lane("weight", scores)
    of_ids = np.concatenate([[0], scores.astype("f4"), np.ones(450, "f4")])
    for windows in ("concat", "within_document", "best_fit"):
        with open_loader([tokmap.Source(folder / "p"), tokmap.Source(folder / "web", lanes=())], 16, 4, windows=windows, loss_weight="weight",
                         outputs=("inputs", "labels", "loss_mask", "loss_weight"), max_epochs=1) as loader:
            n = 0
            for batch in loader:
                wanted = np.where(batch.loss_mask, of_ids[np.maximum(batch.labels, 0)], np.float32(0))
                assert batch.loss_weight.dtype == np.float32 and np.array_equal(batch.loss_weight, wanted, equal_nan=True)
                assert (batch.loss_weight[batch.labels < 0] == 0).all() and set(batch.source_ids) <= {0, 1}
                n += int((batch.loss_weight > 0).sum())
            assert n > 100
    raises(ValueError, open_loader, folder / "p", 16, outputs=["loss_weight"])
    raises(ValueError, open_loader, folder / "p", 16, loss_weight="weight")
    ds.add_lane("two", np.zeros((at, 2), "f4"))
    raises(ValueError, open_loader, folder / "p", 16, outputs=["loss_weight"], loss_weight="two")


def what_is_wrong_is_said(folder):
    write(folder / "a", 0, [50] * 4, 60000)
    write(folder / "b", 200, [50] * 4, 60000)
    add_lanes(folder / "a", 0)
    for outputs, says in ((["lane:none"], "there is no lane 'none'"), (["lane:"], "must be one of"), (["lane:a/b"], "no lane")):
        assert says in str(raises(ValueError, open_loader, folder / "a", 8, outputs=outputs)), outputs
    assert "b.tmi: there is no lane 'a'" in str(raises(ValueError, open_loader, [(folder / "a", 1), (folder / "b", 1)], 8, outputs=["lane:a"]))
    assert "every source lacks" in str(raises(ValueError, tokmap.Loader, tokmap.Source(folder / "a", lanes=()), 8, outputs=["lane:a"]))
    raises(TypeError, tokmap.Source, folder / "a", lanes="a")
    tokmap.open(folder / "b").add_lane("a", np.zeros(200, "f4"))
    assert "another type, count or goes_with" in str(raises(
        tokmap.MismatchError, tokmap.Loader, [(folder / "a", 1), (folder / "b", 1)], 8, outputs=["lane:a"]))
    os.replace(folder / "a.a.tml", folder / "b.a.tml")
    assert "has the values of other tokens" in str(raises(tokmap.MismatchError, tokmap.Loader, folder / "b", 8, outputs=["lane:a"]))
    raises(ValueError, tokmap.Loader, folder / "a", 8, outputs=["lane:b"], device="host")
    raises(ValueError, tokmap.Stage, tokmap.Loader(folder / "a", 8, outputs=["lane:b"]), "host")


def a_file_that_becomes_shorter_is_an_error(folder):
    """In all ways of reading that a thread does, and then it works again."""
    for io in ("populate", "read", "direct", "copy"):
        write(folder / io, 0, [5000] * 40, 2**20)
        tokmap.open(folder / io).add_lane("x", np.arange(200000 * 4, dtype=np.int32).reshape(-1, 4))
        path = folder / f"{io}.x.tml"
        whole = path.read_bytes()
        with open_loader(folder / io, 1000, 4, outputs=["labels", "lane:x"], io=io, look_ahead=1, shuffle="none") as loader:
            next(loader)
            os.truncate(path, 1 << 20)
            try:
                for _ in range(40):
                    next(loader)
            except OSError as error:
                expect(path.name in str(error), error)
            else:
                raise AssertionError(io)
            path.write_bytes(whole)
            batch = next(loader)
            assert (batch.lanes["x"][..., 0] == 4 * (batch.labels - 1)).all()


def weights_in_bits_are_weights(folder):
    """NumPy has no bfloat16."""
    write(folder / "a", 0, [50] * 4, 60000)
    ds = tokmap.open(folder / "a")
    ds.add_lane("w", (np.linspace(1, 2, 200, dtype="f4").view("u4") >> 16).astype("u2"), type="bfloat16")
    ds.add_lane("tiny", np.full(200, 56, np.uint8), type="float8_e4m3")
    batch = next(open_loader(folder / "a", 16, outputs=["labels", "loss_weight", "loss_mask"], loss_weight="w"))
    wanted = np.linspace(1, 2, 200)[batch.labels - 1]
    assert np.abs(np.where(batch.loss_mask, batch.loss_weight - wanted, 0)).max() < 0.01
    raises(ValueError, open_loader, folder / "a", 16, outputs=["loss_weight"], loss_weight="tiny")
    raises(ValueError, tokmap.Loader, [tokmap.Source(folder / "a", lanes=["ww"])], 16, outputs=["lane:w"])


def rows_of_gigabytes_are_read_without_the_ring(folder):
    """In a sparse file; a direct read has 32 bits for its size."""
    write(folder / "a", 0, [40000], 60000)
    with tokmap.open(folder / "a").lane_writer("x", "uint8", 65536, partial=True) as w:
        w.put(39999, np.full((1, 65536), 7, np.uint8))
    with open_loader(folder / "a", 39999, io="direct", look_ahead=1, outputs=["lane:x"], shuffle="none") as loader:
        assert loader.stats["io"] != "direct"


def a_missing_lane_of_a_cell_does_not_hold_the_ledger(folder):
    data = folder / "data"
    data.mkdir()
    make_data(data, random.Random(1))
    os.remove(data / "c2.a.tml")
    with open_loader(data / "joined", 8, outputs=["lane:a"], shuffle="none", ledger=folder / "ledger") as loader:
        next(loader)
    expect('"lanes":{"a":""}' in (folder / "ledger").read_text(), (folder / "ledger").read_text())


def a_ledger_names_the_lanes(folder):
    write(folder / "a", 0, [50] * 4, 60000)
    add_lanes(folder / "a", 0)
    lines = []
    for k in range(2):
        with open_loader(folder / "a", 8, outputs=["lane:a", "lane:b"], ledger=folder / f"ledger{k}", max_epochs=1) as loader:
            next(loader)
        lines.append((folder / f"ledger{k}").read_text())
        tokmap.open(folder / "a").add_lane("a", numbers("a", 1, 200), replace=True)
    hashes = [line.split('"lanes":{')[1].split("}")[0] for line in lines]
    expect(hashes[0] != hashes[1] and [one[:4] for one in hashes] == ['"a":'] * 2 and all('"b":"' in one for one in hashes), hashes)
    tokmap.Run(folder / "ledger0").report()


sys.exit(run_in_folders("lane_rows_"))
