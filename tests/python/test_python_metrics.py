#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loader.metrics(): compared with a count of the rows; its text, and the file for a collector."""

import fcntl
import random
import re
import sys
import unittest.mock
import warnings

from grouped import grouped
from package import raises
from ref_protocol import run_in_folders

import numpy as np
import tokmap
from tokmap._device import stage as _stage

LINE = re.compile(r'(tokmap_\w+)\{(\w+="(?:[^"\\]|\\.)*"(?:,\w+="(?:[^"\\]|\\.)*")*)\} ([0-9.e+-]+)')


def prepare(folder):
    with tokmap.Writer(folder / 'a "quoted" \\ name', vocab_size=65536) as w:
        w.document(range(2001))
    with tokmap.Writer(folder / "b", vocab_size=65536) as w:
        for _ in range(100):
            w.document(range(17))


def loader_of(folder, **options):
    return tokmap.Loader([(folder / 'a "quoted" \\ name', 1), (folder / "b", 2)], 5, 4, **grouped(skip=[(20, 33)], **options))


def counts_are_those_of_the_rows(folder):
    for windows in ("concat", "within-document"):
        with loader_of(folder, windows=windows) as loader:
            loader.metrics()
            samples, tokens = [0, 0], [0, 0]
            for _ in range(20):
                for row in next(loader).rows:
                    samples[row.source] += 1
                    tokens[row.source] += len(row.tokens) - 1
                found = loader.metrics()
                assert [one["samples"] for one in found["sources"]] == samples
                assert [one["tokens"] for one in found["sources"]] == tokens
            assert found["position"] == loader.sample == 93 and found["samples_skipped"] == 13
            assert found["tokens_of_process"] == (windows != "concat")


