#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.megatron_source against ref_megatron.py: every sample, computed and from caches as Megatron writes them.
TOKMAP_LONG=all: 2,000 random blends."""

import ctypes
import json
import os
import pickle
import random
import shutil
import struct
import subprocess
import sys
import warnings

import package  # noqa: F401 - finds tokmap
import ref_megatron as ref
from ref_protocol import expect, expect_equal, program, run_in_folders

import numpy as np
import tokmap
from tokmap._c.structs import lib

N_BLENDS = 2000 if os.environ.get("TOKMAP_LONG") == "all" else 120


def corpus(folder, name, lengths, first_id=0):
    """Documents of so many tokens, no two of which are the same in a corpus."""
    numbers = iter(range(first_id, 2**31))
    documents = [[next(numbers) for _ in range(length)] for length in lengths]
    with tokmap.Writer(os.path.join(folder, name), vocab_size=2**31 - 1) as writer:
        for document in documents:
            writer.document(document)
    return documents


def random_lengths(r):
    kind = r.randrange(3)
    return [0 if r.random() < 0.1 else r.randrange(1, (8, 40, 200)[kind]) for _ in range(r.randrange(4, 60))]


def rows_of(source, length, **options):
    """[(corpus, tokens), ...] of a whole epoch."""
    found = []
    with tokmap.Loader(source, length, 1, **options) as loader:
        for batch in loader:
            found.append((batch.rows[0].dataset, batch.inputs[0].tolist() + [int(batch.labels[0, -1])]))
    return found


def random_case(r, folder, number):
    n, length = r.randrange(1, 5), r.randrange(2, 20)
    corpora = [corpus(folder, f"{number}-{k}", random_lengths(r)) for k in range(n)]
    split = r.choice(("1", "90,5,5", "1,1", "0.5,0.3,0.2", "969, 30, 1"))
    part = r.randrange(3)
    share = ref.split_of(split, part)
    weights = [round(r.uniform(0.05, 3), 2) for _ in range(n)] if r.random() < 0.6 else None
    n_tokens = [sum(map(len, one[int(round(share[0] * len(one))):int(round(share[1] * len(one)))])) for one in corpora]
    if min(n_tokens) < 1 or share[1] <= share[0]:
        return None
    total = max(1, sum((n - 1) // length for n in n_tokens))
    n_samples = r.randrange(1, 1 + total * r.choice((1, 2, 7))) if weights or r.random() < 0.6 else None
    if min(n_tokens) <= length and (n_samples is None or not weights and n > 1):
        return None
    return corpora, weights, split, part, share, length, n_samples


def samples_are_those_of_megatron(folder):
    r, n_rows, n_kinds, cases = random.Random(74), 0, 0, 0
    warnings.simplefilter("ignore")
    for number in range(10 * N_BLENDS):
        case = random_case(r, folder, number)
        if case is None:
            continue
        corpora, weights, split, part, share, length, n_samples = case
        seed, fused = r.randrange(2**32), r.random() < 0.5
        prefixes = [os.path.join(folder, f"{number}-{k}") for k in range(len(corpora))]
        blend = list(zip(prefixes, weights)) if weights else prefixes
        what = f"{number}: {[list(map(len, one)) for one in corpora]} {weights} {split} {part} {length} {n_samples} {seed} {fused}"
        surplus = r.choice((0.005, 0.5))
        options = {"sequence_length": length, "seed": seed, "n_samples": n_samples, "fused": fused, "surplus": surplus}
        try:
            source = tokmap.megatron_source(blend, split, ("train", "valid", "test")[part], **options)
        except ValueError as error:
            expect("larger surplus" in str(error), f"{what}: {error}")  # Megatron stops, too
            continue
        expected = ref.samples_of(corpora, weights, share, length, seed, n_samples, fused, surplus)
        got = rows_of(source, length, shuffle=r.choice(("none", "full")), seed=r.randrange(9))
        expect(got == expected, f"{what}: {len(got)} samples, {len(expected)} expected")
        if source.fused is not None:
            n_kinds += 1
            expect_equal(source.fused, fused, what)
        n_rows, cases = n_rows + len(got), cases + 1
        if cases == N_BLENDS:
            break
    expect(cases == N_BLENDS and n_rows > 100 * cases and n_kinds > 0, f"{cases} blends, {n_rows} rows, {n_kinds} where kinds differ")


def a_prefix_may_come_twice(folder):
    r = random.Random(9)
    one, two = (corpus(folder, name, [r.randrange(1, 40) for _ in range(30)], first) for name, first in (("one", 0), ("two", 10**6)))
    prefixes = [os.path.join(folder, "one"), os.path.join(folder, "two"), os.path.join(folder, ".", "one")]
    for weights, n_samples in ((None, None), (None, 60), ([0.25, 0.5, 0.25], 400), ([0.25, 0.625, 0.125], 400)):
        blend = list(zip(prefixes, weights)) if weights else prefixes
        source = tokmap.megatron_source(blend, sequence_length=9, seed=3, n_samples=n_samples, fused=False)
        expect_equal(rows_of(source, 9), ref.samples_of([one, two, one], weights, (0, 1), 9, 3, n_samples), f"{weights} {n_samples}")


def a_state_of_before_a_redaction_is_restored(folder):
    corpus(folder, "one", [30] * 20)
    one, red = os.path.join(folder, "one"), os.path.join(folder, "red")
    subprocess.run([program("tokmap"), "redact", "-q", one, "--documents", "@-", "-o", red], check=True, input=b"1\n4\n")
    options = {"sequence_length": 8, "seed": 1, "n_samples": 100}
    with tokmap.Loader(tokmap.megatron_source(one, **options), 8, 1) as loader:
        next(loader)
        state = loader.state()
    source = tokmap.megatron_source(red, order_of=tokmap.open(one).dataset_id, **options)
    with tokmap.Loader(source, 8, 1) as loader:
        loader.restore(state)
        expect_equal(next(loader).inputs[0].tolist(), rows_of(source, 8)[1][1][:-1], "the second row")


def kinds_that_differ_late_are_known(folder):
    """These differ at choice 201,978."""
    prefixes = [os.path.join(folder, f"p{k}") for k in range(4)]
    for prefix in prefixes:
        corpus(folder, os.path.basename(prefix), [2000] * 3)
    for n_samples, kind in ((200_000, None), (210_000, False)):
        source = tokmap.megatron_source(list(zip(prefixes, (37, 43, 16, 18))), sequence_length=2, seed=1, n_samples=n_samples, fused=False)
        expect_equal(source.fused, kind, str(n_samples))


def choices_are_those_of_the_helpers(folder):
    r, n_differ = random.Random(1), 0
    for case in range(80):
        n_sources, n = r.randrange(1, 8), r.randrange(1, 3000)
        weights = ref.normalized([round(r.random() + 0.01, 2) if case % 8 else r.random() + 1e-9 for _ in range(n_sources)])
        limits = [r.randrange(1, n) for _ in weights] if case % 2 else None
        n = min(n, sum(limits)) if limits else n
        kinds = []
        for fused in (0, 1):
            sources = (ctypes.c_uint16 * n)()
            status = lib.tokmap_blend_by_error((ctypes.c_double * n_sources)(*weights), limits and (ctypes.c_uint64 * n_sources)(*limits),
                                               n_sources, fused, n, sources, None)
            expect_equal((status, list(sources)), (0, ref.choose(weights, n, fused, limits)), f"{weights} {n} {fused} {limits}")
            kinds.append(list(sources))
        n_differ += kinds[0] != kinds[1]
    expect(n_differ > 5, f"only {n_differ} of 80 blends differ between the kinds")


# ---- Caches ----

def write_cache(folder, prefix, part, split, length, seed, n_samples, indices, share, key="0", **other):
    has = {"class": "GPTDataset", "dataset_path": prefix, "num_samples": n_samples, "index_split": part, "random_seed": seed,
           "sequence_length": length, "split": split, "split_matrix": [share if name == part else None for name in ("train", "valid", "test")],
           "tokenizer": {"class": "none"}, **other}
    base = os.path.join(folder, f"{key}{os.path.basename(prefix)}-GPTDataset-{part}-")
    listed, samples, shuffled = indices
    np.save(base + "document_index.npy", np.array(listed, np.int32))
    np.save(base + "sample_index.npy", np.array(samples, np.int32))
    np.save(base + "shuffle_index.npy", np.array(shuffled, np.uint32))
    with open(base + "description.txt", "w") as file:
        json.dump(has, file, indent=4)
    return has


def caches_give_the_same_samples(folder):
    warnings.simplefilter("error")
    cache = os.path.join(folder, "cache")
    os.mkdir(cache)
    corpora = [corpus(folder, f"c{k}", [3 + (7 * i + k) % 40 for i in range(90)]) for k in range(2)]
    prefixes = [os.path.join(folder, f"c{k}") for k in range(2)]
    share, length, seed, n = ref.split_of("8,2", 0), 12, 5, 400
    weights = ref.normalized([0.37, 0.63])
    counts = [int(-(-int(-(-n * weight // 1)) * 1.005 // 1)) for weight in weights]
    ids = []
    for prefix, documents, count in zip(prefixes, corpora, counts):
        own = [int(round(edge * 90.0)) for edge in share]
        ids.append(write_cache(cache, "/elsewhere/" + os.path.basename(prefix), "train", "8,2", length, seed, count,
                               ref.gpt_indices(list(map(len, documents)), *own, length, count, seed), share))
    options = {"sequence_length": length, "seed": seed, "n_samples": n}
    blend = [(prefixes[0], 0.37), (prefixes[1], 0.63)]
    for fused in (False, True):
        expected = ref.samples_of(corpora, [0.37, 0.63], share, length, seed, n, fused)
        again = ref.normalized(weights)
        chosen = ref.choose(again, len(expected), fused)
        base = os.path.join(cache, "1-BlendedDataset-train-")
        np.save(base + "dataset_index.npy", np.array(chosen, np.int16))
        with open(base + "description.txt", "w") as file:
            json.dump({"class": "BlendedDataset", "datasets": ids, "split": "train", "weights": again, "size": len(expected)}, file)
        source = tokmap.megatron_source(blend, "8,2", "train", cache=cache, **options)  # without a warning: the cache says which
        expect_equal(rows_of(source, length), expected, f"fused {fused}")
        expect_equal(source.fused, fused, "the kind of the cache")
        own = tokmap.megatron_source(blend, "8,2", "train", fused=fused, **options)
        states = []
        for one in (source, own, pickle.loads(pickle.dumps(source))):
            with tokmap.Loader(one, length, 3, seed=2) as loader:
                next(loader)
                states.append(loader.state())
        expect(states[0] == states[1] == states[2], "mapped and computed lists are one order")
        with tokmap.Loader(own, length, 1, seed=2, ranks=tokmap.Ranks(rank=1, n_ranks=3)) as loader:
            loader.restore(states[0])
            expect_equal(next(loader).inputs[0].tolist(), expected[4][1][:-1], "resumed on 3 ranks")
        wrong = {ValueError: [{"fused": not fused}, {"n_samples": n + 90}, {"seed": seed + 1}, {"sequence_length": length + 1}]}
        for kind, changes in wrong.items():
            for change in changes:
                try:
                    tokmap.megatron_source(blend, "8,2", "train", cache=cache, **{**options, **change})
                    raise AssertionError(f"{change}: is taken")
                except kind as error:
                    told = "was made with" if "fused" in change else "num_samples"
                    expect(told in str(error), f"{change}: {error}")
    # Other data of the same name: with another number of documents, and with the same number and other lengths.
    others = ([3 + 7 * i % 40 for i in range(91)], "cache is of other data"), (list(map(len, corpora[0]))[::-1], "document")
    one = {**options, "n_samples": counts[0]}
    for k, (lengths, told) in enumerate(others):
        os.mkdir(os.path.join(folder, f"other{k}"))
        corpus(os.path.join(folder, f"other{k}"), "c0", lengths)
        try:
            rows_of(tokmap.megatron_source(os.path.join(folder, f"other{k}", "c0"), "8,2", "train", cache=cache, **one), length)
            raise AssertionError("a cache of other data is taken")
        except tokmap.MismatchError as error:
            expect(told in str(error), str(error))
    shutil.copy(os.path.join(cache, "0c0-GPTDataset-train-description.txt"), os.path.join(cache, "2c0-GPTDataset-train-description.txt"))
    try:
        tokmap.megatron_source(prefixes[0], "8,2", "train", cache=cache, **one)
        raise AssertionError("one of two caches is taken")
    except ValueError as error:
        expect("2 caches" in str(error) and "0c0-GPTDataset-train-*, 2c0-GPTDataset-train-*" in str(error), str(error))


def prefixes_of_one_name_have_their_own_caches(folder):
    r, length, cache = random.Random(5), 9, os.path.join(folder, "cache")
    os.mkdir(cache)
    corpora, prefixes, ids = [], [], []
    for k, name in enumerate(("web", "code")):
        os.makedirs(os.path.join(folder, "data", name))
        corpora.append(corpus(os.path.join(folder, "data", name), "text", [r.randrange(1, 40) for _ in range(30)], 10**6 * k))
        prefixes.append(os.path.join(folder, "data", name, "text"))
        ids.append(write_cache(cache, f"/elsewhere/{name}/text", "train", "1", length, 3, None,
                               ref.gpt_indices(list(map(len, corpora[k])), 0, 30, length, None, 3), (0, 1), key=name))
    sizes = [(sum(map(len, one)) - 1) // length for one in corpora]
    for k, datasets in enumerate((ids, ids[::-1])):  # a blend of the same prefixes the other way around, too
        base = os.path.join(cache, f"{k}-BlendedDataset-train-")
        np.save(base + "dataset_index.npy", np.array(ref.choose(ref.normalized(sizes), sum(sizes), False, sizes), np.int16))
        with open(base + "description.txt", "w") as file:
            json.dump({"class": "BlendedDataset", "datasets": datasets, "split": "train", "weights": sizes, "size": None}, file)
    source = tokmap.megatron_source(prefixes, "1", sequence_length=length, seed=3, cache=cache)
    expect_equal(rows_of(source, length), ref.samples_of(corpora, None, (0, 1), length, 3, None), "two prefixes named text")


# ---- Sequences of an .idx that are no documents ----

def write_pair(path, sequences, documents):
    """X.bin and X.idx of Megatron: documents is for each the number of its sequences."""
    table, starts, at = [0], [], 0
    for n in documents:
        table.append(table[-1] + n)
    for one in sequences:
        starts.append(at)
        at += 4 * len(one)
    with open(path + ".bin", "wb") as file:
        file.write(b"".join(np.array(one, "<i4").tobytes() for one in sequences))
    with open(path + ".idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, len(sequences), len(table)))
        file.write(np.array([len(one) for one in sequences], "<i4").tobytes() + np.array(starts, "<i8").tobytes())
        file.write(np.array(table, "<i8").tobytes())
    subprocess.run([program("tokmap"), "index", path + ".bin", "-q"], check=True)


def sequences_without_tokens_and_documents_without_sequences(folder):
    r, numbers = random.Random(3), iter(range(10**6))
    for case in range(20):
        sequences = [[next(numbers) for _ in range(0 if r.random() < 0.2 else r.randrange(1, 30))] for _ in range(60)]
        documents = [1] * 60
        for _ in range(case % 5):  # a document without sequences
            documents.insert(r.randrange(len(documents)), 0)
        if case % 2:  # an empty sequence and its neighbour are one document
            k = next((k for k in range(len(documents) - 1) if documents[k] == documents[k + 1] == 1 and
                      not sequences[sum(documents[:k])]), None)
            if k is not None:
                documents[k:k + 2] = [2]
        path = os.path.join(folder, f"pair{case}")
        write_pair(path, sequences, documents)
        n_samples, length, share = r.choice((None, 300)), 9, ref.split_of("7,3", case % 2)
        part = ("train", "valid")[case % 2]
        expected = ref.samples_of([sequences], None, share, length, 11, n_samples)
        options = {"sequence_length": length, "seed": 11, "n_samples": n_samples}
        source = tokmap.megatron_source(path, "7,3", part, **options)
        expect_equal(rows_of(source, length), expected, f"pair {case}: {documents}")
        cache = os.path.join(folder, f"cache{case}")
        os.mkdir(cache)
        first, end = (int(round(edge * 60.0)) for edge in share)
        write_cache(cache, path, part, "7,3", length, 11, n_samples,
                    ref.gpt_indices(list(map(len, sequences)), first, end, length, n_samples, 11), share)
        expect_equal(rows_of(tokmap.megatron_source(path, "7,3", part, cache=cache, **options), length), expected, f"pair {case}, cache")
    write_pair(os.path.join(folder, "sentences"), [[1, 2, 3]] * 6, [2, 2, 2])
    write_pair(os.path.join(folder, "mixed"), [[1, 2, 3]] * 6, [0, 2, 1, 1, 1, 1])  # as many sequences as documents
    for name in ("sentences", "mixed"):
        try:
            tokmap.megatron_source(os.path.join(folder, name), sequence_length=4, seed=1)
            raise AssertionError("sentences are taken for documents")
        except ValueError as error:
            expect("--split-sentences" in str(error), str(error))


def a_loader_of_another_length_is_refused(folder):
    corpus(folder, "one", [30] * 20)
    source = tokmap.megatron_source(os.path.join(folder, "one"), sequence_length=8, seed=1)
    for one in (source, pickle.loads(pickle.dumps(source))):
        tokmap.Loader(one, 8).close()
        try:
            tokmap.Loader(one, 4)
            raise AssertionError("taken")
        except ValueError as error:
            expect("made for 8" in str(error), str(error))


def what_is_refused(folder):
    corpus(folder, "one", [30] * 20)
    corpus(folder, "two", [30] * 20, 5000)
    one, two = os.path.join(folder, "one"), os.path.join(folder, "two")
    given = {"sequence_length": 8, "seed": 1, "n_samples": 50}
    for blend, change, kind, told in (
            ([(one, 1), (two, 0)], {}, ValueError, "above 0"), ([(one, 1), (two, -1)], {}, ValueError, "above 0"),
            ([(one, 1), (two, 2)], {"n_samples": None}, ValueError, "no end"), (one, {"n_samples": 0}, ValueError, "1 to 2^48"),
            (one, {"part": "eval"}, ValueError, "train, valid, test"), (one, {"split": "1,0,0", "part": "valid"}, ValueError, "nothing for valid"),
            (one, {"split": "a"}, ValueError, "99,1,0"), ([], {}, ValueError, "empty"), (3, {}, TypeError, "type int"),
            ({one, two}, {}, TypeError, "type set"), (tokmap.open(one), {}, TypeError, "type Dataset"), (([one, two], [1, 2]), {}, TypeError, "for each"),
            (one, {"split": "0.5.5"}, ValueError, "99,1,0"), (one, {"split": (99, 1)}, ValueError, "99,1,0"),
            (one, {"sequence_length": 0}, ValueError, "1 to"), (one, {"surplus": "x"}, TypeError, "surplus"), (one, {"surplus": -1}, ValueError, "surplus"),
            (one, {"seed": 2**32}, ValueError, "2^32"), (one, {"sequence_length": 700, "n_samples": None}, ValueError, "in train: at least 701"), (one, {"sequence_length": 700}, None, ""),
            ([one, two], {"sequence_length": 700}, ValueError, "at least 701"),
            (one, {"cache": folder}, ValueError, "no cache"), (one, {"fused": "no"}, TypeError, "fused"), (os.path.join(folder, "three"), {}, OSError, "three"),
            ([one, two], {"n_samples": 10**6}, None, ""), (["0.3", one, "0.7", two], {}, None, ""), ({one: 1, two: 2}, {}, None, "")):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tokmap.megatron_source(blend, **{**given, **change})
            expect(kind is None, f"{blend} {change}: is taken")
        except (ValueError, TypeError, OSError) as error:
            expect(kind and isinstance(error, kind) and told in str(error), f"{blend} {change}: {error!r}")


sys.exit(run_in_folders("python_megatron_"))
