#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""order_of: a dataset that was redacted has the samples and the states of what it was before. Random datasets are
redacted again and again, and every way of reading is compared with the dataset of the first day."""

import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import warnings

from grouped import grouped, open_loader
from package import raises
from ref_order import source_id
from ref_protocol import program, run_in_folders

import numpy as np
import tokmap
from tokmap._loader import ledger as _ledger
from tokmap._c import structs as _lib
from tokmap._c.errors import call
from tokmap._c.structs import lib

N_RUNS = 1500 if os.environ.get("TOKMAP_LONG") == "all" else 20
FILLER, TRAINED, PROMPT, REDACTED, REDACTED_PROMPT = 59999, 255, 0, 1, 2
WITH_MASK = {"outputs": ["inputs", "labels", "loss_mask"], "mask_labels": True}


def any_documents(rng):
    """[(ids, the role of each, or TRAINED)]"""
    found = []
    with_prompts = rng.random() < 0.5
    for _ in range(rng.randint(3, 120)):
        n = rng.choice((0, 1, 2, rng.randint(0, 60), rng.randint(0, 60)))
        roles = np.full(n, TRAINED, np.uint8)
        if with_prompts and rng.random() < 0.5:
            roles[:rng.randint(0, n)] = rng.choice((PROMPT, PROMPT, 3, 127, 128, 254))
        found.append((np.array(rng.choices(range(50000), k=n), np.uint16), roles))
    return found + [(np.array(rng.choices(range(50000), k=99), np.uint16), np.full(99, TRAINED, np.uint8)) for _ in range(3)]


def redact(documents, numbers):
    """The last id of each, as of an end of document, stays."""
    found = list(documents)
    for i in numbers:
        ids, roles = documents[i]
        found[i] = (np.append(np.full(len(ids[:-1]), FILLER, np.uint16), ids[-1:]),
                    np.where((roles != REDACTED) & (roles < 128), REDACTED_PROMPT, REDACTED).astype(np.uint8))
    return found


def write(path, documents, redacted_from=()):
    with tokmap.Writer(path, vocab_size=60000, spans=True, replace=True) as w:
        for ids, roles in documents:
            ids = ids.astype(np.uint32)
            call(lib.tokmap_writer_append, w._open(), ids.ctypes.data, ids.size)
            edges = [0, *(np.flatnonzero(np.diff(roles)) + 1).tolist(), len(ids)]
            for first, end in zip(edges, edges[1:]):
                if first < end and roles[first] != TRAINED:
                    call(lib.tokmap_writer_add_span, w._open(), _lib.Span(first, end - first, int(roles[first])))
            call(lib.tokmap_writer_end_document, w._open())
        if redacted_from:
            w.set_metadata({"redacted_from": list(redacted_from)})
    return tokmap.Dataset(path)


class Shard:
    """A dataset in all of its states: datasets[0] was not redacted, each other one is the one before with more documents
    redacted."""

    def __init__(self, folder, name, rng, n_times):
        documents = any_documents(rng)
        self.datasets, self.ids, self.redacted = [], [], set()
        for i in range(n_times + 1):
            self.datasets.append(write(folder / f"{name}-{i}", documents, self.ids))
            self.ids.append(self.datasets[-1].dataset_id)
            numbers = [len(documents) - 1 - i, *rng.sample(range(len(documents) - 3), rng.randint(0, 3))]
            documents = redact(documents, numbers)
            self.redacted.update(numbers if i < n_times else ())


def any_options(rng):
    windows = rng.choice(("concat", "within_document", "best_fit"))
    options = {"sequence_length": rng.choice((4, 16, 32)), "windows": windows, "seed": rng.randint(0, 9),
               "shuffle": rng.choice(("full", "none", "block")), "io": rng.choice(("map", "populate", "read", "direct")),
               "random_offset": windows == "concat" and rng.random() < 0.5, "weights": rng.choice(("samples", "tokens")),
               **rng.choice((WITH_MASK, {}, {"mask_labels": True}))}
    if windows == "best_fit":
        options.update(align=rng.choice((1, 4)), max_documents=rng.choice((0, 2)),
                       whole_documents=rng.choice(("split", "truncate")))
    if rng.random() < 0.5:
        options["skip"] = [(5, 9), (30, 31)]
    return options


def sources_of(shards, rng, at, order, **more):
    """A source for each list of shards, as they were `at` the time, with the order of the time `order`."""
    def when(shard, time):
        return min(time, len(shard.ids) - 1)

    return [tokmap.Source([shard.datasets[when(shard, at)] for shard in some], rng.choice((1, 2, 0.5)),
                          order_of=None if at == order else [shard.ids[when(shard, order)] for shard in some], **more)
            for some in shards]


def check_batch(batch, other, loader, shards):
    """The same but for redacted documents: batch is of data that were redacted, other is not. Returns how many rows have
    tokens of redacted documents."""
    n_redacted = 0
    assert batch.sample_ids.tolist() == other.sample_ids.tolist()
    for i, row in enumerate(batch.rows):
        first = other.rows[i]
        assert (row.source, row.dataset, row.first_token, row.epoch, row.window) == (
            first.source, first.dataset, first.first_token, first.epoch, first.window)
        shard = shards[row.source][row.dataset]
        ds = shard.datasets[-1]
        parts = [piece[1:] for piece in loader.pieces(int(batch.sample_ids[i]))] or [(row.first_token, len(row.tokens), 0)]
        taken = np.zeros(len(row.tokens), bool)
        for at, n, place in parts:
            for k in range(n):
                taken[place + k] = ds.find_document((at + k) % ds.n_tokens).number in shard.redacted
        n_inputs = len(row.tokens) - 1
        assert (np.asarray(row.tokens)[~taken] == np.asarray(first.tokens)[~taken]).all()
        assert set(np.asarray(row.tokens)[taken].tolist()) <= {FILLER, *np.asarray(first.tokens)[taken].tolist()}
        assert (batch.labels[i][:n_inputs] == np.where(taken[1:], -100, other.labels[i][:n_inputs])).all()
        if other.loss_mask is not None:
            assert (batch.loss_mask[i][:n_inputs] == other.loss_mask[i][:n_inputs] & ~taken[1:]).all()
        if not taken.any():
            assert all((batch[name][i] == other[name][i]).all() for name in dict(batch))
        n_redacted += bool(taken.any())
    return n_redacted


def redacted_data_have_the_order_and_the_states_of_before(folder):
    n_rows = n_redacted = 0
    for seed in range(N_RUNS):
        rng = random.Random(seed)
        shards = [[Shard(folder, f"{seed}-{k}-{d}", rng, rng.randint(1, 2)) for d in range(rng.randint(1, 2))]
                  for k in range(rng.randint(1, 2))]
        options, weights = any_options(rng), rng.getrandbits(32)

        def loader_at(at, rows, rank=0, n_ranks=1):
            return tokmap.Loader(sources_of(shards, random.Random(weights), at, 0), **grouped(batch_rows=rows, rank=rank, n_ranks=n_ranks, **options))

        now = loader_at(2, 5)
        first = loader_at(0, 5)
        assert now.state() == first.state()
        for _ in range(3):
            a, b = next(now), next(first)
            assert a.state == b.state
            n_redacted += check_batch(a, b, now, shards)
            n_rows += len(a.sample_ids)
        # from one to the other and back, with other ranks
        for at in (0, 2, 1):
            state = now.state()
            ranks = [loader_at(at, 2, rank, 3) for rank in range(3)]
            for loader in ranks:
                loader.restore(state)
            now.restore(state)
            same = loader_at(at, 6)
            same.restore(state)
            whole, parts = next(same), [next(loader) for loader in ranks]
            assert (np.concatenate([part.inputs for part in parts]) == whole.inputs).all()
            assert [part.state for part in parts] == [whole.state] * 3
            now.restore(whole.state)
        data = hash_of_sources(shards)
        assert now.state()[40:48] == data
    assert 0 < n_redacted < n_rows
    return "%d rows, %d with redacted documents" % (n_rows, n_redacted)


def hash_of_sources(shards):
    """By the second implementation."""
    import ref_order
    ids = [source_id([bytes.fromhex(shard.ids[0]) for shard in some]) for some in shards]
    return ref_order.hash_of(ids).to_bytes(8, "little")


def follow(error, sources):
    """What the error says is to be done."""
    advice = dict((path, one) for one, path in re.findall(r'order_of="([0-9a-f]{32})" to the source of ([^,]*)', str(error)))
    assert advice, error
    for source in sources:
        paths = [path for dataset in source.datasets for path in dataset.paths]
        source.order_of = [advice.get(path, one) for path, one in zip(paths, source.order_of * (len(paths) // len(source.order_of)))]
    return sources


def loader_by_advice(sources, state, options):
    """What does not fit into one error is in the next."""
    while True:
        loader = tokmap.Loader(sources, **grouped(**options))
        try:
            loader.restore(state)
            return loader
        except tokmap.MismatchError as error:
            follow(error, sources)


def a_run_goes_to_and_fro_between_what_redact_wrote_and_before(folder):
    """The id of a token is its place, so that a row says which tokens of it were redacted."""
    rng, place = random.Random(9), 0
    with tokmap.Writer(folder / "p", vocab_size=2**22, spans=True) as w:
        while place < 3_300_000:
            n = rng.choice((1, 5, 40, 700, 3000))
            w.document(np.arange(place, place + n, dtype=np.uint32), train=np.arange(n) >= rng.choice((0, 0, 3)))
            place += n
    p = tokmap.Dataset(folder / "p")
    for source, name in (("p", "q"), ("q", "r")):
        (folder / "list").write_text("".join("%d\n" % i for i in sorted(rng.sample(range(1, p.n_documents), 20))))
        subprocess.run([program("tokmap"), "redact", "-q", folder / source, "--documents", f"@{folder}/list", "-o", folder / name],
                       check=True)
    datasets = [p, tokmap.Dataset(folder / "q"), tokmap.Dataset(folder / "r")]
    assert datasets[2].metadata["redacted_from"] == [ds.dataset_id for ds in datasets[:2]]
    redacted = np.concatenate([np.full(len(ds), any(span.role for span in datasets[2].spans(i)))
                               for i, ds in enumerate(datasets[2])])
    n_rows = n_redacted = 0
    for options in ({"shuffle": "block", "random_offset": True}, {"windows": "within_document"}, {"windows": "best_fit"},
                    {"mask_labels": True, "windows": "concat"}):
        options = {"sequence_length": 32, "seed": 7, "max_epochs": 1, "drop_last": False, **options}
        whole = tokmap.Loader(p, **grouped(batch_rows=1200, **options))
        state, ranks = whole.state(), []
        for step in range(25):  # 30,000 rows
            wanted = next(whole)
            if step % 5 == 0:
                n_ranks, ds = rng.choice((1, 2, 3, 4, 6)), datasets[1 + step // 5 % 2] if step < 20 else p
                ranks = [tokmap.Loader(tokmap.Source(ds, order_of=p.dataset_id), **grouped(batch_rows=1200 // n_ranks, rank=rank, n_ranks=n_ranks, **options)) for rank in range(n_ranks)]
                for loader in ranks:
                    loader.restore(state)
                gone = redacted & (ds.tokens() != p.tokens())
            parts = [next(loader) for loader in ranks]
            inputs, labels = (np.concatenate([part[name] for part in parts]) for name in ("inputs", "labels"))
            of_input, of_label = gone[wanted.inputs], gone[wanted.labels] & (wanted.labels >= 0)
            assert (inputs == np.where(of_input, p.largest_id, wanted.inputs)).all()
            assert (labels == np.where(of_label, -100, wanted.labels)).all()
            state = parts[0].state
            assert [part.state for part in parts] == [wanted.state] * len(parts)
            n_rows, n_redacted = n_rows + len(inputs), n_redacted + int((of_input | of_label).any(axis=1).sum())
    assert n_rows == 120_000 and n_redacted > 100
    return "%d rows, %d with redacted documents" % (n_rows, n_redacted)


def an_error_says_which_order_of_is_missing(folder):
    n_errors = 0
    for seed in range(N_RUNS):
        rng = random.Random(seed)
        shards = [[Shard(folder, f"{seed}-{k}-{d}", rng, rng.randint(0, 2)) for d in range(rng.randint(1, 3))]
                  for k in range(rng.randint(1, 2))]
        ids = [[rng.choice(shard.ids) for shard in some] for some in shards]
        then = [tokmap.Source([shard.datasets[shard.ids.index(one)] for shard, one in zip(some, those)])
                for some, those in zip(shards, ids)]
        now = [tokmap.Source([shard.datasets[-1] for shard in some]) for some in shards]
        options = {"sequence_length": 16}
        loader = tokmap.Loader(then, **grouped(**options))
        loader.seek(rng.randint(0, 99))
        state, wanted = loader.state(), next(loader)
        if ids == [[shard.ids[-1] for shard in some] for some in shards]:
            continue
        n_errors += 1
        error = raises(tokmap.MismatchError, tokmap.Loader(now, **grouped(**options)).restore, state)
        assert str(error).startswith("state: its data were redacted, which changed their id: give order_of="), error
        amend = rng.random() < 0.5  # which says the same
        if amend:
            assert str(raises(tokmap.MismatchError, open_loader, now, amend=state, **options)) == str(error)
        again = loader_by_advice(now, state, options)
        if amend:
            again = tokmap.Loader(now, **grouped(amend=state, **options))
        check_batch(next(again), wanted, again, shards)
        assert again.state() == loader.state()
    other = tokmap.Loader(write(folder / "other", any_documents(random.Random(1))), **grouped(**options))
    error = raises(tokmap.MismatchError, tokmap.Loader(shards[0][0].datasets[-1], **grouped(**options)).restore, other.state())
    assert str(error) == "state: saved with other datasets, views, lists or ranges of documents, or with the same ones in another order", error
    return "%d errors" % n_errors


def a_run_is_amended_on_redacted_data(folder):
    """Other weights, skips and another source, at the same time as the data are redacted: as without redacting."""
    n_redacted = n_rows = 0
    for seed in range(N_RUNS // 3):
        rng = random.Random(seed)
        shards = [[Shard(folder, f"{seed}-{k}", rng, 2)] for k in range(3)]
        options, ledger = {**any_options(rng), "batch_rows": 4, "skip": [(7, 9)]}, folder / f"{seed}.ledger"
        with tokmap.Loader(sources_of(shards[:2], random.Random(seed), 0, 0), **grouped(ledger=ledger, **options)) as run:
            for _ in range(rng.randint(1, 9)):
                state = next(run).state
        at = int.from_bytes(state[24:32], "little")
        options["skip"] = [(at + 3, at + 11)]
        first, *amended = [tokmap.Loader(sources_of(shards, random.Random(seed + 1), time, 0), **grouped(amend=state, **{"ledger": ledger} if time == 2 else {"amend_from": ledger}, **options))
                           for time in (0, 1, 2)]
        for _ in range(5):
            wanted = next(first)
            for loader in amended[1:]:
                n_redacted += check_batch(next(loader), wanted, loader, shards)
                n_rows += 4
            amended[0].restore(wanted.state)
        assert [loader.state() for loader in amended] == [first.state()] * 2
        amended[1].close()
        assert [line.event for line in _ledger.read(ledger)] == ["opened", "closed", "amended", "closed"]
    assert 0 < n_redacted < n_rows
    return "%d rows, %d with redacted documents" % (n_rows, n_redacted)


def a_state_of_the_new_order_names_the_new_id(folder):
    shard = Shard(folder, "p", random.Random(1), 1)
    state = tokmap.Loader(shard.datasets[1], 16).state()
    loader = tokmap.Loader(tokmap.Source(shard.datasets[1], order_of=shard.ids[0]), 16)
    error = raises(tokmap.MismatchError, loader.restore, state)
    assert f'give order_of="{shard.ids[1]}" to the source of {shard.datasets[1].paths[0]}' in str(error), error
    tokmap.Loader(follow(error, [tokmap.Source(shard.datasets[1])]), 16).restore(state)


def what_was_redacted_twice_and_prompts_leave_nothing_in_a_state(folder):
    documents = [(np.arange(50, dtype=np.uint16), np.where(np.arange(50) < k, PROMPT, TRAINED).astype(np.uint8))
                 for k in range(0, 50, 5)]
    p = write(folder / "p", documents)
    q = write(folder / "q", redact(redact(documents, [3, 4]), [3, 9]), [p.dataset_id])
    assert p.spans_hash == q.spans_hash != 0 and p.dataset_id != q.dataset_id
    states = [tokmap.Loader(tokmap.Source(ds, order_of=p.dataset_id), 16).state() for ds in (p, q)]
    assert states[0] == states[1] and states[0][72:80] != bytes(8)
    plain = [(ids, np.full(50, TRAINED, np.uint8)) for ids, _ in documents]
    p = write(folder / "p", plain)
    q = write(folder / "q", redact(plain, range(len(plain))), [p.dataset_id])
    assert p.spans_hash == q.spans_hash == 0 and q.n_spans == 10
    assert tokmap.Loader(p, 16).state() == tokmap.Loader(tokmap.Source(q, order_of=p.dataset_id), 16).state()


def other_ids_are_refused(folder):
    shard = Shard(folder, "p", random.Random(2), 2)
    p, q, r = shard.datasets
    other = write(folder / "other", any_documents(random.Random(3)))
    for one, ds in ((other.dataset_id, r), (shard.ids[2], q), (shard.ids[1], p), ("0" * 32, p)):
        error = raises(tokmap.MismatchError, tokmap.Loader, tokmap.Source(ds, order_of=one), 16)
        assert f"{ds.paths[0]}: order_of is {one}: that is neither its id nor one that it had" in str(error), error
    for one in ("12", ""):
        assert "32 hex digits" in str(raises(tokmap.ArgumentError, tokmap.Loader, tokmap.Source(q, order_of=one), 16)), one
    raises(TypeError, tokmap.Source, q, order_of=12)
    raises(TypeError, tokmap.Source, q, order_of=[b"0" * 32])
    raises(ValueError, tokmap.Source, [q, r], order_of=shard.ids[0])
    raises(ValueError, tokmap.Source, q, order_of=[shard.ids[0], None])
    states = [tokmap.Loader([tokmap.Source([q, r], order_of=ids)], 16).state()
              for ids in (shard.ids[:1] * 2, (shard.ids[0], None), (None, None), None, shard.ids[1:])]
    assert states[2:] == [states[3]] * 3 and len(set(states)) == 3


def a_rows_file_serves_the_redacted_dataset(folder):
    shard = Shard(folder, "p", random.Random(4), 1)
    p, q = shard.datasets
    subprocess.run([program("tokmap"), "rows", "-q", "--sequence-length", "32", folder / "p-0"], check=True)
    rows = folder / "p-0.32.tmr"
    found = []
    for ds, files in ((p, None), (q, rows), (q, None)):
        source = tokmap.Source(ds, order_of=shard.ids[0], rows_files=files)
        loader = tokmap.Loader(source, 32, 4, windows="best_fit", max_epochs=2, order=tokmap.Order(drop_last=False))
        found.append([(batch.sample_ids.tolist(), loader.pieces(int(batch.sample_ids[0])), batch.state) for batch in loader])
    assert found[0] == found[1] == found[2] and len(found[0]) > 4
    shutil.copy(rows, folder / "p-1.32.tmr")  # beside it, it is found
    assert tokmap.Loader(tokmap.Source(q, order_of=shard.ids[0]), 32, windows="best_fit").state() == tokmap.Loader(
        p, 32, windows="best_fit").state()


def a_ledger_goes_on_with_redacted_data(folder):
    """A run begins with the first data, and goes on with them redacted; then they are redacted again, where they are."""
    shard = Shard(folder, "p", random.Random(5), 2)
    p, q, r = shard.datasets
    options = {"sequence_length": 16, "batch_rows": 4, "seed": 3, "io": "map"}
    with tokmap.Loader(p, **grouped(ledger=folder / "all.ledger", **options)) as all_of_p:
        for _ in range(9):
            next(all_of_p)
    wanted = tokmap.Run(folder / "all.ledger")
    ledger = folder / "run.ledger"
    with tokmap.Loader(p, **grouped(ledger=ledger, **options)) as loader:
        for _ in range(4):
            state = next(loader).state
    with tokmap.Loader(tokmap.Source(q, order_of=shard.ids[0]), **grouped(ledger=ledger, **options)) as loader:
        loader.restore(state)
        for _ in range(5):
            state = next(loader).state
    lines = [line for line in ledger.read_bytes().splitlines() if b'"event":"closed"' not in line]
    assert [b'"order_of"' in line for line in lines] == [False, True] and b'"event":"resumed"' in lines[1]
    raises(tokmap.MismatchError, lambda: next(tokmap.Loader(q, **grouped(ledger=ledger, **options))))  # another order
    for is_there in (True, False):
        run = tokmap.Run(ledger, until=state)
        with tokmap.Loader(tokmap.Source(q if is_there else r, order_of=shard.ids[0]), **grouped(**options)) as loader:
            assert (run.report(), run.n_steps) == (tokmap.Run(loader, state).report(), wanted.n_steps)
        assert run.report()[0].n_labels < wanted.report()[0].n_labels  # what is redacted does not count
        n_redacted = 0
        for step in range(run.n_steps):
            for a, b in zip(run.step(step), wanted.step(step)):
                assert a._replace(dataset=b.dataset) == b
                for x, y in zip(run.documents(a), wanted.documents(b)):
                    assert x._replace(redacted=False) == y and x.redacted == (x.number in redacted_of(run, a))
                    n_redacted += x.redacted
        assert n_redacted > 0
        if is_there:  # no dataset that the run had is left
            for name in ("p-0", "p-1"):
                for suffix in (".bin", ".tmi"):
                    shutil.copy(f"{folder}/p-2{suffix}", f"{folder}/{name}{suffix}")
    document = p.n_documents - 1  # redacted the first time
    text = trace("--ledger", ledger, "--document", f"{folder}/p-1:{document}")
    other = trace(folder / "p-2", "--order-of", shard.ids[0], "--sequence-length", "16", "--seed", "3", "--n-ranks", "1", "--batch-rows", "4",
                  "--until", "36", "--document", f"{folder}/p-2:{document}")
    assert text.replace("p-1.tmi", "p-2.tmi") == other and f"document {document} " in text and "  redacted\n" in text, (text, other)
    write(folder / "p-1", any_documents(random.Random(6)))
    assert "another dataset now" in str(raises(tokmap.MismatchError, tokmap.Run, ledger))


def trace(*arguments):
    return subprocess.run([sys.executable, "-m", "tokmap", "trace", *map(str, arguments)], check=True, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(tokmap.__file__))}).stdout


def redacted_of(run, row):
    dataset = run._by_path[row.dataset]
    return {i for i in range(dataset.n_documents) if any(span.role in (1, 2) for span in dataset.spans(i))}


def all_ways_to_read_have_it(folder):
    shard = Shard(folder, "p", random.Random(7), 1)
    p, q = shard.datasets
    source, options = tokmap.Source(q, order_of=shard.ids[0]), {"sequence_length": 16, "seed": 2, "max_epochs": 2}
    wanted = tokmap.Loader(source, **grouped(batch_rows=2, **options))
    batches = [next(wanted) for _ in range(3)]
    first = tokmap.Loader(p, **grouped(batch_rows=2, **options))
    for batch in batches:
        check_batch(next(tokmap.Loader(source, **grouped(batch_rows=2, amend=first.state(), **{**options}))),
                    next(tokmap.Loader(p, **grouped(batch_rows=2, amend=first.state(), **{**options}))), wanted, [[shard]])
        assert next(first).state == batch.state
    again = pickle.loads(pickle.dumps(wanted))
    assert again.state() == wanted.state() and (next(again).inputs == next(wanted).inputs).all()
    samples = tokmap.Samples(source, **grouped(**options))
    assert all((samples[g]["labels"] == batch.labels[i]).all() for batch in batches for i, g in enumerate(batch.sample_ids.tolist()))
    stage = tokmap.Stage(tokmap.Loader(source, **grouped(batch_rows=2, **options)), "host")
    stage.restore(first.state())
    labels = np.empty((2, 16), np.int64)
    stage.fill(labels=labels)
    after = tokmap.Loader(source, **grouped(batch_rows=2, **options))
    after.restore(first.state())
    assert (labels == next(after).labels).all()
    stage.close()
    error = raises(tokmap.MismatchError, tokmap.Stage(tokmap.Loader(q, **grouped(batch_rows=2, **options)),
                                                      "host").restore, first.state())
    assert shard.ids[0] in str(error), error


warnings.simplefilter("ignore")
sys.exit(run_in_folders("python_order_of_"))
