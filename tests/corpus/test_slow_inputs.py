#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inputs on a file system where each read takes 30 ms. pack has many reads under way at one time, with the same
result, and reads each byte about once; who needs only some places of an input reads little more than these."""

import gzip
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
