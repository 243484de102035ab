#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--meta with fields that some or all inputs lack: null where an input lacks a field, and an error if all of them do, the same
in each format, before and after a run was interrupted."""

import contextlib
import json
import os
import subprocess
import sys

import ref_reader
from ref_protocol import expect, expect_equal, need, need_parquet, program, run_in_folders, run_program

NONE = "--meta: no input has values of the field "


def pack(folder, *arguments, status=0, command="pack"):
    done = run_program("tokmap", command, *arguments, text=True, cwd=folder, env={**os.environ, "TOKMAP_CHECKPOINT_MS": "0"})
    expect_equal(done.returncode, status, f"{arguments}: {done.stderr}")
    return done.stderr


def write(folder, name, **fields):
    """A file of two records, in the format of its name, with these fields."""
    columns = {"text": ["one", "two"], **fields}
    if name.endswith(".jsonl"):
        lines = (json.dumps({key: values[i] for key, values in columns.items()}) + "\n" for i in range(2))
        (folder / name).write_text("".join(lines))
        return
    pyarrow, parquet = need_parquet()
    table = pyarrow.table(columns)
    if name.endswith(".parquet"):
        parquet.write_table(table, folder / name)
    else:
        need("pyarrow.feather").write_feather(table, folder / name, compression="uncompressed")


def one_rule_in_all_formats(folder):
    for ending in (".jsonl", ".parquet", ".arrow"):
        names = [f"{i}{ending}" for i in range(3)]
        for i, name in enumerate(names):
            write(folder, name, **({"score": [i, None]} if i else {}))
        said = pack(folder, *names, "--meta", "score", "-o", "P", "--force")
        expect(f"--meta: 1 of 3 inputs lacks score, whose values are null there; 0{ending}: " in said, said)
        expect_equal(list(ref_reader.read(str(folder / "P")).values[0].values), [None, None, 1, None, 2, None], ending)
        said = pack(folder, *names, "--meta", "scroe", "-o", "Q", status=3)
        expect(f"{NONE}scroe; 0{ending}: " in said, said)
        said = pack(folder, *names, "--meta", "score,scroe", "--dry-run", status=3)
        expect("scroe" in said, said)
        if ending != ".jsonl":
            pack(folder, *names, "--meta", "scroe", "--cells", "cells", "-o", "plan", command="plan", status=3)
    expect(not {"Q.tmi", "Q.bin", "plan", "cells"} & set(os.listdir(folder)), os.listdir(folder))
    said = pack(folder, "0.jsonl", "1.parquet", "--meta", "score", "-o", "P", "--force")
    expect("1 of 2 inputs lacks score" in said, said)
    said = pack(folder, "0.jsonl", "1.parquet", "--meta", "absent", "-o", "Q", "--restart", status=3)
    expect(NONE + "absent; " in said, said)


def nulls_are_values_of_a_field(folder):
    """A record that says null has the field."""
    write(folder, "a.jsonl", score=[None, None])
    expect("lack" not in pack(folder, "a.jsonl", "--meta", "score", "-o", "P"), "a message")


def a_run_that_was_interrupted_knows_which_fields_were_there(folder):
    for first, second, status in (({"score": [1, 2]}, {}, 0), ({}, {"score": [1, 2]}, 0), ({}, {}, 3), ({"score": [None, None]}, {}, 0)):
        for name, fields in (("a.jsonl", first), ("b.jsonl", second)):
            write(folder, name, **fields)
            (folder / name).write_text((folder / name).read_text().replace("one", "word " * 2000) * 500)  # enough for checkpoints
        whole = (folder / "b.jsonl").read_text()
        (folder / "b.jsonl").write_text(whole + "{broken\n")
        said = pack(folder, "a.jsonl", "b.jsonl", "--meta", "score", "-o", "P", "--force", "--restart", "--memory", "8M", status=3)
        expect("Progress is saved" in said, said)
        (folder / "b.jsonl").write_text(whole)
        said = pack(folder, "a.jsonl", "b.jsonl", "--meta", "score", "-o", "P", "--memory", "8M", "--force", status=status)
        expect("resuming after" in said and (NONE in said) == (status == 3), said)


def a_run_that_goes_on_in_an_input_knows_what_was_in_it(folder):
    """A field with no value but null, before a kill; and the command that failed, once more."""
    line = json.dumps({"text": "word " * 2000, "n": None}) + "\n"
    without = json.dumps({"text": "word " * 2000}) + "\n"
    options = ["--meta", "n", "--memory", "8M", "-o", "P"]
    (folder / "a.jsonl").write_text(without * 1000)
    for attempt in ("the first", "the second"):
        said = pack(folder, "a.jsonl", *options, status=3)
        expect(NONE + "n" in said and ("resuming after" in said) == (attempt == "the second"), said)
    (folder / "a.jsonl").write_text(line * 9 + without * 2000)
    n_resumed = 0
    for n_checkpoints in (3, 2, 1, 1, 1):  # a run may end before it is killed
        child = subprocess.Popen([program("tokmap"), "pack", "a.jsonl", *options, "--restart", "--force"], cwd=folder,
                              env={**os.environ, "TOKMAP_CHECKPOINT_MS": "0"}, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        sizes = set()
        while child.poll() is None and len(sizes) < n_checkpoints:
            with contextlib.suppress(OSError):
                sizes.add((folder / "P.tmj.partial").stat().st_size)
        child.kill()
        child.wait()
        n_resumed += "resuming after" in pack(folder, "a.jsonl", *options, "--force")
    return f"{n_resumed} of 5 were resumed"


def a_dry_run_ends_as_the_run(folder):
    write(folder, "a.jsonl", score=[1, 2])
    (folder / "b.jsonl").write_text('{"text": "a", "score": 1}\n{"text": \n')
    (folder / "c.csv").write_text('text,score\na,"1" \n')
    for names in (["a.jsonl"], ["b.jsonl"], ["c.csv"], ["a.jsonl", "b.jsonl"]):
        for meta in ("score", "none"):
            run = run_program("tokmap", "pack", *names, "--meta", meta, "-o", "P", "-f", text=True, cwd=folder)
            dry = run_program("tokmap", "pack", *names, "--meta", meta, "--dry-run", text=True, cwd=folder)
            expect_equal(dry.returncode, run.returncode, f"{names} {meta}: {dry.stderr}; {run.stderr}")
            if names != ["a.jsonl"] and meta == "score":
                expect("needs a change: " in dry.stdout, dry.stdout)


def many_documents_without_a_value_are_a_warning(folder):
    (folder / "a.jsonl").write_text('{"text": ""}\n' * 10001)
    said = pack(folder, "a.jsonl", "--meta", "score,@row", "-o", "P", status=3)
    expect("--meta: none of the first 10,000 documents has a value for score; if no input has this field, the run fails at its end"
           in said and "for @row" not in said, said)


def an_updated_plan_has_the_same_rule(folder):
    for ending in (".parquet", ".arrow"):
        for name in ("a", "b"):
            write(folder, name + ending, score=[1, 2])
        pack(folder, "a" + ending, "b" + ending, "--meta", "score", "--cells", "cells", "-o", "plan", "-f", command="plan")
        write(folder, "a" + ending, other=[1, 2])
        pack(folder, "--update", "plan", command="plan")  # null there
        write(folder, "b" + ending, other=[1, 2])
        expect(NONE + "score; a" + ending in pack(folder, "--update", "plan", command="plan", status=3), ending)


def a_join_names_fields_without_values(folder):
    """No task can know what the inputs of the others have."""
    write(folder, "a.jsonl", score=[1, 2])
    pack(folder, "a.jsonl", "--meta", "score,none", "--cells", "cells", "-o", "plan", command="plan")
    pack(folder, "--plan", "plan")
    said = pack(folder, "plan", "-o", "P", command="join")
    expect("no document has a value of the field none" in said and "field score" not in said, said)


def late_columns_have_the_same_rule(folder):
    write(folder, "d.jsonl", x=[1, 2])
    pack(folder, "d.jsonl", "-o", "D")
    (folder / "x.csv").write_text("x\n5\n")
    (folder / "y.csv").write_text("y\n6\n")
    for names in (["x.csv", "y.csv"], ["y.csv", "x.csv"]):
        done = run_program("tokmap", "columns", "add", "D", *names, "--fields", "x,y", "-f", text=True, cwd=folder)
        expect_equal(done.returncode, 0, done.stderr)
    for name in ("a.parquet", "b.parquet"):
        write(folder, name, id=[2 * (name[0] == "b"), 2 * (name[0] == "b") + 1], **({"score": [1, 2]} if name[0] == "b" else {}))
    pack(folder, "a.parquet", "b.parquet", "--meta", "id", "-o", "P")
    done = run_program("tokmap", "columns", "add", "P", "a.parquet", "b.parquet", "--key", "id", "--fields", "score", text=True, cwd=folder)
    expect_equal(done.returncode, 0, done.stderr)
    done = run_program("tokmap", "columns", "add", "P", "a.parquet", "b.parquet", "--key", "id", "--fields", "scroe", text=True, cwd=folder)
    expect_equal(done.returncode, 3, done.stderr)
    expect('it has no column "scroe"' in done.stderr, done.stderr)


sys.exit(run_in_folders("lacking_"))
