#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap join --flat: by one process or many, killed and repeated, it writes the tokens that a merge of the cells
writes, and the metadata, inputs and bad documents of the joined dataset."""

import os
import random
import resource
import signal
import subprocess
import sys
import time

import ref_protocol
from ref_protocol import call, expect, expect_equal, run_program
from test_join import Cells, info

SPLITS = ["option split valid=0.1", "option on-error collect"]


def large(place):
    """Cells with several units of 16 MiB."""
    cells = Cells(place, SPLITS, splits=("", "-valid"))
    for cell in (1, 2):
        lines = ["write 257 256 %s" % cells.prefix(cell), "metadata " + cells.metadata(cell, ""),
                 "documents 1000 %d" % (10000 + 7 * cell), "input 250 5 x%s" % b"in/a.jsonl".hex()]
        for suffix in (".bin", ".tmi"):
            cells.prefix(cell).with_suffix(suffix).unlink()
        call("tool_make_dataset", stdin="\n".join(lines).encode() + b"\n")
    return cells


def expect_flat(cells, out):
    for split in ("", "-valid"):
        prefix, flat, joined = "%s%s" % (out, split), cells.folder / ("merged" + split), cells.folder / ("j" + split)
        if not flat.with_suffix(".tmi").exists():
            call("tokmap", "merge", "-q", *(str(cells.prefix(i, split)) for i in range(4)), "-o", str(flat))
        if not joined.with_suffix(".tmi").exists():
            cells.join("-q", out=cells.folder / "j")
        with open(prefix + ".bin", "rb") as got, open(str(flat) + ".bin", "rb") as wanted:
            expect(got.read() == wanted.read(), "other tokens in " + prefix)
        call("tokmap", "verify", "-q", prefix)
        got, wanted = info(prefix), info(joined)
        for key in ("dataset_id", "n_tokens", "n_documents", "inputs", "metadata"):
            expect_equal(got[key], wanted[key], key)
        expect_equal(got["segments"], [], "segments")
    bad = b"".join(cells.prefix(i).with_suffix(".bad").read_bytes() for i in (0, 2))
    expect_equal(out.with_suffix(".bad").read_bytes(), bad, "bad documents")
    expect_equal(sorted(path.name for path in cells.folder.iterdir() if path.name.lstrip(".").startswith(out.name)),
                 [out.name + end for end in ("-valid.bin", "-valid.tmi", ".bad", ".bin", ".tmi")], "files")


def remove(cells):
    for path in [*cells.folder.glob("out*"), *cells.folder.glob(".out*")]:
        path.unlink()


def one_process_writes_all(folder):
    cells = large(folder)
    said = cells.join("--flat").splitlines()
    expect_equal([line.split(":")[0] for line in said], [str(cells.out), str(cells.out) + "-valid"], "results")
    expect_flat(cells, cells.out)
    for threads in ("1", "5"):
        remove(cells)
        expect_equal(cells.join("--flat", "-q", "-j", threads), "", "what it says")
        expect_flat(cells, cells.out)


def tasks_in_any_order_and_number(folder):
    cells = large(folder)
    for tasks in (["0/1"], ["2/3", "0/3", "1/3"], ["3/4", "3/4"], ["99/100", "1/2"], ["0/4294967296"]):
        remove(cells)
        for task in tasks:
            expect_equal(cells.join("--flat", "--task", task), "", "what it says")
            expect(not cells.out.with_suffix(".tmi").exists(), "there before its time")
        cells.join("--flat", "-q")
        expect_flat(cells, cells.out)
    cells.join("--flat", "--task", "0/2", code=5)
    cells.join("--flat", code=5)
    expect_flat(cells, cells.out)


def many_at_once_with_kills(folder):
    cells = large(folder)
    rng = random.Random(4)
    command = [ref_protocol.program("tokmap"), "join", "--flat", cells.plan, "-o", cells.out, "-q"]
    for _ in range(12 if os.environ.get("TOKMAP_LONG") == "all" else 4):
        for wave in range(3):
            tasks = [subprocess.Popen(command + ["--task", "%d/5" % i, "-j", "2"], stderr=subprocess.PIPE)
                     for i in range(5) for _ in range(2)]
            for task in rng.sample(tasks, 4) if wave < 2 else []:
                time.sleep(rng.random() / 100)
                task.send_signal(signal.SIGKILL)
            for task in tasks:
                _, said = task.communicate()
                expect(task.returncode in (0, -9), "%d: %s" % (task.returncode, said))
        for _ in range(3):
            last = subprocess.Popen(command)
            time.sleep(rng.random() / 20)
            last.kill()
            last.wait()
        killed_at_the_end = cells.out.with_suffix(".tmi").exists() and not list(folder.glob(".out.%s.tmi" % cells.hash))
        cells.join("--flat", "-q", code=5 if killed_at_the_end else 0)
        expect_flat(cells, cells.out)
        remove(cells)


def what_a_killed_process_has_placed_is_taken(folder):
    cells = large(folder)
    cells.join("--flat", "--task", "0/2")
    bad = cells.out.with_suffix(".bad")
    bad.write_text("of something else\n")
    cells.join("--flat", code=5)
    expect_equal(bad.read_text(), "of something else\n", "a file that is not of this copy")
    bad.write_bytes(b"".join(cells.prefix(i).with_suffix(".bad").read_bytes() for i in (0, 2)))
    cells.join("--flat", "-q")
    expect_flat(cells, cells.out)


def bad_documents_that_cannot_be_read_are_not_left_out(folder):
    cells = large(folder)
    cells.join("--flat", "--task", "0/1")
    joined = folder / (".out.%s.bad" % cells.hash)
    kept = joined.read_bytes()
    joined.unlink()
    joined.symlink_to(joined.name)  # a loop
    expect(joined.name in cells.join("--flat", code=3), "what it says")
    expect(not cells.out.with_suffix(".tmi").exists(), "a dataset without its bad documents")
    joined.unlink()
    joined.write_bytes(kept)
    cells.join("--flat", "-q")
    expect_flat(cells, cells.out)


def an_index_over_other_files_is_not_taken_for_the_joined_one(folder):
    other, cells = folder / "other", folder / "mine"
    other.mkdir(), cells.mkdir()
    other, cells = (Cells(path, SPLITS, splits=("", "-valid")) for path in (other, cells))
    index = ".out.%s" % cells.hash
    other.join(out=cells.folder / index)
    expect("%s.tmi: is not made of" % index in cells.join("--flat", code=4), "what it says")
    for path in cells.folder.glob(index + "*"):
        path.unlink()
    cells.join("--flat", "-q")
    expect_flat(cells, cells.out)


def a_copy_of_another_dataset_that_was_killed_leaves_no_tokens(folder):
    def tokmap(*arguments, **limits):
        done = run_program("tokmap", *arguments, cwd=folder, **limits)
        return done.returncode

    (folder / "in.jsonl").write_text("".join('{"text": "%d"}\n' % i for i in range(3000)))
    for eod in ("300", "301"):
        expect_equal(tokmap("plan", "in.jsonl", "--eod", eod, "--cells", "c" + eod, "-o", eod, "--cell-size", "9000"), 0, "plan")
        expect_equal(tokmap("pack", "--plan", eod, "-q"), 0, "pack")
    expect_equal(tokmap("join", "--flat", "300", "-o", "P", "--task", "0/1"), 0, "the first copy")
    n_bytes = (folder / "P.bin.partial").stat().st_size - 4096

    def allow_no_record():
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))

    expect(tokmap("join", "--flat", "301", "-o", "P", "--task", "0/1", preexec_fn=allow_no_record) != 0, "killed")
    expect_equal(tokmap("join", "--flat", "300", "-o", "P"), 0, "the first copy again")
    expect_equal(tokmap("verify", "P"), 0, "its tokens")


def a_dataset_is_replaced_when_all_is_there(folder):
    cells = Cells(folder, SPLITS, splits=("", "-valid"))
    cells.join("-q")
    id_before = info(cells.out)["dataset_id"]
    for task in ("0/2", "1/2"):
        cells.join("--flat", "--task", task, code=5)
        cells.join("--flat", "--force", "--task", task)
        expect_equal(info(cells.out)["segments"] != [], True, "still joined")
    cells.join("--flat", "--force", "-q")
    expect_equal(info(cells.out)["dataset_id"], id_before, "dataset id")
    expect_flat(cells, cells.out)
    cells.join("--force", "-q")
    expect(not cells.out.with_suffix(".bin").exists(), "tokens of the flat dataset are left")


def no_pattern_matches_the_index_of_a_copy(folder):
    cells = large(folder)
    cells.join("--flat", "--task", "0/2")
    expect_equal(call("tokmap", "info", str(folder / "out*"), check=False)[0], 3, "a pattern of what is copied")
    cells.join("-q")
    n_documents = info(cells.out)["n_documents"] + info(str(cells.out) + "-valid")["n_documents"]
    call("tokmap", "merge", "-q", str(folder / "out*"), "-o", str(folder / "all"))
    expect_equal(info(folder / "all")["n_documents"], n_documents, "documents")


def what_is_missing_or_damaged_is_named(folder):
    cells = Cells(folder, SPLITS, splits=("", "-valid"))
    cells.remove(1)
    cells.refused(3, "1 of 4 cells", "000001", arguments=["--flat"])
    cells.refused(3, "1 of 4 cells", "000001", arguments=["--flat", "--task", "0/2"])
    cells.write(1)
    tokens = cells.prefix(2).with_suffix(".bin")
    kept = tokens.read_bytes()
    tokens.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
    expect("000002.bin" in cells.join("--flat", code=4), "what it says")
    expect(not cells.out.with_suffix(".tmi").exists(), "a damaged dataset")
    tokens.write_bytes(kept)
    cells.join("--flat", "-q")
    expect_flat(cells, cells.out)


def wrong_command_lines(folder):
    cells = Cells(folder)
    cells.refused(2, "--flat", arguments=["--task", "0/2"])
    cells.refused(2, "--flat", arguments=["-j", "2"])
    for task in ("2/2", "1", "a/b", "-1/2"):
        cells.refused(2, "task", arguments=["--flat", "--task", task])


if __name__ == "__main__":
    sys.exit(ref_protocol.run_in_folders(""))
