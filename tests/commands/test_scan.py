#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap scan: what it finds, against sets of tuples in Python; the same for any number of threads, joined or not; what is
refused, and what is left then."""

import base64
import gzip
import json
import os
import pathlib
import random
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "pack"))

import pack_corpus  # noqa: E402
import ref_reader  # noqa: E402
from commands import said, tokmap  # noqa: E402
from ref_protocol import expect, expect_equal, run_in_folders  # noqa: E402

N_RUNS = 10200 if os.environ.get("TOKMAP_LONG") == "all" else 20
LEAST_SHORT = 8
NAMES = ("x_ngrams", "x_longest", "x_example")


def runs_of(hits, n):
    """(first place, length in tokens) of the longest runs of consecutive places."""
    runs = []
    for at in hits:
        if runs and runs[-1][1] == at:
            runs[-1][1] += 1
        else:
            runs.append([at, at + 1])
    return [(first, end - first + n - 1) for first, end in runs]


def search(documents, examples, n):
    """For each document how many n-grams it has, and its runs: (place, length, example). examples: lists of texts, which
    are lists of ids."""
    grams = {}  # length: {tuple: example}
    for number, texts in enumerate(examples, 1):
        for ids in texts:
            length = min(len(ids), n)
            if length == n or length >= LEAST_SHORT:
                for i in range(len(ids) - length + 1):
                    grams.setdefault(length, {}).setdefault(tuple(ids[i:i + length]), number)
    return [(sum(tuple(ids[i:i + length]) in known for length, known in grams.items() for i in range(len(ids) - length + 1)),
             [(at, longest, known[tuple(ids[at:at + length])]) for length, known in grams.items()
              for at, longest in runs_of([i for i in range(len(ids) - length + 1) if tuple(ids[i:i + length]) in known], length)])
            for ids in documents]


def values_of(found):
    """(n-grams, longest, example) of each document, or None. Among runs of one length, the first counts."""
    return [n and (n, *max(runs, key=lambda run: run[1])[1:]) or None for n, runs in found]


def columns(prefix):
    ds = ref_reader.read(str(prefix))
    values = [ref_reader.read_late(ds, name)[0].values for name in NAMES]
    return [None if one[0] is None else one for one in zip(*values)]


def tokens_of(prefix):
    return [[int(i) for i in line.split()] for line in said("cat", prefix).splitlines()]


def random_texts(rng, letters):
    return "".join(rng.choice(letters) for _ in range(rng.choice((0, 3, 9, 30, 80))))


def with_blanks(examples):
    return [[list(blank + text) for text in texts for blank in (b"", b" ")] for texts in examples]


def found_is_what_python_finds(folder):
    rng = random.Random(4)
    n_found = 0
    for run in range(N_RUNS):
        letters = rng.choice(("ab", "abc", "abcdefghij", "abc é"))
        texts = [random_texts(rng, letters) for _ in range(rng.randrange(1, 30))]
        examples = []
        for _ in range(rng.randrange(0, 8)):
            text = rng.choice(texts) if rng.random() < 0.5 else random_texts(rng, letters)
            begin = rng.randrange(len(text) + 1)
            examples.append({"q": text[begin:begin + rng.randrange(60)], "a": rng.choice((None, random_texts(rng, letters)))})
        (folder / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        data = "".join(json.dumps(one) + "\n" for one in examples).encode()
        (folder / "b.jsonl.gz").write_bytes(gzip.compress(data))
        said("pack", "-q", folder / "in.jsonl", "-o", folder / "p", "--force")
        n = rng.randrange(1, 41)
        said("scan", "-q", "-f", folder / "p", "--against", folder / "b.jsonl.gz", "--fields", "q,a", "--name", "x", "-n", n,
             "-j", rng.choice((1, 3)))
        texts_of = [[text.encode() for text in (one["q"], one["a"]) if text is not None] for one in examples]
        wanted = search(tokens_of(folder / "p"), with_blanks(texts_of), n)
        expect_equal(columns(folder / "p"), values_of(wanted), "run %d" % run)
        n_found += sum(n > 0 for n, _ in wanted)
    expect(n_found > N_RUNS // 2, str(n_found))
    return "%d documents with an n-gram" % n_found


def the_tokenizer_of_the_dataset(folder):
    (folder / "tokenizer.json").write_text(pack_corpus.small_vocabulary())
    (folder / "in.jsonl").write_text("".join('{"text": "one text and number %d of them, and so on"}\n' % i for i in range(50)))
    (folder / "b.jsonl").write_text('{"text": "and number 17 of them, and"}\n')
    said("pack", "-q", folder / "in.jsonl", "--tokenizer", folder / "tokenizer.json", "-o", folder / "p")
    scan = ["scan", folder / "p", "--against", folder / "b.jsonl", "--name", "x", "-f"]
    out = json.loads(said(*scan, "--json", "-n", "6", "--tokenizer", folder / "tokenizer.json"))
    ids = [json.loads(line) for line in said("encode", "--tokenizer", folder / "tokenizer.json", folder / "b.jsonl").splitlines()]
    (folder / "blank.jsonl").write_text('{"text": " and number 17 of them, and"}\n')
    ids += [json.loads(line) for line in said("encode", "--tokenizer", folder / "tokenizer.json", folder / "blank.jsonl").splitlines()]
    wanted = search(tokens_of(folder / "p"), [ids], 6)
    expect_equal(columns(folder / "p"), values_of(wanted), "columns")
    expect(wanted[17][0] > 0 and out["n_documents"] == sum(n > 0 for n, _ in wanted), str(out))
    expect_equal(json.loads(said(*scan, "--json", "-n", "6")), out, "with the tokenizer beside the dataset")
    expect_equal((out["index_file"], out["columns"]), (str(folder / "p.tmi"), ["x_ngrams", "x_longest", "x_example"]), "--json")
    (folder / "tokenizer.json").rename(folder / "own.json")
    (folder / "tokenizer.json").write_text(pack_corpus.small_vocabulary() + "\n")
    code, _, err = tokmap(*scan)
    expect(code == 3 and "not in this folder or beside the dataset: name its file with --tokenizer" in err, err)
    (folder / "own.json").rename(folder / "tokenizer.json")
    (folder / "other.json").write_text(pack_corpus.small_vocabulary() + "\n")
    code, _, err = tokmap(*scan, "--tokenizer", folder / "other.json")
    expect(code == 3 and "--tokenizer names another file" in err, err)
    ranks = folder / "r.tiktoken"
    ranks.write_bytes(b"".join(b"%s %d\n" % (base64.b64encode(bytes([i])), i) for i in range(256)))
    said("pack", "-q", folder / "in.jsonl", "--tokenizer", ranks, "--pattern", "gpt2:any", "--eod", "none", "-o", folder / "r")
    other = ["scan", folder / "r", *scan[2:], "-q", "--tokenizer", ranks]
    code, _, err = tokmap(*other, "--pattern", "cl100k:any")
    expect(code == 3 and 'was packed with "gpt2:any": its --pattern must be the same here' in err, err)
    expect_equal(tokmap(*other, "--pattern", "gpt2:any"), (0, "", ""), "the same pattern")
    large = json.loads(pack_corpus.small_vocabulary())
    vocabulary = large["model"]["vocab"]
    vocabulary.update({"unused%d" % i: i for i in range(len(vocabulary), 70000)})
    large["added_tokens"][0]["id"] = len(vocabulary)
    (folder / "large.json").write_text(json.dumps(large))
    (folder / "ids.bin").write_bytes(bytes(200))
    said("index", "-q", "--dtype", "u16", "--eod", "7", folder / "ids.bin")  # made by nobody knows what
    code, _, err = tokmap("scan", folder / "ids", *scan[2:], "--tokenizer", folder / "large.json")
    expect(code == 3 and "its tokens have 2 bytes, but large.json has ids above 65535" in err, err)
    expect_equal(tokmap("scan", folder / "ids", *scan[2:], "-q", "--tokenizer", folder / "tokenizer.json"), (0, "", ""), "ids")


def special_tokens_are_what_they_became_in_the_dataset(folder):
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text(pack_corpus.small_vocabulary())
    text = "one text and <|endoftext|> number 17 of them, and so on"
    (folder / "in.jsonl").write_text('{"text": "another text"}\n{"text": "%s"}\n' % text)
    (folder / "b.jsonl").write_text('{"text": "%s"}\n' % text)
    for policy in ("text", "match", "drop"):
        said("pack", "-q", folder / "in.jsonl", "--tokenizer", tokenizer, "--specials", policy, "-o", folder / policy)
        said("scan", "-q", folder / policy, "--against", folder / "b.jsonl", "--name", "x", "-n", "6", "--tokenizer", tokenizer)
        n_tokens = len(tokens_of(folder / policy)[1]) - 1  # without the end of the document
        expect_equal([found and found[1] for found in columns(folder / policy)], [None, n_tokens], policy)
    said("pack", "-q", folder / "in.jsonl", "--tokenizer", tokenizer, "-o", folder / "p")
    (folder / "ids.bin").write_bytes((folder / "p.bin").read_bytes())
    said("index", "-q", "--dtype", "u16", "--eod", "261", folder / "ids.bin")  # whose metadata does not say it
    scan = ("scan", "-q", folder / "ids", "--against", folder / "b.jsonl", "--name", "x", "-n", "6", "--tokenizer", tokenizer)
    code, _, err = tokmap(*scan)
    expect(code == 3 and "b.jsonl:1: byte" in err and "the special token <|endoftext|>: the metadata of" in err, err)
    (folder / "b.jsonl").write_text('{"text": "number 17 of them, and"}\n')
    expect_equal(tokmap(*scan), (0, "", ""), "an example without special tokens")


def the_longest_matches_are_shown(folder):
    rng = random.Random(12)
    texts = [random_texts(rng, "ab") for _ in range(200)]
    examples = [rng.choice(texts), "none of this", random_texts(rng, "ab"), rng.choice(texts)]
    (folder / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (folder / "b.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in examples))
    said("pack", "-q", folder / "in.jsonl", "-o", folder / "p")
    documents = tokens_of(folder / "p")
    wanted = search(documents, with_blanks([[text.encode()] for text in examples]), 8)
    scan = ["scan", "-q", folder / "p", "--against", folder / "b.jsonl", "--name", "x", "-n", "8", "-j", "3", "--matches"]
    found, lines = json.loads(said(*scan, "--json"))["examples"], said(*scan, "-f")
    n_cut = 0
    for number, example in enumerate(found, 1):
        matches = sorted((-length, i, at) for i, (_, runs) in enumerate(wanted) for at, length, one in runs if one == number)
        n_documents = len({i for _, i, _ in matches})
        expect_equal([example["example"], example["n_documents"]], [number, n_documents], "example")
        n_cut += len(matches) > 20
        parts = []
        for longest, document, at in matches[:20]:
            text, end = bytes(i for i in documents[document] if i < 256).decode(), at - longest
            parts.append({"document": document, "token": at, "n_tokens": -longest, "before": text[max(at - 60, 0):at],
                          "match": text[at:end], "after": text[end:end + 60]})
        expect_equal(example["matches"], parts, "matches of example %d" % number)
        for part in parts:
            expect("  document %d, %d tokens from token %d on\n    before %s\n    match  %s\n    after  %s\n" % (
                part["document"], part["n_tokens"], part["token"],
                *(json.dumps(part[one]) for one in ("before", "match", "after"))) in lines, lines)
        expect(("\nexample %d: " % number in lines) == bool(matches), lines)
    expect(n_cut > 0 and not found[1]["matches"], "examples with more than 20 matches, and without any")


def joined_data_and_threads(folder):
    rng = random.Random(6)
    names = []
    for i in range(3):
        lines = [json.dumps({"text": random_texts(rng, "abcdef")}) + "\n" for _ in range(1500)]
        (folder / ("in%d.jsonl" % i)).write_text("".join(lines))
        names.append(folder / ("in%d.jsonl" % i))
    (folder / "b.jsonl").write_text("".join(json.dumps({"text": random_texts(rng, "abcdef")}) + "\n" for _ in range(60)))
    said("plan", "-q", *names, "--cells", folder / "cells", "--cell-size", "20k", "-o", folder / "run.plan")
    said("pack", "-q", "--plan", folder / "run.plan")
    said("join", "-q", folder / "run.plan", "-o", folder / "joined")
    said("merge", "-q", folder / "joined", "-o", folder / "flat")
    found = []
    for prefix, threads in (("joined", 1), ("flat", 1), ("joined", 4), ("flat", 7)):
        said("scan", "-q", "-f", folder / prefix, "--against", folder / "b.jsonl", "--name", "x", "-n", "5", "-j", threads)
        found.append((columns(folder / prefix), (folder / ("%s.x_longest.tmc" % prefix)).read_bytes()[128:]))
    expect(all(one == found[0] for one in found) and any(found[0][0]), "found")


def duplicates(folder):
    rng = random.Random(8)
    for run in range(12):
        texts = [random_texts(rng, "ab")[:rng.choice((2, 4, 80))] for _ in range(rng.choice((1, 40, 700)))]
        (folder / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        said("pack", "-q", folder / "in.jsonl", "-o", folder / "p", "--force")
        memory = rng.choice(((), ("--memory", "900"), ("--memory", "10k")))
        out = json.loads(said("scan", "-q", "-f", folder / "p", "--duplicates", "--name", "same", "--json", *memory))
        documents, first = tokens_of(folder / "p"), {}
        wanted = [None if first.setdefault(tuple(ids), i) == i else first[tuple(ids)] for i, ids in enumerate(documents)]
        expect_equal(ref_reader.read_late(ref_reader.read(str(folder / "p")), "same")[0].values, wanted, "run %d" % run)
        n = sum(one is not None for one in wanted)
        expect_equal(out["n_duplicates"], n, "how many")
        text = tokmap("scan", "-f", folder / "p", "--duplicates", "--name", "same", *memory)[1]
        expect_equal(text, "same: %d document%s with the tokens of an earlier one\n" % (n, "" if n == 1 else "s"), "what it says")
        expect_equal(said("scan", "-q", "-f", folder / "p", "--duplicates", "--name", "same", *memory), "", "with -q")
    kept = json.loads(said("info", folder / "p", "--json", "--where", "same is null"))["kept"]["n_documents"]
    expect_equal(kept, len({tuple(ids) for ids in documents}), "the firsts")


def refusals(folder):
    (folder / "in.jsonl").write_text('{"text": "a b c d e f g h i j k l m n o p q r s t"}\n' * 3)
    said("pack", "-q", folder / "in.jsonl", "-o", folder / "p")
    p, b = folder / "p", folder / "b.jsonl"
    for text, options, code, why in (
            ('{"text": "abc"}\n{"text": 3}\n', [], 3, "b.jsonl:2"), ('{"text": "abc"}\n{"tex', [], 3, "b.jsonl:2"),
            ('{"text": "abc"}\n', ["--name", "a b"], 2, "a b_ngrams"), ('{"text": "abc"}\n', ["-n", "0"], 2, "-n"),
            ('{"text": "abc"}\n', ["--against", folder / "none.jsonl"], 3, "none.jsonl"),
            ('{"text": "abc"}\n', ["--fields", "nope"], 3, "no record of 1 has the field nope; the nearest one is text"),
            ('{"text": "abc", "list": ["a"]}\n', ["--fields", "text,list"], 3, "the field list is an object or a list wherever"),
            ('{"text": "abc"}\n{"text": ["a"]}\n', [], 3, "the field text is an object or a list in some records of 2")):
        b.write_text(text)
        found, out, err = tokmap("scan", p, "--against", b, "--name", "x", *options)
        expect_equal([found, out], [code, ""], "%s: %s" % (options, err))
        expect(why in err or code == 2, err)
        expect_equal(sorted(name for name in os.listdir(folder) if name.startswith("p.")), ["p.bin", "p.tmi"], "what is left")
    b.write_text('{"text": "abc"}\n')
    out, err = tokmap("scan", p, "--against", b, "--name", "x")[1:]
    expect("1 example shorter than 8 tokens: not looked for" in err and "0 documents" in out, out + err)
    code, _, err = tokmap("scan", p, "--against", b, "--name", "x")
    expect(code == 5 and "--force replaces late columns" in err, err)


if __name__ == "__main__":
    sys.exit(run_in_folders("scan_"))
