#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loader.metrics(): compared with a count of the rows; its text, and the file for a collector."""

import fcntl
import gc
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import unittest.mock
import warnings

from grouped import grouped
from package import ROOT, raises
from ref_protocol import Skip, run_in_folders

import numpy as np
import tokmap
from tokmap._device import stage as _stage
from tokmap._loader.loader import of_worker
from tokmap._loader.ranks import is_first_of_rank

POSITION = ("tokmap_run_position", None)
LINE = re.compile(r'(tokmap_\w+)(?:\{(\w+="(?:[^"\\]|\\.)*"(?:,\w+="(?:[^"\\]|\\.)*")*)\})? ([0-9.e+-]+)')


def prepare(folder):
    with tokmap.Writer(folder / 'a "quoted" \\ name', vocab_size=65536) as w:
        w.document(range(2001))
    with tokmap.Writer(folder / "b", vocab_size=65536) as w:
        for _ in range(100):
            w.document(range(17))


def loader_of(folder, **options):
    return tokmap.Loader([(folder / 'a "quoted" \\ name', 1), (folder / "b", 2)], 5, 4, **grouped(skip=[(20, 33)], **options))


def counts_are_those_of_the_rows(folder):
    for windows in ("concat", "within_document"):
        with loader_of(folder, windows=windows) as loader:
            loader.metrics()
            samples, tokens = [0, 0], [0, 0]
            for _ in range(20):
                for row in next(loader).rows:
                    samples[row.source] += 1
                    tokens[row.source] += len(row.tokens) - 1
                found = loader.metrics()
                assert [one["samples"] for one in found["sources"]] == samples
                assert [one["process_tokens"] for one in found["sources"]] == tokens
                assert [one["tokens"] for one in found["sources"]] == [5 * n for n in samples]  # padding included
            assert found["position"] == loader.sample == 93 and found["samples_skipped"] == 13


def parse(text):
    """{(name, labels): value}: each line has the form that Prometheus asks for, and its family a type."""
    lines = text.split("\n")
    assert lines[-1] == ""
    families = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE ")}
    found = {}
    for line in lines[:-1]:
        if line.startswith("# "):
            assert line.split()[1] in ("TYPE", "HELP")
            continue
        name, labels, value = LINE.fullmatch(line).groups()
        family = re.sub("_(count|sum)$", "", name)
        assert (families[family] == "counter") == name.endswith("_total"), name
        assert (name, labels) not in found and (name.startswith("tokmap_run_")) != ("rank=" in (labels or ""))
        found[name, labels] = float(value)
    return found


def of_sources(parsed, name):
    return [value for (one, _), value in parsed.items() if one == f"tokmap_{name}"]


def the_text_has_what_the_dict_has(folder):
    path = folder / "metrics-{rank}.prom"
    with loader_of(folder, rank=0, n_ranks=2, metrics_file=path, metrics_seconds=1000) as loader:
        next(loader)
        first = (folder / "metrics-0.prom").read_text()
        next(loader)
        assert (folder / "metrics-0.prom").read_text() == first  # not yet again
        assert parse(first)[POSITION] == 8
        found, parsed = loader.metrics(), parse(loader.metrics(text=True))
        assert parsed[POSITION] == found["position"] == 16
        for name, key in (("run_samples", "samples"), ("run_tokens", "tokens"), ("process_tokens_total", "process_tokens")):
            assert of_sources(parsed, name) == [one[key] for one in found["sources"]], name
        assert any(r'a \"quoted\" \\ name.tmi"' in (labels or "") for _, labels in parsed)
    assert sorted(p.name for p in folder.glob("metrics*")) == ["metrics-0.prom"]
    raises(TypeError, loader_of, folder, metrics_file=path, metrics_seconds="5")
    with loader_of(folder, metrics_file=folder / "no folder" / "m", metrics_seconds=0) as loader:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert [next(loader).first_sample for _ in range(3)] == [0, 4, 8]  # no batch is lost for it
        assert len(caught) == 3 and "metrics cannot be written" in str(caught[0].message)
    with loader_of(folder, metrics_file=folder / "often", metrics_seconds=0) as loader:
        for _ in range(3):
            batch = next(loader)
            assert parse((folder / "often").read_text())[POSITION] == batch.next_sample


