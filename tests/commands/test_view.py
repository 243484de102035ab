#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap view and rows --view: which documents and how many tokens, against Python; where the files are, and which
expressions share one; what is refused; what the other commands do with view files."""

import json
import os
import random
import sys

from commands import said, tokmap
from ref_protocol import expect, expect_equal, run_in_folders

N_RUNS = 600 if os.environ.get("TOKMAP_LONG") == "all" else 10


def pack(folder, n, name="p", **fields):
    """A dataset whose document i has i % 9 + 1 tokens, the last one its end, and these fields: functions of the number."""
    lines = [{"text": "t" * (i % 9), **{k: f(i) for k, f in fields.items()}} for i in range(n)]
    (folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said("pack", "-q", folder / "in.jsonl", "-o", folder / name, "--meta", ",".join(fields), "--force")
    return folder / name, lines


def view(prefix, *options):
    return [json.loads(line) for line in said("view", prefix, "--json", *options).splitlines()]


def check(found, lines, keep, what):
    kept = [i for i, line in enumerate(lines) if keep(line)]
    runs = sum(1 for i in kept if i - 1 not in set(kept))
    tokens = sum(len(lines[i]["text"]) + 1 for i in kept)
    expect_equal([found["n_documents"], found["n_tokens"], found["n_runs"]], [len(kept), tokens, runs], what)
    expect_equal(os.path.getsize(found["path"]), found["n_bytes"], what)


def documents_and_tokens(folder):
    rng = random.Random(3)
    for run in range(N_RUNS):
        n, limit = rng.choice((1, 30, 80, 300)), rng.randrange(-2, 13)
        prefix, lines = pack(folder, n, score=lambda i: rng.randrange(10), lang=lambda i: rng.choice(("de", "en", None)))
        found = view(prefix, "--where", "score >= %d and lang != 'en'" % limit)[0]
        check(found, lines, lambda line: line["score"] >= limit and line["lang"] == "de", "run %d" % run)
        os.remove(found["path"])
    expect_equal(sorted(os.listdir(folder)), ["in.jsonl", "p.bin", "p.tmi"], "what is left")


def a_view_for_each_value(folder):
    words = ("de", 'a "quoted\\ one"', "é", "", "two words")
    prefix, lines = pack(folder, 90, lang=lambda i: words[i % 5], number=lambda i: -3 + i % 3, yes=lambda i: i % 2 == 0,
                         real=lambda i: i / 8, none=lambda i: None)
    for field, n in (("lang", 5), ("number", 3), ("yes", 2), ("none", 0)):
        found = view(prefix, "--by", field)
        values = list(dict.fromkeys(line[field] for line in lines if line[field] is not None))
        expect_equal([len(found), len(values)], [n, n], field)
        for value, one in zip(values, found):
            check(one, lines, lambda line, value=value: line[field] == value, "%s %s" % (field, value))
            expect_equal(view(prefix, "--where", one["where"])[0], one, "the same file by its expression")
    code, out, err = tokmap("view", prefix, "--by", "real")
    expect_equal([code, out], [3, ""], "floats")
    expect("use --where 'real >= ...'" in err, err)
    prefix, lines = pack(folder, 12000, "many", number=lambda i: i)
    code, out, err = tokmap("view", prefix, "--by", "number")
    expect(code == 3 and "more than 10000 different values" in err, err)


def spellings_that_share_a_file(folder):
    prefix, lines = pack(folder, 60, score=lambda i: i % 10, x=lambda i: i % 3)
    for group in (("score >= 3", "3 <= score", " ( score>=3 )", "`score` >= 3"), ("score != 0", "score", "0 != score"),
                  ("x in (1, 2)", "x == 1 or 2 == x"), ("score < 3 and x > 1", "3 > score and (1 < x)")):
        paths = {view(prefix, "--where", where)[0]["path"] for where in group}
        expect_equal(len(paths), 1, "files of %s" % (group,))
    a, b = (view(prefix, "--where", where)[0] for where in ("score >= 3", "not score < 3"))
    expect(a["path"] != b["path"], "files of two expressions")
    expect_equal(a["set_hash"], b["set_hash"], "the set of two expressions")
    nested = [view(prefix, "--where", where)[0] for where in ("(score == 1 and x == 1) or score == 2", "score == 1 and (x == 1 or score == 2)",
                                                              "(score == 1 or x == 1) and score == 2", "score == 1 or (x == 1 and score == 2)")]
    expect_equal(len({one["path"] for one in nested}), 4, "files of the same comparisons, put together in other ways")
    (folder / "rows.jsonl").write_text("".join('{"late": %d}\n' % (i % 4) for i in range(len(lines))))
    said("columns", "add", "-q", prefix, folder / "rows.jsonl")
    before = view(prefix, "--where", "late == 1")[0]
    (folder / "rows.jsonl").write_text("".join('{"late": %d}\n' % (i % 5) for i in range(len(lines))))
    said("columns", "add", "-q", "-f", prefix, folder / "rows.jsonl")
    after = view(prefix, "--where", "late == 1")[0]
    expect(before["path"] != after["path"] and before["set_hash"] != after["set_hash"], "changed scores")


def refusals(folder):
    prefix, _ = pack(folder, 60, score=lambda i: i % 10)
    other, _ = pack(folder, 61, "q", score=lambda i: i % 10)
    for options, code, text in (
            ([], 2, "needs one of --where and --by"), (["--where", "score", "--by", "score"], 2, "needs one of --where and --by"),
            (["--by", "score", "-o", "x"], 2, "--output is for one view of one dataset"),
            ([other, "--where", "score", "-o", "x"], 2, "--output is for one view of one dataset"),
            (["--where", "score >"], 2, "character 8: expected a field"), (["--where", "nope > 1"], 2, "no column 'nope'"), (["--by", "nope"], 2, "no column 'nope'"),
            (["--where", "score", "-o", folder / "q.tmi"], 5, "exists and is not a view"),
            (["--where", "score", "-o", folder / "none/x"], 3, "none/x")):
        found, out, err = tokmap("view", prefix, *options)
        expect_equal([found, out], [code, ""], "%s: %s" % (options, err))
        expect(text in err, "%s: %s" % (options, err))
    found = view(prefix, "--where", "score > 5", "-o", folder / "x.tmw")[0]
    expect_equal(found["path"], str(folder / "x.tmw"), "path")
    code, _, err = tokmap("rows", "-l", "16", other, "--view", folder / "x.tmw")
    expect(code == 4 and "is a view of other documents" in err, "%d %s" % (code, err))
    code, _, err = tokmap("rows", "-l", "16", prefix, other, "--view", folder / "x.tmw")
    expect(code == 2 and "--view is for one dataset" in err, err)
    (folder / "x.tmw").write_bytes((folder / "x.tmw").read_bytes()[:-1])
    code, _, err = tokmap("rows", "-l", "16", prefix, "--view", folder / "x.tmw")
    expect(code == 4 and "x.tmw: damaged" in err, "%d %s" % (code, err))
    expect_equal([name for name in os.listdir(folder) if "partial" in name], [], "what is left")


def rows_of_a_view(folder):
    prefix, lines = pack(folder, 200, score=lambda i: i % 10)
    found = view(prefix, "--where", "score > 5")[0]
    rows = json.loads(said("rows", "-l", "16", prefix, "--view", found["path"], "--json"))
    expect(os.path.exists("%s.16-v%s.tmr" % (prefix, found["set_hash"])), "the rows file of the view")
    expect_equal(rows["n_labels"], sum(len(line["text"]) for line in lines if line["score"] > 5), "labels")
    everything = view(prefix, "--where", "score >= 0")[0]
    said("rows", "-l", "16", prefix, "--view", everything["path"], "-q")
    expect(os.path.exists("%s.16.tmr" % prefix), "the rows of a view of all documents are those of the dataset")


def epochs(folder):
    prefix, lines = pack(folder, 90, score=lambda i: i % 10)
    for options, keep in (([], lambda line: True), (["--no-lengths"], lambda line: True),
                          (["--where", "score > 5"], lambda line: line["score"] > 5)):
        n_tokens = sum(len(line["text"]) + 1 for line in lines if keep(line))
        found = json.loads(said("info", prefix, "--json", "--tokens", "2k", *options))
        expect(abs(found["epochs"] - 2000 / n_tokens) < 1e-4, str(found["epochs"]))
        expect("%.2f for 2,000 tokens" % (2000 / n_tokens) in said("info", prefix, "--tokens", "2000", *options), "as text")
    expect("epochs" not in json.loads(said("info", prefix, "--json", "--tokens", "2k", "--where", "score > 10")), "no tokens")


def other_commands(folder):
    prefix, _ = pack(folder, 60, score=lambda i: i % 10)
    found = view(prefix, "--where", "score > 5")[0]["path"]
    lists = said("info", "%s*" % prefix, "--json").splitlines()
    expect_equal(len(lists), 1, "info P* shows the dataset once")
    said("merge", "%s*" % prefix, "-o", folder / "merged", "-q")
    code, _, err = tokmap("pack", found, "-o", folder / "x")
    expect(code == 3 and "is a view of tokmap" in err, err)
    said("verify", prefix, "-q")
    good = open(found, "rb").read()
    for at in range(0, len(good), 7):
        with open(found, "wb") as file:
            file.write(good[:at] + bytes([good[at] ^ 4]) + good[at + 1:])
        code, _, err = tokmap("verify", prefix, "-q")
        expect(code == 4 and found in err, "byte %d: %d %s" % (at, code, err))
    code, _, err = tokmap("info", found)
    expect(code == 3 and "not a dataset, but a view: name the dataset beside it" in err, "%d %s" % (code, err))


if __name__ == "__main__":
    sys.exit(run_in_folders("view_"))