def parse(text):
    """{(name, labels): value}: each line has the form that OpenMetrics asks for, and its family a type."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""]
    families = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE ")}
    found = {}
    for line in lines[:-2]:
        if line.startswith("# "):
            assert line.split()[1] in ("TYPE", "HELP", "UNIT")
            continue
        name, labels, value = LINE.fullmatch(line).groups()
        family = re.sub("_(total|count|sum)$", "", name)
        assert (families[family] == "counter") == name.endswith("_total"), name
        assert (name, labels) not in found
        found[name, labels] = float(value)
    return found


def the_text_has_what_the_dict_has(folder):
    path = folder / "metrics-{rank}.prom"
    with loader_of(folder, rank=1, n_ranks=2, metrics_file=path, metrics_seconds=1000) as loader:
        next(loader)
        first = (folder / "metrics-1.prom").read_text()
        next(loader)
        assert (folder / "metrics-1.prom").read_text() == first  # not yet again
        assert parse(first)["tokmap_position", 'rank="1"'] == 8
        found, parsed = loader.metrics(), parse(loader.metrics(text=True))
        assert parsed["tokmap_position", 'rank="1"'] == found["position"] == 16
        by_source = [value for (name, _), value in parsed.items() if name == "tokmap_samples_total"]
        assert by_source == [one["samples"] for one in found["sources"]]
        assert any(r'a \"quoted\" \\ name.tmi"' in labels for _, labels in parsed)
    assert sorted(p.name for p in folder.glob("metrics*")) == ["metrics-1.prom"]
    raises(TypeError, loader_of, folder, metrics_file=path, metrics_seconds="5")
    with loader_of(folder, metrics_file=folder / "no folder" / "m", metrics_seconds=0) as loader:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert [next(loader).first_sample for _ in range(3)] == [0, 4, 8]  # no batch is lost for it
        assert len(caught) == 3 and "metrics cannot be written" in str(caught[0].message)
    with loader_of(folder, metrics_file=folder / "often", metrics_seconds=0) as loader:
        for _ in range(3):
            batch = next(loader)
            assert parse((folder / "often").read_text())["tokmap_position", 'rank="0"'] == batch.next_sample


def the_file_is_hidden_and_locked_until_it_is_complete(folder):
    """The file of a killed process is taken over, that of a running one is left alone."""
    (folder / "new").mkdir()
    path, hidden = folder / "new" / "m.prom", folder / "new" / ".m.prom.partial"
    with loader_of(folder, metrics_file=path, metrics_seconds=0) as loader, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seen = []
        text_of = loader.metrics
        loader.metrics = lambda **options: (seen.append(sorted(p.name for p in path.parent.iterdir())), text_of(**options))[1]
        hidden.write_text("left by a killed process, and longer than the text of the metrics\n" * 1000)
        next(loader)
        assert seen == [[".m.prom.partial"]] and not caught, (seen, caught)
        del loader.metrics
        first = path.read_text()
        (folder / "plain").touch()
        assert parse(first) and path.stat().st_mode == (folder / "plain").stat().st_mode, oct(path.stat().st_mode)
        with open(hidden, "w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            assert next(loader).first_sample == 4
        assert [str(one.message) for one in caught] == [f"{path}: metrics cannot be written: another process is writing it"]
        assert path.read_text() == first and hidden.exists()
        next(loader)
        assert parse(path.read_text())["tokmap_position", 'rank="0"'] == 12 and not hidden.exists() and len(caught) == 1
        hidden.symlink_to(folder / "b.tmi")
        next(loader)
        assert len(caught) == 2 and tokmap.open(folder / "b"), caught


def the_last_smaller_batch_counts(folder):
    for windows in ("concat", "within-document", "best_fit"):
        for lanes, schedule in ((1, []), (1, [(21, 10), (51, 8)]), (3, [(21, 10), (51, 8)])):
            tokens = wanted = n_uneven = 0
            for lane in range(lanes):  # as workers of a DataLoader take turns
                loader = tokmap.Loader(folder / "b", 6, 7, windows=windows, max_epochs=1,
                                       order=tokmap.Order(drop_last=False, batch_schedule=schedule))
                loader._take_turns(lane, lanes)
                before = loader.metrics()["sources"][0]["tokens"]
                while loader.sample < loader.n_samples:
                    for batch in loader:
                        n_uneven += batch.n_rows not in (7, 8, 10)
                        wanted += sum(len(row.tokens) - 1 for row in batch.rows)
                tokens += loader.metrics()["sources"][0]["tokens"] - before
            assert (n_uneven > 0 or schedule) and tokens == (wanted * lanes if windows == "concat" else wanted), (windows, lanes, tokens, wanted)


def skipped_samples_are_counted_exactly(folder):
    n_checked = 0
    for seed in range(60):
        rng = random.Random(seed)
        weights = [rng.choice((1, 2, 0.3)) for _ in range(2)]
        places = sorted(rng.sample(range(1, 900), 2 * rng.randint(1, 6)))
        skip = list(zip(places[::2], places[1::2]))
        phases = {rng.randint(1, 400): [rng.choice((1, 3)), rng.choice((0, 2))]}
        with tokmap.Loader(list(zip((folder / 'a "quoted" \\ name', folder / "b"), weights)), 5, 4,
                           order=tokmap.Order(skip=skip, phases=phases),
                           seed=seed) as loader:
            sources = [loader.locate(g).source for g in range(1000)]
            for at in (0, *rng.sample(range(900), 6)):
                loader.seek(at)
                at, found = loader.sample, loader.metrics()
                skipped = [g for g in range(at) if any(a <= g < b for a, b in skip)]
                n_checked += len(skipped)
                assert found["samples_skipped"] == len(skipped)
                for k, one in enumerate(found["sources"]):
                    n = sources[:at].count(k)
                    assert one["samples"] == n - [sources[g] for g in skipped].count(k)
                    assert int(one["epochs"]) == loader.epochs[k]
    return "%d skipped samples" % n_checked


def a_skip_takes_no_time_for_its_samples(folder):
    """One by one, these would take years."""
    for windows in ("concat", "within-document", "best_fit"):
        ledger, end = folder / f"{windows}.ledger", 2**60
        with tokmap.Loader([(folder / "b", 2), (folder / 'a "quoted" \\ name', 1)], 5, 4, windows=windows,
                           order=tokmap.Order(skip=[(6, end)]),
                           ledger=ledger) as loader:
            batches, rows = [], []
            for _ in range(3):
                batches.append(next(loader))
                rows += batches[-1].rows
            assert [row.sample for row in rows] == [*range(6), *range(end, end + 6)]
            assert [one for batch in batches for one in batch.source_ids] == [row.source for row in rows]
            found = loader.metrics()
            assert found["samples_skipped"] == end - 6
            assert [one["samples"] for one in found["sources"]] == [sum(row.source == k for row in rows) for k in range(2)]
        run = tokmap.Run(ledger)
        shares = {share.name: share.tokens for share in run.report()}
        if windows == "concat":
            assert shares == {k: 5 * sum(row.source == k for row in rows) for k in range(2)}
        else:
            assert sum(shares.values()) == sum(int((batch.labels != -100).sum()) for batch in batches)
        row = run.row(end + 1)
        document = run.documents(row)[0]
        assert row in run.samples(row.dataset, document.number)


def seconds_are_a_number(folder):
    for wrong in (float("nan"), -5, -0.1):
        for more in ({}, {"metrics_file": folder / "m"}):
            assert "metrics_seconds" in str(raises(ValueError, loader_of, folder, metrics_seconds=wrong, **more))


def a_loader_with_a_device_has_all_of_it(folder):
    def of_numpy(batch):
        return batch._stage._torch_batch(*(np.from_dlpack(getattr(batch, name)) for name in batch._stage.outputs))

    options = {"windows": "best_fit", "outputs": ["inputs", "labels"]}
    plain = loader_of(folder, **options)
    with loader_of(folder, device="host", **options) as loader:
        for _ in range(5):
            with unittest.mock.patch.object(_stage.DeviceBatch, "torch", of_numpy):
                next(loader)
            next(plain)
        names = ("position", "samples_skipped", "sources")
        for _ in range(2):
            found, wanted = loader.metrics(), plain.metrics()
            assert [found[name] for name in names] == [wanted[name] for name in names] and found["n_waits"] >= 0
            assert parse(loader.metrics(text=True))["tokmap_position", 'rank="0"'] == loader.sample == plain.sample
            assert loader.epochs == plain.epochs
            for g in (0, 25, 300):
                assert loader.locate(g) == plain.locate(g) and loader.pieces(g) == plain.pieces(g) != []
            assert loader._repr_html_().replace("cuda", "") and "next samples" in loader._repr_html_()
            loader.seek(200)
            plain.seek(200)
    for call in (loader.metrics, lambda: loader.epochs, lambda: loader.locate(0)):
        assert "closed" in str(raises(ValueError, call))


sys.exit(run_in_folders("python_metrics_", prepare=prepare))
