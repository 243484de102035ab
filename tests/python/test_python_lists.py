#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A list of datasets, of a command, of tokmap.open and of one source, has each dataset once, however it is spelt; and
tokens are never in it twice, as those of a joined dataset and of one of its files would be."""

import json
import os
import sys

from package import raises
from ref_protocol import expect, expect_equal, run_in_folders, run_program

import tokmap


def run(folder, *words):
    return run_program("tokmap", *words, cwd=folder, text=True)


def prepare(folder):
    """a of 6 tokens, b of 3; j is joined from a and b."""
    for name, text in (("a", "one"), ("b", "")):
        (folder / (name + ".txt")).write_text(text * 2)
        (folder / (name + ".jsonl")).write_text(json.dumps({"text": text + name}) + "\n")
    expect_equal(run(folder, "plan", "a.jsonl", "b.jsonl", "--cells", "cells", "--cell-size", "1", "-o", "plan").returncode, 0, "plan")
    expect_equal(run(folder, "pack", "--plan", "plan", "-q").returncode, 0, "pack")
    expect_equal(run(folder, "join", "plan", "-o", "j", "-q").returncode, 0, "join")
    (folder / "data").mkdir()
    for name in ("a", "b"):
        expect_equal(run(folder, "pack", "-q", name + ".jsonl", "-o", "data/" + name, "--also", "megatron").returncode, 0, name)
    os.symlink("data", folder / "link")


def n_tokens(folder, *words):
    done = run(folder, "info", "--json", *words)
    expect_equal(done.returncode, 0, done.stderr)
    lines = done.stdout.splitlines()
    return json.loads(lines[-1])["n_tokens"] if len(lines) == 1 else [json.loads(line)["n_tokens"] for line in lines]


def a_dataset_that_is_spelt_in_several_ways_is_one(folder):
    spelt = ["data/a", "data/a.bin", "data/a.tmi", "./data/a", "link/a", "data/a.idx"]
    one = tokmap.open(folder / "data/a").n_tokens
    expect_equal(tokmap.open([os.path.join(folder, name) for name in spelt]).n_tokens, one, "open")
    expect_equal(tokmap.Source([os.path.join(folder, name) for name in spelt]).datasets[0].n_tokens, one, "datasets of a source")
    expect_equal(len(tokmap.Source([os.path.join(folder, name) for name in spelt]).datasets), 1, "datasets of a source")
    expect_equal(run(folder, "merge", "-q", *spelt, "-o", "m").returncode, 0, "merge")
    expect_equal(tokmap.open(folder / "m").n_tokens, one, "merge")


def a_pattern_of_all_files_takes_each_dataset_once(folder):
    """The shell's data/*: a.bin a.idx a.tmi b.bin b.idx b.tmi, and files that belong to them."""
    expect_equal(run(folder, "rows", "-q", "--sequence-length", "4", "data/a").returncode, 0, "rows")
    (folder / "data" / "a.0123456789abcdef.redacted").write_bytes(b"")  # only its name matters
    names = sorted("data/" + name for name in os.listdir(folder / "data"))
    expect(any(name.endswith(".tmr") for name in names), "a rows file")
    expect_equal(run(folder, "merge", "-q", *names, "-o", "m").returncode, 0, "merge")
    all_tokens = sum(tokmap.open(folder / "data" / name).n_tokens for name in ("a", "b"))
    expect_equal(tokmap.open(folder / "m").n_tokens, all_tokens, "tokens")
    expect_equal(run(folder, "verify", "-q", *names).returncode, 0, "verify")
    expect_equal(tokmap.open([folder / name for name in names]).n_tokens, all_tokens, "open")


def the_same_spelling_twice_is_refused(folder):
    done = run(folder, "merge", "data/a", "data/b", "data/a", "-o", "m")
    expect_equal(done.returncode, 2, "merge")
    expect("data/a: is named twice" in done.stderr and "weight" in done.stderr, done.stderr)
    for make in (tokmap.open, tokmap.Source):
        expect("is named twice" in str(raises(ValueError, make, [folder / "data/a", folder / "data/a"])), "Python")
    one = tokmap.open(folder / "data/a")
    expect("is named twice" in str(raises(ValueError, tokmap.Source, [one, one])), "an open dataset")


def a_joined_dataset_beside_its_own_cell_is_refused(folder):
    cell = next(str(path.relative_to(folder))[:-4] for path in sorted((folder / "cells").glob("*.tmi")))
    done = run(folder, "merge", "j", cell, "-o", "m")
    expect_equal(done.returncode, 4, "merge")
    expect("j.tmi: is joined, and has the tokens of" in done.stderr and cell in done.stderr, done.stderr)
    paths = [folder / "j", folder / cell]
    raises(tokmap.MismatchError, tokmap.open, paths)
    raises(tokmap.MismatchError, tokmap.Loader, paths, 1)
    raises(tokmap.MismatchError, tokmap.Loader, [(path, 1.0) for path in paths], 1)
    os.rename(folder / "cells", folder / "moved")
    os.symlink("moved", folder / "cells")
    raises(tokmap.MismatchError, tokmap.open, [folder / "j", folder / cell.replace("cells", "moved")])


def two_sources_of_one_dataset_stay_two(folder):
    with tokmap.Loader([(folder / "data/a", 0.75), (folder / "data/a", 0.25)], 1) as loader:
        expect_equal([row.source for _, batch in zip(range(8), loader) for row in batch.rows].count(0), 6, "source 0")
    documents = tokmap.open(folder / "data/a").n_documents
    source = tokmap.Source([folder / "data/a", folder / "data/a"], documents=[(0, documents), (documents, documents)])
    expect_equal(len(source.datasets), 2, "parts of one dataset")
    for each in ({"order_of": (None, None)}, {"rows_files": (None, None)}):  # a tuple is a list with one for each, too
        for name in ("data/a", "data/a.tmi"):
            source = tokmap.Source([folder / "data/a", folder / name], **each)
            expect_equal(len(source.datasets), 2, "%s, %s" % (name, each))


class CountedPath(str):
    """A path that counts how often it is compared."""

    n_compared = 0

    def __eq__(self, other):
        CountedPath.n_compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def each_path_of_a_long_list_is_not_compared_with_all_others(folder):
    names = [CountedPath("%s/none%d" % (folder, i)) for i in range(500)]
    raises(FileNotFoundError, tokmap.open, names)
    expect(CountedPath.n_compared < 10 * len(names), CountedPath.n_compared)


sys.exit(run_in_folders("lists_", prepare=prepare))
