#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap pack of records that are lists: token ids with labels or a loss mask, of JSON lines and Parquet. Compared with
what Python wrote, for any number of threads, in plans, after kills; what is wrong in a list is told with its place."""

import json
import os
import random
import subprocess
import sys
import time

import ref_protocol
import ref_reader
from pack_corpus import n_bytes
from ref_protocol import expect, expect_equal, need_parquet, program

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


def pack(folder, out, inputs, *options, code=0, **environment):
    done = subprocess.run([program("tokmap"), "pack", *inputs, "-o", out, "--tokens", "input_ids", *options], cwd=folder,
                          env={**os.environ, **environment}, capture_output=True, text=True)
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
    for seed in range(20):
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
    for seed in range(40):
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
    ref_protocol.tokmap(folder, "plan", *names, "--tokens", "input_ids", *options, "--cells", "cells", "-o", "p", "--memory",
                        "40M", "--cell-size", "1M")
    for i in range(3):
        ref_protocol.tokmap(folder, "pack", "--plan", "p", "--task", "%d/3" % i)
    ref_protocol.tokmap(folder, "join", "p", "-o", "joined")
    check(folder, "joined", rows)


def a_killed_run_goes_on(folder):
    return killed_again_and_again(folder, write_lines, 2)


def so_does_one_of_parquet(folder):
    return "; ".join(killed_again_and_again(folder, write_parquet, seed) for seed in (100, 101, 102))


def killed_again_and_again(folder, write, seed):
    rng = random.Random(seed)
    rows = some_rows(rng, 30000)
    names = [write(folder, "%d.in" % k, rng, rows[k::3]) for k in range(3)]
    rows = sum((rows[k::3] for k in range(3)), [])
    command = [program("tokmap"), "pack", *names, "-o", "o", "--tokens", "input_ids", "--loss-mask", "mask", "--vocab-size",
               str(VOCAB), "--memory", "8M", "-j", "2"]
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
    check(folder, "o", rows)
    for path in folder.glob("o.*"):
        path.unlink()
    return "%d kills" % n_killed


BAD = [('{"input_ids": [1, 2.5]}', [], "element 1 of the list is no id of a token"),
       ('{"input_ids": [1, "2"]}', [], "element 1 of the list is no id of a token"),
       ('{"input_ids": [[1], 2]}', [], "element 0 of the list is no id of a token"),
       ('{"input_ids": [1, -1]}', [], "element 1 of the list is no id of a token"),
       ('{"input_ids": [4294967297]}', [], "element 0 of the list is no id of a token"),
       ('{"input_ids": [18446744073709551617]}', [], "element 0 of the list is no id of a token"),
       ('{"input_ids": [1, 70000]}', [], "element 1 of the list is 70000, but the vocabulary has 70000 ids"),
       ('{"input_ids": "[1]"}', [], "the field is not a list"),
       ('{"input_id": [1]}', [], 'the field is missing: "input_ids"'),
       ('{"input_ids": [1, 2], "l": [1, 3]}', ["--labels", "l"], "element 1 of l is neither the id of its token nor -100"),
       ('{"input_ids": [1, 2], "l": [1]}', ["--labels", "l"], "l is shorter than the list of tokens, which has 1 or more"),
       ('{"input_ids": [1], "l": [1, 2]}', ["--labels", "l"], "l is longer than the list of tokens, which has 1"),
       ('{"input_ids": [1], "l": null}', ["--labels", "l"], 'the field is missing or not a list: "l"'),
       ('{"input_ids": [1]}', ["--loss-mask", "l"], 'the field is missing or not a list: "l"'),
       ('{"input_ids": [1], "l": [2]}', ["--loss-mask", "l"], "element 0 of l is neither 1 nor 0"),
       ('{"input_ids": [1], "l": [null]}', ["--loss-mask", "l"], "element 0 of l is no whole number"),
       ('{"input_ids": [1], "l": [1}', ["--loss-mask", "l"], "not JSON: expected ',' or ']'")]


def what_is_wrong_is_told_with_its_place(folder):
    for i, (line, options, reason) in enumerate(BAD):
        good = '{"input_ids": [7, 8], "l": %s}\n' % ("[7, -100]" if "--labels" in options else "[1, 0]")
        (folder / "a.jsonl").write_text(good + line + "\n" + good)
        options = [*options, "--vocab-size", str(VOCAB), "--format", "jsonl"]
        said = pack(folder, "o", ["a.jsonl"], *options, code=3)
        expect("a.jsonl:2: byte " in said and reason in said, said)
        expect(not (folder / "o.tmi").exists(), "a dataset")
        pack(folder, "c%d" % i, ["a.jsonl"], *options, "--on-error", "collect", "--restart")
        expect_equal((folder / ("c%d.bad" % i)).read_text(), line + "\n", "bad lines")
        check(folder, "c%d" % i, [([7, 8], [True, False])] * 2, masked="l" in options)


def what_does_not_go_together_is_refused(folder):
    (folder / "a.jsonl").write_text('{"input_ids": [1]}\n')
    (folder / "a.txt").write_text("some text\n")
    (folder / "long.jsonl").write_text('{"input_ids": [%s]}\n' % ",".join(["1"] * 600000))
    v = ["--vocab-size", "9"]
    for inputs, options, code, reason in (
            (["a.jsonl"], [], 2, "--tokens needs --vocab-size, or the --tokenizer that made the ids"),
            (["a.jsonl"], [*v, "--field", "x"], 2, "does not work with --field"),
            (["a.jsonl"], [*v, "--labels", "l", "--loss-mask", "m"], 2, "do not work together"),
            (["a.jsonl"], [*v, "--labels", "l", "--meta", "l"], 2, "is a list, which --meta and --where cannot take"),
            (["a.jsonl"], [*v, "--format", "arrow"], 2, "only with --format jsonl, parquet or auto"),
            (["a.txt"], v, 3, "is text, which has no lists"),
            (["long.jsonl"], [*v, "--memory", "8M"], 3, "longer than 1000000 bytes, so its fields are not read")):
        said = pack(folder, "o", inputs, *options, code=code)
        expect(reason in said, said)


sys.exit(ref_protocol.run_in_folders("pack_lists_"))