def the_totals_of_a_run_are_written_once(folder):
    """The files of two ranks, with the same names for all kinds of windows: no sum over them counts a sample twice."""
    names = []
    for windows in ("concat", "within_document", "best_fit"):
        counted = [0, 0]
        ranks = [loader_of(folder, windows=windows, rank=r, n_ranks=2, metrics_file=folder / "m{rank}", metrics_seconds=0) for r in range(2)]
        for _ in range(10):
            for loader in ranks:
                for row in next(loader).rows:
                    counted[row.source] += len(row.tokens) - 1
        found = [parse((folder / f"m{r}").read_text()) for r in range(2)]
        for one in (found[1], parse(ranks[1].metrics(text=True))):
            assert not any(name.startswith("tokmap_run_") for name, _ in one)
        samples = of_sources(found[0], "run_samples")
        assert sum(samples) == 80 and of_sources(found[0], "run_tokens") == [5 * n for n in samples]
        assert [sum(pair) for pair in zip(*(of_sources(one, "process_tokens_total") for one in found))] == counted
        names.append([list(one) for one in found])
        for loader in ranks:
            loader.close()
    assert names[0] == names[1] == names[2]


def counters_do_not_fall_where_a_run_resumes(folder):
    """rate() would add all of one that falls. Those of another process begin at 0."""
    with loader_of(folder) as loader:
        loader.metrics()
        states = [next(loader).state for _ in range(9)]
        before = parse(loader.metrics(text=True))
        loader.restore(states[3])
        after = parse(loader.metrics(text=True))
    assert after[POSITION] < before[POSITION] and of_sources(after, "run_tokens") < of_sources(before, "run_tokens")
    counters = [key for key in before if key[0].endswith(("_total", "_sum", "_count"))]
    assert len(counters) >= 4 and all(after[key] >= before[key] for key in counters), (before, after)
    with loader_of(folder) as loader:
        loader.restore(states[8])
        assert of_sources(parse(loader.metrics(text=True)), "process_tokens_total") == [0, 0]


