#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run that is changed: its samples are those of docs/ORDER.md, sections 5, 9 and 10, on any number of ranks; what
may be changed, and what is refused. test_amend.c tries what changes could alter before the state."""

import itertools
import json
import os
import pickle
import random
import sys

from grouped import grouped
from package import raises
from ref_order import Order, Phase, Skips, Source, quotas_of
from ref_protocol import run_in_folders

import tokmap

SIZES = (1001, 501, 333, 2222)
LENGTH = 10
N_RUNS = 6000 if os.environ.get("TOKMAP_LONG") == "all" else 20  # that are changed


def prepare(folder):
    for k, n_tokens in enumerate(SIZES):
        with tokmap.Writer(folder / str(k), vocab_size=65536 if k < 3 else 100000) as w:
            for i in range(0, n_tokens, 37):
                w.document(range(10000 * k + i, 10000 * k + min(i + 37, n_tokens)))


def loader_of(folder, weights, max_epochs=None, **options):
    sources = [tokmap.Source(folder / str(k), weight, max_epochs=(max_epochs or {}).get(k)) for k, weight in
               enumerate(weights)]
    return tokmap.Loader(sources, LENGTH, **grouped(**{"seed": 3, "batch_rows": 4, **options}))


def order_of(folder, loader, limits, options):
    """From the text of ORDER.md and what the loader says about its mixture."""
    sources = []
    for k, epochs in enumerate(limits):
        documents = [(i, min(i + 37, SIZES[k])) for i in range(0, SIZES[k], 37)]
        with tokmap.open(folder / str(k)) as dataset:
            sources.append(Source([bytes.fromhex(dataset.dataset_id)], [SIZES[k]], [documents], epochs))
    phases = [Phase(first, quotas_of(weights)) for first, weights in loader.phases.items()]
    return Order(sources, phases, LENGTH, 3, windows=options["windows"], random_offset=options["random_offset"],
                 shuffle=options["shuffle"], block=options["block_windows"], group=options["group_blocks"],
                 align=options.get("align", 1), most=options.get("max_documents", 0))


def any_weights(rng, n):
    weights = [rng.choice((0, 1, 1, 2, 0.5, 0.3)) for _ in range(n)]
    weights[rng.randrange(n)] = rng.choice((1, 0.7))
    return weights


def take(folder, rng, state, weights, max_epochs, options):
    """Continues on some number of ranks. Returns the loader of rank 0, its first sample, and the rows of all ranks."""
    n_ranks, batch_rows, n_steps = rng.randint(1, 3), rng.randint(1, 7), rng.randint(0, 12)
    loaders = [loader_of(folder, weights, max_epochs, rank=rank, n_ranks=n_ranks, batch_rows=batch_rows,
                         on_mismatch="amend", **options) for rank in range(n_ranks)]
    for loader in loaders:
        loader.restore(state)
    rows = {}
    for _ in range(n_steps):
        for batch in [next(loader, None) for loader in loaders]:
            if batch is not None:
                rows.update(zip(batch.sample_ids.tolist(), batch.rows))
                assert batch.sample_ids.tolist() == [row.sample for row in batch.rows]
                assert batch.source_ids.tolist() == [row.source for row in batch.rows]
                assert batch.first_sample == batch.rows[0].sample
    assert len({loader.sample for loader in loaders}) == 1
    return loaders[0], rows


def any_skips(rng, at, limit):
    """Behind sample `at`, and around it."""
    if at + 200 > limit:
        return []
    places = sorted(rng.sample(range(max(at - 30, 0), at + 200), 2 * rng.randint(0, 4)))
    return [(a, b + rng.randint(0, 1) * (c - b)) for a, b, c in zip(places[::2], places[1::2], places[2::2] + [limit])]


def changed_runs_have_the_order_of_the_specification(folder):
    n_rows = n_changes = 0
    for seed in range(N_RUNS):
        rng = random.Random(seed)
        windows = rng.choice(("concat", "within_document", "best_fit"))
        shuffle = rng.choice(("full", "none", "block"))
        blocks = (rng.randint(1, 9), rng.randint(1, 5)) if shuffle == "block" else (0, 0)
        packing = {"align": rng.choice((1, 1, 2, 5, 10)), "max_documents": rng.choice((0, 0, 1, 3))}
        options = {"windows": windows, "shuffle": shuffle, "random_offset": windows == "concat" and rng.random() < 0.5,
                   "block_windows": 0 if windows == "best_fit" else blocks[0], "group_blocks": blocks[1],
                   **(packing if windows == "best_fit" else {}),
                   "io": rng.choice((*["map"] * 9, "populate", "read", "direct"))}
        weights, limits, all_rows = any_weights(rng, rng.randint(1, 2)), {}, {}
        state, at, wanted_rows, skip = loader_of(folder, weights, **options).state(), 0, [], []
        changes = {}  # what the script says besides the weights
        for _ in range(4):
            loader, rows = take(folder, rng, state, weights, limits, {**options, **changes})
            all_rows.update(rows)
            skips = Skips(skip, loader.n_samples or 2**62)
            wanted_rows += itertools.takewhile(lambda g: g < loader.sample, skips.samples(at))
            state, at = loader.state(), loader.sample
            assert sorted(all_rows) == wanted_rows and at == skips.next(at)
            epochs = [limits.get(k) or 0 for k in range(len(weights))]
            order = order_of(folder, loader, epochs, options)
            for g, row in all_rows.items():  # also those before the last change
                wanted = order.sample(g)
                assert (row.source, row.epoch, row.window, row.first_token, len(row.tokens)) == (
                    wanted.source, wanted.epoch, wanted.window, wanted.row.first, wanted.row.n_inputs + 1), (seed, g)
            assert state == order.state(at, skips)
            ahead = [(a, b) for a, b in skip if b > at]
            again = loader_of(folder, weights, limits, **{**options, "phases": loader.phases, "skip": ahead})
            again.restore(state)  # what phases says is enough, and the skips that lie ahead
            n_rows += len(rows)
            changes = {"phases": loader.phases, "skip": skip}
            if rng.random() < 0.2:
                continue
            n_changes += 1
            more = min(rng.randint(0, 1), len(SIZES) - len(weights))
            weights = any_weights(rng, len(weights) + more)
            changes = {"amend_from": {"phases": loader.phases, "max_epochs": epochs, "skip": skip}}
            if rng.random() < 0.5:  # the whole history, in place of the new weights alone
                past = {sample: w + [0] * more for sample, w in loader.phases.items() if sample < at}
                changes["phases"] = {**past, at: weights, at + rng.randint(1, 40): any_weights(rng, len(weights))}
            limits = {k: rng.choice((None, 50)) for k in range(len(weights))}
            changes["skip"] = skip = any_skips(rng, at, 1600)
    return "%d rows, %d changes" % (n_rows, n_changes)


def weights_alone_may_be_edited(folder):
    run = loader_of(folder, [1, 2])
    for _ in range(20):
        state = next(run).state
    old = {"weights": [1, 2]}
    changed = loader_of(folder, [2, 1, 1], amend=state, amend_from=old)
    assert changed.phases == {0: [1, 2, 0], 80: [2, 1, 1]} and changed.sample == 80
    assert [changed.locate(g) for g in range(80)] == [run.locate(g) for g in range(80)]
    first = pickle.loads(pickle.dumps(changed))
    again = loader_of(folder, [9, 9, 9], phases=changed.phases)  # the script with these phases, from a later state
    assert next(changed).inputs.tolist() == next(first).inputs.tolist()
    again.restore(changed.state())
    assert again.phases == changed.phases and again.sample == 84
    assert loader_of(folder, [3, 3, 3], amend=loader_of(folder, [1, 2]).state(), amend_from=old).phases == {0: [3, 3, 3]}
    same = loader_of(folder, [1, 2], amend=state, amend_from={"weights": [7, 7]})  # nothing to change
    assert same.phases == {0: [1, 2]} and same.state() == state
    whole = loader_of(folder, [1, 2, 0], phases={80: [5, 5, 5]}, amend=state)  # the phases of the run as a whole
    assert whole.phases == {0: [1, 2, 0], 80: [5, 5, 5]}
    for more in ({}, {"device": "host"}):
        later = loader_of(folder, [2, 1, 1], on_mismatch="amend", amend_from=old, **more)
        later.load_state_dict(json.loads(json.dumps(run.state_dict())))
        assert later.phases == {0: [1, 2, 0], 80: [2, 1, 1]} and later.sample == 80
    ended = loader_of(folder, [1, 2], {1: 2}, amend=state, amend_from=old)
    assert ended.n_samples is not None and ended.phases == {0: [1, 2]}


def what_would_change_the_past_is_refused(folder):
    run = loader_of(folder, [1, 2])
    run.seek(400)
    state, old = run.state(), {"weights": [1, 2]}
    raises(tokmap.MismatchError, loader_of(folder, [2, 1, 1], amend_from=old).restore, state)
    for wrong, options in ((tokmap.MismatchError, {"seed": 4}), (tokmap.MismatchError, {"shuffle": "none"}),
                           (ValueError, {"phases": {10: [1, 1, 1]}}), (tokmap.ArgumentError, {"max_epochs": {0: 1}})):
        loader = loader_of(folder, [2, 1, 1], on_mismatch="amend", amend_from=old, **options)
        raises(wrong, loader.restore, state)
        assert loader.sample == 0 and loader.phases[0] == [2, 1, 1]
    assert "describe" in str(raises(tokmap.MismatchError, loader_of, folder, [2, 1, 1], amend=state))
    assert "describe" in str(raises(tokmap.MismatchError, loader_of, folder, [0, 0, 1], amend=state))
    assert "weight 0" in str(raises(tokmap.MismatchError, loader_of, folder, [1], amend=state, amend_from=old))
    for given in ({}, 5, {"weights": [1, 2], "other": 1}, {"weights": [1, 2], "max_epochs": [1]}, {"phases": {5: [1, 2]}},
                  {"weights": [1, 2], "phases": {5: [1]}}):
        raises(ValueError, loader_of, folder, [2, 1, 1], amend=state, amend_from=given)
    for given in ({"weights": [1, 1]}, {"weights": [1, 2], "max_epochs": 7}, {"weights": [1, 2, 0]}):
        raises(tokmap.MismatchError, loader_of, folder, [2, 1, 1], amend=state, amend_from=given)
    raises(ValueError, loader_of, folder, [1, 2], on_mismatch="ignore")
    raises(tokmap.DamagedError, loader_of, folder, [2, 1, 1], amend=bytes(1) + state[1:], amend_from=old)
    wide, old = loader_of(folder, [1, 2, 1], shuffle="block"), {"weights": [1, 2, 1]}
    wide.seek(8)
    text = str(raises(tokmap.MismatchError, loader_of, folder, [1, 2, 1, 1], shuffle="block", amend=wide.state(),
                      amend_from=old))
    number = int(text.split("set block_windows to ")[1])
    loader_of(folder, [1, 2, 1, 1], shuffle="block", block_windows=number, amend=wide.state(), amend_from=old)


def a_skip_ahead_goes_with_max_epochs(folder):
    """With the new weights from sample 0 on, the run would end before the skip: but they are those from the state on."""
    run = loader_of(folder, [1])
    run.seek(1000)
    state, old, ahead = run.state(), {"weights": [1]}, [(1002, 1010)]
    wanted = loader_of(folder, [1, 0], {1: 1}, phases={1000: [1, 1]}, skip=ahead, amend=state, amend_from=old)
    for more in ({}, {"device": "host"}):
        loader = loader_of(folder, [1, 1], {1: 1}, skip=ahead, amend=state, amend_from=old, **more)
        assert (loader.n_samples, loader.sample, loader.phases) == (wanted.n_samples, 1000, wanted.phases)
        assert loader.state() == wanted.state() and loader.n_samples > 1010
    assert next(pickle.loads(pickle.dumps(wanted))).sample_ids.tolist() == [1000, 1001, 1010, 1011]
    with loader_of(folder, [1], ledger=folder / "ahead.ledger") as first:
        first.seek(1000)
        state = next(first).state
    loader = loader_of(folder, [1, 1], {1: 1}, skip=[(1006, 1010)], amend=state, ledger=folder / "ahead.ledger")
    assert next(loader).sample_ids.tolist() == [1004, 1005, 1010, 1011]
    loader.close()
    assert [line["event"] for line in map(json.loads, open(folder / "ahead.ledger"))] == ["opened", "closed", "amended", "closed"]
    for n, options in ((loader.n_samples, {"amend": state, "amend_from": old}), (500, {})):  # it has to exist after the change
        text = str(raises(tokmap.ArgumentError, loader_of, folder, [1, 1], {1: 1}, skip=[(n, n + 10**6)], **options))
        assert "do not all exist" in text, text


def a_mismatch_says_what_was_saved_and_what_is_given(folder):
    ledger = folder / "mismatch.ledger"
    with loader_of(folder, [1, 2], {1: 7}, ledger=ledger) as run:
        for _ in range(5):
            state = next(run).state
    advice = ("at sample 20", "amend=state", 'on_mismatch="amend"', "ledger=", "amend_from=", "phases=")
    given = {"weights": "weights [2.0, 1.0]", "limits": "max_epochs [3, 0]", "phases": "phases {40: [1.0, 1.0]}"}
    for weights, limits, options, says in (
            ([2, 1], {}, {}, [given["weights"], "max_epochs none"]), ([1, 2], {0: 3}, {}, [given["limits"]]),
            ([1, 2], {1: 7}, {"phases": {40: [1, 1]}}, [given["phases"]]), ([1, 2, 1], {}, {}, ["weights [1.0, 2.0, 1.0]", "2 sources"]),
            ([1, 2], {1: 7}, {"skip": [(60, 70)]}, ["skip [(60, 70)]"])):
        for more in ({}, {"ledger": ledger}):
            loader = loader_of(folder, weights, limits, **options, **more)
            for call in (loader.restore, lambda s: loader.load_state_dict({"state": s.hex(), "sample": 20})):
                text = str(raises(tokmap.MismatchError, call, state))
                for one in (*says, *advice, *(["mismatch.ledger says weights [1, 2], max_epochs [0, 7]"] if more else [])):
                    assert one in text, (one, text)
    # What a script says that is started again after it amended its run.
    amended = loader_of(folder, [2, 1], amend=state, amend_from={"weights": [1, 2], "max_epochs": [0, 7]})
    next(amended)
    text = str(raises(tokmap.MismatchError, loader_of(folder, [3, 1], on_mismatch="amend", amend_from={"weights": [1, 1]}).restore,
                      amended.state()))
    for one in (*advice[1:], "at sample 24", "amend_from says weights [1.0, 1.0]", "weights [3.0, 1.0]", "2 phases"):
        assert one in text, (one, text)
    assert "amend=" not in str(raises(tokmap.MismatchError, loader_of(folder, [1, 2], {1: 7}, seed=9).restore, state))


sys.exit(run_in_folders("python_amend_", prepare=prepare))
