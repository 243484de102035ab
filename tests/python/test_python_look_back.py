#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From tokens back to samples, and the labels of each document: compared with a list of all rows, for any shuffle,
windows, mixture and skips, and for ranges of documents."""

import collections
import os
import random
import subprocess
import sys

from grouped import grouped
from package import raises
from ref_protocol import program, run_in_folders

import tokmap
from tokmap._run.report import count_labels
from tokmap._run.trace import find_samples

N_RUNS = 2500 if os.environ.get("TOKMAP_LONG") == "all" else 34
SIZES = {"a": (700, 9), "b": (301, 40), "c": (1200, 700), "d": (1500, 4)}


def prepare(folder):
    rng = random.Random(1)
    for name, (n_tokens, longest) in SIZES.items():  # two with labels that never count
        with tokmap.Writer(folder / name, vocab_size=65536, spans=name in "bd") as w:
            while n_tokens > 0:
                n = min(rng.choice((0, 1, 2, longest, rng.randint(0, longest))), n_tokens)
                w.document(range(n), train=[rng.random() < 0.7 for _ in range(n)] if name in "bd" else None)
                n_tokens -= n
    (folder / "lines.txt").write_text("".join("line %d\n" % i for i in range(150)))
    call("plan", "-q", "--lines", folder / "lines.txt", "--cell-size", "400", "--cells", folder / "cells", "-o", folder / "plan")
    call("pack", "-q", "--plan", folder / "plan")
    call("join", "-q", folder / "plan", "-o", folder / "j")  # of several token files


def call(*arguments):
    subprocess.run([program("tokmap"), *arguments], check=True)


def any_run(rng):
    sources = [[rng.choice("abcdj") for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(1, 3))]
    weights = [rng.choice((1, 1, 0.5, 3)) for _ in sources]
    shuffle = rng.choice(("full", "none", "block"))
    windows, length = rng.choice(("concat", "within_document", "best_fit")), rng.choice((1, 3, 10, 16))
    packing = {"align": rng.choice([a for a in (1, 1, 2, 5, 8) if length % a == 0]), "max_documents": rng.choice((0, 3)),
               "whole_documents": rng.choice(("split", "truncate"))}
    places = sorted(rng.sample(range(300), 2 * rng.randint(0, 2)))
    return sources, weights, {
        "seed": rng.randint(0, 5), "sequence_length": length, "shuffle": shuffle, "windows": windows,
        "random_offset": windows == "concat" and rng.random() < 0.5, "skip": list(zip(places[::2], places[1::2])),
        **(packing if windows == "best_fit" else {}),
        "block_windows": rng.randint(1, 9) if shuffle == "block" and windows != "best_fit" else 0, "io": rng.choice((*["map"] * 9, "read")),
        "group_blocks": rng.randint(1, 5) if shuffle == "block" else 0,
        "phases": {rng.randint(1, 250): [rng.choice((0, 2, 1)) + (k == 0) for k, _ in enumerate(sources)]}}


def any_ranges(rng, names, opened):
    """For each dataset of each source all documents, or some; none of them twice."""
    if rng.random() < 0.5:
        return [[None] * len(some) for some in names]
    cuts = {name: sorted(rng.choices(range(len(ds) + 1), k=18)) for name, ds in opened.items()}
    return [[(cuts[name].pop(0), cuts[name].pop(0)) for name in some] for some in names]


def tokens_in_spans(ds):
    return {ds.document(d).first_token + span.first + i for d in range(len(ds)) for span in ds.spans(d) for i in range(span.n)}


def extent_of(source, dataset):
    """The tokens of a dataset that are served: the first one, and the end."""
    data, given = source.datasets[dataset], source.documents[dataset] if source.documents != [None] else None
    first, end = given or (0, len(data))
    return tuple(data.document(d).first_token if d < len(data) else data.n_tokens for d in (first, end))


def stretches_of(loader, g):
    """The tokens of a row: one list, or one for each document of a row that was packed."""
    pieces, sample = loader.pieces(g), loader.locate(g)
    if pieces:
        return [list(range(piece.first_token, piece.first_token + piece.n_tokens)) for piece in pieces]
    begin, end = extent_of(loader._sources[sample.source], sample.dataset)
    return [[begin + (sample.first_token - begin + i) % (end - begin) for i in range(sample.n_tokens)]]


def all_rows_agree(folder):
    n_rows = n_found = 0
    for seed in range(N_RUNS):
        rng = random.Random(seed)
        names, weights, options = any_run(rng)
        opened = {name: tokmap.open(folder / name) for name in (*SIZES, "j")}
        ranges = any_ranges(rng, names, opened)
        try:
            loader = tokmap.Loader([tokmap.Source([opened[n] for n in some], w, documents=these)
                                    for some, w, these in zip(names, weights, ranges)], **grouped(**options))
        except tokmap.MismatchError as error:
            assert "too few" in str(error) or "two tokens" in str(error), error
            continue
        except tokmap.ArgumentError as error:
            assert "named twice" in str(error), error
            continue
        with loader:
            end = rng.choice((0, 1, 300, rng.randint(300, 2500)))
            never = {name: tokens_in_spans(ds) for name, ds in opened.items()}
            rows, labels = collections.defaultdict(list), collections.Counter()
            for g in range(end):
                sample = loader.locate(g)
                stretches = stretches_of(loader, g)
                rows[sample.source, sample.dataset, sample.epoch].append((g, {t for some in stretches for t in some}))
                if not any(a <= g < b for a, b in options["skip"]):
                    masked = never[names[sample.source][sample.dataset]]
                    labels.update((sample.source, sample.dataset, token) for some in stretches for token in some[1:]
                                  if token not in masked)
            for source, some in enumerate(names):
                for dataset, name in enumerate(some):
                    documents = [opened[name].document(i) for i in range(opened[name].n_documents)]
                    wanted = [sum(labels[source, dataset, t] for t in range(d.first_token, d.first_token + d.n_tokens))
                              for d in documents]
                    first = rng.randrange(len(documents))
                    n = rng.randint(0, len(documents) - first)
                    assert count_labels(loader, source, dataset, 0, len(wanted), end).tolist() == wanted, seed
                    assert count_labels(loader, source, dataset, first, n, end).tolist() == wanted[first:first + n]
            for (source, dataset, epoch), some in rows.items():
                n_tokens = opened[names[source][dataset]].n_tokens
                for _ in range(5):
                    a = rng.randrange(n_tokens)
                    b = rng.choice((a + 1, rng.randint(a, n_tokens)))
                    found = [g for g in find_samples(loader, source, dataset, epoch, a, b - a).tolist() if g < end]
                    assert found == [g for g, tokens in some if not tokens.isdisjoint(range(a, b))], seed
                    n_found += len(found)
            n_rows += end
    return "%d rows, %d found" % (n_rows, n_found)


def what_is_not_there_is_refused(folder):
    with tokmap.Loader([folder / "a", folder / "b"], 10, max_epochs=1) as loader:
        n = loader.n_samples
        for where in ((1, 0), (0, 2)):
            raises(tokmap.ArgumentError, find_samples, loader, *where, 0, 0, 1)
            raises(tokmap.ArgumentError, count_labels, loader, *where, 0, 1, n)
        raises(tokmap.ArgumentError, find_samples, loader, 0, 0, 0, 699, 2)
        raises(tokmap.ArgumentError, count_labels, loader, 0, 0, 10**6, 1, n)
        raises(tokmap.ArgumentError, count_labels, loader, 0, 0, 0, 1, n + 1)
        assert find_samples(loader, 0, 0, 1, 0, 700).tolist() == []  # it ends before that epoch
        assert len(find_samples(loader, 0, 0, 0, 0, 700)) == 69


sys.exit(run_in_folders("python_look_back_", prepare=prepare))
