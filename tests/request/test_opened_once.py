#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often `tokmap pack` opens an input: once for the look before the run, and once to read it, whatever it holds."""

import collections
import gzip
import io
import os
import pathlib
import shutil
import tarfile

from ref_protocol import BUILD, Skip, expect, expect_equal, run_in_folders, run_program

TESTS = pathlib.Path(__file__).resolve().parents[1]
LINES = b'{"text": "one \\u00e4 two"}\n{"text": "three"}\n' * 2000


def fill(folder):
    (folder / "a.txt").write_bytes(b"one\ntwo\n")
    (folder / "a.jsonl").write_bytes(LINES)
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(LINES))
    (folder / "empty.jsonl").write_bytes(b"")
    shutil.copy(TESTS / "formats/parquet/text_plain_snappy.parquet", folder / "a.parquet")
    arrow = (TESTS / "fuzz/corpus/arrow/file").read_bytes()
    (folder / "a.arrow").write_bytes(arrow[arrow.index(b"ARROW1"):])
    with tarfile.open(folder / "a.tar", "w") as tar:
        member = tarfile.TarInfo("b.jsonl")
        member.size = len(LINES)
        tar.addfile(member, io.BytesIO(LINES))
    return folder


def opened(folder, *arguments):
    """How often each file of the folder was opened."""
    library = os.path.join(BUILD, "libfailures.so")
    if os.environ.get("TOKMAP_SANITIZED") or not os.path.exists(library):
        raise Skip("libfailures.so cannot be preloaded")
    listed = folder.with_name(folder.name + ".opened")
    done = run_program("tokmap", *arguments, cwd=folder, env={**os.environ, "LD_PRELOAD": library, "OPENED": listed})
    expect_equal(done.returncode, 0, done.stderr.decode())
    counts = collections.Counter(listed.read_text().split("\n"))
    listed.unlink()
    return counts


def pack_opens_an_input_twice(folder):
    names = sorted(p.name for p in folder.iterdir())
    expect(len(names) == 7, names)
    for name in names:
        for threads in "1", "3":
            counts = opened(folder, "pack", "--force", name, "-o", "out", "-j", threads)
            expect_equal(counts[name], 2, "%s, -j %s" % (name, threads))


def a_field_opens_nothing_more(folder):
    counts = opened(folder, "pack", "a.parquet", "-o", "out", "--where", "text != 'a'")
    expect_equal(counts["a.parquet"], 2, "with --where")


def a_task_opens_an_input_of_its_cell_once(folder):
    for name in "a.jsonl", "a.parquet":
        expect_equal(opened(folder, "plan", name, "--cells", "cells", "-o", "p", "--cell-size", "16K", "-f")[name], 2,
                     "plan of " + name)
        counts = opened(folder, "pack", "--plan", "p")
        n_cells = len(list(folder.glob("cells/*.bin")))
        expect(n_cells > 1 or name != "a.jsonl", "one cell")
        expect_equal(counts[name], n_cells, "pack of the plan of " + name)
        shutil.rmtree(folder / "cells")


raise SystemExit(run_in_folders("", prepare=fill))
