#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inputs on a file system where each read takes 30 ms. pack has many reads under way at one time, with the same
result, and reads each byte about once; who needs only some places of an input reads little more than these."""

import gzip
import json
import os
import random

import mounts
from ref_protocol import expect, expect_equal, need_parquet, run_in_folders, run_program

REQUEST = 128 << 10     # bytes that the kernel asks for at one time


def prepare(folder):
    mounts.enter_namespace()
    for name in ("shown", "mount"):
        (folder / name).mkdir()


def make_texts(n_bytes):
    source = random.Random(1)
    return [source.randbytes(4096).hex() for _ in range(n_bytes // 8192)]


def make_lines(texts):
    return "".join('{"text": "%s"}\n' % text for text in texts).encode()


def run(*words):
    done = run_program("tokmap", *words, text=True)
    expect_equal(done.returncode, 0, "%s said %s" % (words, done.stderr))


def read_slowly(folder, name, *words):
    """(requests, the most at one time, size in requests) while tokmap runs with the file as its input"""
    with mounts.fuse(folder / "shown", folder / "mount", latency=0.03) as fuse:
        run(words[0], folder / "mount" / name, *words[1:])
        return (*fuse.n_reads(), (folder / "shown" / name).stat().st_size / REQUEST)


def check_pack(folder, name):
    n, most, size = read_slowly(folder, name, "pack", "-f", "-o", folder / "slow")
    run("pack", folder / "shown" / name, "-f", "-o", folder / "local")
    expect_equal((folder / "slow.bin").read_bytes(), (folder / "local.bin").read_bytes(), name)
    expect(most >= 8, "%s: at most %d reads at one time" % (name, most))
    expect(n < 3 * size + 20, "%s: %d reads for %d times 128 KiB" % (name, n, size))


def test_pack_reads_lines_ahead(folder):
    lines = make_lines(make_texts(12 << 20))
    (folder / "shown/a.jsonl").write_bytes(lines)
    check_pack(folder, "a.jsonl")
    (folder / "shown/a.jsonl.gz").write_bytes(gzip.compress(lines, 1))
    check_pack(folder, "a.jsonl.gz")


def test_pack_reads_many_small_files_at_one_time(folder):
    """Each request takes 30 ms; half of the files are looked at and read at one time."""
    names = ["%03d.jsonl" % i for i in range(200)]
    for i, text in enumerate(make_texts(200 * 104000)[::12][:200]):
        (folder / "shown" / names[i]).write_bytes(make_lines([text] * 12))
    for name in ("one", "two"):
        (folder / name).write_text("".join("%s/%s\n" % (folder / ("mount" if name == "one" else "shown"), n) for n in names))
    with mounts.fuse(folder / "shown", folder / "mount", latency=0.03, names=0.03, entries=600, attributes=600) as fuse:
        run("pack", "@%s" % (folder / "one"), "-j", "2", "-o", folder / "slow")
        n, most = fuse.n_requests()
    run("pack", "@%s" % (folder / "two"), "-j", "2", "-o", folder / "local")
    expect_equal((folder / "slow.bin").read_bytes(), (folder / "local.bin").read_bytes(), "tokens")
    expect(n <= 7 * len(names) + 20, "%d requests for %d files" % (n, len(names)))
    expect(most >= 32, "at most %d requests at one time" % most)
    return "%d requests, %d at one time" % (n, most)


def test_pack_writes_where_files_have_names(folder):
    """What is ahead stays in memory on a file system without O_TMPFILE."""
    names = [folder / ("%d.jsonl" % i) for i in range(9)]
    for name in names:
        name.write_bytes(make_lines(make_texts(1 << 20)))
    run("pack", *names, "-o", folder / "local")
    ways = dict(os.environ, TOKMAP_TEST_SPILL=str(1 << 40), TOKMAP_TEST_READERS="8")
    with mounts.fuse(folder / "shown", folder / "mount"):
        done = run_program("tokmap", "pack", *names, "--memory", "8M", "--report", folder / "report.json", "-o",
                           folder / "mount/out", text=True, env=ways)
        expect_equal(done.returncode, 0, done.stderr)
        expect_equal(sorted(path.name for path in (folder / "mount").iterdir()), ["out.bin", "out.tmi"], "files")
    expect_equal((folder / "shown/out.bin").read_bytes(), (folder / "local.bin").read_bytes(), "tokens")
    expect_equal(json.loads((folder / "report.json").read_text())["spilled_bytes"], 0, "bytes in a file without a name")


def test_pack_reads_pages_of_parquet_ahead(folder):
    pyarrow, parquet = need_parquet()
    for n_rows in (200, 2000):      # of a row group
        parquet.write_table(pyarrow.table({"text": make_texts(12 << 20)}), folder / "shown/a.parquet",
                            row_group_size=n_rows, compression="none", use_dictionary=False)
        check_pack(folder, "a.parquet")


def test_only_the_beginning_is_read_for_a_few_documents(folder):
    (folder / "shown/a.jsonl").write_bytes(make_lines(make_texts(64 << 20)))
    # The memory limits the text that is read before the tenth document is written, however slow the writer is.
    n, _, size = read_slowly(folder, "a.jsonl", "pack", "--limit-documents", "10", "-j", "1", "--memory", "8M",
                             "-o", folder / "few")
    expect(n < size / 8, "%d reads for %d times 128 KiB" % (n, size))


def test_a_plan_reads_little_of_its_inputs(folder):
    (folder / "shown/a.jsonl").write_bytes(make_lines(make_texts(64 << 20)))
    n, _, size = read_slowly(folder, "a.jsonl", "plan", "--cell-size", "8M", "--cells", folder / "cells",
                             "-o", folder / "run.plan")
    expect(n < size / 8, "%d reads for %d times 128 KiB" % (n, size))


if __name__ == "__main__":
    raise SystemExit(run_in_folders("slow_inputs_", prepare=prepare))
