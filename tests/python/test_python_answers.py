#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap trace, and report, as commands: compared with what a plain Loader gives, and what they refuse."""

import collections
import contextlib
import csv
import io
import itertools
import json
import os
import random
import re
import subprocess
import sys

from package import ROOT
from ref_protocol import hand_over, program, run_in_folders

import numpy as np
import tokmap
from tokmap.__main__ import run_command

LENGTH = 16
ORDER = ("--sequence-length", LENGTH, "--seed", 5, "--shuffle", "block", "--windows", "concat")


def run(*arguments):
    """(exit status, stdout, stderr). The package runs here, as a hundred processes of Python would take a while."""
    done, handed_over = hand_over(*arguments)
    if done.returncode:
        return done.returncode, done.stdout, done.stderr
    outputs, status = [io.StringIO(), io.StringIO()], 0
    with contextlib.redirect_stdout(outputs[0]), contextlib.redirect_stderr(outputs[1]):
        try:
            run_command(arguments[0], handed_over)
        except SystemExit as end:
            status = end.code
    return status, outputs[0].getvalue(), outputs[1].getvalue()


def says(*arguments):
    status, text, errors = run(*arguments)
    assert (status, errors) == (0, ""), (arguments, errors)
    return text


def answer(*arguments):
    found = json.loads(says(*arguments, "--json"))
    assert found.pop("schema_version") == 1
    return found["rows"] if arguments[0] == "trace" else found


def refused(status, text, *arguments):
    found, output, errors = run(*arguments)
    assert found == status and text in errors and not output, (text, found, output, errors)
    first, *others = errors.splitlines()
    assert first.startswith(f"tokmap {arguments[0]}: "), errors
    assert others in ([], [f"Try 'tokmap {arguments[0]} --help'."]), errors


