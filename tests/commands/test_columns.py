#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap columns: what it writes is what a second implementation of docs/FORMAT.md, section 14, reads; rows find their
documents by number and by key; what it refuses; what the other commands do with late columns."""

import fcntl
import gzip
import itertools
import json
import math
import os
import random
import struct
import sys

import ref_reader
from commands import said, tokmap
from ref_protocol import BUILD, Skip, expect, expect_equal, need_parquet, run_in_folders, run_program

N_RUNS = 800 if os.environ.get("TOKMAP_LONG") == "all" else 14


def pack(folder, n, name="p", **fields):
    """A dataset of n documents with ids, and these fields: functions of the number."""
    lines = [{"text": "t" * (i % 9), "id": "d%d" % i, "number": 3 * i, **{k: f(i) for k, f in fields.items()}} for i in range(n)]
    (folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    meta = ",".join(["id", "number", *fields])
    said("pack", "-q", folder / "in.jsonl", "-o", folder / name, "--meta", meta, "--force")
    return folder / name


def write_rows(path, rows):
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def late(prefix, name):
    return ref_reader.read_late(ref_reader.read(str(prefix)), name)


def stored(value):
    return value.encode() if isinstance(value, str) else int(value) if isinstance(value, bool) else value


def random_values(rng, n):
    """A list of n values, and how many bytes a number takes; 0: strings."""
    kind = rng.randrange(8)
    nulls = rng.choice((0, 0.3, 0.9))
    limit = rng.choice((100, 30000, 2**30, 2**60))
    make = [lambda: rng.random() < 0.5, lambda: rng.randint(-limit, limit), lambda: rng.randint(-limit, limit),
            lambda: rng.randint(-40, 40) / 8, rng.random, lambda: rng.choice(("de", "en", "")),
            lambda: "u%d" % rng.randrange(10**9), lambda: rng.choice((1, 2.5))][kind]
    return [None if rng.random() < nulls else make() for _ in range(n)]


def least_bytes(values):
    numbers = [v for v in values if isinstance(v, (int, float))]
    if not numbers:
        return 0
    if any(isinstance(v, float) for v in numbers):
        return 4 if all(struct.unpack("<f", struct.pack("<f", v))[0] == v for v in numbers) else 8
    return next(size for size in (1, 2, 4, 8) if all(-(1 << 8 * size - 1) <= v < 1 << 8 * size - 1 for v in numbers))


def rows_by_number_and_by_key(folder):
    rng = random.Random(5)
    for run in range(N_RUNS):
        n = rng.choice((0, 1, 2, 63, 64, 65, 200))
        prefix = pack(folder, n)
        columns = {"a": random_values(rng, n), "b_2": random_values(rng, n), "C-3": random_values(rng, n)}
        rows = [{"id": "d%d" % i, "number": 3 * i, **{k: v[i] for k, v in columns.items()}} for i in range(n)]
        key = rng.choice((None, "id", "number"))
        kept = rows
        if key:
            rng.shuffle(rows)
            kept = [row for row in rows if rng.random() < 0.8] if rng.random() < 0.5 else rows
        files = [write_rows(folder / name, part) for name, part in (("one.jsonl.gz", kept[:n // 3]), ("two.jsonl", kept[n // 3:]))]
        options = ["--key", key, "--missing", "null"] if key else []
        code, out, err = tokmap("columns", "add", prefix, *files, "-f", "--fields", "a,b_2,C-3", *options)
        expect_equal(code, 0, err)
        for name, values in columns.items():
            there = {row["id"] for row in kept}
            wanted = [stored(v) if "d%d" % i in there else None for i, v in enumerate(values)]
            column, number_bytes = late(prefix, name)
            expect_equal(column.values, wanted, "run %d, column %s" % (run, name))
            expect_equal(number_bytes, least_bytes(wanted), "size of numbers")
            type_name = column.type.replace("dictionary", "string")
            expect("%s: %s" % (name, type_name) in out, out)
        expect_equal(sorted(p.name for p in folder.iterdir() if ".partial" in p.name), [], "what is left")


def a_dataset_without_columns_says_so(folder):
    (folder / "a.txt").write_text("a")
    said("pack", "-q", folder / "a.txt", "-o", folder / "p")
    expect_equal(tokmap("columns", "list", folder / "p"), (0, "", f"tokmap columns: {folder}/p.tmi: has no columns\n"), "list")
    expect_equal(tokmap("columns", "list", folder / "p", "--json"), (0, "", ""), "list --json")


def fields_of_a_file(folder):
    prefix = pack(folder, 3)
    rows = [{"s": 1.5, "t": "x", "list": [1], "o": {"a": 1}, "a.b": 4, "yes": True, "id": "d%d" % i} for i in range(3)]
    said("columns", "add", prefix, write_rows(folder / "r.jsonl", rows), "--key", "id")
    names = [json.loads(line)["name"] for line in said("columns", "list", prefix, "--json").splitlines()]
    expect_equal(names, ["id", "number", "s", "t", "yes"], "columns")
    expect_equal(late(prefix, "yes")[0].values, [1, 1, 1], "truth values")
    said("columns", "drop", prefix, "s", "t")
    expect_equal(sorted(p.name for p in folder.glob("p.*.tmc")), ["p.yes.tmc"], "dropped")
    code, _, err = tokmap("columns", "drop", prefix, "yes", "s")
    expect(code == 3 and "there is no late column 's'" in err and (folder / "p.yes.tmc").exists(), err)


def parquet_and_arrow(folder):
    pyarrow, parquet = need_parquet()
    prefix = pack(folder, 100)
    table = pyarrow.table({"quality": pyarrow.array([i / 4 if i % 3 else None for i in range(100)], pyarrow.float32()),
                           "dup": pyarrow.array([i % 2 == 0 for i in range(100)]),
                           "lang": pyarrow.array(["de", "en"] * 50).dictionary_encode()})
    parquet.write_table(table, folder / "s.parquet", row_group_size=30)
    with pyarrow.OSFile(str(folder / "s.arrow"), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, 40)
    for name in ("s.parquet", "s.arrow"):
        said("columns", "add", "-q", "-f", prefix, folder / name)
        expect_equal(late(prefix, "quality"), (ref_reader.Column("quality", "float64", [i / 4 if i % 3 else None for i in range(100)]), 4), name)
        expect_equal(late(prefix, "dup")[1], 1, name)
        expect_equal(late(prefix, "lang")[0].values, [b"de", b"en"] * 50, name)


def refused(code, why, *arguments):
    got, _, err = tokmap("columns", *arguments)
    expect(got == code and why in err, "%s: exit %d, %s" % (arguments, got, err))


def refusals(folder):
    prefix = pack(folder, 4)
    rows = [{"id": "d%d" % i, "s": i} for i in range(4)]
    good = write_rows(folder / "good.jsonl", rows)

    def add(code, why, *more, file=None, given=None):
        path = file or write_rows(folder / "bad.jsonl", given if given is not None else rows)
        refused(code, why, "add", prefix, path, *more)
        expect_equal([p.name for p in folder.iterdir() if p.name.startswith("p.") and ".tm" in p.name and p.name != "p.tmi"], [], "left")

    add(3, "there are 3 rows for 4 documents; with --key", "--fields", "s", given=rows[:3])
    add(3, "more rows than", "--fields", "s", given=rows + rows[:1])
    add(3, "bad.jsonl:5: byte", "--fields", "s", given=rows + rows[:1])
    add(3, "a second row whose 'id' is 'd1'", "--key", "id", given=[rows[3], rows[1], rows[1]])
    add(3, "bad.jsonl:3: byte", "--key", "id", given=[rows[3], rows[1], rows[1]])
    add(3, "has no document whose 'id' is 'dx'", "--key", "id", given=[rows[0], {"id": "dx", "s": 1}])
    add(3, "1 document without a row, the first is number 2", "--key", "id", given=[rows[0], rows[3], rows[1]])
    add(3, "'id' is missing, and must be", "--key", "id", given=[{"s": 1}])
    add(3, "'id' is not a whole number", "--key", "id", given=[{"id": 1.5, "s": 1}])
    add(3, "raise --memory, or add the columns cell by cell", "--key", "id", "--memory", "10", given=rows[::-1])
    add(3, "there is no column 'numbr'; did you mean 'number'", "--key", "numbr", file=good)
    add(5, "has a column 'id' of its own", file=good)
    add(3, "is not the name of a late column", "--fields", "s.x", file=good)
    add(3, "column 's' is a number in document 0, but the string 'x' in document 1", "--fields", "s",
        given=[{"s": 1}, {"s": "x"}, {"s": 1}, {"s": 1}])
    add(3, "neither a signed integer of 64 bits", "--fields", "s", given=[{"s": 2**64 + 1}, {"s": 1}, {"s": 1}, {"s": 1}])
    (folder / "broken.jsonl").write_text('{"s": 1}\n{"s": \n')
    add(3, "not JSON", "--fields", "s", file=folder / "broken.jsonl")
    add(2, "--missing works only with --key", "--missing", "null", file=good)
    add(3, "No such file", file=folder / "none.jsonl")
    refused(2, "there is no action 'ad'; did you mean 'add'?", "ad", prefix, good)
    refused(2, "add needs a file", "add", prefix)
    refused(2, "drop needs the name", "drop", prefix)
    said("columns", "add", "-q", prefix, good, "--key", "id")
    refused(5, "exists; --force replaces", "add", prefix, good, "--key", "id")
    said("columns", "add", "-q", "-f", prefix, good, "--key", "id")
    pack(folder, 5)  # other documents of the same name
    refused(4, "has the values of another dataset than", "list", prefix)
    refused(0, "", "drop", prefix, "s")


def a_field_that_no_row_has_is_refused(folder):
    prefix = pack(folder, 4)
    good = write_rows(folder / "good.jsonl", [{"id": "d%d" % i, "dup": i % 2, "s": i} for i in range(4)])
    said("columns", "add", "-q", prefix, good, "--fields", "dup")
    misspelt = [{"id": "d%d" % i, "dups": 1, "list": [1], "object": {"a": 1}} for i in range(4)]
    path = write_rows(folder / "bad.jsonl", misspelt)
    for key in ([], ["--key", "id"]):
        for name, why in (("dup", "no record of 4 has the field dup; the nearest one is dups"),
                          ("dups,list", "the field list is an object or a list wherever a record of 4 has it"),
                          ("object,dups", "the field object is an object or a list wherever a record of 4 has it")):
            refused(3, "bad.jsonl: " + why, "add", "-q", "-f", prefix, path, "--fields", name, *key)
    expect_equal(late(prefix, "dup")[0].values, [0, 1, 0, 1], "the older column stays")
    expect_equal(sorted(p.name for p in folder.glob("p.*.tm*")), ["p.dup.tmc"], "what is left")
    # A file may lack a field that another one has, and a value may be null or a list here and there.
    parts = [write_rows(folder / "a.jsonl", [{"dup": None, "x": 5}, {"dup": None, "x": [1]}]), write_rows(folder / "b.jsonl", [{"dup": 1}] * 2)]
    code, _, err = tokmap("columns", "add", "-f", prefix, *parts, "--fields", "dup,x")
    expect(code == 0 and "b.jsonl: no record of 2 has the field x" in err and "a.jsonl: the field x is an object or a list in some records" in err, err)
    expect_equal([late(prefix, name)[0].values for name in ("dup", "x")], [[None, None, 1, 1], [5, None, None, None]], "values")
    said("columns", "add", "-q", "-f", prefix, write_rows(folder / "c.jsonl", [{"dup": None}] * 4), "--fields", "dup")


def expressions(folder):
    prefix = pack(folder, 300, lang=lambda i: "de" if i % 3 else "en")
    rows = [{"quality": None if i % 7 == 0 else i % 50 / 10, "dup": i % 4 == 0} for i in range(300)]
    said("columns", "add", "-q", prefix, write_rows(folder / "r.jsonl", rows))
    kept = [i for i, row in enumerate(rows) if row["quality"] is not None and row["quality"] >= 3 and not row["dup"] and i % 3]
    where = 'quality >= 3 and not dup and lang == "de"'
    lines = said("cat", prefix, "--where", where, "--json", "--with-index", "--meta").splitlines()
    expect_equal([json.loads(line)["document"] for line in lines], kept, "cat")
    expect_equal(json.loads(lines[0])["meta"]["quality"], rows[kept[0]]["quality"], "cat --meta")
    found = json.loads(said("info", prefix, "--where", where, "--json"))
    expect_equal(found["kept"]["n_documents"], len(kept), "info --json")
    expect_equal(found["document_lengths"]["max"], 9, "lengths of the kept")
    expect("%d documents (%.2f%%)" % (len(kept), len(kept) / 3) in said("info", prefix, "--where", where), "info")
    expect_equal(json.loads(said("info", prefix, "--where", "quality > 100", "--json"))["kept"], {"n_documents": 0, "n_tokens": 0}, "none")
    for text, code, why in (("quality >", 2, "--where: character 10"), ("qualiti > 1", 3, "there is no column 'qualiti'"),
                            ("quality == 'x'", 2, "compares a number with a string")):
        got, _, err = tokmap("info", prefix, "--where", text)
        expect(got == code and why in err, "%s: %d %s" % (text, got, err))


def a_whole_chunk_of_documents(folder):
    """An expression is evaluated for 65,536 documents at a time. A sanitizer sees it if a word more than these have is copied."""
    n = 65536
    (folder / "in.txt").write_text("x\n" * n)
    said("pack", "-q", "--lines", folder / "in.txt", "-o", folder / "p")
    said("columns", "add", "-q", folder / "p", write_rows(folder / "r.jsonl", [{"number": i} for i in range(n)]))
    for where, kept in (("number >= 0", n), ("number in (0, 63, 64, 65535)", 4)):
        found = json.loads(said("info", folder / "p", "--where", where, "--json"))
        expect_equal(found["kept"]["n_documents"], kept, where)


def redact_with_columns_of_an_earlier_dataset(folder):
    """Stale late columns of P are refused before Q is written. Late columns of an earlier Q are named: nothing in them is
    redacted."""
    prefix, q = pack(folder, 20), folder / "q"
    rows = write_rows(folder / "rows.jsonl", [{"score": i} for i in range(20)])
    said("columns", "add", "-q", prefix, rows)
    said("redact", "-q", prefix, "--documents", "3", "-o", q)
    os.rename(folder / "q.score.tmc", folder / "q.old.tmc")
    code, _, err = tokmap("redact", "-q", "-f", prefix, "--documents", "3", "-o", q)
    expect(code == 0 and "q.old.tmc: has the values of an earlier dataset, not redacted: remove it" in err, err)
    expect("q.score.tmc" not in err, err)
    pack(folder, 21)
    code, _, err = tokmap("redact", "-q", prefix, "--documents", "3", "-o", folder / "r")
    expect(code == 4 and "p.score.tmc: has the values of another dataset" in err, err)
    expect_equal([path.name for path in folder.glob("r.*")], [], "what is left")


def a_folder_that_cannot_be_listed(folder):
    """Late columns that cannot be seen are not forgotten: what has to carry or check them fails, and the rest says so."""
    library = os.path.join(BUILD or "", "libfailures.so")
    if os.environ.get("TOKMAP_SANITIZED") or not os.path.exists(library):
        raise Skip("libfailures.so is missing or cannot be preloaded")
    prefix = pack(folder, 20)
    said("columns", "add", "-q", prefix, write_rows(folder / "rows.jsonl", [{"score": i} for i in range(20)]))
    message = "p.tmi: cannot list the files beside it: Permission denied"
    for expected, *command in ((3, "verify", "-q"), (3, "columns", "list"), (3, "info"), (3, "cat", "--meta"),
                               (3, "redact", "-q", "--documents", "3", "-o", folder / "q"),
                               (0, "merge", "-o", folder / "m"), (0, "export", "--to", "raw", "-o", folder / "x")):
        done = run_program("tokmap", *command, prefix,
                           env={**os.environ, "LD_PRELOAD": library, "FAIL": "folder:1+"})
        err = done.stderr.decode()
        expect_equal((done.returncode, err.count(message)), (expected, 1), "%s: %s" % (command, err))
    expect_equal([path.name for path in folder.glob("q*")], [], "what redact left")


def a_file_with_another_name_is_named_and_ignored(folder):
    prefix = pack(folder, 20)
    said("columns", "add", "-q", prefix, write_rows(folder / "r.jsonl", [{"score": i} for i in range(20)]))
    for name in ("p.score copy.tmc", "p.%s.tmc" % ("x" * 65)):
        (folder / name).write_bytes((folder / "p.score.tmc").read_bytes())
        for command in (["info", prefix], ["columns", "list", prefix], ["cat", "--meta", prefix], ["verify", prefix],
                        ["redact", "-q", "-f", prefix, "--documents", "3:4", "-o", folder / "q"]):
            code, _, err = tokmap(*command)
            expect(code == 0 and err.count(name + ": ignored: it is not a late column") == 1, "%s: %d %s" % (command, code, err))
        expect_equal(late(folder / "q", "score")[0].values, [None if i == 3 else i for i in range(20)], "redacted")
        (folder / name).unlink()


def a_redact_that_ends_early_leaves_no_older_values(folder):
    prefix, q = pack(folder, 20), folder / "q"
    said("columns", "add", "-q", prefix, write_rows(folder / "r.jsonl", [{"score": i} for i in range(20)]))
    said("redact", "-q", prefix, "--documents", "3:4", "-o", q)
    older = (folder / "q.score.tmc").read_bytes()
    with open(folder / "q.score.tmc.partial", "wb") as partial:
        fcntl.flock(partial, fcntl.LOCK_EX)  # the column cannot be written
        code, _, err = tokmap("redact", "-q", "-f", prefix, "--documents", "3:5", "-o", q)
    expect(code != 0 and "q.tmi: is complete, but not all files beside it: mend that, and run the command again with --force" in err, err)
    expect(not (folder / "q.score.tmc").exists(), "a column with a value that is redacted now")
    (folder / "q.score.tmc").write_bytes(older)
    code, _, err = tokmap("verify", "-q", q)
    expect(code == 4 and "perhaps of documents that were redacted: run 'tokmap redact' again" in err, err)
    said("redact", "-q", "-f", prefix, "--documents", "3:5", "-o", q)
    said("verify", "-q", q)
    expect_equal(late(q, "score")[0].values, [None if i in (3, 4) else i for i in range(20)], "redacted again")


def redact_verify_and_merge(folder):
    prefix, q = pack(folder, 200), folder / "q"
    rows = [{"quality": i / 2, "lang": "l%d" % (i % 5)} for i in range(200)]
    said("columns", "add", "-q", prefix, write_rows(folder / "r.jsonl", rows))
    said("redact", "-q", prefix, "--where", "quality >= 50 and lang == 'l1'", "-o", q)
    gone = [i for i in range(200) if i >= 100 and i % 5 == 1]
    expect_equal(late(q, "quality")[0].values, [None if i in gone else i / 2 for i in range(200)], "redacted numbers")
    expect_equal(late(q, "lang")[0].values, [None if i in gone else b"l%d" % (i % 5) for i in range(200)], "redacted strings")
    said("verify", "-q", q)
    code, _, err = tokmap("merge", "-q", prefix, q, "-o", folder / "m")
    expect_equal((code, err), (0, ""), "merge -q")
    code, _, err = tokmap("merge", prefix, q, "-o", folder / "m", "-f")
    expect("its late columns (lang and others) are not in the output" in err, err)
    data = bytearray((folder / "p.lang.tmc").read_bytes())
    data[300] ^= 4
    (folder / "p.lang.tmc").write_bytes(data)
    for command in (["verify", "-q", prefix], ["cat", "--meta", prefix, "--documents", "0:1"], ["view", prefix, "--by", "lang"],
                    ["redact", prefix, "--documents", "0:1", "-o", folder / "r"],
                    ["columns", "add", "-f", prefix, folder / "r.jsonl", "--key", "lang", "--fields", "quality"], ["info", prefix, "--where", "lang == 'l1'"], ["redact", prefix, "--where", "lang == 'l1'", "-o", folder / "r"]):
        code, _, err = tokmap(*command)
        expect(code == 4 and "p.lang.tmc: damaged" in err, "%s: %d %s" % (command, code, err))
    expect(not (folder / "r.tmi").exists(), "nothing is redacted by a damaged column")


def join(folder):
    (folder / "in.jsonl").write_text("".join(json.dumps({"text": "abc" * (i % 5), "id": i}) + "\n" for i in range(4000)))
    said("plan", "-q", folder / "in.jsonl", "--cells", folder / "cells", "--cell-size", "20k", "--meta", "id", "-o", folder / "plan")
    said("pack", "-q", "--plan", folder / "plan", "--task", "0/1")
    cells = sorted(p.with_suffix("") for p in (folder / "cells").glob("*.tmi"))
    expect(len(cells) > 2, "several cells")
    first = 0
    for k, cell in enumerate(cells):
        n = ref_reader.read(str(cell)).n_documents
        rows = [{"q": (first + i) / 4, "some": 1, "mixed": "x" if k else 1} for i in range(n)]
        fields = "q,mixed,some" if k != 1 else "q,mixed"
        if n:
            said("columns", "add", "-q", cell, write_rows(folder / "r.jsonl", rows), "--fields", fields)
        first += n
    code, _, err = tokmap("join", folder / "plan", "-o", folder / "all")
    expect(code == 0 and "'some' is not in all cells" in err and "'mixed' is not in all cells" in err, err)
    expect_equal(late(folder / "all", "q")[0].values, [i / 4 for i in range(first)], "joined")
    expect_equal(sorted(p.name for p in folder.glob("all.*.tmc*")), ["all.q.tmc"], "columns of the joined dataset")
    data = bytearray((folder / "cells" / "000000.q.tmc").read_bytes())
    data[128 + 5] ^= 0x40
    (folder / "cells" / "000000.q.tmc").write_bytes(data)
    code, _, err = tokmap("join", folder / "plan", "-o", folder / "bad")
    expect(code == 4 and "000000.q.tmc: damaged" in err and "pack such cells again" not in err, err)
    expect("bad.tmi: is complete, but not all files beside it: mend that, and run the command again with --force" in err, err)
    expect_equal([p.name for p in folder.glob("bad.*.tmc*")], [], "columns of damaged ones")


def what_a_replaced_dataset_leaves_is_named(folder):
    """The late column and the view of a dataset, when another one takes its name."""
    def lines(n, folders=itertools.count()):
        (folder / "in.jsonl").write_text("".join('{"text": "%s"}\n' % ("t" * (i % 9)) for i in range(n)))
        said("pack", "-q", "-f", folder / "in.jsonl", "-o", folder / "other")
        said("plan", "-q", "-f", folder / "in.jsonl", "--cells", folder / ("cells%d" % next(folders)), "-o", folder / "plan")
        said("pack", "-q", "--plan", folder / "plan")

    for command in (["pack", folder / "in.jsonl"], ["pack", folder / "in.jsonl", "--split", "p=0.5"], ["merge", folder / "other"],
                    ["join", folder / "plan"]):
        lines(20)
        out = folder / ("o-p" if "--split" in command else "p")
        write = [*command, "-f", "-o", folder / ("o" if "--split" in command else "p")]
        said(*write, "-q")
        n = ref_reader.read(str(out)).n_documents
        said("columns", "add", "-q", out, write_rows(folder / "s.jsonl", [{"s": i} for i in range(n)]))
        view = json.loads(said("view", "-q", out, "--where", "s > 2", "--json"))["path"]
        expect("replaced" not in tokmap(*write)[2], "%s: the same again" % command[0])
        lines(40)
        code, _, err = tokmap(*write)
        expect_equal([code, sorted(line for line in err.splitlines() if "replaced" in line)], [0, sorted(
            "tokmap %s: %s: is of the dataset that was replaced: remove it" % (command[0], path)
            for path in ("%s.s.tmc" % out, view))], "%s: another one" % command[0])
        os.remove("%s.s.tmc" % out)
        os.remove(view)


def columns_of_an_older_index_are_named(folder):
    (folder / "raw.bin").write_bytes(bytes(range(40)))
    index = ["index", "--dtype", "u16", "-f", folder / "raw.bin"]
    said(*index, "-q", "--eod", "none")
    tokmap(*index, "-q", "--eod", str(0x0504))
    said("columns", "add", "-q", folder / "raw", write_rows(folder / "s.jsonl", [{"s": i} for i in range(2)]))
    expect("replaced" not in tokmap(*index, "--eod", str(0x0504))[2], "the same again")
    code, _, err = tokmap(*index, "--eod", str(0x0706))
    expect(code == 0 and "raw.s.tmc: is of the dataset that was replaced: remove it" in err, err)


def late_columns_belong_to_their_dataset(folder):
    prefix = pack(folder, 5)
    said("columns", "add", "-q", prefix, write_rows(folder / "r.jsonl", [{"s": i} for i in range(5)]))
    pack(folder, 5, "p2")
    listed = said("info", *(folder / name for name in ("p.tmi", "p.s.tmc", "p2.tmi")), "--json").splitlines()
    expect_equal([json.loads(line)["index_file"][-6:] for line in listed], ["/p.tmi", "p2.tmi"], "the file of a column is no dataset")
    code, _, err = tokmap("pack", folder / "p.s.tmc", "-o", folder / "x")
    expect(code == 3 and "a late column of tokmap" in err, err)
    nan = write_rows(folder / "nan.jsonl", [{"s": math.nan}, {"s": math.inf}, {"s": -math.inf}, {"s": 0.5}, {"s": None}])
    said("columns", "add", "-q", "-f", prefix, nan)
    values = late(prefix, "s")[0].values
    expect(math.isnan(values[0]) and values[1:] == [math.inf, -math.inf, 0.5, None], str(values))
    expect_equal(json.loads(said("info", prefix, "--where", "s != 0.5", "--json"))["kept"]["n_documents"], 2, "NaN is no number")


if __name__ == "__main__":
    sys.exit(run_in_folders("columns_"))
