#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names hf://datasets/... of datasets: the files are read in the Hub's cache, and an error names the command that downloads
what the cache lacks."""

import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import sys

import package  # noqa: F401
import ref_writer
from ref_protocol import expect, expect_equal, run_in_folders, run_program

import numpy
import tokmap

NAME = "hf://datasets/me/my-corpus.1"


def make_dataset(prefix, n_documents):
    lengths = [7 * i % 40 for i in range(n_documents)]
    ref_writer.write(str(prefix), [i * 7919 % 1000 for i in range(sum(lengths))], lengths, vocab=1000)


def commit_named(n):
    return hashlib.sha1(str(n).encode()).hexdigest()


class Cache:
    """A cache as huggingface_hub writes it: blobs, and a folder of links to them for each commit."""

    def __init__(self, folder):
        self.folder = folder / "hub/datasets--me--my-corpus.1"
        os.environ["HF_HUB_CACHE"] = str(folder / "hub")
        (self.folder / "blobs").mkdir(parents=True)

    def add(self, source, name, commit):
        blob = self.folder / "blobs" / hashlib.sha256((name + commit).encode()).hexdigest()
        shutil.copy(source, blob)
        link = self.folder / "snapshots" / commit / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))

    def set_revision(self, revision, commit):
        path = self.folder / "refs" / revision
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(commit)

    def snapshot(self, commit):
        return self.folder / "snapshots" / commit


def add_all(cache, source, commit, into=""):
    for path in sorted(source.rglob("*")):
        if path.is_file():
            cache.add(path, into + str(path.relative_to(source)), commit)


def rows(data, **options):
    with tokmap.Loader(data, 16, batch_rows=2, seed=3, max_epochs=1, **options) as loader:
        return [batch.inputs.tolist() for batch in loader]


def refused(kind, *words, of):
    try:
        of()
    except kind as error:
        expect(all(word in str(error) for word in words), "%s: %s" % (words, error))
        return error
    raise AssertionError("nothing is raised")


def command_of(error):
    return shlex.split(re.search("Run: (.*)$", str(error))[1])


def datasets_are_read_in_the_cache(folder):
    (folder / "data").mkdir()
    make_dataset(folder / "data/train", 500)
    cache, commit = Cache(folder), commit_named(1)
    add_all(cache, folder / "data", commit, "sets/")
    cache.set_revision("main", commit)
    cache.set_revision("refs/pr/7", commit)
    local = tokmap.open(folder / "data/train")
    for name in (NAME + "/sets/train", NAME + "/sets/train.tmi", NAME + "@main/sets/train", NAME + "/sets/tr*",
                 NAME + "/**", NAME + "@" + commit + "/sets/train", NAME + "@refs/pr/7/sets/train", NAME + "@refs%2Fpr%2F7/sets/train"):
        ds = tokmap.open(name)
        expect_equal((ds.dataset_id, ds.paths), (local.dataset_id, [str(cache.snapshot(commit) / "sets/train.tmi")]), name)
    name = NAME + "/sets/train"
    expect_equal(rows(name), rows(folder / "data/train"), "rows")
    expect_equal(rows({name: 1.0}), rows(folder / "data/train"), "rows of a mixture")
    expect_equal(rows(tokmap.Source(name, documents=(0, 50))), rows(tokmap.Source(folder / "data/train", documents=(0, 50))),
                 "rows of a Source")
    with tokmap.Loader(name, 16, batch_rows=2, seed=3) as loader:
        state = next(loader).state
    with tokmap.Loader(folder / "data/train", 16, batch_rows=2, seed=3) as loader:
        loader.restore(state)


def a_view_is_found(folder):
    (folder / "data").mkdir()
    make_dataset(folder / "data/train", 500)
    local = tokmap.open(folder / "data/train")
    local.add_column("score", list(range(len(local))))
    local.write_view(where="score < 100")
    view = next((folder / "data").glob("*.tmw"))
    cache, commit = Cache(folder), commit_named(1)
    add_all(cache, folder / "data", commit)
    cache.set_revision("main", commit)
    expect_equal(rows(NAME + "/" + view.name), rows(view), "rows of the view")
    error = refused(FileNotFoundError, "does not have the file", of=lambda: rows(NAME + "/train.0123456789abcdef.tmw"))
    expect_equal(command_of(error), ["hf", "download", "me/my-corpus.1", "train.0123456789abcdef.tmw", "--repo-type", "dataset"], "command")


def what_is_missing_is_named(folder):
    (folder / "data").mkdir()
    make_dataset(folder / "data/train", 500)
    cache, commit = Cache(folder), commit_named(1)
    name, where = NAME + "/in a/train", str(cache.folder)
    download = ["hf", "download", "me/my-corpus.1"]
    error = refused(tokmap.Error, name, where, "the revision main", of=lambda: tokmap.open(name))
    expect_equal(command_of(error), [*download, "--include", "in a/train.*", "--repo-type", "dataset"], "no revision")
    expect(isinstance(error, FileNotFoundError), type(error))
    error = refused(FileNotFoundError, "the revision v1", of=lambda: tokmap.open(NAME + "@v1/train.tmi"))
    expect_equal(command_of(error), [*download, "--include", "train.*", "--repo-type", "dataset", "--revision", "v1"], "of a revision")
    cache.set_revision("main", commit)
    error = refused(FileNotFoundError, "the index", of=lambda: tokmap.Loader(name, 16))
    expect_equal(command_of(error), [*download, "--include", "in a/train.*", "--repo-type", "dataset"], "no index")
    error = refused(FileNotFoundError, "pattern", of=lambda: tokmap.open(NAME + "/in a/*"))
    expect_equal(command_of(error)[3:5], ["--include", "in a/*.*"], "no match")
    cache.add(folder / "data/train.tmi", "in a/train.tmi", commit)
    for one in (name, NAME + "/in a/*"):
        error = refused(FileNotFoundError, "does not have in a/train.bin", of=lambda one=one: tokmap.open(one))
        expect_equal(command_of(error), [*download, "in a/train.bin", "--repo-type", "dataset"], "no token file")
    cache.add(folder / "data/train.bin", "in a/train.bin", commit)
    expect_equal(tokmap.open(name).dataset_id, tokmap.open(folder / "data/train").dataset_id, "now it is there")
    cache.set_revision("main", "no commit")
    refused(ValueError, "is damaged", of=lambda: tokmap.open(name))


def of_a_joined_dataset_each_token_file_counts(folder):
    (folder / "data").mkdir()
    tokens = list(range(240))
    for n, segments in ((3, [(b"cells/%d.bin" % i, 80, b"") for i in range(3)]),
                        (12, [(b"%d/%d.bin" % (i % 2, i), 20, b"") for i in range(12)])):
        source = folder / "data" / str(n)
        source.mkdir()
        ref_writer.write(str(source / "train"), tokens, [100, 140], vocab=256, segments=segments)
        cache, commit = Cache(folder / str(n)), commit_named(n)
        cache.set_revision("main", commit)
        cache.add(source / "train.tmi", "a/train.tmi", commit)
        cache.add(source / segments[0][0].decode(), "a/" + segments[0][0].decode(), commit)
        error = refused(FileNotFoundError, of=lambda: tokmap.open(NAME + "/a/train"))
        wanted = ["a/cells/1.bin", "a/cells/2.bin"] if n == 3 else ["--include", "a/0/*", "--include", "a/1/*"]
        expect_equal(command_of(error), ["hf", "download", "me/my-corpus.1", *wanted, "--repo-type", "dataset"], "command")
        for name, _, _ in segments[1:]:
            cache.add(source / name.decode(), "a/" + name.decode(), commit)
        expect_equal(tokmap.open(NAME + "/a/train").tokens(0, 240).tolist(), tokens, "tokens")


def the_card_of_a_dataset_opens_it(folder):
    for name, segments in (("train", None), ("it's \"odd\"", [(b"cells/0.bin", 2000, b""), (b"1.bin", 1980, b"")])):
        data = folder / name[:2] / "data"
        data.mkdir(parents=True)
        lengths = [99] * 40 + [20]
        ref_writer.write(str(data / name), [i % 251 for i in range(3980)], lengths, vocab=256, segments=segments)
        tokmap.open(data / name).add_column("score", list(range(41)))
        done = run_program("tokmap", "info", "--card", data / name, check=True)
        card = done.stdout.decode()
        _, head, body = card.split("---\n", 2)
        for line in ("pretty_name: %s" % json.dumps(name), "- tokmap", "- n<1K", "viewer: false"):
            expect(line in head.splitlines(), head)
        for part in ("| tokens | 3,980, u16 |", "| documents | 41 |", "| tokenizer | not known |", "a vocabulary of 256",
                     "| column | `score`, int64 |", tokmap.open(data / name).dataset_id,
                     "2 token files" if segments else "numpy.memmap(\"train.bin\", dtype=\"<u2\""):
            expect(part in body, "%s: %s" % (part, body))
        cache, commit = Cache(folder / name[:2]), commit_named(1)
        cache.set_revision("main", commit)
        add_all(cache, data, commit)
        names = {}
        exec(re.search("```python\n(.*?)```", body, re.DOTALL)[1].replace("OWNER/NAME", "me/my-corpus.1").replace("4096", "64"), names)
        expect_equal(names["ds"].dataset_id, tokmap.open(data / name).dataset_id, "what its code opens")
        names["loader"].close()
        if not segments:
            os.chdir(data)
            memory = eval(re.search("in NumPy: `(.*?)`", body)[1], {"numpy": numpy})
            expect_equal(memory.tolist(), names["ds"].tokens().tolist(), "tokens without tokmap")
            os.chdir("/")
        command = re.findall("^tokmap (.*)$", body, re.MULTILINE)[-1]
        done = run_program("tokmap", *shlex.split(command), cwd=data.parent, check=True)
        expect_equal(done.stdout, b"", "bad files")


def wrong_names_are_refused(folder):
    Cache(folder)
    for wrong in ("hf://datasets/me", "hf://datasets/me/x", "hf://me/x/train", "hf://datasets/me/x/", "hf://datasets/me/x/../y",
                  "hf://datasets/me/x@/train"):
        refused(ValueError, wrong, "must be hf://datasets/OWNER/NAME", of=lambda wrong=wrong: tokmap.open(wrong))
    for wrong in ("..", "..%2F..", "a%2F%2Fb"):
        refused(ValueError, "no revision", of=lambda wrong=wrong: tokmap.open(f"{NAME}@{wrong}/train"))
    os.chdir(folder)
    pathlib.Path("hf:/datasets/me/x").mkdir(parents=True)
    make_dataset(pathlib.Path("hf:/datasets/me/x/train"), 20)
    expect(tokmap.open("hf://datasets/me/x/train").n_tokens > 0, "a file of that name comes first")
    os.chdir("/")


if __name__ == "__main__":
    sys.exit(run_in_folders("hf:// datasets: "))