def call(*arguments):
    subprocess.run([program("tokmap"), *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def prepare(folder):
    """A flat dataset, a joined one, and one whose boundaries are not known."""
    rng = random.Random(2)
    with open(folder / "text.jsonl", "w") as f:
        for i in range(120):
            value = {"text": "x" * rng.randint(0, 40), "url": "https://%s/%d" % (rng.choice(("a.org", "B.de:80")), i)}
            f.write(json.dumps({**value, "year": rng.choice((2024, 2025))} if i % 3 else value) + "\n")
    (folder / "more.txt").write_text("".join("line %d\n" % i for i in range(100)))
    call("pack", "-q", "--meta", "url,year", folder / "text.jsonl", "-o", folder / "flat")
    call("plan", "-q", "--lines", folder / "more.txt", "--cell-size", 300, "--cells", folder / "cells", "-o", folder / "plan")
    call("pack", "-q", "--plan", folder / "plan")
    call("join", "-q", folder / "plan", "-o", folder / "joined")
    np.arange(1000, dtype="<u2").tofile(folder / "bare.bin")
    call("index", "-q", "--format", "raw", "--dtype", "u16", "--eod", "none", "--vocab-size", 1000, folder / "bare.bin")


def document_of(dataset, token):
    return dataset.find_document(token % dataset.n_tokens)


def a_run_without_a_ledger_is_that_of_a_loader(folder):
    for name in ("flat", "joined"):
        dataset = tokmap.open(folder / name)
        loaders = [tokmap.Loader(folder / name, LENGTH, 3, ranks=tokmap.Ranks(rank=rank, n_ranks=2), seed=5,
                                 shuffle="block", max_epochs=2,
                                 order=tokmap.Order(drop_last=False)) for rank in range(2)]
        options = (folder / name, *ORDER, "--max-epochs", 2, "--n-ranks", 2, "--batch-rows", 3)
        steps, tokens = [], collections.Counter()
        documents = collections.defaultdict(set)
        for step, batches in enumerate(itertools.zip_longest(*loaders)):
            steps.append([(step, rank, i, row) for rank, batch in enumerate(batches) if batch is not None
                          for i, row in enumerate(batch.rows)])
        for some in steps:
            for _, _, _, row in some:
                for i in range(len(row.tokens)):
                    number = document_of(dataset, row.first_token + i).number
                    documents[number].add(row.sample)
                    tokens[number] += i > 0
        for step in (0, len(steps) // 2, len(steps) - 1):
            found = answer("trace", *options, "--step", step)
            assert [(r["step"], r["rank"], r["row"], r["sample"], r["window"]) for r in found] == \
                [(s, rank, i, row.sample, row.window) for s, rank, i, row in steps[step]]
            assert [r for r in found if r["rank"] == 1] == answer("trace", *options, "--step", step, "--rank", 1)
            for r in found:
                assert [r] == answer("trace", *options, "--sample", r["sample"]) or r["sample"] % 5
                assert {d["number"] for d in r["documents"]} == {n for n, some in documents.items() if r["sample"] in some}
                for d in r["documents"]:
                    assert d["meta"] == dataset.document_meta(d["number"])
        for number in (0, 57, max(documents)):
            found = answer("trace", *options, "--document", "%s:%d" % (folder / name, number))
            assert [r["sample"] for r in found] == sorted(documents[number])
        until = steps[3][0][3].sample
        found = answer("trace", *options, "--document", f"{folder / name}.tmi:57", "--until", until)
        assert [r["sample"] for r in found] == sorted(g for g in documents[57] if g < until)
        every = answer("trace", *options, "--input", dataset.inputs[0].name)
        assert every == answer("trace", *options, "--input", os.path.basename(dataset.inputs[0].name))
        assert {r["sample"] for r in every} == {g for n in range(dataset.inputs[0].n_documents) for g in documents[n]}
        report = answer("report", *options, "--by", "input")
        assert report["n_labels"] == sum(tokens.values())
        ends = np.cumsum([one.n_documents for one in dataset.inputs])
        wanted = collections.Counter()
        for number, n in tokens.items():
            wanted[dataset.inputs[int(np.searchsorted(ends, number, "right"))].name] += n
        assert {one["name"]: one["n_labels"] for one in report["shares"]} == wanted
        assert not any("path" in one for one in report["shares"])
        (share,) = answer("report", *options)["shares"]
        assert (share["name"], share["path"], share["n_labels"]) == (0, f"{folder / name}.tmi", sum(tokens.values()))


def a_run_of_a_loader_has_its_micro_batches(folder):
    """As the ledger of that loader has them."""
    with tokmap.Loader(folder / "flat", LENGTH, 3, seed=5, ranks=tokmap.Ranks(rank=0, n_ranks=2), ledger=folder / "micro.ledger",
                       record=tokmap.Record(micro_batches=4)) as loader:
        for _ in range(12):
            next(loader)
        rows = [[row.sample for row in tokmap.Run(loader).step(step)] for step in range(3)]
    assert rows == [[row.sample for row in tokmap.Run(folder / "micro.ledger").step(step)] for step in range(3)]
    assert rows == [list(range(24 * step, 24 * step + 24)) for step in range(3)], rows


def values_are_found_and_counted(folder):
    options = (folder / "flat", *ORDER, "--until", 150)
    dataset = tokmap.open(folder / "flat")
    years = [dataset.document_meta(i)["year"] for i in range(dataset.n_documents)]
    found = answer("trace", *options, "--where", "year=2024")
    wanted = set()
    for i, year in enumerate(years):
        if year == 2024 and dataset.document(i).n_tokens:
            wanted.update(r["sample"] for r in answer("trace", *options, "--document", f"{folder / 'flat'}:{i}"))
    assert [r["sample"] for r in found] == sorted(wanted)
    hosts = answer("report", *options, "--host", "url")
    assert {one["name"] for one in hosts["shares"]} == {"a.org", "b.de"} and hosts["until"] == 150
    assert len(answer("report", *options, "--host", "url", "--top", "50%")["shares"]) == 1
    table = says("report", *options, "--by", "year").splitlines()
    assert table[0].split() == ["year", "tokens", "documents", "share"] and table[-1].endswith(" tokens in all")
    rows = list(csv.reader(io.StringIO(says("report", *options, "--by", "year", "--format", "csv"))))
    assert {row[0] for row in rows[1:]} == {"", "2024", "2025"} and abs(sum(float(row[3]) for row in rows[1:]) - 1) < 1e-6
    text = says("trace", *options, "--sample", 7, "--text", "bytes")
    assert " sample 7  source 0 " in text and "\n    document " in text and text.splitlines()[-1].endswith("x'"), text
    program_says = subprocess.run([sys.executable, "-m", "tokmap", "trace", *map(str, options), "--sample", "7", "--text", "bytes"],
                                  check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert program_says.stdout == text


def odd_values_and_names_are_told_apart(folder):
    values = [float("nan"), float("inf"), 1.5, None]
    for name in ("odd", "odder"):
        with tokmap.Writer(folder / name, vocab_size=300, meta=["f", "s"]) as w:
            for i in range(40):
                w.document(range(9), {"f": values[i % 4], "s": ("a\x1b[1m", "\udcff", "", None)[i % 4]})
            w.end_input(os.fsencode(folder / name) + b"\xff\n.txt")
    options = (folder / "odd", folder / "odder", "--sequence-length", 8, "--max-epochs", 1)
    lines = [line.split()[0] for line in says("report", *options, "--by", "f").splitlines()]
    assert sorted(lines[1:-1]) == ["(none)", "1.5", "Infinity", "NaN"], lines
    names = [one["name"] for one in answer("report", *options, "--by", "f")["shares"]]
    assert names.count("NaN") == names.count("Infinity") == names.count(1.5) == names.count(None) == 1
    lines = [line.split()[0] for line in says("report", *options, "--by", "s").splitlines()]
    assert sorted(lines[1:-1]) == ["(none)", "(none)", "\\xff", "a\\x1b[1m"], lines
    assert r"odd\xff\n.txt " in says("report", *options, "--by", "input")
    text = says("trace", *options, "--document", f"{folder / 'odd'}:0")
    assert says("trace", *options, "--where", "f=NaN").count("f=NaN") > 1
    assert r"odd\xff\n.txt  f=NaN  s=a\x1b[1m" in text, text
    assert answer("trace", *options, "--document", f"{folder / 'odd'}:0")[0]["documents"][0]["meta"]["f"] == "NaN"


def attempts_are_shown_if_asked_for(folder):
    ledger = folder / "run.ledger"
    with tokmap.Loader(folder / "flat", LENGTH, 4, ledger=ledger, order=tokmap.Order(batch_schedule=[(8, 8)])) as loader:
        states = [next(loader).state for _ in range(4)]
        loader.restore(states[0])
        next(loader)
    (folder / "state").write_bytes(states[0])
    run_of = ("--ledger", ledger)
    assert tokmap.Run(ledger).given_up == [(4, 8), (8, 24)]  # also where the rows of a step changed
    assert [r["given_up"] for r in answer("trace", *run_of, "--step", 1)] == [False] * 4
    assert [r["given_up"] for r in answer("trace", *run_of, "--step", 1, "--all-attempts")] == [False] * 4 + [True] * 4
    assert [r["given_up"] for r in answer("trace", *run_of, "--sample", 20, "--all-attempts")] == [True]
    assert "given up: step 3 " in says("trace", *run_of, "--sample", 20, "--all-attempts")
    refused(2, "sample 20 is not before sample 8", "trace", *run_of, "--sample", 20)
    tokens = [answer("report", *run_of, *more)["n_labels"] for more in ((), ("--all-attempts",), ("--state", folder / "state"))]
    assert tokens == [8 * LENGTH, 28 * LENGTH, 4 * LENGTH]
    document = answer("trace", *run_of, "--sample", 20, "--all-attempts")[0]["documents"][0]["number"]
    found = answer("trace", *run_of, "--document", f"{folder / 'flat'}:{document}", "--all-attempts")
    assert (20, True) in [(r["sample"], r["given_up"]) for r in found]
    killed = tokmap.Loader(folder / "flat", LENGTH, 4, ledger=folder / "killed")
    states = [next(killed).state for _ in range(3)]
    killed._recorder.ledger.is_open = False
    with tokmap.Loader(folder / "flat", LENGTH, 4, ledger=folder / "killed") as loader:
        loader.restore(states[1])
        next(loader)
    status, _, errors = run("report", "--ledger", folder / "killed", "--all-attempts")
    assert status == 0 and "end is not in the ledger: 1." in errors, errors


def sources_of_other_attempts_are_named_only_if_they_agree(folder):
    def go_on(paths, n_steps, **options):
        with tokmap.Loader([(folder / path, 1) for path in paths], LENGTH, 4, seed=1, ledger=folder / "other.ledger",
                           ranks=tokmap.Ranks(rank=0, n_ranks=1), **options) as loader:
            states = [next(loader).state for _ in range(n_steps)]
        return states

    states = go_on(["flat"], 4)
    go_on(["flat", "joined"], 4, resume=tokmap.Resume(amend=states[3]))
    with tokmap.Loader([(folder / "flat", 1)], LENGTH, 4, seed=1, ledger=folder / "other.ledger",
                       ranks=tokmap.Ranks(rank=0, n_ranks=1)) as loader:
        loader.restore(states[1])
        next(loader)
    lines = says("report", "--ledger", folder / "other.ledger", "--all-attempts").splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [["0", f"{folder}/flat.tmi"], ["1", f"{folder}/joined.tmi"]], lines
    call("pack", "-q", folder / "more.txt", "-o", folder / "third")
    go_on(["flat", "third"], 4, resume=tokmap.Resume(amend=states[1]))
    lines = says("report", "--ledger", folder / "other.ledger", "--all-attempts").splitlines()
    assert lines[1].split()[1].endswith("/flat.tmi") and lines[2].split()[0] == "1" and "tmi" not in lines[2], lines
    shares = answer("report", "--ledger", folder / "other.ledger", "--all-attempts")["shares"]
    assert [one["path"] for one in shares] == [f"{folder}/flat.tmi", None], shares


def what_is_wrong_is_refused(folder):
    ledger = folder / "refused.ledger"
    with tokmap.Loader(folder / "flat", LENGTH, 4, ledger=ledger, seed=5, order=tokmap.Order(skip=[(8, 10)])) as loader:
        for _ in range(5):
            next(loader)
    of_ledger, options = ("--ledger", ledger), (folder / "flat", *ORDER, "--until", 20)
    for what, text in ((("--step", 5), "step 5: there are 5 steps"), (("--step", -1), "step -1"), (("--sample", 8), "was not used"),
                       (("--sample", 22), "is not before sample 22"), (("--sample", -1), "sample -1"),
                       (("--step", 0, "--rank", 1), "rank 1: the run had 1"), (("--sample", 0, "--rank", 1), "rank 1"),
                       (("--sample", 0, "--rank", -1), "rank -1"), (("--document", "flat"), "--document flat: must be"),
                       (("--document", "flat:x"), "--document flat:x: must be"), (("--document", "flat:-1"), "must be"),
                       (("--document", f"{folder / 'flat'}:120"), "document"), (("--document", "other:1"), "other: is no dataset"),
                       (("--input", "nothing"), "such documents"), (("--where", "year"), "--where year: must be"),
                       (("--where", "year=1"), "such documents"), (("--where", "month=1"), "no values 'month'"),
                       (("--sample", 0, "--until", 23), "closed at sample 22"),
                       ((), "one of these options is required: --step"),
                       (("--step", "x"), "--step x: must be a whole number"),
                       (("--sample", 0, "--until", -1), "until"), (("--sample", 0, "--seed", 1), "--ledger"),
                       (("--step", 0, "--sample", 0), "use only one of --step and --sample")):
        refused(2, text, "trace", *of_ledger, *what)
    for what, text in ((("--top", "0%"), "above 0 %"), (("--top", "101"), "at most 100 %"), (("--top", "x"), "above 0 %"),
                       (("--top", "1/0"), "above 0 %"), (("--by", "month"), "no values 'month'"), (("--host", "month"), "no values"),
                       (("--host", "year"), "values 'year' are no text"),
                       (("--by", "year", "--host", "url"), "use only one of --by and --host"),
                       ((folder / "flat",), "--ledger")):
        refused(2, text, "report", *of_ledger, *what)
    for more, text in ((("--all-attempts",), "needs --ledger"), (("--shuffle", "some"), "shuffle"), (("--seed", -1), "seed"),
                       (("--windows", "none"), "windows"), (("--n-ranks", 0), "n_ranks")):
        refused(2, text, "report", *options, *more)
    for given, text in (((), "say which run"), ((folder / "flat",), "say which run"),
                        ((folder / "flat", *ORDER), "say where the run is"),
                        ((folder / "flat", *ORDER, "--max-epochs", 1, "--until", 10**6), "1000000")):
        refused(2, text, "report", *given)
    refused(2, "--n-ranks and --batch-rows", "trace", *options, "--step", 0)
    refused(3, "nothing", "report", "--ledger", folder / "nothing")
    refused(3, "nothing", "report", folder / "nothing", *ORDER, "--until", 1)
    refused(3, "text.jsonl: is not a state", "report", *of_ledger, "--state", folder / "text.jsonl")
    with tokmap.Loader(folder / "flat", LENGTH, 4, seed=6) as loader:
        (folder / "other").write_bytes(loader.state())
    refused(4, "seed", "report", *of_ledger, "--state", folder / "other")
    refused(4, "text.jsonl:1: is not a line", "report", "--ledger", folder / "text.jsonl")
    bare = (folder / "bare", *ORDER, "--until", 9)
    for what in (("--sample", 1), ("--document", f"{folder / 'bare'}:0"), ("--input", "bare.bin"), ("--where", "year=1")):
        refused(4, "bare.tmi: its document boundaries are not known", "trace", *bare, *what)
    refused(4, "bare.tmi: its document boundaries are not known", "report", *bare)
    (folder / "torn").write_bytes(ledger.read_bytes() + b'{"ledger":1')
    status, _, errors = run("report", "--ledger", folder / "torn")
    assert status == 0 and errors.startswith(f"tokmap report: {folder / 'torn'}:3: ") and errors.count("\n") == 1, errors
    (folder / "copy").write_bytes(ledger.read_bytes().replace(b'"seed":"5"', b'"seed":"6"'))
    refused(4, "copy:1: was changed", "report", "--ledger", folder / "copy")
    call("pack", "-q", "--force", folder / "more.txt", "-o", folder / "flat")
    refused(4, "is another dataset now", "report", *of_ledger)


def sources_without_the_column_are_a_group(folder):
    ledger = folder / "mixed.ledger"
    with tokmap.Loader([(folder / "flat", 1), (folder / "joined", 1)], LENGTH, 4, ledger=ledger, seed=5) as loader:
        for _ in range(8):
            next(loader)
    by_source = {one["name"]: one["n_labels"] for one in answer("report", "--ledger", ledger)["shares"]}
    found = answer("report", "--ledger", ledger, "--by", "year")
    shares = {one["name"]: one["n_labels"] for one in found["shares"]}
    assert set(shares) == {None, 2024, 2025} and found["n_labels"] == sum(shares.values()) == sum(by_source.values())
    assert shares[None] > by_source[1] and shares[2024] + shares[2025] < by_source[0]  # some documents of the other one lack it
    assert re.search(r"^\(none\) +%d" % shares[None], says("report", "--ledger", ledger, "--by", "year").replace(",", ""), re.M)
    hosts = {one["name"]: one["n_labels"] for one in answer("report", "--ledger", ledger, "--host", "url")["shares"]}
    assert hosts == {None: by_source[1], "a.org": hosts["a.org"], "b.de": hosts["b.de"]}, hosts
    refused(2, "no values 'month': there are 'url', 'year'", "report", "--ledger", ledger, "--by", "month")


def nobody_has_to_read_to_the_end(folder):
    options = (folder / "flat", *ORDER, "--max-epochs", 9)
    for what in (("report", *options, "--by", "url", "--format", "csv"), ("trace", *options, "--input", folder / "text.jsonl")):
        process = subprocess.Popen([sys.executable, "-m", "tokmap", *map(str, what)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait() == 0 and not errors, (process.returncode, errors)


def errors_of_options_are_those_of_the_program(folder):
    """As tokenize_tools/cli/options.c has them."""
    good = ("--ledger", folder / "x")
    for text, *arguments in (("unknown option --unknown", "--unknown=1"),
                             ("option --top needs a value", "--top"), ("option --json takes no value", "--json=1"),
                             ("--format json: must be table or csv", "--format", "json"), ("unknown option -x", "-x"),
                             ("--seed 1.5: must be a whole number", "--seed", "1.5")):
        refused(2, text, "report", *good, *arguments)
    refused(2, "option --s is ambiguous: --step, --sample, --state, --sequence-length, --seed, --shuffle", "trace", *good, "--step", 1, "--s", 1)
    assert "shares" in answer("report", folder / "flat", *ORDER, "--until", 9, folder / "joined")  # in any order


sys.exit(run_in_folders("python_answers_", prepare=prepare))
