#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""views.py --tokmap FILE --tokenizer FILE --text FILE.jsonl - choosing documents by two scores after packing, beside polars.

Many documents: `tokmap view` over late columns, beside polars, which filters the same Parquet file into a mask. Texts: what
it takes until 36 of 100 documents can be trained on: `tokmap view`, or polars writes the texts that are kept to a new
Parquet file and `tokmap pack` packs it. The documents that are kept, and their tokens, are compared first. Needs polars."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import polars

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from result_file import as_text, machine  # noqa: E402

WHERE = "quality >= 3 and dup < 4"
KEPT = (polars.col("quality") >= 3) & (polars.col("dup") < 4)


def scores(n):
    draw = numpy.random.default_rng(1)
    return {"quality": (draw.integers(0, 11, n) / 2).astype(numpy.float32), "dup": draw.integers(0, 5, n).astype(numpy.int8)}


def seconds_of(function):
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


class Bench:
    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.rows = arguments, folder, []

    def tokmap(self, *arguments):
        command = [self.arguments.tokmap, *map(str, arguments)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def pack(self, inputs, name, *options):
        self.tokmap("pack", "-q", "-f", inputs, "-o", self.folder / name, *options)

    def view(self, name):
        """The number of documents and of tokens of the view that it writes."""
        found = json.loads(self.tokmap("view", "-q", self.folder / name, "--where", WHERE, "--json"))
        return found["n_documents"], found["n_tokens"]

    def measure(self, page, ways):
        """All take turns. ways: {name: function}."""
        seconds = {name: [] for name in ways}
        for _ in range(self.arguments.rounds):
            for name, function in ways.items():
                seconds[name].append(seconds_of(function)[0])
        self.add(page, seconds, "s")
        first, *others = seconds
        for name in others:
            self.add(page, {"%s / %s" % (name, first): [b / a for a, b in zip(seconds[first], seconds[name])]}, "x")

    def add(self, page, values, unit):
        for name, found in values.items():
            self.rows.append({"page": page, "name": name, "unit": unit, "median": float("%.4g" % statistics.median(found)),
                              "values": [float("%.4g" % value) for value in found]})

    def many_documents(self):
        n = self.arguments.documents
        lines, parquet = self.folder / "lines.txt", self.folder / "scores.parquet"
        with open(lines, "wb") as out:
            for first in range(0, n, 1 << 22):
                out.write(b"a\n" * min(n - first, 1 << 22))
        polars.DataFrame(scores(n)).write_parquet(parquet)
        self.pack(lines, "many", "--lines")
        os.remove(lines)
        self.tokmap("columns", "add", "-q", self.folder / "many", parquet)

        def mask():
            return polars.scan_parquet(parquet).select(KEPT.alias("kept")).collect()["kept"]

        assert self.view("many")[0] == mask().sum()
        self.measure("many", {"tokmap view": lambda: self.view("many"), "polars makes a mask": mask})

    def texts(self):
        texts = polars.read_ndjson(self.arguments.text).select("text")
        texts = polars.concat([texts] * self.arguments.times)
        all_texts, kept = self.folder / "all.parquet", self.folder / "kept.parquet"
        texts.with_columns(**{name: polars.Series(values) for name, values in scores(len(texts)).items()}).write_parquet(all_texts)
        n_bytes = texts["text"].str.len_bytes().sum()
        tokenizer = ("--tokenizer", self.arguments.tokenizer, "--field", "text")
        self.pack(all_texts, "texts", "--meta", "quality,dup", *tokenizer)

        def pack_again():
            polars.scan_parquet(all_texts).filter(KEPT).select("text").sink_parquet(kept)
            self.pack(kept, "again", *tokenizer)

        pack_again()
        again = json.loads(self.tokmap("info", self.folder / "again", "--json"))
        assert self.view("texts") == (again["n_documents"], again["n_tokens"])
        self.add("texts", {"size of the text": [n_bytes / 1e6]}, "MB")
        self.measure("texts", {
            "tokmap view": lambda: self.view("texts"), "polars filters, tokmap packs again": pack_again})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokmap", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--text", required=True, help="JSON lines")
    parser.add_argument("--times", type=int, default=8, help="how often the text is repeated [8]")
    parser.add_argument("--documents", type=int, default=100_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", default=tempfile.gettempdir())
    parser.add_argument("--out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        bench.many_documents()
        bench.texts()
    for row in bench.rows:
        print("%-20s %-50s %10.4g %s" % (row["page"], row["name"], row["median"], row["unit"]))
    if arguments.out:
        command = " ".join(["bench/peers/views.py", *("--%s %s" % (name, pathlib.Path(str(value)).name) for name, value in
                                                      vars(arguments).items() if name not in ("out", "dir", "tokmap"))])
        result = {"schema": 1, "command": command, "machine": machine(), "versions": {"polars": polars.__version__},
                  "rows": bench.rows}
        pathlib.Path(arguments.out).write_text(as_text(result), encoding="utf-8")


if __name__ == "__main__":
    main()
