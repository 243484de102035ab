#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ledger of a run, and what it answers: random runs that change, go back and are killed, compared with a list of
what their ranks were given."""

import gc
import multiprocessing
import os
import pathlib
import pickle
import random
import re
import resource
import shutil
import sys
import unittest.mock
import warnings

from grouped import grouped
from package import ROOT, raises
import ref_xxh3
from ref_protocol import run_in_folders, run_program

import tokmap
from tokmap._loader import ledger as _ledger

N_RUNS = 1000 if os.environ.get("TOKMAP_LONG") == "all" else 14
SIZES = (1001, 501, 333)
URLS = ("https://a.org/", "HTTP://User:pw@A.org:80/x?", "http://b.de./", "http://[::1]:8/", "nothing", "s3://bucket#")
HOSTS = dict(zip(URLS, ("a.org", "a.org", "b.de", "[::1]", None, "bucket")))
LENGTH = 10


def prepare(folder):
    rng = random.Random(3)
    for k, n_tokens in enumerate(SIZES):
        with tokmap.Writer(folder / str(k), vocab_size=65536, meta=["url", "lang", "year"]) as w:
            while n_tokens > 0:
                n = min(rng.choice((0, 1, 5, 37, 80)), n_tokens)
                meta = {"url": rng.choice(URLS) + str(n_tokens), "lang": rng.choice(("en", "de", None)),
                        "year": rng.choice((2024, 2025, None))}
                w.document(range(n), {name: value for name, value in meta.items() if value is not None})
                n_tokens -= n


class Script:
    """What a training script says, which changes from one start to the next."""

    def __init__(self, folder, rng):
        self.folder, self.rng, self.ledger = folder, rng, folder / ("run%d.ledger" % rng.getrandbits(40))
        shuffle, windows = rng.choice(("full", "none", "block")), rng.choice(("concat", "within_document"))
        self.fixed = {"shuffle": shuffle, "windows": windows, "seed": rng.randint(0, 3), "io": "map", "ledger": self.ledger,
                      "block_windows": 3 if shuffle == "block" else 0,
                      "random_offset": windows == "concat" and rng.random() < 0.5}
        self.weights, self.skip, self.n_ranks, self.batch_rows, self.micro_batches = [1, 2], [], 1, 4, 1
        self.schedule = []

    def change(self, at):
        rng = self.rng
        if rng.random() < 0.4:
            more = len(self.weights) < 3 and rng.random() < 0.5
            self.weights = [rng.choice((1, 2, 0.5)) for _ in range(len(self.weights) + more)]
        if rng.random() < 0.4:
            a = at + rng.randint(0, 30)
            self.skip = [(a, a + rng.randint(1, 40))]
        if rng.random() < 0.5:
            self.n_ranks, self.batch_rows, self.micro_batches = rng.randint(1, 3), rng.randint(1, 5), rng.randint(0, 2)
            places = sorted(rng.sample(range(1, at + 100), rng.randint(0, 3)))
            self.schedule = [(place, self.n_ranks * rng.randint(1, 5)) for place in places]

    def start(self, state):
        found = []
        for rank in range(self.n_ranks):
            sources = [(self.folder / str(k), weight) for k, weight in enumerate(self.weights)]
            loader = tokmap.Loader(sources, LENGTH, self.batch_rows, **grouped(rank=rank, n_ranks=self.n_ranks, skip=self.skip, batch_schedule=self.schedule, micro_batches=self.micro_batches, **self.fixed, **{"on_mismatch": "amend", "amend_from": self.ledger} if state else {}))
            if state:
                loader.restore(state)
            found.append(loader)
        return found


def run_once(folder, rng, closes=0.5):
    """The script, the rows of the run as it counts in the end: (sample, step, micro-batch, rank, row); and all rows."""
    script, saved = Script(folder, rng), []  # (state, the rows up to there, and how many steps)
    state, rows, n_steps, every = None, [], 0, []
    for _ in range(rng.randint(1, 6)):
        loaders = script.start(state)
        n_micro, first = max(script.micro_batches, 1), n_steps
        for step in range(n_steps, n_steps + rng.randint(1, 8)):
            if step > first and rng.random() < 0.05:  # ahead, over samples that nobody used
                at = loaders[0].sample + rng.randint(1, 40)
                for loader in loaders:
                    loader.seek(at)
            for micro in range(n_micro):
                batches = [next(loader) for loader in loaders]
                for rank, batch in enumerate(batches):
                    rows = rows + [(g, step, micro, rank, i) for i, g in enumerate(batch.sample_ids.tolist())]
                    every += rows[-len(batch.sample_ids):]
            saved.append((batches[0].state, rows, step + 1))
        if rng.random() < closes:
            loaders[0].close()
        else:  # killed: nothing is written
            loaders[0]._recorder.ledger.is_open = False
        if rng.random() < 0.4:  # back to an earlier state
            state, rows, n_steps = saved[rng.randrange(len(saved))]
        else:
            state, rows, n_steps = saved[-1]
        final = saved[-1]
        script.change(int.from_bytes(state[24:32], "little"))
        saved = [one for one in saved if one[2] <= n_steps]
    return script, final, every


def expect_report(run, rows):
    """Counts the labels of the rows one by one."""
    wanted = {by: {} for by in ("source", "lang", "year", "host")}
    seen = {by: {} for by in wanted}
    for sample, *_ in rows:
        row = run.row(sample)
        dataset = run._by_path[row.dataset]
        for i in range(1, row.n_tokens):
            document = dataset.find_document((row.first_token + i) % dataset.n_tokens).number
            meta = dataset.document_meta(document)
            host = next(HOSTS[url] for url in URLS if meta["url"].startswith(url))
            for by, name in (("source", row.source), ("lang", meta["lang"]), ("year", meta["year"]), ("host", host)):
                wanted[by][name] = wanted[by].get(name, 0) + 1
                seen[by].setdefault(name, set()).add((row.source, row.dataset, document))
    for by, options in (("source", ("source",)), ("lang", ("value", "lang")), ("year", ("value", "year")),
                        ("host", ("host", "url"))):
        found = run.report(*options)
        assert {one.name: one.n_labels for one in found} == wanted[by], (by, found, wanted[by])
        assert {one.name: one.n_documents for one in found} == {name: len(some) for name, some in seen[by].items()}
        assert [one.n_labels for one in found] == sorted((one.n_labels for one in found), reverse=True)


def the_answers_are_those_of_a_list(folder):
    n_rows = n_found = 0
    for seed in range(N_RUNS):
        rng = random.Random(seed)
        script, (state, rows, n_steps), _ = run_once(folder, rng)
        run = tokmap.Run(script.ledger, until=state)
        assert run.n_steps == n_steps, (seed, run.n_steps, n_steps)
        wanted = {}
        for row in rows:
            wanted.setdefault(row[1], []).append(row)
        in_documents = {}
        for step, some in wanted.items():
            found = run.step(step)
            assert [tuple(row[:5]) for row in found] == [(g, s, m, r, i) for g, s, m, r, i in some], seed
            assert run.step(step, 0) == [row for row in found if row.rank == 0]
            for row in found:
                documents = run.documents(row)
                assert sum(d.n_tokens for d in documents) == row.n_tokens
                for d in documents:
                    in_documents.setdefault((row.source, row.dataset, d.number), []).append(row.sample)
            n_rows += len(found)
        expect_report(run, rows)
        for (source, dataset, document), samples in list(in_documents.items())[::7]:
            assert [row.sample for row in run.samples(dataset, document)] == sorted(samples), seed
            n_found += len(samples)
    return "%d rows, %d found again" % (n_rows, n_found)


def what_was_given_up_is_known_too(folder):
    """If each loader was closed."""
    n_given_up = 0
    for seed in range(N_RUNS // 2):
        script, (_, rows, n_steps), every = run_once(folder, random.Random(seed), closes=1)
        run = tokmap.Run(script.ledger, all_attempts=True)
        last = max(step for _, step, *_ in every)
        found = [row for step in range(last + 1) for row in run.step(step)]
        assert sorted(tuple(row[:5]) for row in found) == sorted(every), seed
        assert sorted(tuple(row[:5]) for row in found if not row.given_up) == sorted(rows), seed
        assert sum(end - begin for begin, end in run.given_up) >= len(every) - len(rows)  # with skips
        of_documents, of_sources = {}, {}
        for row in found:
            assert row in run.rows(row.sample) and row.given_up >= run.row(row.sample).given_up
            of_sources[row.source] = of_sources.get(row.source, 0) + row.n_tokens - 1
            for d in run.documents(row):
                of_documents.setdefault((row.dataset, d.number), []).append(row)
        assert {one.name: one.n_labels for one in run.report()} == of_sources, seed
        for (dataset, document), some in list(of_documents.items())[::7]:
            assert sorted(run.samples(dataset, document)) == sorted(some), seed
        n_given_up += len(every) - len(rows)
    return "%d rows were given up" % n_given_up


def loader_of(folder, **options):
    return tokmap.Loader(folder / "0", LENGTH, 4, **grouped(**{"ledger": folder / "ledger", "io": "map", **options}))


def events(path):
    return [(line.event, line.begin, line.sample) for line in _ledger.read(path)]


def a_line_is_written_for_each_change(folder):
    path = folder / "lines"
    loader = loader_of(folder, ledger=path, micro_batches=2)
    assert not path.exists()  # nothing was trained on
    for _ in range(5):
        state = next(loader).state
    pickle.loads(pickle.dumps(loader)).close()
    twin = loader_of(folder, ledger=path, micro_batches=2, writes_ledger=False)  # of the same rank, as in tensor parallelism
    next(twin)
    other = loader_of(folder, ledger=path, rank=1, n_ranks=2)
    next(other)
    child = os.fork()
    if child == 0:
        loader.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert events(path) == [("opened", 0, 0)]
    loader.seek(20)  # where it is
    next(loader)
    loader.seek(8)
    next(loader)
    loader.close()
    twin.close()
    assert events(path)[1:] == [("closed", 24, 24), ("resumed", 8, 8), ("closed", 12, 12)]
    loader = loader_of(folder, ledger=path, batch_schedule=[(24, 8)], skip=[(20, 30)], amend=state)
    for _ in range(2):
        next(loader)
    del loader
    gc.collect()
    assert events(path)[4:] == [("skipped", 20, 30), ("closed", 46, 46)]
    sources = [(folder / "0", 1), (folder / "1", 1)]
    loader = tokmap.Loader(sources, LENGTH, 8, ledger=path, resume=tokmap.Resume(amend=state),
                           order=tokmap.Order(skip=[(20, 30)]))  # amend_from: its own ledger
    next(loader)
    assert loader.phases == {0: [1, 0], 20: [1, 1]} and events(path)[6:] == [("amended", 20, 30)]
    assert "closed" not in [line.event for line in _ledger.read(path)[6:]]
    raises(tokmap.ArgumentError, tokmap.Run, path)  # not closed
    assert tokmap.Run(path, until=loader.state()).n_steps == 4  # of two micro-batches at first: 20 samples are 2.5 steps


def a_state_of_either_loader_is_where_they_meet(folder):
    path = folder / "meet"
    with loader_of(folder, ledger=path) as loader:
        state = [next(loader).state for _ in range(2)][1]
    with tokmap.Loader([(folder / "0", 1), (folder / "1", 1)], LENGTH, 4, ledger=path,
                       resume=tokmap.Resume(amend=state)) as loader:
        next(loader)
        loader.seek(8)
        for one in (state, loader.state()):
            run = tokmap.Run(path, until=one)
            assert (run.end, run.n_steps) == (8, 2)


def a_ledger_is_of_one_run(folder):
    path = folder / "mine"
    with loader_of(folder, ledger=path, seed=1) as loader:
        next(loader)
    data = path.read_bytes()
    mine = [(folder / "0", 1), (folder / "1", 1)]
    for text, sources, options in (("seed is 1 there, and 2 here", mine, {"seed": 2}), ("shuffle is full", mine, {"shuffle": "none"}),
                                   ("sequence_length is 10", mine, {"sequence_length": 5}),
                                   ("source 0 has other datasets", mine[::-1], {}), ("source 0", mine[1:], {})):
        loader = tokmap.Loader(sources, **grouped(**{"sequence_length": LENGTH, "seed": 1, "ledger": path, **options}))
        error = str(raises(tokmap.MismatchError, next, loader))
        assert "mine:1: is the ledger of another run: " in error and text in error, error
        assert loader.sample == 0 and path.read_bytes() == data
    with tokmap.Loader(mine, LENGTH, seed=1, ledger=path) as loader:
        next(loader)
    assert [event for event, *_ in events(path)[2:]] == ["amended", "closed"]
    with tokmap.Loader(mine[:1], LENGTH, seed=1, ledger=path) as loader:  # the first of them is that of the first line
        next(loader)


def another_run_in_the_ledger_is_reported(folder):
    ledger = folder / "shared.ledger"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one = loader_of(folder, ledger=ledger)
        next(one)
        two = loader_of(folder, ledger=ledger)
        two.seek(40)
        next(two)
        assert not caught
        for _ in range(2):
            next(one)
        one.close()
        assert len(caught) == 1 and "shared.ledger: another run has gone on in this ledger" in str(caught[0].message), caught
        one.close()
        two.close()
        assert len(caught) == 1 and events(ledger)[-1][0] == "closed", events(ledger)
        one, two = (loader_of(folder, ledger=ledger) for _ in range(2))  # also if the older one goes on in another way
        for loader in (one, two):
            loader.seek(80)
            next(loader)
            next(loader)
        two.seek(400)
        next(two)
        one.seek(0)
        next(one)
        one.seek(4)
        next(one)
        assert len(caught) == 2, caught
        for _ in range(3):  # one after the other is nothing to be reported, closed or not
            with loader_of(folder, ledger=folder / "own.ledger") as loader:
                next(loader)
        loader = loader_of(folder, ledger=folder / "own.ledger")
        next(loader)
        assert len(caught) == 2, caught


def a_file_that_is_not_of_the_run_is_refused_and_stays(folder):
    for text in ('{"lr": 0.1, "layers": 12}', "my notes\nmore", "{}\n", "# EOF\n"):
        (folder / "config.json").write_text(text)
        for options in ({"ledger": folder / "config.json"}, {"metrics_file": folder / "config.json"}):
            error = str(raises(tokmap.ExistsError, loader_of, folder, **options))
            assert "config.json: already exists, and is not" in error and (folder / "config.json").read_text() == text
    for name, beginning in (("ledger", '{"ledger":1,"ev'), ("metrics_file", "# TYPE tok")):  # cut off
        for n in range(len(beginning) + 1):
            (folder / "torn").write_text(beginning[:n])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                next(loader_of(folder, **{name: folder / "torn"}))
    gc.collect()


def a_relative_path_is_where_the_process_was(folder):
    before = os.getcwd()
    (folder / "A").mkdir()
    (folder / "B").mkdir()
    try:
        os.chdir(folder / "A")
        with loader_of(folder, ledger="run.ledger") as loader:
            next(loader)
            state = loader.state()
        changed = loader_of(folder, ledger="run.ledger", metrics_file="m.prom", on_mismatch="amend", skip=[(40, 44)])
        os.chdir(folder / "B")
        changed.restore(state)
        next(changed)
        changed.close()
    finally:
        os.chdir(before)
    assert sorted(os.listdir(folder / "A")) == ["m.prom", "run.ledger"] and os.listdir(folder / "B") == []


class Mesh:
    """What a Loader asks of a DeviceMesh of PyTorch."""

    mesh_dim_names = ("pp", "dp", "cp", "tp")

    def __init__(self, of, n, i):
        self.sizes = {"dp": 2, of: n}
        self.ranks = {of: i}

    def size(self, i):
        return self.sizes.get(self.mesh_dim_names[i], 1)

    def get_local_rank(self, name):
        return self.ranks.get(name, 0)


def run_as(path, options, barrier, answers):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loader = tokmap.Loader(path, LENGTH, 4, **grouped(io="map", batch_schedule=[(40, 16)], **options))
            for k in range(12):
                next(loader)
                if barrier is not None:
                    barrier.wait(60)
                if k == 5:
                    loader.seek(8)
            is_said = "does not write the ledger" in repr(loader)
            loader.close()
        answers.put(is_said)
    except BaseException as error:
        answers.put(repr(error))


def one_of_the_processes_of_a_rank_writes(folder):
    fork, path = multiprocessing.get_context("fork"), folder / "ledger"
    answers = fork.Queue()

    def processes(n, ways, in_step):
        path.unlink(missing_ok=True)
        barrier = fork.Barrier(n) if in_step else None
        for i, (options, environment) in enumerate(ways):
            with unittest.mock.patch.dict(os.environ, environment):
                process = fork.Process(target=run_as, args=(folder / "0", {"ledger": path, **options}, barrier, answers))
                process.start()
            yield process
            if not in_step:
                process.join()

    alone = {"rank": 0, "n_ranks": 2}
    for process in processes(1, [(alone, {})], False):
        process.join()
    wanted = events(path)
    assert answers.get(timeout=60) is False and [event for event, *_ in wanted] == [
        "opened", "batch", "closed", "resumed", "batch", "closed"]
    for n in (2, 4):
        ways = [[({"mesh": Mesh(of, n, i)}, {}) for i in range(n)] for of in ("tp", "cp", "pp")]
        ways += [[(alone, {name: str(i)}) for i in range(n)] for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")]
        ways += [[({**alone, "writes_ledger": i == n - 1}, {"RANK": str(i)}) for i in range(n)]]
        for way in ways:
            for in_step in (True, False):
                for process in list(processes(n, way, in_step)):
                    process.join()
                found = [answers.get(timeout=60) for _ in range(n)]
                assert sorted(found) == [False] + [True] * (n - 1), (way, in_step, found)
                assert events(path) == wanted, (way, in_step, events(path))


def a_run_that_was_killed_and_begins_again_there_says_so(folder):
    for _ in range(3):
        loader = loader_of(folder)
        next(loader)
        loader._recorder.ledger.is_open = False  # killed
    assert events(folder / "ledger") == [("opened", 0, 0), ("resumed", 0, 0), ("resumed", 0, 0)]


def a_full_disk_is_not_another_run(folder):
    path = folder / "run.ledger"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fails(call, room):
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + room, hard))
        try:
            raises(OSError, call)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    for room in (0, 100):
        path.write_text("")
        loader = loader_of(folder, ledger=path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", ".*not written to its end")
            fails(lambda: next(loader), room)
            assert loader.sample == 0 and next(loader).first_sample == 0
            fails(loader.close, room)
            loader.close()
        assert [event for event, *_ in events(path)] == ["opened", "closed"]
    path.write_text("")
    loader = loader_of(folder, ledger=path)
    fails(lambda: next(loader), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader.close()  # nothing was written, and nothing is to be said of its end


def what_was_moved_ahead_has_a_gap(folder):
    path = folder / "moved"
    twins = [loader_of(folder, ledger=path, writes_ledger=writes) for writes in (True, False)]
    for at in (0, 40, 20, 100):
        for loader in twins:
            loader.seek(at)
        for loader in twins:
            next(loader)
    for loader in twins:
        loader.close()
    assert [event for event, *_ in events(path)] == ["opened", "closed", "moved", "closed", "resumed", "closed", "moved", "closed"]
    run = tokmap.Run(path, all_attempts=True)
    assert run.given_up == [(40, 44)] and run.n_steps == 3 and [row.sample for row in run.step(2)] == [100, 101, 102, 103]
    assert run.report()[0].n_labels == 16 * LENGTH and "was not used" in str(raises(IndexError, run.row, 30))


def an_attempt_without_a_state_leads_nowhere(folder):
    """A run goes back, changes its mixture and is killed after the first batch; then it goes on from where it was before."""
    path = folder / "nowhere"

    def train(weights, state, n_steps, rows=4):
        loader = tokmap.Loader([(folder / "0", weights[0]), (folder / "1", weights[1])], LENGTH, rows,
                               reading=tokmap.Reading(io="map"), seed=1, ledger=path,
                               resume=tokmap.Resume(on_mismatch="amend", amend_from=path if state else None))
        if state:
            loader.restore(state)
        found = [(batch.state, batch.sample_ids.tolist()) for batch in (next(loader) for _ in range(n_steps))]
        loader._recorder.ledger.is_open = False  # killed
        return found

    first = train((1, 2), None, 10)
    train((2, 1), first[3][0], 1, 2)
    rows = [samples for _, samples in first]
    wrong = raises(tokmap.MismatchError, tokmap.Run, path, until=first[-1][0])
    assert "it is no state of the run of" in str(wrong), wrong
    rows += [samples for _, samples in train((1, 2), first[-1][0], 3)]
    run = tokmap.Run(path, until=52)
    assert [[row.sample for row in run.step(step)] for step in range(run.n_steps)] == rows
    assert run.given_up == [(40, None), (16, None)], run.given_up


def what_was_changed_is_found(folder):
    path = folder / "changed"
    for _ in range(3):
        with loader_of(folder, ledger=path) as loader:
            loader.seek(8)
            next(loader)
            loader.seek(40)
            next(loader)
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    assert len(lines) == 12
    copy = folder / "copy"
    for wrong, number, text in (
            (data.replace(b'"from":"40"', b'"from":"44"', 1), 3, "checksum"), (b"".join(lines[:3] + lines[4:]), 4, "follow"),
            (b"".join(lines[1:]), 1, "follow"), (lines[0] + lines[0], 2, "follow"), (b"{}\n" + data, 1, "not a line"),
            (data.replace(b'"', b"'"), 1, "not a line")):
        copy.write_bytes(wrong)
        for call in (lambda: tokmap.Run(copy), lambda: next(loader_of(folder, ledger=copy))):
            error = raises((tokmap.DamagedError, tokmap.ExistsError), call)
            is_ours = wrong.startswith(b'{"ledger":')  # else it is not even opened
            assert isinstance(error, tokmap.ExistsError) or "copy:%d: " % number in str(error) and text in str(error), error
            assert isinstance(error, tokmap.DamagedError) or not is_ours, error
        assert copy.read_bytes() == wrong  # nothing is written
    body = lines[0][:lines[0].index(b',"checksum"')].replace(b'{"ledger":1', b'{"ledger":4')
    copy.write_bytes(b'%s,"checksum":"%016x"}\n' % (body, ref_xxh3.xxh3_64(body)))
    raises(tokmap.VersionError, tokmap.Run, copy)
    for body in (b'{"ledger":1,"after":""', lines[0][:lines[0].index(b',"checksum"')].replace(b'"event"', b'"Event"')):
        copy.write_bytes(b'%s,"checksum":"%016x"}\n' % (body, ref_xxh3.xxh3_64(body)))
        assert "copy:1: its checksum is right, but" in str(raises(tokmap.DamagedError, tokmap.Run, copy))
    copy.write_bytes(b"")
    raises(tokmap.DamagedError, tokmap.Run, copy)
    copy.write_bytes(data + b'{"ledger":1,"event":"clo')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert tokmap.Run(copy).end == 44
        with loader_of(folder, ledger=copy) as loader:
            loader.seek(60)
            next(loader)
    assert ["copy:13: " in str(one.message) and "not written to its end" in str(one.message) for one in caught] == [True] * 2
    assert events(copy)[12:] == [("resumed", 60, 60), ("closed", 64, 64)]


def what_is_not_there_is_refused(folder):
    path = folder / "small"
    with loader_of(folder, ledger=path, skip=[(4, 6)], max_epochs=1) as loader:
        for _ in range(3):
            next(loader)
    run = tokmap.Run(path)
    assert run.end == 14 and run.n_steps == 3 and [row.sample for row in run.step(1)] == [6, 7, 8, 9]
    for call in (lambda: run.step(3), lambda: run.step(-1), lambda: run.step(0, 1), lambda: run.row(4), lambda: run.row(14),
                 lambda: run.samples(folder / "0", 10**9)):
        raises(IndexError, call)
    plain = tokmap.Run(loader_of(folder, ledger=None, n_ranks=2, rank=1, shuffle="none"), until=24)
    assert plain.n_steps == 3 and [row.sample for row in plain.step(2, 1)] == [20, 21, 22, 23]
    assert "batch_schedule" in str(raises(tokmap.ArgumentError, tokmap.Run, loader_of(folder, ledger=None, batch_schedule=[(8, 8)])))
    raises(LookupError, run.samples, folder / "1", 0)
    raises(LookupError, run.report, "value", "nothing")
    raises(ValueError, run.report, "value")
    raises(ValueError, run.report, "author")
    raises(tokmap.ArgumentError, tokmap.Run, path, 10**6)
    other = loader_of(folder, ledger=None, seed=5)
    next(other)
    assert "seed" in str(raises(tokmap.MismatchError, tokmap.Run, path, other.state()))
    raises(tokmap.ArgumentError, tokmap.Run, path, b"state")
    raises(FileNotFoundError, tokmap.Run, folder / "nothing")
    lines = path.read_bytes()
    with tokmap.Writer(folder / "0", vocab_size=65536, replace=True) as w:
        w.document(range(2000))
    assert "another dataset" in str(raises(tokmap.MismatchError, tokmap.Run, path))
    assert path.read_bytes() == lines


def moved_ledger(data, folder):
    """The lines, as if their run had been in this folder."""
    after, moved = b"", []
    for line in data.splitlines():
        body = re.sub(rb'"folder":"[^"]*"', b'"folder":"%s"' % os.fsencode(folder), line[:line.index(b',"checksum"')])
        body = re.sub(rb'"after":"[^"]*"', b'"after":"%s"' % after, body)
        after = b"%016x" % ref_xxh3.xxh3_64(body)
        moved.append(b'%s,"checksum":"%s"}\n' % (body, after))
    return b"".join(moved)


def the_ledgers_of_releases_are_read_and_get_lines(folder):
    sys.path.insert(0, str(ROOT / "tests/release"))
    import make
    releases = sorted(path.parent for path in (ROOT / "tests/release").glob("*/run.ledger"))
    assert releases
    for release in releases:
        place = folder / release.name
        shutil.copytree(release, place)
        data = (place / "run.ledger").read_bytes()
        assert moved_ledger(data, "/tmp/tokmap-release") == data
        (place / "run.ledger").write_bytes(moved_ledger(data, place))
        os.chdir(place)
        assert make.rows_of_run(tokmap) == (place / "run.txt").read_text()
        events = [line.event for line in _ledger.read("run.ledger")]
        assert events == ["opened", "closed", "amended", "closed"], events
        with make.second_start(tokmap) as loader:
            next(loader)
        assert len(_ledger.read("run.ledger")) > 4
    os.chdir(ROOT)


def a_ledger_of_lists_of_a_release_goes_on(folder):
    sys.path.insert(0, str(ROOT / "tests/release"))
    import make
    place = folder / "lists"
    shutil.copytree(ROOT / "tests/release/0.2.0", place)
    os.chdir(place)
    lines = moved_ledger((place / "lists.ledger").read_bytes(), place)
    (place / "lists.ledger").write_bytes(lines)
    with make.start_listed(tokmap) as loader:
        loader.restore((place / "states/of_lists").read_bytes())
        assert list(next(loader).sample_ids) == [12, 13, 14, 15]
        assert tokmap.Run(loader).row(5).window == loader.locate(5).window == 5 * 37 % 101
    assert (place / "lists.ledger").read_bytes().startswith(lines)
    read = _ledger.read("lists.ledger")
    assert [line.event for line in read] == ["opened", "closed", "resumed", "closed"]
    assert [line.fields["ledger"] for line in read] == [3] * 4
    os.chdir(ROOT)


def a_ledger_with_an_older_spelling_goes_on(folder):
    """Its windows are called within-document."""
    data = (ROOT / "tests/release/0.2.0/within.ledger").read_bytes()
    state = (ROOT / "tests/release/0.2.0/states/of_within").read_bytes()
    old = b'"windows":"within-document"'
    for way in ("resumed", "killed", "amended", "redacted"):
        place = folder / ("spelling_" + way)
        shutil.copytree(ROOT / "tests/release/0.2.0", place)
        os.chdir(place)
        lines = moved_ledger(data, place)
        if way == "killed":  # before it wrote where it ended
            lines = lines[:lines.index(b"\n") + 1]
        (place / "within.ledger").write_bytes(lines)
        sources, options = [tokmap.Source("lines", 0.75), tokmap.Source("texts", 0.25)], {}
        if way == "amended":
            sources[0].weight = 0.5
            options["resume"] = tokmap.Resume(on_mismatch="amend", amend_from="within.ledger")
        if way == "redacted":
            run_program("tokmap", "redact", "texts", "--documents", "@-", "-o", "redacted", input=b"1\n", check=True)
            sources[1] = tokmap.Source("redacted", 0.25, order_of=tokmap.open("texts").dataset_id)
        with tokmap.Loader(sources, 16, 4, seed=1, shuffle="block", windows="within_document",
                           order=tokmap.Order(block_windows=3), ledger="within.ledger", **options) as loader:
            loader.restore(state)
            given = next(loader).sample_ids
        now = (place / "within.ledger").read_bytes()
        assert now.startswith(lines) and now.count(old) == lines.count(old), way
        read = _ledger.read("within.ledger")
        event = "amended" if way == "amended" else "resumed"
        assert [line.event for line in read][-2:] == [event, "closed"], [line.event for line in read]
        assert {line.fields["windows"] for line in read} == {"within_document"}
        run = tokmap.Run("within.ledger")
        assert [row.sample for row in run.step(3)] == list(given), way
        assert all(len(list(run.documents(row))) == 1 for row in run.step(0)), way
    os.chdir(ROOT)


sys.exit(run_in_folders("python_ledger_", prepare=prepare))
