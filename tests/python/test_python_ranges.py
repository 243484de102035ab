#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranges of documents as sources: random ones are compared with a second implementation of docs/ORDER.md, and with
datasets that have only these documents. test_python_look_back tries them backwards."""

import json
import os
import random
import subprocess
import sys

import ref_rows
from grouped import grouped, open_loader
from ordered_rows import check_rows
from package import raises
from ref_order import Order, Phase, Source, quotas_of
from ref_protocol import program, run_in_folders

import numpy as np
import tokmap

N_RUNS = 1500 if os.environ.get("TOKMAP_LONG") == "all" else 20
OUTPUTS = ["inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens"]
NAMES = ("a", "b", "j")  # j: of several token files


def prepare(folder):
    rng = random.Random(2)
    for name in NAMES:
        (folder / name).with_suffix(".jsonl").write_text("".join(
            json.dumps({"ids": rng.choices(range(50000), k=rng.choice((0, 1, 2, rng.randint(0, 40)))), "url": str(i)}) + "\n"
            for i in range(150)))
        options = "--tokens", "ids", "--vocab-size", "50000", "--meta", "url"
        if name != "j":
            call("pack", "-q", folder / f"{name}.jsonl", *options, "-o", folder / name)
    call("plan", "-q", folder / "j.jsonl", *options, "--cell-size", "3000", "--cells", folder / "cells", "-o", folder / "plan")
    call("pack", "-q", "--plan", folder / "plan")
    call("join", "-q", folder / "plan", "-o", folder / "j")
    assert len(tokmap.open(folder / "j").segments) > 3


def call(*arguments):
    subprocess.run([program("tokmap"), *map(str, arguments)], check=True)


def documents_of(ds):
    return [(d.first_token, d.first_token + d.n_tokens) for d in map(ds.document, range(len(ds)))]


def any_parts(rng, opened):
    """For each source its datasets, and (first, end) of each or None."""
    cuts = {name: sorted(rng.choices(range(len(ds) + 1), k=6)) for name, ds in opened.items()}
    parts = [(name, (cuts[name][i], cuts[name][i + 1])) for name in opened for i in (0, 2, 4)]
    parts = rng.sample(parts, rng.randint(1, 6))
    if rng.random() < 0.4:  # whole ones may be there twice
        name = rng.choice(NAMES)
        parts = [part for part in parts if part[0] != name] + [(name, None), (name, (0, len(opened[name])))]
        rng.shuffle(parts)
    n = rng.randint(1, len(parts))
    return [parts[k::n] for k in range(n)]


def any_options(rng):
    windows, length = rng.choice(("concat", "concat", "within_document", "best_fit")), rng.choice((4, 16, 30))
    options = {"sequence_length": length, "windows": windows, "seed": rng.randint(0, 9),
               "shuffle": rng.choice(("full", "none", "block")), "random_offset": windows == "concat" and rng.random() < 0.6,
               "io": rng.choice(("map", "populate", "read", "direct")), "batch_rows": rng.randint(1, 5), "outputs": OUTPUTS}
    if windows == "best_fit":
        options.update(align=rng.choice((1, 2)), max_documents=rng.choice((0, 2)))
    if options["shuffle"] == "block":
        options.update(group_blocks=rng.randint(1, 4), block_windows=0 if windows == "best_fit" else rng.randint(1, 9))
    return options


def ranges_have_the_order_of_the_specification(folder):
    opened, n_rows, n_wrapped = {name: tokmap.open(folder / name) for name in NAMES}, 0, 0
    for seed in range(N_RUNS):
        rng = random.Random(seed)
        sources, options = any_parts(rng, opened), any_options(rng)
        weights = [rng.choice((1, 2, 0.5)) for _ in sources]
        order = [Source([bytes.fromhex(opened[name].dataset_id) for name, _ in some], [opened[name].n_tokens for name, _ in some],
                        [documents_of(opened[name]) for name, _ in some], ranges=[part for _, part in some]) for some in sources]
        given = [tokmap.Source([opened[name] for name, _ in some], weight, documents=[part for _, part in some])
                 for some, weight in zip(sources, weights)]
        try:
            loader = tokmap.Loader(given, **grouped(**options))
        except tokmap.MismatchError as error:
            assert "too few" in str(error) or "two tokens" in str(error), error
            continue
        except tokmap.ArgumentError as error:
            assert "named twice" in str(error), error
            continue
        order = Order(order, [Phase(0, quotas_of(weights))], options["sequence_length"], options["seed"],
                      windows=options["windows"], random_offset=options["random_offset"], shuffle=options["shuffle"],
                      block=options.get("block_windows", 0), group=options.get("group_blocks", 0),
                      align=options.get("align", 1), most=options.get("max_documents", 0))
        tokens = {name: ds.tokens() for name, ds in opened.items()}
        loader.seek(rng.choice((0, 0, rng.randint(0, 1000))))
        for _ in range(60 // options["batch_rows"]):
            found = check_rows(next(loader), order, lambda source, dataset: tokens[sources[source][dataset][0]], seed)
            n_rows += len(found)
            n_wrapped += sum(options["windows"] == "concat" and max(numbers) - numbers[0] < wanted.row.n_inputs for wanted, numbers in found)
        loader.close()
    assert n_wrapped > n_rows // 100
    return "%d rows, %d of them round the end" % (n_rows, n_wrapped)


def a_range_is_like_a_dataset_of_its_own(folder):
    """But for its id, so in the order of the data. With spans, and for slices of rows."""
    n_batches = 0
    for seed in range(N_RUNS):
        rng = random.Random(seed)
        lengths = [rng.choice((0, 1, 2, rng.randint(0, 60))) for _ in range(rng.choice((5, 63, 300)))] + [99]
        ids = [rng.choices(range(60000), k=n) for n in lengths]
        train = [[rng.random() < 0.8 for _ in range(n)] for n in lengths]
        first = rng.randint(0, len(lengths) - 1)
        end = rng.choice((len(lengths), rng.randint(first, len(lengths))))
        for name, some in (("all", slice(0, None)), ("some", slice(first, end))):
            with tokmap.Writer(folder / name, vocab_size=60000, spans=True, replace=True) as w:
                for one, counts in zip(ids[some], train[some]):
                    w.document(one, train=counts)
        options = {**any_options(rng), "shuffle": "none", "random_offset": False, "max_epochs": 2, "drop_last": False,
                   "block_windows": 0, "group_blocks": 0, "mask_labels": rng.random() < 0.5}
        if rng.random() < 0.5:
            options.update(cp_size=2, cp_rank=rng.randint(0, 1))
        try:
            wanted = tokmap.Loader(folder / "some", **grouped(**options))
        except tokmap.MismatchError:
            raises(tokmap.MismatchError, open_loader, tokmap.Source(folder / "all", documents=(first, end)),
                   **options)
            continue
        loader = tokmap.Loader(tokmap.Source(folder / "all", documents=(first, end)), **grouped(**options))
        assert loader.n_samples == wanted.n_samples
        for batch, other in zip(loader, wanted):
            assert all((batch[name] == other[name]).all() for name in dict(other)), seed
            n_batches += 1
    return "%d batches" % n_batches


def what_cannot_be_is_refused(folder):
    n = len(tokmap.open(folder / "a"))

    def refused(error, text, *sources, **options):
        assert text in str(raises(error, open_loader, list(sources), 8, **options)), text

    def part(*documents, name="a", **more):
        return tokmap.Source(folder / name, documents=documents, **more)

    whole = tokmap.Source(folder / "a")
    for sources in ((part(0, 80), part(79, n)), (part(3, 40), whole), (whole, part(3, 40)), (part(1, 9), part(1, 9)),
                    (part(1, 140), part(3, 5), part(100, n)), (part(0, n), whole, part(9, 40)),
                    (tokmap.Source([folder / "a", folder / "b", folder / "a"], documents=[(0, 80), None, (50, n)]),)):
        refused(tokmap.MismatchError, "a.tmi: document ", *sources)
    for sources in ((part(0, 80), part(80, n)), (whole, part(0, n)), (part(0, 70), part(0, 70, name="b"))):
        tokmap.Loader(list(sources), 8).close()
    for k in (0, 3, n):
        refused(tokmap.MismatchError, "too few", part(k, k), part(0, 70))
    for documents in ((5, 4), (0, n + 1), (n + 1, n + 2)):
        refused(tokmap.ArgumentError, f"a.tmi: documents {documents[0]} to {documents[1]}: must be a range within its {n} documents", part(*documents))
    call("rows", "-q", "--sequence-length", "8", folder / "a")
    file = next(folder.glob("a.*.tmr"))
    refused(tokmap.ArgumentError, "a rows file is of all documents", part(0, 9, rows_files=file), windows="best_fit")
    tokmap.Loader(part(0, n, rows_files=file), 8, windows="best_fit").close()
    np.arange(1000, dtype=np.uint16).tofile(folder / "raw.bin")
    call("index", "-q", folder / "raw.bin", "--dtype", "u16", "--eod", "none")
    for documents in ((0, 1), (0, 0)):
        refused(tokmap.MismatchError, "raw.tmi: its document boundaries are not known", part(*documents, name="raw"))
    tokmap.Loader(tokmap.Source([folder / "a", folder / "raw"], documents=[(0, 9), None]), 8).close()
    state = tokmap.Loader(whole, 8).state()
    for other in (part(0, 70), part(0, n - 1)):
        raises(tokmap.MismatchError, tokmap.Loader(other, 8).restore, state)
    for end in (n, 2**64 - 1):
        tokmap.Loader(part(0, end), 8).restore(state)
    tokmap.Loader(part(4, 2**64 - 1), 8).restore(tokmap.Loader(part(4, n), 8).state())
    for bad in (5, (1,), (1, 2, 3), [(1, 2), 3], "12"):
        raises(TypeError, tokmap.Source, [folder / "a", folder / "b"], documents=bad)
    raises(ValueError, tokmap.Source, [folder / "a", folder / "b"], documents=(1, 2))
    raises((ValueError, TypeError), tokmap.Source, folder / "a", documents=(-1, 2))


def a_ledger_knows_the_ranges(folder):
    n = len(tokmap.open(folder / "a"))

    def open_run(*ends):
        return tokmap.Loader([tokmap.Source(folder / "a", documents=(0, ends[0])),
                              tokmap.Source(folder / "a", documents=(ends[1], n))], 16, seed=3, batch_rows=4,
                             order=tokmap.Order(random_offset=True), ledger=folder / "ledger")

    with open_run(90, 120) as loader:
        rows = [(row, batch.state) for batch in (next(loader) for _ in range(60)) for row in batch.rows]
    run, ids = tokmap.Run(folder / "ledger"), tokmap.open(folder / "a")
    for row, _ in rows:
        found = run.row(row.sample)
        documents = run.documents(found)
        tokens = [id for first, k in found.parts for id in ids.tokens(first, k).tolist()]
        assert tokens == row.tokens.tolist() and sum(one.n_tokens for one in documents) == len(tokens)
        assert all(one.number < 90 if row.source == 0 else one.number >= 120 for one in documents)
        assert all(one.meta["url"] == str(one.number) for one in documents)
    assert sum(len(run.row(g).parts) > 1 for g in range(240)) > 2
    assert run.samples(folder / "a", 100, 20) == [] != run.samples(folder / "a", 125)
    shares = run.report("source")
    assert sum(share.n_labels for share in shares) == 240 * 16 and all(share.n_documents <= 90 for share in shares)
    error = raises(tokmap.MismatchError, next, open_run(91, 120))
    assert "source 0 has other datasets" in str(error)
    with open_run(90, 120) as loader:
        loader.restore(rows[-1][1])
        next(loader)


sys.exit(run_in_folders("python_ranges_", prepare=prepare))
