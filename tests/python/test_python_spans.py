#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spans: ids whose labels never count. What is written is read, by tokmap and by a second reader of docs/FORMAT.md, also
through merge, and is masked in every kind of rows; what cannot say it is refused."""

import itertools
import os
import random
import struct
import subprocess
import sys

import ref_reader
import ref_writer
from grouped import open_loader
from package import raises
from ref_protocol import program, run_in_folders

import numpy as np
import tokmap
from tokmap._c import structs as _lib
from tokmap._c.errors import call
from tokmap._c.structs import lib
from tokmap._run.report import count_labels

N_RUNS = 1000 if os.environ.get("TOKMAP_LONG") == "all" else 14


def some_documents(rng, n_most=200):
    """[(ids, train or None)]"""
    found = []
    for _ in range(rng.randint(1, n_most)):
        n = rng.choice((0, 1, 2, rng.randint(0, 60)))
        train = np.array([rng.random() < 0.6 for _ in range(n)], bool)
        found.append((np.array(rng.choices(range(60000), k=n), np.uint16), rng.choice((train, train, None))))
    return found


def write(path, documents, **options):
    with tokmap.Writer(path, vocab_size=60000, spans=True, **options) as w:
        for ids, train in documents:
            ends = np.flatnonzero(np.diff(train, prepend=False, append=False)) if train is not None else ()
            pairs = len(ids) % 2 and len(ends) > 0  # say it in the other way
            w.document(ids, train=ends.reshape(-1, 2) if pairs else train)
    return path


def trained(documents):
    """Of all tokens whether they count."""
    return np.concatenate([np.ones(len(ids), bool) if train is None else train for ids, train in documents])


def check_dataset(path, documents):
    """By both readers."""
    ds, second = tokmap.Dataset(path), ref_reader.read(str(path))
    ds.verify()
    counts, found = trained(documents), np.ones(ds.n_tokens, bool)
    for i, (ids, _) in enumerate(documents):
        first = ds.document(i).first_token
        for span in ds.spans(i):
            assert span.n > 0 and found[first + span.first:first + span.first + span.n].all() and span.role == 0
            assert span.first + span.n <= len(ids)
            found[first + span.first:first + span.first + span.n] = False
    assert (found == counts).all()
    found[:] = True
    for first, end, role in second.spans:
        found[first:end] = False
    assert (found == counts).all() and len(second.spans) == ds.n_spans


def both_readers_see_what_is_written(folder):
    n_spans = 0
    for seed in range(N_RUNS):
        rng = random.Random(seed)
        parts = [some_documents(rng) for _ in range(rng.randint(1, 4))]
        paths = [write(folder / ("%d-%d" % (seed, k)), part) for k, part in enumerate(parts)]
        for path, part in zip(paths, parts):
            check_dataset(path, part)
        if len(parts) > 1:
            merged = folder / ("merged%d" % seed)
            subprocess.run([program("tokmap"), "merge", "-q", *paths, "-o", merged], check=True)
            check_dataset(merged, sum(parts, []))
            n_spans += tokmap.Dataset(merged).n_spans
    return "%d spans" % n_spans


def roles_say_whether_labels_count(folder):
    """Roles 128 to 254 count, and all others do not, in a document, in all kinds of rows, and in a report."""
    n_counted = 0
    for seed in range(N_RUNS):
        rng = random.Random(seed)
        kinds = rng.choice(((0, 1, 2, 3, 127, 128, 200, 254), (128, 254), (3, 127), (1,)))
        documents = [[rng.choice((None, *kinds)) for _ in range(rng.randint(1, 9)) for _ in range(rng.randint(1, 7))] for _ in range(40)]
        path = folder / str(seed)
        write_roles(path, documents)
        ds, second = tokmap.open(path), ref_reader.read(str(path))
        ds.verify()
        assert [(ds.document(i).first_token + s.first, s.n, s.role) for i in range(40) for s in ds.spans(i)] == \
            [(first, end - first, role) for first, end, role in second.spans]
        counts = {100 * (i + 1) + at: role is None or role >= 128 for i, roles in enumerate(documents) for at, role in enumerate(roles)}
        assert [x for i in range(40) for x in ds.labels(i).tolist()] == [id if is_counted else -100 for id, is_counted in counts.items()]
        assert (ds.spans_hash == 0) == (not any(role in (0, 2, 3, 127) for roles in documents for role in roles))
        for windows in ("concat", "within_document", "best_fit"):
            with open_loader(path, 16, 1, windows=windows, shuffle="none", max_epochs=1, outputs=("inputs", "labels", "loss_mask")) as loader:
                for batch in loader:
                    labels, mask = batch.labels[0].tolist(), batch.loss_mask[0].tolist()
                    n_counted += sum(mask)
                    assert [label != -100 for label in labels] == [bool(one) for one in mask] and all(
                        counts[label] for label in labels if label != -100)
                    if windows == "concat":  # the label that begins a document does not count
                        assert [bool(one) for one in mask[:-1]] == [counts[id] and id % 100 != 0 for id in batch.inputs[0].tolist()[1:]]
        with open_loader(path, 16, 1, windows="within_document", max_epochs=1) as loader:
            assert count_labels(loader, 0, 0, 0, 40, loader.n_samples).tolist() == [sum(counts[100 * (i + 1) + at] for at in range(1, len(roles))) for i, roles in enumerate(documents)]
    assert n_counted > 125 * N_RUNS
    return "%d labels" % n_counted


def write_roles(path, documents, names=()):
    """documents: for each a role or None for each id. Ids are 100 * (number + 1) + place."""
    with tokmap.Writer(path, vocab_size=60000, spans=True, replace=True) as w:
        w.set_metadata({"roles": list(names)} if names else {})
        for i, roles in enumerate(documents):
            ids = np.arange(len(roles), dtype=np.uint32) + 100 * (i + 1)
            call(lib.tokmap_writer_append, w._open(), ids.ctypes.data, ids.size)
            at = 0
            for role, run in itertools.groupby(roles):
                n = len(list(run))
                if role is not None:
                    call(lib.tokmap_writer_add_span, w._open(), _lib.Span(at, n, role))
                at += n
            call(lib.tokmap_writer_end_document, w._open())
    return path


def labels_of(path, windows, **options):
    with open_loader(path, 16, 1, windows=windows, shuffle="none", max_epochs=1, outputs=("inputs", "labels", "loss_mask"),
                     **options) as loader:
        return [(label, int(mask)) for batch in loader for label, mask in zip(batch.labels[0].tolist(), batch.loss_mask[0].tolist())]


def roles_are_chosen_at_load(folder):
    """Every set of six roles, and every set of three names; in states, amend, the ledger and a report."""
    rng, names, n_counted = random.Random(1), ("assistant", "think", "tool-call"), 0
    some = (3, 4, 5, 128, 129, 130)
    documents = [[rng.choice((None, 0, 131, *some)) for _ in range(rng.randint(1, 9)) for _ in range(rng.randint(1, 7))] for _ in range(20)]
    path = write_roles(folder / "p", documents, names)
    roles = {100 * (i + 1) + at: role for i, some_roles in enumerate(documents) for at, role in enumerate(some_roles)}
    tables = [{some[k] for k in range(6) if bits >> k & 1} for bits in range(64)]
    chosen = [{role for i in range(3) if bits >> i & 1 for role in (3 + i, 128 + i)} for bits in range(8)]
    for windows in ("concat", "within_document", "best_fit"):
        plain = labels_of(path, windows)
        for k, counted in enumerate(tables + chosen):
            source = tokmap.Source(path)
            if k < 64:
                source._roles = bytes(role in counted or role == 131 for role in range(256))
            else:
                source.train_roles = tuple(names[i] for i in range(3) if 3 + i in counted)
            found = labels_of([source], windows)
            if k >= 64:
                assert found == labels_of(path, windows, rows=tokmap.Rows(train_roles=source.train_roles))
            assert all((label != -100) == bool(mask) for label, mask in found) and len(found) == len(plain)
            n_counted += sum(mask for _, mask in found)
            counts = {id for id, role in roles.items() if role in (None, 131) or role in counted}
            begins = {100 * (i + 1) for i in range(20)}
            in_rows = {label for label, _ in found} - {-100}
            assert in_rows <= counts and (windows == "concat" or in_rows == counts - begins)
    usual = tokmap.Loader(path, 16, max_epochs=1)
    states = {bytes(tokmap.Loader(path, 16, max_epochs=1, rows=tokmap.Rows(train_roles=one)).state())
              for one in ((), ("think",), ("think", "think"), ("assistant", "think"))}
    assert len(states) == 3 and bytes(usual.state()) not in states
    state = next(iter(states))
    assert "the labels of other tokens did not count (spans of the datasets, or train_roles)" in str(
        raises(tokmap.MismatchError, usual.restore, state))
    same = tokmap.Loader(path, 16, max_epochs=1, resume=tokmap.Resume(amend=state))
    assert same.state() == usual.state()
    for one, what in ((("thinks",), "train_roles has 'thinks', but the roles of the data are assistant, think, tool-call"),
                      (("prompt",), "labels of prompts and of redacted documents never count")):
        assert what in str(raises(ValueError, lambda: tokmap.Loader(path, 16, rows=tokmap.Rows(train_roles=one))))
        assert what in str(raises(ValueError, lambda: tokmap.Loader([tokmap.Source(path, train_roles=one)], 16)))
    assert "must be a tuple of names of roles" in str(raises(TypeError, tokmap.Rows, train_roles="think"))
    other = write_roles(folder / "q", documents, names[::-1])
    with tokmap.Loader([path, other], 16, max_epochs=1, ledger=folder / "mixed") as loader:
        next(loader)
    raises(ValueError, tokmap.Run(folder / "mixed").report, "role")
    for wrong in (["a", "a"], ["prompt"], [1], ["a b"], [str(i) for i in range(126)]):
        raises(tokmap.DamagedError, lambda: tokmap.open(write_roles(folder / "wrong", [[None] * 9], wrong)).roles)
    assert "they must be in sources of their own" in str(
        raises(ValueError, tokmap.Loader, [path, other], 16, rows=tokmap.Rows(train_roles=("think",))))
    plain = write_roles(folder / "plain", [[None] * 50])
    mixed = tokmap.Loader([path, plain], 16, rows=tokmap.Rows(train_roles=("think",)))
    assert mixed._sources[0]._roles[129] and not mixed._sources[0]._roles[128]
    only_counted = write_roles(folder / "counted", [[128] * 50], names)
    tokmap.Loader(only_counted, 16, outputs=("inputs",))  # all labels count
    assert "outputs needs labels or loss_mask" in str(
        raises(tokmap.MismatchError, tokmap.Loader, only_counted, 16, outputs=("inputs",), rows=tokmap.Rows(train_roles=())))
    with open_loader(path, 16, 1, windows="within_document", max_epochs=1, ledger=folder / "ledger",
                     rows=tokmap.Rows(train_roles=("think",))) as loader:
        for _ in loader:
            pass
        counted = count_labels(loader, 0, 0, 0, 20, loader.n_samples)
    assert counted.tolist() == [sum(role in (None, 131, 4, 129) for role in some_roles[1:]) for some_roles in documents]
    run = tokmap.Run(folder / "ledger")
    assert run.report()[0].n_labels == counted.sum()
    by_role = {name: [[role in some_of for role in some_roles[1:]] for some_roles in documents]
               for name, some_of in ((None, (None,)), ("think", (4, 129)), ("unnamed", (131,)))}
    assert {share.name: share[1:] for share in run.report("role")} == {
        name: (sum(map(sum, found)), sum(map(any, found))) for name, found in by_role.items()}
    said = subprocess.run([program("tokmap"), "report", "--ledger", folder / "ledger", "--by", "role"], capture_output=True, text=True)
    assert said.returncode == 0 and "think" in said.stdout and "(none)" in said.stdout, said
    return "%d labels" % n_counted


def tokmap_sees_what_a_second_writer_wrote(folder):
    """With roles, and pages: a document of more than 2^32 tokens, all of them 0, in a sparse file."""
    page = 2**32
    spans = [(0, 5, 0), (5, 6, 1), (6, 9, 2), (page - 3, page, 0), (page, page + 7, 0), (page + 9, page + 10, 1)]
    ref_writer.write(str(folder / "p"), ref_writer.Zeros(page + 20), [9, page + 11], vocab=10, spans=spans)
    ds = tokmap.Dataset(folder / "p")
    found = [(ds.document(i).first_token + s.first, ds.document(i).first_token + s.first + s.n, s.role)
             for i in range(2) for s in ds.spans(i)]
    assert found == spans and ds.n_spans == 6 and ds.spans(1)[0] == (page - 12, 3, 0)
    loader = tokmap.Loader(folder / "p", 16, outputs=["inputs", "labels", "loss_mask"], shuffle="none")
    loader.seek((page - 16) // 16)
    batch = next(loader)
    assert batch.labels[0].tolist() == [0] * 12 + [-100] * 4
    assert next(loader).labels[0].tolist() == [-100] * 6 + [0] * 2 + [-100] + [0] * 7


def labels_in_spans_never_count(folder):
    n_labels = 0
    for seed in range(N_RUNS):
        rng = random.Random(seed)
        documents = some_documents(rng) + [(np.arange(70, dtype=np.uint16), None)]
        path, counts = write(folder / str(seed), documents), trained(documents)
        tokens = np.concatenate([ids for ids, _ in documents]).astype(np.int64)
        windows = rng.choice(("concat", "within_document", "best_fit"))
        loader = tokmap.Loader(path, rng.choice((4, 16, 33)), 3, windows=windows, seed=seed, max_epochs=1,
                               order=tokmap.Order(drop_last=False,
                                                  random_offset=windows == "concat" and rng.random() < 0.5),
                               outputs=["inputs", "labels", "loss_mask"], reading=tokmap.Reading(io=rng.choice(("map", "read", "populate"))),
                               rows=tokmap.Rows(mask_labels=tokmap.Dataset(path).n_spans == 0))  # with spans they are masked anyway
        for batch in loader:
            for i, row in enumerate(batch.rows):
                pieces = loader.pieces(int(batch.sample_ids[i])) if windows == "best_fit" else [
                    (None, row.first_token, len(row.tokens), 0)]
                for _, first, n, place in pieces:
                    labels = (first + 1 + np.arange(n - 1)) % len(tokens)
                    mask, found = batch.loss_mask[i][place:place + n - 1], batch.labels[i][place:place + n - 1]
                    assert (mask <= counts[labels]).all() and (found == np.where(mask, tokens[labels], -100)).all()
                    if windows != "concat":  # nor is a label of another document masked
                        assert (mask == counts[labels]).all()
                    n_labels += n - 1
        for batch in tokmap.Loader(path, 16, seed=seed, max_epochs=1, order=tokmap.Order(random_offset=rng.random() < 0.5)):
            at = (batch.rows[0].first_token + 1 + np.arange(16)) % len(tokens)  # spans alone: labels may begin a document
            assert (batch.labels[0] == np.where(counts[at] | (tokmap.Dataset(path).n_spans == 0), tokens[at], -100)).all()
        stage = tokmap.Stage(tokmap.Loader(path, 16, 2, seed=seed, outputs=["inputs", "labels"]), "host")
        labels = np.empty((2, 16), np.int64)
        stage.fill(labels=labels)
        assert (labels == next(tokmap.Loader(path, 16, 2, seed=seed)).labels).all()
        stage.close()
    return "%d labels" % n_labels


def states_know_the_spans(folder):
    documents = [(np.arange(50, dtype=np.uint16), None)] * 20
    other = [(ids, np.arange(50) % 3 > 0) for ids, _ in documents]
    write(folder / "a", documents)
    write(folder / "b", other)
    states = [tokmap.Loader(folder / name, 16).state() for name in "ab"]
    assert states[0][72:80] == bytes(8) != states[1][72:80] and states[0][:72] == states[1][:72]
    loader = tokmap.Loader(folder / "a", 16)
    assert "spans" in str(raises(tokmap.MismatchError, loader.restore, states[1]))
    assert tokmap.Loader(folder / "a", 16, resume=tokmap.Resume(amend=states[1])).state() == states[0]
    assert tokmap.Dataset(folder / "a").dataset_id == tokmap.Dataset(folder / "b").dataset_id


def what_cannot_say_it_is_refused(folder):
    path = write(folder / "a", [(np.arange(100, dtype=np.uint16), np.arange(100) > 9)])
    for options in ({"contiguous": False}, {"outputs": ["inputs"]}, {"outputs": ()}):
        assert "must not count" in str(raises(tokmap.MismatchError, open_loader, path, 16, **options))
    assert next(tokmap.Loader(path, 16, outputs=["inputs", "loss_mask"], shuffle="none")).loss_mask[0].tolist() == [0] * 9 + [1] * 7
    for format in ("megatron", "llmc", "raw"):
        done = subprocess.run([program("tokmap"), "export", "--to", format, path, "-o", folder / "out"], capture_output=True, text=True)
        assert done.returncode == 4 and "spans" in done.stderr, done
    with tokmap.Writer(folder / "b", vocab_size=10) as w:
        w.document([1, 2])
        for train in ([True], [[True, False]], [2, 0], ["a", "b"], [(0, 3)], [(1, 0)], [(1, 2), (0, 1)], [(-1, 1)], []):
            raises(ValueError, w.document, [1, 2], train=train)
        assert "spans=True" in str(raises(tokmap.ArgumentError, w.document, [1, 2], train=[True, False]))
        raises(tokmap.ArgumentError, w.finish)


def damaged_spans_are_found(folder):
    """Whatever is wrong with them, verify says so, and nothing crashes."""
    path = write(folder / "a", [(np.arange(100, dtype=np.uint16), np.arange(100) % 7 > 2)] * 30)
    index = (folder / "a.tmi").read_bytes()
    n_sections = struct.unpack_from("<I", index, 28)[0]
    at, size = struct.unpack_from("<QQ", index, 256 + 32 * (n_sections - 1) + 8)
    rng, n_found = random.Random(1), 0
    for i in range(N_RUNS * 5):
        damaged = bytearray(index)
        place = rng.choice([k for k in range(size) if k != 16])  # the role: another one is no damage
        damaged[at + place] ^= 1 << rng.randrange(8)
        if i % 2:  # only the content is wrong
            damaged = ref_writer.sign(damaged)
        (folder / "a.tmi").write_bytes(damaged)
        try:
            ds = tokmap.Dataset(path)
            for row in tokmap.Loader(ds, 16, max_epochs=1):
                pass
            ds.verify()
        except tokmap.DamagedError:
            n_found += 1
    assert n_found == N_RUNS * 5
    damaged = bytearray(index)
    damaged[at + 25] = 0xff  # how many spans are before the first page: more than there are
    (folder / "a.tmi").write_bytes(damaged)
    done = subprocess.run([program("tokmap"), "info", path], capture_output=True, text=True)
    assert done.returncode == 4 and "the spans of document 0" in done.stderr, done
    return "%d found" % n_found


sys.exit(run_in_folders("python_spans_"))
