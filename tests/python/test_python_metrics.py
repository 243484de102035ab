#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loader.metrics(): compared with a count of the rows; its text, and the file for a collector."""

import re
import sys
import warnings

from package import raises
from ref_protocol import run_in_folders

import tokmap

LINE = re.compile(r'(tokmap_\w+)\{(\w+="(?:[^"\\]|\\.)*"(?:,\w+="(?:[^"\\]|\\.)*")*)\} ([0-9.e+-]+)')


def prepare(folder):
    with tokmap.Writer(folder / 'a "quoted" \\ name', vocab_size=65536) as w:
        w.document(range(2001))
    with tokmap.Writer(folder / "b", vocab_size=65536) as w:
        for _ in range(100):
            w.document(range(17))


def loader_of(folder, **options):
    return tokmap.Loader([(folder / 'a "quoted" \\ name', 1), (folder / "b", 2)], 5, 4, skip=[(20, 33)], **options)


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


sys.exit(run_in_folders("python_metrics_", prepare=prepare))
