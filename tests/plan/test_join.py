#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap join: what it makes of the cells of a plan equals their merge; what is missing, damaged or of another plan
is named, and then nothing is written."""

import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import time

import ref_plan
import ref_protocol
import ref_xxh3
from ref_protocol import call, expect, expect_equal, run_program

HEAD = '{"created_by": "test", "tokenizer": {"name": "bytes"}, "options": {"format": "jsonl"}%s'
SPLIT = ', "split": "valid"'
BAD_BYTES = 19


class Cells:
    """A plan of two inputs in four cells, and their datasets, as tokmap pack writes them."""

    def __init__(self, folder, options=(), bad=(2, 0, 1, 0), splits=("",)):
        self.folder, self.splits, self.bad = folder, splits, bad
        self.out = folder / "out"
        (folder / "cells").mkdir()
        lines = ["tokmap plan 1", "folder %s" % folder, "cells cells", "cell-size 100", *options,
                 "input 250 7 jsonl in/a.jsonl", "input 30 8 jsonl in/b.jsonl",
                 "cell 0 0 0", "cell 0 90 0", "cell 0 180 0", "cell 1 0 0"]
        text = "\n".join(lines).encode() + b"\n"
        self.plan = folder / "run.plan"
        self.plan.write_bytes(ref_plan.signed(text))
        self.read_plan = ref_plan.read_plan(self.plan.read_bytes())
        self.hash = self.read_plan["hash"]
        for cell in range(4):
            self.write(cell)

    def prefix(self, cell, split=""):
        return self.folder / "cells" / ("%06d%s" % (cell, split))

    def metadata(self, cell, split, cell_hash=None, origin=None, number=None):
        n_bad = self.bad[cell]
        counts = '{"records": %d, "bad_documents": %d, "bad_bytes": %d}' % (10 + cell, n_bad, n_bad * BAD_BYTES)
        wanted = ref_plan.cell_hash(self.read_plan, cell)
        plan = '{"hash": "%s", "cell": %d, "origin": "%s"}' % (
            cell_hash or wanted, cell if number is None else number, origin or self.hash)
        return '%s, "counts": %s, "plan": %s}' % (HEAD % (SPLIT if split else ""), counts, plan)

    def write(self, cell, **changes):
        for split in self.splits:
            lines = ["write 257 256 %s" % self.prefix(cell, split), "metadata " + self.metadata(cell, split, **changes),
                     "varied %d 9" % (30 + 100 * cell + len(split)),
                     "input %d 5 x%s" % ((30, b"in/b.jsonl".hex()) if cell == 3 else (250, b"in/a.jsonl".hex()))]
            call("tool_make_dataset", stdin="\n".join(lines).encode() + b"\n")

    def remove(self, cell):
        for path in self.folder.glob("cells/%06d*" % cell):
            path.unlink()

    def join(self, *arguments, code=0, out=None):
        done = run_program("tokmap", "join", self.plan, "-o", out or self.out, *arguments, text=True)
        expect_equal(done.returncode, code, "exit code (%s)" % done.stderr)
        return done.stdout if code == 0 else done.stderr

    def refused(self, code, *words, arguments=()):
        before = sorted(self.folder.rglob("*"))
        said = self.join(*arguments, code=code)
        for word in words:
            expect(str(word) in said, "%r is not in %r" % (str(word), said))
        expect_equal(sorted(self.folder.rglob("*")), before, "files")


def info(prefix):
    return json.loads(call("tokmap", "info", "--json", str(prefix))[1])


def expect_joined(cells, out, split=""):
    """Compares with the merge of the cells."""
    flat = cells.folder / ("flat" + split)
    call("tokmap", "merge", "-qf", *(str(cells.prefix(i, split)) for i in range(4)), "-o", str(flat))
    call("tokmap", "verify", "-q", str(out))
    joined, merged = info(out), info(flat)
    for key in ("dataset_id", "n_tokens", "n_documents", "vocab_size", "eod_id", "largest_id"):
        expect_equal(joined[key], merged[key], key)
    expect_equal(call("tokmap", "cat", str(out))[1], call("tokmap", "cat", str(flat))[1], "tokens")
    expect(not out.with_suffix(".bin").exists(), "there are tokens")
    entries = [(entry["name"], entry["input_bytes"]) for entry in joined["inputs"]]
    expect_equal(entries, [("in/a.jsonl", 250), ("in/b.jsonl", 30)], "inputs")
    expect_equal(joined["inputs"][0]["n_documents"], 30 * 3 + 300 + 3 * len(split), "documents of an input")
    wanted = HEAD % (SPLIT if split else "") + ', "counts": {"records": 46, "bad_documents": %d, "bad_bytes": %d}}'
    wanted %= sum(cells.bad), sum(cells.bad) * BAD_BYTES
    index = out.with_suffix(".tmi").read_bytes()
    expect(wanted.encode() in index and b'"plan"' not in index, "metadata")


def joined_equals_merged(folder):
    cells = Cells(folder)
    said = cells.join()
    expect("%s: 720 documents" % cells.out in said, said)
    expect_joined(cells, cells.out)
    expect_equal(sorted(path.name for path in folder.iterdir() if path.name.startswith("out")), ["out.tmi"], "files")
    expect_equal(cells.join("-f", "--quiet"), "", "what it says")
    said = json.loads(cells.join("-f", "--json"))
    expect_equal((said["dataset_id"], said["token_file"]), (info(cells.out)["dataset_id"], None), "JSON")


def merge_makes_one_file_of_it(folder):
    """Undisturbed, and again after processes that were killed at any moment."""
    cells, rng = Cells(folder), random.Random(4)
    for cell in range(4):  # long enough to be killed in
        lines = ["write 257 256 %s" % cells.prefix(cell), "metadata " + cells.metadata(cell, ""),
                 "documents 1000 %d" % (10000 + 7 * cell), "input 250 5 x%s" % b"in/a.jsonl".hex()]
        for suffix in (".bin", ".tmi"):
            cells.prefix(cell).with_suffix(suffix).unlink()
        call("tool_make_dataset", stdin="\n".join(lines).encode() + b"\n")
    cells.join()
    tokens = b"".join(cells.prefix(i).with_suffix(".bin").read_bytes() for i in range(4))
    one = folder / "one"
    command = [ref_protocol.program("tokmap"), "merge", "-qf", cells.out, "-o", one]
    n_killed = 0
    for _ in range(12):
        process = subprocess.Popen(command)
        time.sleep(rng.random() / 10)
        process.kill()
        n_killed += process.wait() != 0
        if one.with_suffix(".tmi").exists():
            call("tokmap", "verify", "-q", str(one))
    call("tokmap", "merge", "-qf", str(cells.out), "-o", str(one))
    expect_equal(sorted(path.name for path in folder.iterdir() if "one" in path.name), ["one.bin", "one.tmi"], "files")
    expect(one.with_suffix(".bin").read_bytes() == tokens, "tokens")
    call("tokmap", "verify", "-q", str(one))
    got, wanted = info(one), info(cells.out)
    for key in ("dataset_id", "n_tokens", "n_documents", "inputs", "metadata"):
        expect_equal(got[key], wanted[key], key)
    expect_equal(got["segments"], [], "segments")
    tampered = bytearray(cells.prefix(2).with_suffix(".bin").read_bytes())
    tampered[-1] ^= 1
    cells.prefix(2).with_suffix(".bin").write_bytes(tampered)
    said = ref_protocol.tokmap(folder, "merge", "-qf", "out", "-o", "one", code=4)
    expect("000002.bin" in said, "damaged tokens: " + said)
    call("tokmap", "verify", "-q", str(one))
    return "%d processes were killed" % n_killed


def cells_and_output_can_be_moved_together(folder):
    (folder / "here").mkdir()
    cells = Cells(folder / "here")
    cells.join(out=folder / "here" / "a" / "new" / "folder" / "out")
    (folder / "here").rename(folder / "there")
    call("tokmap", "verify", "-q", str(folder / "there" / "a" / "new" / "folder" / "out"))


def splits_are_joined(folder):
    cells = Cells(folder, ["option split valid=0.1", "option on-error skip"], splits=("", "-valid"))
    said = cells.join().splitlines()
    expect_equal([line.split(":")[0] for line in said], [str(cells.out), str(cells.out) + "-valid"], "results")
    expect_joined(cells, cells.out)
    expect_joined(cells, folder / "out-valid", "-valid")
    written = {path: path.read_bytes() for path in folder.glob("out*")}
    expect_equal(sorted(path.name for path in written), ["out-valid.tmi", "out.tmi"], "files")
    (folder / "out.tmi").unlink()  # a process was killed when it had placed the split
    cells.join()
    expect_equal({path: path.read_bytes() for path in folder.glob("out*")}, written, "what was joined again")
    (folder / "out.tmi").unlink()
    call("tokmap", "merge", "-f", str(cells.prefix(0, "-valid")), "-o", str(folder / "out-valid"))
    cells.refused(5, "out-valid.tmi", "exists")
    cells.join("--force")
    expect_joined(cells, cells.out)


def missing_cells_are_counted(folder):
    cells = Cells(folder)
    cells.remove(1)
    cells.refused(3, "1 of 4 cells not packed: 000001\n")
    cells.prefix(1).with_suffix(".tmi.partial").write_bytes(b"")
    cells.refused(3, "1 of 4 cells", "000001")
    for cell in (0, 2, 3):
        cells.remove(cell)
    cells.refused(3, "4 of 4 cells not packed: 000000, 000001, 000002, ...\n")


def foreign_and_damaged_cells_are_named(folder):
    cells = Cells(folder)
    cells.remove(2)
    cells.write(2, cell_hash="0" * 16, origin="0123456789abcdef")
    cells.refused(4, "000002.tmi", "another plan", "0123456789abcdef")
    cells.remove(2)
    cells.write(2, cell_hash="0" * 16)
    cells.refused(4, "000002.tmi", "before the plan was updated")
    cells.remove(2)
    cells.write(2, number=1)
    cells.refused(4, "000002.tmi", "cell 000001")
    cells.remove(2)
    call("tool_make_dataset", stdin=b"write 257 256 %s\n" % os.fsencode(cells.prefix(2)))
    cells.refused(4, "000002.tmi", "was not packed for a plan")
    cells.remove(2)
    cells.write(2)
    tokens, index = cells.prefix(2).with_suffix(".bin"), cells.prefix(2).with_suffix(".tmi")
    kept = tokens.read_bytes(), index.read_bytes()
    tokens.write_bytes(kept[0][:-2])
    cells.refused(4, "000002.bin", "bytes")
    tokens.unlink()
    cells.refused(4, "000002.bin")
    tokens.write_bytes(kept[0])
    in_a_count = kept[1].index(b'"records": 1') + len('"records": 1')
    for at in (0, 20, 60, 300, in_a_count, len(kept[1]) - 1):
        index.write_bytes(kept[1][:at] + bytes([kept[1][at] ^ 1]) + kept[1][at + 1:])
        cells.refused(4, "000002.tmi")
    index.write_bytes(kept[1][:100])
    cells.refused(4, "000002.tmi")
    index.write_bytes(kept[1])
    cells.join()
    expect_joined(cells, cells.out)


def cells_of_different_programs_are_refused(folder):
    cells = Cells(folder)
    cells.remove(3)
    lines = ["write 257 256 %s" % cells.prefix(3),
             "metadata " + cells.metadata(3, "").replace('"created_by": "test"', '"created_by": "other"')]
    call("tool_make_dataset", stdin="\n".join(lines).encode() + b"\n")
    cells.refused(4, "000003.tmi", "metadata", "remove the files of this cell")
    cells.remove(3)
    cells.refused(3, "1 of 4 cells", "000003")


def exchanged_splits_are_refused(folder):
    """Although the metadata of each output begin alike in all cells."""
    cells = Cells(folder, ["option split valid=0.1"], splits=("", "-valid"), bad=(0,) * 4)
    for cell in range(4):
        for suffix in (".bin", ".tmi"):
            one, two, other = (pathlib.Path(str(cells.prefix(cell)) + part + suffix) for part in ("", "-valid", "-x"))
            one.rename(other)
            two.rename(one)
            other.rename(two)
    cells.refused(4, "000000.tmi", "another split")
    said = call("tokmap", "status", str(cells.plan), check=False)
    expect_equal(said[0], 4, "status")



def outputs_are_no_inputs(folder):
    cells = Cells(folder)
    for out in ("cells/000001", "cells/000001.tmi", "cells/000009", "cells/000001-valid"):
        cells.join("-f", out=folder / out, code=2)
    cells.join("-f", out=folder / "run.plan.tmi")
    cells.plan.rename(folder / "plan.tmi")
    cells.plan = folder / "plan.tmi"
    expect("is a plan" in cells.join("-f", out=folder / "plan", code=2), "what it says")
    expect_equal(call("tokmap", "verify", "-q", str(cells.prefix(1)))[0], 0, "the cell")


def what_is_no_plan_is_refused(folder):
    cells = Cells(folder)
    text = cells.plan.read_bytes()
    cells.plan.write_bytes(text.replace(b"cell 0 90 0", b"cell 0 91 0"))
    cells.refused(3, "run.plan:")
    cells.plan.unlink()
    cells.refused(3, "run.plan")


def many_cells_take_little(folder):
    n = 10000 if os.environ.get("TOKMAP_LONG") == "all" else 2000
    lines = ["tokmap plan 1", "folder %s" % folder, "cells cells", "cell-size 10", "input %d 0 jsonl all.jsonl" % 2**40,
             *("cell 0 %d 0" % (10 * i) for i in range(n))]
    text = "\n".join(lines).encode() + b"\n"
    (folder / "run.plan").write_bytes(ref_plan.signed(text))
    (folder / "cells").mkdir()
    call("tool_make_cells", str(folder / "run.plan"), "20", "10")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    call("tokmap", "join", "-q", str(folder / "run.plan"), "-o", str(folder / "out"))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = info(folder / "out")
    expect_equal((found["n_documents"], found["n_tokens"], found["n_inputs"]), (20 * n, 200 * n, 1), "counts")
    expect(used.ru_utime - before < 10, "%.1f s" % (used.ru_utime - before))
    expect(used.ru_maxrss < 200 * 1024, "%d KiB" % used.ru_maxrss)
    return "%d cells: %.2f s of user time" % (n, used.ru_utime - before)


if __name__ == "__main__":
    sys.exit(ref_protocol.run_in_folders(""))