def the_file_says_how_it_ended(folder):
    """At the end of the data, when the loader is closed, when nothing refers to it, and at the end of the process; each time
    with what was done since the last 1,000 seconds."""
    path = folder / "m"
    options = {"max_epochs": 1, "order": tokmap.Order(drop_last=False), "ranks": tokmap.Ranks(rank=0, n_ranks=1),
               "record": tokmap.Record(metrics_file=path, metrics_seconds=1000)}

    def says():
        found = parse(path.read_text())
        return found[POSITION], found["tokmap_up", 'rank="0"']

    for windows in ("concat", "best_fit"):
        loader = tokmap.Loader(folder / "b", 5, 4, windows=windows, **options)
        n_samples = [loader.sample for _ in loader][-1]
        assert says() == (n_samples, 1) and n_samples > 300
        loader.seek(20)
        loader.close()
        assert says() == (20, 0)
        loader.close()
    for close in (tokmap.Loader.close, lambda loader: None):
        path.unlink()
        loader = tokmap.Loader(folder / "b", 5, 4, **options)
        if close is tokmap.Loader.close:
            loader.close()
            assert not path.exists()  # it gave no batch
            loader = tokmap.Loader(folder / "b", 5, 4, **options)
        next(loader), next(loader)
        close(loader)
        closed = close is tokmap.Loader.close
        assert says() == ((8, 0) if closed else (4, 1))
        child = os.fork()
        if child == 0:  # which leaves the file alone
            del loader
            os._exit(says() != ((8, 0) if closed else (4, 1)))
        assert os.waitpid(child, 0)[1] == 0
        del loader
        assert says() == ((8, 0) if closed else (4, 0))
    script = ("import sys, tokmap\nloader = tokmap.Loader(sys.argv[1], 5, 4, ranks=tokmap.Ranks(rank=0, n_ranks=1), "
              "record=tokmap.Record(metrics_file=sys.argv[2]))\nnext(loader), next(loader), next(loader)\n")
    subprocess.run([sys.executable, "-c", script, folder / "b", path], check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert says() == (12, 0)


def a_loader_that_ends_late_leaves_the_file_to_a_newer_one(folder):
    """Whether it is collected, in a cycle, or closed; until the newer one has written, the file belongs to the older one."""
    def opened(path=folder / "m"):
        loader = loader_of(folder, rank=0, n_ranks=1, metrics_file=path, metrics_seconds=0)
        loader.cycle = loader
        return loader

    def says():
        found = parse((folder / "m").read_text())
        return found[POSITION], found["tokmap_up", 'rank="0"']

    (folder / "link").symlink_to(folder)
    for end in (lambda loader: None, tokmap.Loader.close):
        old, new = opened(), opened(folder / "link/m")
        next(old)
        assert says() == (4, 1)
        next(new), next(new)
        end(old)
        del old
        gc.collect()
        assert says() == (8, 1)
        newest = opened()  # which writes nothing
        new.close()
        assert says() == (8, 0)
        newest.close()


def workers_write_no_metrics(folder):
    """Each would write what it has given out, and not what all of them have."""
    record = tokmap.Record(metrics_file=folder / "m")
    with tokmap.Loader(folder / "b", 5, 4, max_epochs=1, ranks=tokmap.Ranks(rank=0, n_ranks=1), record=record) as loader:
        assert "num_workers=0" in str(raises(ValueError, of_worker, loader._options))
        samples = tokmap.Samples(loader)
        samples[0]
        assert not (folder / "m").exists()
    with loader_of(folder) as loader:
        assert of_worker(loader._options).ledger is None


class Mesh:
    """A DeviceMesh of the dimensions of `sizes`, the last of which counts fastest."""

    def __init__(self, sizes, process):
        self.mesh_dim_names, self._sizes = tuple(sizes), list(sizes.values())
        self._at = dict(zip(sizes, np.unravel_index(process, self._sizes)))

    def get_local_rank(self, name):
        return int(self._at[name])


def one_process_of_each_rank_writes(folder):
    """With a mesh; by the numbers of the launcher at least one, and exactly one for powers of two, for tensor, context and
    pipeline parallelism around the data."""
    def writers(n_processes, n_ranks, ranks, meshes):
        found = []
        for process in range(n_processes):
            with unittest.mock.patch.dict(os.environ, {"RANK": str(process), "WORLD_SIZE": str(n_processes)}):
                if is_first_of_rank(meshes(process), tokmap.Ranks(rank=ranks(process), n_ranks=n_ranks)):
                    found.append(ranks(process))
        return sorted(found)

    n_checked = 0
    for pp, dp, tp in itertools.product((1, 2, 3, 4, 8), repeat=3):
        n, sizes = pp * dp * tp, {"pp": pp, "dp": dp, "tp": tp}
        of_process = lambda process: process // tp % dp  # noqa: E731
        assert writers(n, dp, of_process, lambda process: tokmap.Ranks(mesh=Mesh(sizes, process))) == list(range(dp)), sizes
        found = writers(n, dp, of_process, lambda process: tokmap.Ranks(rank=0, n_ranks=1))
        assert found == list(range(dp)) or 3 in sizes.values() and set(found) == set(range(dp)), (sizes, found)
        n_checked += 1
    assert writers(12, 2, lambda process: process // 2 % 2, lambda process: tokmap.Ranks()) == [0, 1, 1, 1]  # pp=3, dp=2, tp=2
    assert writers(4, 4, lambda process: 3 - process, lambda process: tokmap.Ranks()) == [1, 2, 3], "rank 0 is the launcher's"
    assert writers(4, 2, lambda process: 1 - process // 2, lambda process: tokmap.Ranks()) == [1]
    path = folder / "m{rank}"
    for options, environment, wanted in (
            ({"rank": 1, "n_ranks": 2}, {"RANK": "3", "WORLD_SIZE": "4"}, []), ({"rank": 1, "n_ranks": 2}, {"RANK": "2", "WORLD_SIZE": "4"}, ["m1"]),
            ({"rank": 0, "n_ranks": 2}, {"RANK": "1", "WORLD_SIZE": "4"}, []), ({"rank": 0, "n_ranks": 2, "writes_ledger": True}, {"RANK": "1"}, ["m0"]),
            ({"rank": 0, "n_ranks": 2, "writes_ledger": False}, {}, [])):
        with unittest.mock.patch.dict(os.environ, environment):
            with loader_of(folder, metrics_file=path, **options) as loader:
                next(loader)
                assert ("does not write metrics" in repr(loader)) == (not wanted)
        found = sorted(p.name for p in folder.glob("m[0-9]"))
        assert found == wanted, (options, environment, found)
        for name in found:
            (folder / name).unlink()
    return f"{n_checked} layouts"


def the_rows_of_context_parallelism_count_whole(folder):
    """Each of the processes that share rows counts whole rows, so that one of them speaks for its rank."""
    counts = []
    for rank, size in ((0, 1), (0, 2), (1, 2)):
        with tokmap.Loader(folder / "b", 8, 4, windows="within_document", ranks=tokmap.Ranks(
                rank=0, n_ranks=1, cp_rank=rank, cp_size=size)) as loader:
            loader.metrics()
            for _ in range(3):
                next(loader)
            counts.append(loader.metrics()["sources"][0]["process_tokens"])
    assert counts[0] == counts[1] == counts[2] > 0, counts


def promtool(*arguments, **options):
    if not shutil.which("promtool"):
        raise Skip("there is no promtool: apt-get install prometheus")
    found = subprocess.run(["promtool", *arguments], capture_output=True, text=True, **options)
    assert (found.returncode, found.stderr) == (0, ""), found.stdout + found.stderr


def padding_is_not_counted(folder):
    for rows in (tokmap.Rows(pad_id=65535), tokmap.Rows(pad_id=65535, align=16)):  # which also leaves room between documents
        with tokmap.Loader(folder / "b", 64, 4, windows="best_fit", rows=rows) as loader:
            loader.metrics()
            counted = sum(int((next(loader).inputs != 65535).sum()) for _ in range(5))
            assert loader.metrics()["sources"][0]["process_tokens"] == counted < 5 * 4 * 64


def prometheus_accepts_the_text(folder):
    with tokmap.Writer(os.fsencode(folder) + b"/odd\xff", vocab_size=65536) as w:  # a label must be UTF-8
        w.document(range(100))
    with tokmap.Loader(os.fsencode(folder).decode(errors="surrogateescape") + "/odd\udcff", 5, 4, record=tokmap.Record(
            metrics_file=folder / "odd.prom")) as loader:
        next(loader)
    promtool("check", "metrics", input=(folder / "odd.prom").read_text("utf-8"))
    with loader_of(folder, windows="best_fit") as loader:
        next(loader)
        promtool("check", "metrics", input=loader.metrics(text=True))


# Values of each minute: a run goes on for 10 minutes and stands still for 20, as another one that was closed then. The tokens
# are those of a run that resumes from a checkpoint in other processes after 20 minutes.
SERIES = [("tokmap_run_position", 'instance="a"', "0+60x10 600x20"), ("tokmap_up", 'instance="a",rank="0"', "1x30"),
          ("tokmap_up", 'instance="c",rank="1"', "1x30"),
          ("tokmap_run_position", 'instance="b"', "0+60x10 600x20"), ("tokmap_up", 'instance="b",rank="0"', "1x10 0x20"),
          ("tokmap_run_tokens", 'instance="a",source="0"', "1000000+6000x20 900000+6000x9"),
          ("tokmap_process_tokens_total", 'instance="a",rank="0"', "0+3000x20 3000+3000x9"),
          ("tokmap_process_tokens_total", 'instance="c",rank="1"', "0+1200x20 1200+1200x9"),
          *(("tokmap_process_wait_seconds_sum", f'instance="{at}",rank="{k}"', f"0+{n}x30") for at, k, n in (("a", 0, 6), ("c", 1, 3)))]
ANSWERS = {10: (70, 0.1, None), 25: (70, 0.1, 0)}


def the_recipe_is_as_prometheus_reads_it(folder):
    section = (ROOT / "docs/recipes.md").read_text().partition("## Metrics for Prometheus\n")[2].partition("\n## ")[0]
    (folder / "rules.yml").write_text(re.search(r"```yaml\n(.*?)```", section, re.DOTALL)[1])
    queries = re.findall(r"`([^`]+\([^`]+)`", "".join(line for line in section.splitlines(True) if line[:2] == "| "))
    assert len(queries) == 3 and queries[-1] in (folder / "rules.yml").read_text(), queries
    names = set(re.findall(r"\b(tokmap_[a-z_]+[a-z])\b", " ".join(queries)))
    with loader_of(folder) as loader:
        assert names <= {name for name, _ in parse(loader.metrics(text=True))}, names
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1].replace("/var/lib/prometheus/node-exporter", str(folder))
    exec(code.replace("data/train", str(folder / "b")) + "next(loader)\nloader.close()", {"tokmap": tokmap})
    assert parse((folder / "tokmap-0.prom").read_text())["tokmap_up", 'rank="0"'] == 0
    cases = [(minute, query, value) for minute, values in ANSWERS.items() for query, value in zip(queries, values)]
    labels = {queries[-1]: '{instance="a"}'}
    quote = lambda text: "'" + text + "'"  # noqa: E731
    lines = ["rule_files: [rules.yml]", "evaluation_interval: 1m", "tests:", "  - interval: 1m", "    input_series:"]
    lines += [f"      - series: {quote(f'{name}{{{of}}}')}\n        values: {quote(values)}" for name, of, values in SERIES]
    lines += ["    promql_expr_test:"]
    lines += [f"      - expr: {quote(query)}\n        eval_time: {minute}m\n        exp_samples: "
              + ("[]" if value is None else f"[{{labels: {quote(labels.get(query, '{}'))}, value: {value}}}]") for minute, query, value in cases]
    lines += ["    alert_rule_test:"]
    for minute, alerts in ((10, "[]"), (29, "[{exp_labels: {instance: a}, exp_annotations: {summary: "
                                            "'The training on a has taken no batch for 10 minutes.'}}]")):
        lines += [f"      - eval_time: {minute}m\n        alertname: TrainingStalled\n        exp_alerts: {alerts}"]
    (folder / "tests.yml").write_text("\n".join(lines) + "\n")
    promtool("check", "rules", folder / "rules.yml")
    promtool("test", "rules", folder / "tests.yml")


def the_file_is_hidden_and_locked_until_it_is_complete(folder):
    """The file of a killed process is taken over, that of a running one is left alone."""
    (folder / "new").mkdir()
    path, hidden = folder / "new" / "m.prom", folder / "new" / ".m.prom.partial"
    with loader_of(folder, metrics_file=path, metrics_seconds=0) as loader, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seen = []
        replace = os.replace
        noted = unittest.mock.patch.object(os, "replace", lambda *of: (seen.append(sorted(p.name for p in path.parent.iterdir())), replace(*of)))
        hidden.write_text("left by a killed process, and longer than the text of the metrics\n" * 1000)
        with noted:
            next(loader)
        assert seen == [[".m.prom.partial"]] and not caught, (seen, caught)
        first = path.read_text()
        (folder / "plain").touch()
        assert parse(first) and path.stat().st_mode == (folder / "plain").stat().st_mode, oct(path.stat().st_mode)
        with open(hidden, "w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            assert next(loader).first_sample == 4
        assert [str(one.message) for one in caught] == [f"{path}: metrics cannot be written: another process is writing it"]
        assert path.read_text() == first and hidden.exists()
        next(loader)
        assert parse(path.read_text())[POSITION] == 12 and not hidden.exists() and len(caught) == 1
        hidden.symlink_to(folder / "b.tmi")
        next(loader)
        assert len(caught) == 2 and tokmap.open(folder / "b"), caught
        hidden.unlink()
        hidden.symlink_to(folder / "not-there")
        next(loader)
        assert len(caught) == 3 and not (folder / "not-there").exists(), caught


def the_last_smaller_batch_counts(folder):
    for windows in ("concat", "within_document", "best_fit"):
        for workers, schedule in ((1, []), (1, [(21, 10), (51, 8)]), (3, [(21, 10), (51, 8)])):
            tokens = wanted = n_uneven = 0
            for worker in range(workers):  # as workers of a DataLoader take turns
                loader = tokmap.Loader(folder / "b", 6, 7, windows=windows, max_epochs=1,
                                       order=tokmap.Order(drop_last=False, batch_schedule=schedule))
                loader._take_turns(worker, workers)
                before = loader.metrics()["sources"][0]["process_tokens"]
                while loader.sample < loader.n_samples:
                    for batch in loader:
                        n_uneven += batch.n_rows not in (7, 8, 10)
                        wanted += sum(len(row.tokens) - 1 for row in batch.rows)
                tokens += loader.metrics()["sources"][0]["process_tokens"] - before
            assert (n_uneven > 0 or schedule) and tokens == wanted, (windows, workers, tokens, wanted)


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
    for windows in ("concat", "within_document", "best_fit"):
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
        shares = {share.name: share.n_labels for share in run.report()}
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
            assert parse(loader.metrics(text=True))[POSITION] == loader.sample == plain.sample
            assert loader.epochs == plain.epochs
            for g in (0, 25, 300):
                assert loader.locate(g) == plain.locate(g) and loader.pieces(g) == plain.pieces(g) != []
            assert loader._repr_html_().replace("cuda", "") and "next samples" in loader._repr_html_()
            loader.seek(200)
            plain.seek(200)
    for call in (loader.metrics, lambda: loader.epochs, lambda: loader.locate(0)):
        assert "closed" in str(raises(ValueError, call))


sys.exit(run_in_folders("python_metrics_", prepare=prepare))
