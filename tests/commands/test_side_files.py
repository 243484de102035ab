#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files that commands write beside a dataset, late columns, views and rows: an older one stays until the new one is
complete, whatever call fails, on a full disk, and while another process writes."""

import fcntl
import json
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "pack"))

import chaos  # noqa: E402
from commands import said, tokmap  # noqa: E402
from ref_protocol import Skip, expect, expect_equal, run_in_folders, run_program  # noqa: E402

N = 3000
LONG = os.environ.get("TOKMAP_LONG") == "all"


def prepare(folder):
    for name, step in (("old", 1), ("new", 3)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({"s": i * step, "same": i}) + "\n" for i in range(N)))
    (folder / "in.txt").write_text("".join("line %d\n" % (i % 50) for i in range(N)))
    said("pack", "-q", "--lines", folder / "in.txt", "-o", folder / "p")


def commands_in(where):
    """The name of a file, the command that writes the older one, and the command that replaces it."""
    p = where / "p"
    add, view = ["columns", "add", "-q", "-f", p], ["view", "-q", p, "-o", where / "v.tmw", "--where"]
    return [("p.s.tmc", [*add, where / "old.jsonl"], [*add, where / "new.jsonl", "--fields", "s"]),
            ("p.same.tmc", [*add, where / "old.jsonl"], ["scan", "-q", "-f", p, "--duplicates", "--name", "same"]),
            ("v.tmw", [*view, "s < 100"], [*view, "s < 2000"])]


def contents(folder, name):
    """The file, and the names beside it that begin with its own."""
    return (folder / name).read_bytes(), sorted(one for one in os.listdir(folder) if one.startswith(name))


def an_older_file_stays_whatever_fails(folder):
    if not chaos.CAN_FAIL:
        raise Skip("libfailures.so is missing, or this is a build with a sanitizer")
    n_failed = 0
    for name, write_old, write_new in commands_in(folder):
        said(*write_old)
        old = contents(folder, name)
        done = run_program("tokmap", *write_new, env=chaos.counting(folder))
        expect_equal(done.returncode, 0, done.stderr.decode())
        calls, new = chaos.read_counts(folder), contents(folder, name)
        for kind in ("memory", "read", "write"):
            step = 1 if kind == "write" or LONG else calls[kind] // 8 + 1
            for i in range(1, calls[kind] + 1, step):
                for which in (str(i), "%d+" % i):
                    said(*write_old)
                    environment = {**os.environ, "LD_PRELOAD": chaos.LIBRARY, "FAIL": "%s:%s" % (kind, which)}
                    code = run_program("tokmap", *write_new, env=environment).returncode
                    expect(code in chaos.FAILURES[kind], "%s, %s:%s: exit %d" % (name, kind, which, code))
                    # what is flushed late, such as the result, may fail after the file has its name
                    expect(contents(folder, name) in ([new] if code == 0 else [old, new]), "%s, %s:%s" % (name, kind, which))
                    n_failed += code != 0
    expect(n_failed > 50, "only %d calls failed" % n_failed)
    return "%d calls failed" % n_failed


def columns_of_two_scans_are_never_together(folder):
    if not chaos.CAN_FAIL:
        raise Skip("libfailures.so is missing, or this is a build with a sanitizer")
    for name, texts in (("a", ["line 11"]), ("b", ["zzzzzzz", "line 12"])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    old, new = (["scan", "-q", "-f", folder / "p", "-n", "7", "--name", "x", "--against", folder / f"{name}.jsonl"] for name in "ab")
    names = ["p.x_ngrams.tmc", "p.x_longest.tmc", "p.x_example.tmc"]

    def found():
        return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}

    said(*old)
    before, parts = found(), set()
    done = run_program("tokmap", *new, env=chaos.counting(folder))
    expect_equal(done.returncode, 0, done.stderr.decode())
    n_calls, after = chaos.read_counts(folder)["write"], found()
    expect(all(before[name] != after[name] for name in names), "the columns do not differ")
    for i in range(1, n_calls + 1):
        said(*old)
        code = run_program("tokmap", *new, env={**os.environ, "LD_PRELOAD": chaos.LIBRARY, "FAIL": "write:%d+" % i}).returncode
        now = found()
        expect(now.items() <= (after if code == 0 else before).items() or now.items() <= after.items(), "write:%d+" % i)
        parts.add(len(now))
    expect_equal(parts & {0, 3}, {0, 3}, "columns that were left")
    return "%d calls failed, %s columns left" % (n_calls, sorted(parts))


def one_process_writes_at_a_time(folder):
    for name, write_old, write_new in commands_in(folder):
        said(*write_old)
        old = (folder / name).read_bytes()
        with open(folder / (name + ".partial"), "wb") as partial:
            fcntl.flock(partial, fcntl.LOCK_EX)
            code, _, err = tokmap(*write_new)
            expect(code == 5 and "another process is writing this file" in err, "%s: %d %s" % (name, code, err))
            expect_equal((folder / name).read_bytes(), old, name)
        said(*write_new)  # the file of a process that was killed
        expect_equal(contents(folder, name)[1], [name], "what is left")


if __name__ == "__main__":
    sys.exit(run_in_folders("side_files_", prepare=prepare))
