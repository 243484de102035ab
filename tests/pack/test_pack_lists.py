#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap pack of records that are lists: token ids with labels or a loss mask, and parts of texts, of JSON lines and
Parquet. Compared with what Python wrote, and parts with the bytes of their tokens, for any number of threads, in plans,
after kills; what is wrong in a list is told with its place."""

import itertools
import json
import os
import random
import re
import subprocess
import sys
import time

import ref_protocol
import ref_reader
from oracle_patterns import byte_letters
from pack_corpus import n_bytes, small_vocabulary
from ref_protocol import expect, expect_equal, need_parquet, program

LONG = os.environ.get("TOKMAP_LONG") == "all"
VOCAB = 70000


def some_rows(rng, n, longest=40):
    """[(ids, counts)]: some without a mask that says anything."""
    rows = []
    for _ in range(n):
        size = rng.choice((0, 1, 2, rng.randint(0, longest)))
        counts = [rng.random() < 0.5] * size if rng.random() < 0.3 else [rng.random() < 0.7 for _ in range(size)]
        rows.append(([rng.choice((0, 9, 255, 65535, VOCAB - 1, rng.randrange(VOCAB))) for _ in range(size)], counts))
    return rows


def written(rng, ids, counts, i):
    """A line, with white space and other fields in it, of one of which a key is that of a list."""
    labels = [token if count else -100 for token, count in zip(ids, counts)]
    mask = [rng.choice((count, int(count))) for count in counts]
    record = {"id": i, "other": {"input_ids": [1, [2]]}, "input_ids": ids, "labels": labels, "mask": mask, "text": "[1]"}
    keys = list(record)
    rng.shuffle(keys)
    text = json.dumps({key: record[key] for key in keys}, indent=rng.choice((None, None, 1)),
                      separators=rng.choice(((",", ":"), (" , ", " : "))))
    return text.replace("\n", rng.choice(("", " \t")))


def write_lines(folder, name, rng, rows):
    (folder / name).write_text("".join(written(rng, *row, i) + "\n" for i, row in enumerate(rows)))
    return name


def write_parquet(folder, name, rng, rows):
    """As some program might; with null lists, which are no documents."""
    pa, parquet = need_parquet()
    number = rng.choice((pa.int32(), pa.int64(), pa.uint32()))
    kinds = {"id": pa.int64(), "input_ids": rng.choice((pa.list_, pa.large_list))(number), "labels": pa.list_(pa.int64()),
             "mask": pa.list_(rng.choice((pa.bool_(), pa.int8())))}
    mark = bool if kinds["mask"].value_type == pa.bool_() else int
    records = []
    for i, (ids, counts) in enumerate(rows):
        records += [{"id": i, "input_ids": None, "labels": [1], "mask": None}] * (rng.random() < 0.02)
        labels = [token if count else -100 for token, count in zip(ids, counts)]
        records.append({"id": i, "input_ids": ids, "labels": labels, "mask": [mark(c) for c in counts]})
    columns = {key: pa.array([record[key] for record in records], kind) for key, kind in kinds.items()}
    parquet.write_table(pa.table(columns), folder / name, row_group_size=rng.choice((7, 100, 5000)),
                        data_page_size=rng.choice((1, 1000, 1 << 20)), data_page_version=rng.choice(("1.0", "2.0")),
                        write_batch_size=rng.choice((1, 50, 1024)), use_dictionary=rng.random() < 0.5,
                        compression=rng.choice(("snappy", "zstd", "none")), write_page_index=rng.random() < 0.5)
    return name


def pack(folder, out, inputs, *options, code=0, lists="--tokens=input_ids", **environment):
    done = subprocess.run([program("tokmap"), "pack", *inputs, "-o", out, lists, *options], cwd=folder,
                          capture_output=True, text=True, env={**os.environ, **environment})
    expect_equal(done.returncode, code, done.stderr)
    return done.stderr


def wanted(rows, masked=True, eod=None):
    """The tokens, the documents, and the tokens that do not count."""
    tokens, documents, masks = [], [], set()
    for ids, counts in rows:
        first = len(tokens)
        tokens += ids
        if masked:
            masks |= {first + i for i, count in enumerate(counts) if not count}
        if eod is not None and ids[-1:] != [eod]:
            if masked and ids and not counts[-1]:
                masks.add(len(tokens))
            tokens.append(eod)
        documents.append((first, len(tokens)))
    return tokens, documents, masks


def check(folder, out, rows, **how):
    ds = ref_reader.read(str(folder / out))
    tokens, documents, masks = wanted(rows, **how)
    expect(list(ds.tokens) == tokens and [tuple(d) for d in ds.documents] == documents, "other tokens")
    found = {i for first, end, _ in ds.spans for i in range(first, end)}
    expect(found == masks, "other spans")
    return len(masks)


def rows_are_those_of_python(folder):
    n = 0
    for seed in range(20 if LONG else 3):
        rng = random.Random(seed)
        rows = some_rows(rng, 300)
        n += rows_are_packed(folder, write_lines(folder, "a.jsonl", rng, rows), rows)
    return "%d tokens that do not count" % n


def rows_are_packed(folder, name, rows):
    n = 0
    for options, how in ((["--labels", "labels"], {}), (["--loss-mask", "mask", "--eod", "9"], {"eod": 9}),
                         ([], {"masked": False})):
        pack(folder, "o", [name], *options, "--vocab-size", str(VOCAB), "--force")
        n += check(folder, "o", rows, **how)
    return n


def rows_of_parquet_are_those_that_were_written(folder):
    n = 0
    for seed in range(16 if LONG else 3):
        rng = random.Random(seed)
        rows = some_rows(rng, rng.choice((10, 500)), rng.choice((5, 40, 2000)))
        n += rows_are_packed(folder, write_parquet(folder, "a.parquet", rng, rows), rows)
    return "%d tokens that do not count" % n


def neither_threads_memory_nor_a_plan_make_a_difference(folder):
    same_for_threads_memory_and_a_plan(folder, write_lines)


def nor_do_they_with_parquet(folder):
    same_for_threads_memory_and_a_plan(folder, write_parquet)


def same_for_threads_memory_and_a_plan(folder, write):
    """With rows that are longer than a batch."""
    rng = random.Random(1)
    rows = some_rows(rng, 2000)
    rows[7] = ([65535, 9] * 60000, [i % 5 > 2 for i in range(120000)])
    rows[8] = ([9] * 300000, [True] * 100000 + [False] * 200000)
    names = [write(folder, "%d.in" % k, rng, rows[k::3]) for k in range(3)]
    rows = sum((rows[k::3] for k in range(3)), [])
    options = ["--labels", "labels", "--vocab-size", str(VOCAB)]
    outputs = []
    for i, more in enumerate((["-j", "1"], ["-j", "4", "--memory", "200M"])):
        pack(folder, "o%d" % i, names, *options, "--memory", "40M", *more)
        check(folder, "o%d" % i, rows)
        outputs.append((folder / ("o%d.bin" % i)).read_bytes())
    ref_protocol.tokmap(folder, "plan", *names, "--tokens", "input_ids", *options, "--cells", "cells", "-o", "p",
                        "--cell-size", "1M")
    for i in range(3):
        ref_protocol.tokmap(folder, "pack", "--plan", "p", "--task", "%d/3" % i)
    ref_protocol.tokmap(folder, "join", "p", "-o", "joined")
    check(folder, "joined", rows)


def a_mask_that_is_read_is_not_said_to_be_missing(folder):
    for marks in ("[1, 0, 1]", "[true, false, true]"):
        (folder / "a.jsonl").write_text('{"input_ids": [1, 2, 3], "m": %s}\n' % marks)
        said = pack(folder, "out", ["a.jsonl"], "--loss-mask", "m", "--vocab-size", "9", "-f")
        expect("missing" not in said and "wherever" not in said, said)
    (folder / "a.jsonl").write_text('{"input_ids": [1, 2], "labels": [1, -100], "n": [1]}\n{"input_ids": [1], "labels": [1]}\n')
    said = pack(folder, "out", ["a.jsonl"], "--labels", "labels", "--meta", "n", "--vocab-size", "9", "-f", code=3)
    expect("the field n is an object or a list" in said and "labels" not in said, said)


def a_killed_run_goes_on(folder):
    return killed_run_of_tokens(folder, write_lines, 2)


def so_does_one_of_parquet(folder):
    return "; ".join(killed_run_of_tokens(folder, write_parquet, seed) for seed in (100, 101, 102))


def killed_run_of_tokens(folder, write, seed):
    rng = random.Random(seed)
    rows = some_rows(rng, 30000)
    names = [write(folder, "%d.in" % k, rng, rows[k::3]) for k in range(3)]
    rows = sum((rows[k::3] for k in range(3)), [])
    n_killed = killed_again_and_again(folder, *names, "--tokens", "input_ids", "--loss-mask", "mask", "--vocab-size", str(VOCAB))
    check(folder, "o", rows)
    for path in folder.glob("o.*"):
        path.unlink()
    return "%d kills" % n_killed


def killed_again_and_again(folder, *arguments):
    command = [program("tokmap"), "pack", "-o", "o", "--memory", "8M", "-j", "2", *arguments]
    n_killed = 0
    for i in range(400):
        running = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "TOKMAP_CHECKPOINT_MS": "0"})
        before = n_bytes(folder / "o.tmj.partial")
        while running.poll() is None and n_bytes(folder / "o.tmj.partial") <= before:
            time.sleep(0.0005)
        if running.poll() is None:
            running.kill()
            n_killed += 1
        said = running.communicate()[1]
        if running.returncode == 0:
            break
        expect_equal(running.returncode, -9, said)
    expect(n_killed > 2, "only %d kills" % n_killed)
    return n_killed


def cat_shows_what_does_not_count(folder):
    rng = random.Random(3)
    rows = some_rows(rng, 200)
    pack(folder, "o", [write_lines(folder, "a.jsonl", rng, rows)], "--labels", "labels", "--vocab-size", str(VOCAB))
    shown = ref_protocol.tokmap(folder, "cat", "o", "--spans").splitlines()
    listed = [json.loads(line) for line in ref_protocol.tokmap(folder, "cat", "o", "--spans", "--json").splitlines()]
    expect(len(shown) == len(listed) == len(rows), "other lines")
    for (ids, counts), text, line in zip(rows, shown, listed):
        groups = [list(group) for _, group in itertools.groupby(zip(ids, counts), key=lambda pair: pair[1])]
        words = [" ".join(str(i) for i, _ in group) for group in groups]
        expect_equal(text, " ".join(word if group[0][1] else "[%s]" % word for group, word in zip(groups, words)), "line")
        counted = [True] * len(line["ids"])
        for first, n, role in line["spans"]:
            counted[first:first + n] = [False] * n
            expect_equal(role, 0, "role")
        expect(line["ids"] == ids and counted == counts, "other ids")


# ---- Parts ----


PIECES = ["word", " ", "or", "word word", "12", "é", "e\u0301", "語", "\U0001f600", "\U0001f468\u200d\U0001f469", "<|e|>", "<|", "\n", "\0", '"\\']


def some_parts(rng):
    return [{"text": "".join(rng.choices(PIECES, k=rng.choice((0, 1, 1, 4, 30)))), "train": rng.random() < 0.5}
            for _ in range(rng.choice((0, 1, 3, 9)))]


def counted(parts, tokens):
    """Of each token whether it counts: it has a byte of a part that does. tokens: their bytes."""
    expect_equal(b"".join(tokens), "".join(part["text"] for part in parts).encode(), "text of the tokens")
    trained = [part["train"] for part in parts for _ in part["text"].encode()]
    ends = list(itertools.accumulate(map(len, tokens)))
    return [any(trained[end - len(token):end]) for token, end in zip(tokens, ends)]


def tokens_with_a_byte_of_a_trained_part_count(folder):
    specials = ("<|endoftext|>", "<|e|>")
    (folder / "v.json").write_text(small_vocabulary(specials=specials))
    byte_of = {letter: i for i, letter in enumerate(byte_letters())}
    vocabulary = json.loads((folder / "v.json").read_text())
    bytes_of = {i: bytes(byte_of[letter] for letter in token) for token, i in vocabulary["model"]["vocab"].items()}
    bytes_of.update({token["id"]: token["content"].encode() for token in vocabulary["added_tokens"]})
    n = 0
    for seed in range(12 if LONG else 2):
        rng = random.Random(seed)
        records = [some_parts(rng) for _ in range(200)]
        texts = ["".join(part["text"] for part in record) for record in records]
        how = rng.choice(("match", "text"))
        done = ref_protocol.run_program("tokmap", "encode", "--tokenizer", folder / "v.json", "--specials", how, check=True,
                                        input="".join(json.dumps(text) + "\n" for text in texts).encode())
        rows = [(ids, counted(parts, [bytes_of[i] for i in ids])) for parts, ids in
                zip(records, map(json.loads, done.stdout.splitlines()))]
        (folder / "a.jsonl").write_text("".join(
            json.dumps({"x": 1, "p": [dict(rng.sample(list(part.items()), 2)) for part in parts]}, ensure_ascii=seed % 2 > 0) + "\n"
            for parts in records))
        for i, more in enumerate((["-j", "1"], ["-j", "3", "--memory", "9M", "--specials", how])):
            if i or how == "match":  # which it is by itself
                pack(folder, "o", ["a.jsonl"], "--tokenizer", "v.json", "--force", *more, lists="--parts=p")
                n += check(folder, "o", rows)
    return "%d tokens that do not count" % n


ROLES = ("assistant", "think", "tool-call")


def role_of(parts, begin, end):
    """Of a token of these bytes: that of the first of its parts that counts, else of the first that has a role, else 0; None:
    the token has no role. parts: [(bytes, train, role)]."""
    here, at = [], 0
    for text, train, role in parts:
        if text and at < end and at + len(text) > begin:
            here.append((train, role))
        at += len(text)
    train, role = next((one for one in here if one[0]), next((one for one in here if one[1]), here[0]))
    return (None if train else 0) if role is None else (128 if train else 3) + ROLES.index(role)


def tokens_have_the_role_of_their_part(folder):
    (folder / "v.json").write_text(small_vocabulary())
    byte_of = {letter: i for i, letter in enumerate(byte_letters())}
    bytes_of = {i: bytes(byte_of[letter] for letter in token) for token, i in
                json.loads((folder / "v.json").read_text())["model"]["vocab"].items()}
    pieces, n = [piece for piece in PIECES if "<|" not in piece], 0
    for seed in range(12 if LONG else 2):
        rng = random.Random(seed)
        records = [[("".join(rng.choices(pieces, k=rng.choice((0, 1, 1, 4, 9)))), rng.random() < 0.5, rng.choice((None, *ROLES)))
                    for _ in range(rng.choice((1, 3, 9)))] for _ in range(200)]
        (folder / "a.jsonl").write_text("".join(json.dumps({"p": [
            {"text": text, "train": train, **({"role": role} if role or rng.random() < 0.2 else {})} for text, train, role in parts]}) + "\n"
            for parts in records))
        how = rng.choice((["-j", "1"], ["-j", "3", "--memory", "9M"]))
        pack(folder, "o", ["a.jsonl"], "--tokenizer", "v.json", "--force", "--roles", ",".join(ROLES), *how, lists="--parts=p")
        ds = ref_reader.read(str(folder / "o"))
        expect_equal(ds.metadata["roles"], list(ROLES), "names")
        found = [None] * len(ds.tokens)
        for first, end, role in ds.spans:
            found[first:end] = [role] * (end - first)
        for parts, (first, end) in zip(records, ds.documents):
            parts, at = [(text.encode(), train, role) for text, train, role in parts], 0
            for i in range(first, end):
                length = len(bytes_of[ds.tokens[i]])
                expect_equal(found[i], role_of(parts, at, at + length), "role")
                at, n = at + length, n + (found[i] is not None)
            expect_equal(at, sum(len(text) for text, *_ in parts), "bytes of the tokens")
    for roles, why in (("think,think", "is given twice"), ("think,", "must be the names"), ("a b", "cannot be the name"),
                       ("prompt", "cannot be the name"), (",".join(map(str, range(126))), "126 names: at most 125"), ("x" * 65, "cannot be")):
        expect(why in pack(folder, "o", ["a.jsonl"], "--force", "--roles", roles, lists="--parts=p", code=2), roles)
    expect("works only with --parts" in pack(folder, "o", ["a.jsonl"], "--roles", "a", "--vocab-size", "9", lists="--tokens=p", code=2), "--tokens")
    write_parts(folder / "a.parquet", random.Random(1), [some_parts(random.Random(2))] * 3)
    expect("--roles works only with JSON lines" in pack(folder, "q", ["a.parquet"], "--tokenizer", "v.json", "--roles", "a",
                                                        lists="--parts=parts", code=3), "Parquet")
    return "%d tokens with a role" % n


def roles_of_one_dataset_have_one_name(folder):
    """merge keeps the names, and refuses other ones."""
    (folder / "a.jsonl").write_text('{"p": [{"text": "ab", "train": true, "role": "think"}, {"text": "c", "train": false}]}\n')
    (folder / "b.jsonl").write_text('{"p": [{"text": "ab", "train": false}]}\n')
    for out, name, *options in (("a", "a", "--roles", "think,x"), ("a2", "a", "--roles", "think,x", "--eod", "7"), ("b", "b"),
                                ("c", "a", "--roles", "x,think", "--eod", "7")):
        pack(folder, out, [name + ".jsonl"], *options, lists="--parts=p")
    pack(folder, "a3", ["a.jsonl", "b.jsonl"], "--roles", "think,x", lists="--parts=p")
    for others, names in ((["a", "b"], ["think", "x"]), (["b", "a", "a3"], ["think", "x"])):
        ref_protocol.tokmap(folder, "merge", *others, "-o", "m", "-f", "-q")
        expect_equal(ref_reader.read(str(folder / "m")).metadata["roles"], names, "names")
    (folder / "two.jsonl").write_text('{"p": [{"text": "x", "train": false}]}\n{"p": [{"text": "y", "train": true}]}\n')
    pack(folder, "d", ["two.jsonl"], lists="--parts=p")
    ref_protocol.tokmap(folder, "redact", "d", "--documents", "1", "-o", "d2", "-q")  # roles 0 and 1, each of its own
    ref_protocol.tokmap(folder, "merge", "d2", "a", "-o", "m", "-f", "-q")
    done = ref_protocol.run_program("tokmap", "merge", "a2", "c", "-o", "n", cwd=folder)
    expect(done.returncode == 4 and b"the names of their roles differ" in done.stderr, done)


def each_token_of_a_last_character_counts(folder):
    """An emoji of four tokens ends the answer; an empty part inside a token counts nothing."""
    (folder / "v.json").write_text(small_vocabulary())
    emoji = "\U0001f389"
    for parts, counts in (([("hi", False), (emoji, True), ("!", False)], [0, 0, 1, 1, 1, 1, 0]),
                          ([("hi", False), (emoji, True), (emoji, True)], [0, 0] + [1] * 8),
                          ([("wo", False), ("", True), ("rd", False)], [0]), ([("wo", False), ("r", True), ("d", False)], [1])):
        record = {"p": [{"text": text, "train": train} for text, train in parts]}
        (folder / "a.jsonl").write_text(json.dumps(record) + "\n")
        pack(folder, "o", ["a.jsonl"], "--tokenizer", "v.json", "--force", lists="--parts=p")
        tokens = ref_protocol.tokmap(folder, "cat", "o", "--spans").strip()
        found = [int(depth == 0) for depth, _ in spans_shown(tokens)]
        expect_equal(found, counts, f"what counts of {tokens}")


def spans_shown(line):
    """(1 in a span, the id) of each token that `cat --spans` shows."""
    depth = 0
    for bracket in re.findall(r"[\[\]]|\d+", line):
        if bracket in "[]":
            depth = int(bracket == "[")
        else:
            yield depth, int(bracket)


def write_parts(path, rng, records):
    """As some program might, in a group or not. The path of the list."""
    pa, parquet = need_parquet()
    members = [pa.field("text", rng.choice((pa.string(), pa.large_string(), pa.binary())), rng.random() < 0.5),
               pa.field("train", pa.bool_(), rng.random() < 0.5)]
    rng.shuffle(members)
    element = pa.field("element", pa.struct(members), rng.random() < 0.5)
    parts = pa.field("parts", rng.choice((pa.list_, pa.large_list))(element), None in records)
    column = pa.array(records, parts.type)
    if rng.random() < 0.5:
        column = pa.StructArray.from_arrays([column], fields=[parts])
        parts = pa.field("a", column.type, rng.random() < 0.5)
    parquet.write_table(pa.table([range(len(records)), column], pa.schema([("id", pa.int64()), parts])), path,
                        row_group_size=rng.choice((7, 100, 5000)), data_page_size=rng.choice((1, 1000, 1 << 20)),
                        write_batch_size=rng.choice((1, 50, 1024)), use_dictionary=rng.random() < 0.5,
                        data_page_version=rng.choice(("1.0", "2.0")), compression=rng.choice(("snappy", "zstd", "none")))
    return "a.parts" if parts.name == "a" else "parts"


def parts_of_parquet_are_those_of_lines(folder):
    (folder / "v.json").write_text(small_vocabulary())
    n_killed = 0
    for seed in range(16) if LONG else (9, 11, 14):
        rng = random.Random(seed)
        long = seed > 13
        records = [None if rng.random() < 0.02 else some_parts(rng)
                   for _ in range(20000 if long else rng.choice((10, 300, 3000)))]
        (folder / "a.jsonl").write_text("".join(json.dumps({"p": parts}) + "\n" for parts in records))
        lists = "--parts=" + write_parts(folder / "a.parquet", rng, records)
        options = ["--tokenizer", "v.json", "--meta", "@row", "--force"]
        pack(folder, "lines", ["a.jsonl"], *options, lists="--parts=p")
        pack(folder, "o", ["a.parquet"], *options, "-j", str(seed % 4 + 1), lists=lists)
        same_dataset(folder, "lines", "o")
        ref_protocol.tokmap(folder, "plan", "a.parquet", lists, *options[:-1], "--cells", "c%d" % seed, "-o", "p", "--cell-size", "64K",
                            "--force")
        ref_protocol.tokmap(folder, "pack", "--plan", "p", "--task", "0/1")
        ref_protocol.tokmap(folder, "join", "p", "-o", "o", "--force")
        same_dataset(folder, "lines", "o")
        if long:
            n_killed += killed_again_and_again(folder, "a.parquet", *options, lists)
            same_dataset(folder, "lines", "o")
    return "%d kills" % n_killed


def same_dataset(folder, a, b):
    a, b = [json.loads(ref_protocol.tokmap(folder, "info", name, "--json")) for name in (a, b)]
    for name in ("dataset_id", "spans_hash", "n_documents"):
        expect_equal(b[name], a[name], name)


def what_follows_a_dropped_special_token_is_of_its_own_part(folder):
    (folder / "v.json").write_text(small_vocabulary())
    end = "<|endoftext|>"
    for parts, shown in (([("word" + end, True), ("word word", False)], "word[word word]"),
                         ([(end, True), ("word", False), (end + "word" + end, True)], "[word]word"),
                         ([("word", True), (end, False), ("word", True)], "wordword")):
        record = {"p": [{"text": text, "train": train} for text, train in parts]}
        (folder / "a.jsonl").write_text(json.dumps(record) + "\n")
        pack(folder, "o", ["a.jsonl"], "--tokenizer", "v.json", "--specials", "drop", "--force", lists="--parts=p")
        found = ref_protocol.tokmap(folder, "cat", "o", "--spans", "--text", "--tokenizer", "v.json").strip()
        expect_equal(found, shown, "text")


def parts_that_cannot_be_told_are_refused(folder):
    (folder / "v.json").write_text(small_vocabulary())
    nfc = json.loads(small_vocabulary())
    nfc["normalizer"] = {"type": "NFC"}
    (folder / "nfc.json").write_text(json.dumps(nfc))
    good = '{"p": [{"text": "word", "train": true}]}\n'
    for line, vocabulary, reason in (
            ('{"p": [{"text": "a"}]}', "v.json", "byte 14 of the list of parts: a part without train"),
            ('{"p": [{"text": 1, "train": true}]}', "v.json", 'a part: the field "text" has a wrong type'),
            ('{"p": [{"text": "a", "train": 1}]}', "v.json", 'a part: the field "train" has a wrong type'),
            ('{"p": [{"text": "a", "train": true, "role": "user"}]}', "v.json", "the role 'user', which --roles does not name"),
            ('{"p": [{"text": "a", "train": true, "role": 1}]}', "v.json", "expected a string"),
            ('{"p": ["a"]}', "v.json", "byte 1 of the list of parts"),
            ('{"p": "a"}', "v.json", "the field is not a list"),
            ('{"p": [{"text": "e\u0301", "train": true}]}', "nfc.json", "document 2: the tokenizer changes its text")):
        (folder / "a.jsonl").write_text(good + line + "\n" + good)
        options = ["--tokenizer", vocabulary, "--format", "jsonl"]
        said = pack(folder, "o", ["a.jsonl"], *options, lists="--parts=p", code=3)
        expect(reason in said, said)
        pack(folder, "s", ["a.jsonl"], *options, "--on-error", "skip", "--force", "--restart", lists="--parts=p")
        expect_equal(len(ref_reader.read(str(folder / "s")).documents), 2, "documents")
    lower = json.loads(small_vocabulary())
    lower["normalizer"] = {"type": "Lowercase"}
    (folder / "lower.json").write_text(json.dumps(lower))
    said = pack(folder, "o", ["a.jsonl"], "--tokenizer", "lower.json", lists="--parts=p", code=2)
    expect("cannot say which bytes its tokens stand for" in said, said)


BAD = [('{"input_ids": [1, 2.5]}', [], "element 1 of the list is not a token id"),
       ('{"input_ids": [1, "2"]}', [], "element 1 of the list is not a token id"),
       ('{"input_ids": [[1], 2]}', [], "element 0 of the list is not a token id"),
       ('{"input_ids": [1, -1]}', [], "element 1 of the list is not a token id"),
       ('{"input_ids": [4294967297]}', [], "element 0 of the list is not a token id"),
       ('{"input_ids": [18446744073709551617]}', [], "element 0 of the list is not a token id"),
       ('{"input_ids": [1, 70000]}', [], "element 1 of the list is 70000, but the vocabulary has 70000 ids"),
       ('{"input_ids": [true]}', [], "element 0 of the list is not a token id"),
       ('{"input_ids": [1], "l": [true]}', ["--labels", "l"], "element 0 of l is not a whole number"),
       ('{"input_ids": "[1]"}', [], "the field is not a list"),
       ('{"input_id": [1]}', [], 'the field is missing: "input_ids"'),
       ('{"input_ids": [1, 2], "l": [1, 3]}', ["--labels", "l"], "element 1 of l is neither the id of its token nor -100"),
       ('{"input_ids": [1, 2], "l": [1]}', ["--labels", "l"], "l is shorter than the list of tokens, which has 1 or more"),
       ('{"input_ids": [1], "l": [1, 2]}', ["--labels", "l"], "l is longer than the list of tokens, which has 1"),
       ('{"input_ids": [1], "l": null}', ["--labels", "l"], 'the field is missing or not a list: "l"'),
       ('{"input_ids": [1], "l": "[1]"}', ["--labels", "l"], 'the field is missing or not a list: "l"'),
       ('{"input_ids": [1], "l": [1], "l": "]"}', ["--labels", "l"], 'the field is missing or not a list: "l"'),
       ('{"input_ids": [1]}', ["--loss-mask", "l"], 'the field is missing or not a list: "l"'),
       ('{"input_ids": [1], "l": [2]}', ["--loss-mask", "l"], "element 0 of l is neither 1 nor 0"),
       ('{"input_ids": [1], "l": [null]}', ["--loss-mask", "l"], "element 0 of l is not a whole number"),
       ('{"input_ids": [1], "l": [1}', ["--loss-mask", "l"], "not JSON: expected ',' or ']'")]


def what_is_wrong_is_told_with_its_place(folder):
    for i, (line, options, reason) in enumerate(BAD):
        good = '{"input_ids": [7, 8], "l": %s}\n' % ("[7, -100]" if "--labels" in options else "[1, 0]")
        (folder / "a.jsonl").write_text(good + line + "\n" + good)
        options = [*options, "--vocab-size", str(VOCAB), "--format", "jsonl"]
        said = pack(folder, "o", ["a.jsonl"], *options, code=3)
        expect("a.jsonl:2: byte " in said and reason in said, said)
        expect(not (folder / "o.tmi").exists(), "a dataset")
        pack(folder, "c%d" % i, ["a.jsonl"], *options, "--on-error", "skip", "--restart", "--report", "r%d" % i)
        bad, = json.loads((folder / ("r%d" % i)).read_text())["skipped"]
        data = (folder / "a.jsonl").read_bytes()
        expect_equal(data[bad["offset"]:][:bad["n_bytes"]], line.encode(), "the bad line")
        expect(reason in bad["reason"] and bad["line"] == 2, bad)
        check(folder, "c%d" % i, [([7, 8], [True, False])] * 2, masked="l" in options)


def a_run_with_other_options_of_lists_is_not_resumed(folder):
    """The first run ends at a line that is not JSON."""
    good = '{"input_ids": [7, 8], "l": [7, -100], "m": [1, 0], "k": [7, 8], "n": [0, 1]}\n' * 5000
    (folder / "a.jsonl").write_text(good + "\n")
    (folder / "b.jsonl").write_text("no JSON\n")
    for first, other, told in (
            (["--labels", "l"], ["--labels", "k"], "--labels was l and is now k"),
            (["--loss-mask", "m"], ["--loss-mask", "n"], "--loss-mask was m and is now n"),
            (["--labels", "l"], [], "--labels was l and is now none"),
            ([], ["--vocab-size", "60000"], "--vocab-size was %d and is now 60000" % VOCAB)):
        options = ["--format", "jsonl", "--memory", "8M", "--vocab-size", str(VOCAB)]
        inputs = ["a.jsonl", "b.jsonl"]
        pack(folder, "o", inputs, *options, *first, code=3, TOKMAP_CHECKPOINT_MS="0")
        said = pack(folder, "o", inputs, *options, *other, code=5)
        expect(told in said and "--restart" in said, said)
        for path in folder.glob("o.*"):
            path.unlink()


def a_bad_row_of_parquet_is_told_without_a_page(folder):
    """The page at hand may be another one than that of the row: a list can begin and end in different pages."""
    pa, parquet = need_parquet()
    rows = [[1, 2]] * 300 + [[1, -5]] + [[3]] * 300
    parquet.write_table(pa.table({"input_ids": rows}), folder / "a.parquet", data_page_size=1, write_batch_size=1, row_group_size=400)
    said = pack(folder, "o", ["a.parquet"], "--vocab-size", str(VOCAB), code=3)
    expect("a.parquet: row 300: byte " in said and "row group" not in said and "page" not in said, said)


def what_does_not_go_together_is_refused(folder):
    (folder / "a.jsonl").write_text('{"input_ids": [1]}\n')
    (folder / "a.txt").write_text("some text\n")
    (folder / "long.jsonl").write_text('{"input_ids": [%s]}\n' % ",".join(["1"] * 600000))
    v = ["--vocab-size", "9"]
    for inputs, options, code, reason in (
            (["a.jsonl"], [], 2, "--tokens needs --vocab-size, or the --tokenizer that made the ids"),
            (["a.jsonl"], [*v, "--eod", "auto"], 2, "--eod auto or --bos auto needs --tokenizer"),
            (["a.jsonl"], ["--vocab-size", "300", "--eod", "300"], 2, "eod_id is 300: must be below 300"),
            (["a.jsonl"], [*v, "--field", "x"], 2, "use only one of --field, --tokens and --parts"),
            (["a.jsonl"], [*v, "--labels", "l", "--loss-mask", "m"], 2, "do not work together"),
            (["a.jsonl"], [*v, "--labels", "l", "--meta", "l"], 2, "is a list, which --meta and --where cannot take"),
            (["a.jsonl"], [*v, "--format", "arrow"], 2, "only with --format jsonl, parquet or auto"),
            (["a.jsonl"], [*v, "--specials", "match"], 2, "--specials does not work with --tokens"),
            (["a.jsonl"], [*v, "--utf8", "error"], 2, "--utf8 does not work with --tokens"),
            (["a.jsonl"], [*v, "--separator", "x"], 2, "--separator does not work with --tokens"),
            (["a.txt"], v, 3, "is text, which has no lists"),
            (["long.jsonl"], [*v, "--max-document", "1M"], 3, "longer than --max-document allows")):
        said = pack(folder, "o", inputs, *options, code=code)
        expect(reason in said, said)
    (folder / "b.jsonl").write_text('{"ids": [1]}\n')
    expect("use --tokens with one of ids, or --format" in pack(folder, "o", ["b.jsonl"], *v, code=3), "another message")
    said = pack(folder, "last", ["a.jsonl"], "--vocab-size", "300", "--eod", "299")
    expect("--eod" not in said, said)
    pack(folder, "same", ["a.jsonl"], *v, "--labels", "input_ids")
    check(folder, "same", [([1], [True])])


def dates_are_no_ids_and_lists_of_nulls_have_none(folder):
    pa, parquet = need_parquet()
    kinds = [pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), *map(pa.timestamp, ("ms", "us", "ns")),
             pa.timestamp("us", "UTC")]
    v = ["--vocab-size", "9", "--force"]
    for version in "1.0", "2.6":
        for kind in kinds:
            if version == "1.0" and kind in (pa.time64("ns"), pa.timestamp("ns")):
                continue
            dates = pa.array([[3, 8]], pa.list_(pa.int32() if kind.bit_width == 32 else pa.int64())).cast(pa.list_(kind))
            parquet.write_table(pa.table({"d": dates, "ids": [[1, 2]]}), folder / "a.parquet", version=version)
            said = pack(folder, "p", ["a.parquet"], *v, lists="--tokens=d", code=3)
            expect('the column "d" has lists of dates or times, which are not token ids' in said, said)
            for marks in "labels", "loss-mask":
                said = pack(folder, "p", ["a.parquet"], *v, "--%s=d" % marks, lists="--tokens=ids", code=3)
                expect('the column "d" has lists of dates or times' in said, said)
    parquet.write_table(pa.table({"d": pa.array([[], None, []], pa.list_(pa.null()))}), folder / "a.parquet")
    pack(folder, "o", ["a.parquet"], *v, lists="--tokens=d")
    check(folder, "o", [([], []), ([], [])], masked=False)
    parquet.write_table(pa.table({"d": pa.array([[], [None]], pa.list_(pa.null()))}), folder / "a.parquet")
    said = pack(folder, "p", ["a.parquet"], *v, lists="--tokens=d", code=3)
    expect("a.parquet: row 1: byte 0 of the text: element 0 of the list is not a token id" in said, said)


def columns_that_are_no_such_lists_are_refused(folder):
    pa, parquet = need_parquet()
    columns = {"one": pa.array([[1]], pa.list_(pa.int32())), "deep": pa.array([[[1]]], pa.list_(pa.list_(pa.int32()))),
               "groups": pa.array([[{"a": 1}]]), "inside": pa.array([{"ids": [1]}]), "truth": pa.array([[True]]),
               "number": pa.array([1]), "real": pa.array([[1.0]]), "text": pa.array(["[1]"])}
    parquet.write_table(pa.table(columns), folder / "a.parquet")
    v = ["--vocab-size", "9", "--force"]
    for name in ("one", "inside.ids"):
        pack(folder, "o", ["a.parquet"], *v, lists="--tokens=" + name)
        check(folder, "o", [([1], [True])], masked=False)
    for name in ("deep", "groups", "inside", "number", "real", "text", "absent"):
        said = pack(folder, "p", ["a.parquet"], *v, lists="--tokens=" + name, code=3)
        expect('it has no column "%s" that is a list of whole numbers' % name in said, said)
    expect("lists of booleans, which are not token ids" in pack(folder, "p", ["a.parquet"], *v, lists="--tokens=truth", code=3), "another message")
    part = {"text": "a", "train": True}
    columns = {"deep": [[[part]]], "numbers": [[{"text": 1, "train": True}]], "words": [[{"text": "a", "train": "true"}]],
               "more": [[{**part, "role": "user"}]], "less": [[{"text": "a"}]], "group": [part], "inside": [[{"part": part}]],
               "list": [[{"text": ["a"], "train": True}]]}
    parquet.write_table(pa.table({name: pa.array(column) for name, column in columns.items()}), folder / "a.parquet")
    for name in columns:
        said = pack(folder, "p", ["a.parquet"], lists="--parts=" + name, code=3)
        expect('it has no column "%s" that is a list of groups with a string "text", a boolean "train" and nothing else' % name in said, said)
    for bad, reason in (({"text": None, "train": True}, "a part without text"), ({"text": "a"}, "a part without train"),
                        (None, "a part without text"), ({"text": b"\xff", "train": True}, "not valid UTF-8")):
        rows = pa.array([[part], [part, bad], [part]], pa.list_(pa.struct([("text", pa.binary()), ("train", pa.bool_())])))
        parquet.write_table(pa.table({"p": rows}), folder / "a.parquet")
        said = pack(folder, "bad", ["a.parquet"], lists="--parts=p", code=3)
        expect("a.parquet: row 1: byte" in said and "element 1 of the list of parts: " + reason in said, said)
        pack(folder, "good", ["a.parquet"], "--on-error", "skip", "--force", lists="--parts=p")
        expect_equal(len(ref_reader.read(str(folder / "good")).documents), 2, "documents")


sys.exit(ref_protocol.run_in_folders("pack_lists_"))
