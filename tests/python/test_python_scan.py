#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dataset.scan: the columns and the result of the command, over several datasets, and what is refused. test_scan.py has
what the command finds."""

import json
import subprocess
import sys

from package import raises
from ref_protocol import expect, expect_equal, program, run_in_folders

import numpy as np
import tokmap

TEXT = "which of these cities is the capital of France?"


def prepare(folder):
    """Two datasets: every third document has the text, and the first has documents twice."""
    for k in range(2):
        texts = [TEXT if i % 3 == 0 else "document %d of %d, which is another text" % (i // 2, k) for i in range(30 + k)]
        (folder / f"{k}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        subprocess.run([program("tokmap"), "pack", "-q", folder / f"{k}.jsonl", "-o", folder / str(k)], check=True)


def _opened(where):
    return tokmap.Dataset([where / "0", where / "1"])


def _refused(kind, words, call):
    error = raises(kind, call)
    expect(words in str(error), str(error))


def examples_are_found_in_all_datasets(folder):
    ds = _opened(folder)
    wanted = [number for number in range(61) if (number if number < 30 else number - 30) % 3 == 0]
    (folder / "b.jsonl").write_text(json.dumps({"q": "no such text", "a": None}) + "\n" + json.dumps({"q": TEXT}) + "\n")
    results = [ds.scan("b", against=["no such text", TEXT], matches=True),
               ds.scan("b", against=folder / "b.jsonl", fields=["q", "a"], threads=2, replace=True, matches=True)]
    expect_equal(results[0], results[1], "a list of texts, and a file")
    found = results[0]
    expect_equal([found["n_examples"], found["n_examples_found"], found["n_documents"]], [2, 1, len(wanted)], "result")
    expect_equal([one["n_documents"] for one in found["examples"]], [0, len(wanted)], "examples")
    expect_equal([one["document"] for one in found["examples"][1]["matches"]], wanted[:20], "documents of matches")
    expect(all(one["match"] == TEXT and not one["before"] + one["after"] for one in found["examples"][1]["matches"]), "text")
    longest = ds.meta("b_longest")
    expect_equal(np.flatnonzero(~longest.mask).tolist(), wanted, "documents with a value")
    expect_equal(set(longest.compressed().tolist()), {len(TEXT)}, "longest")
    expect_equal(ds.where("b_longest is null or b_longest < 20").n_documents, len(ds) - len(wanted), "a view without them")


def documents_with_the_same_tokens(folder):
    ds = _opened(folder).shards[0]
    result = ds.scan("same_as", duplicates=True)
    first, wanted = {}, []
    for number, tokens in enumerate(ds):
        known = first.setdefault(tokens.tobytes(), number)
        wanted.append(None if known == number else known)
    expect_equal([one["same_as"] for one in map(ds.document_meta, range(len(ds)))], wanted, "values")
    expect_equal(result, {"n_duplicates": sum(one is not None for one in wanted)}, "result")
    _refused(ValueError, "2 datasets: ask one of `shards`", lambda: _opened(folder).scan("same_as", duplicates=True))


def what_is_refused(folder):
    ds = _opened(folder)
    _refused(ValueError, "one of against and duplicates=True", lambda: ds.scan("b"))
    _refused(ValueError, "one of against and duplicates=True", lambda: ds.scan("b", against=[TEXT], duplicates=True))
    _refused(ValueError, "only name and replace go with it", lambda: ds.shards[0].scan("b", duplicates=True, matches=True))
    _refused(TypeError, "ngram", lambda: ds.scan("b", against=[TEXT], ngram=1.5))
    _refused(tokmap.ArgumentError, "--ngram", lambda: ds.scan("b", against=[TEXT], ngram=0))
    _refused(FileNotFoundError, "none.jsonl", lambda: ds.scan("b", against=folder / "none.jsonl"))
    _refused(tokmap.ArgumentError, "0.jsonl", lambda: ds.scan("b", against=[TEXT], tokenizer=folder / "0.jsonl"))
    _refused(ValueError, "fields is for the examples of a file", lambda: ds.scan("b", against=[TEXT], fields="q"))
    ds.shards[1].scan("b", against=[TEXT])
    _refused(tokmap.ExistsError, "1.b_ngrams.tmc: exists already", lambda: ds.scan("b", against=[TEXT]))
    assert not (folder / "0.b_ngrams.tmc").exists()
    ds.scan("b", against=[TEXT], replace=True)
    _refused(tokmap.ExistsError, "replace=True replaces late columns", lambda: ds.scan("b", against=[TEXT]))


if __name__ == "__main__":
    sys.exit(run_in_folders("python_", prepare=prepare))
