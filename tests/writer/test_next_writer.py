#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A writer that replaces a dataset is killed at each step: readers see the old or the new one, and the next writer goes on
from there."""

import signal
import subprocess
import sys

import ref_reader
from ref_protocol import expect, expect_equal, program, run_in_folders

EXISTS = "-9"


def run(*arguments):
    return subprocess.run([program("tool_replace"), *map(str, arguments)], capture_output=True, text=True, timeout=60)


def kill_at_each_step(folder, *without_links):
    """Replaces 1 by 2, and is killed."""
    n = 0
    while True:
        n += 1
        prefix = folder / ("p%d" % n)
        expect_equal(run("write", prefix, 1).stdout, "0\n", "the old dataset")
        killed = run("replace", prefix, 2, n, *without_links)
        seen = run("open", prefix).stdout
        expect(seen in ("1\n", "2\n"), "killed before step %d, readers see: %s" % (n, seen))
        second = ref_reader.read(str(prefix))
        expect_equal({str(x) + "\n" for x in (*second.tokens, second.metadata_bytes.decode())}, {seen}, "the second reader")
        expect_equal(run("write", prefix, 3).stdout, EXISTS + "\n", "the next writer after step %d" % n)
        expect_equal(run("open", prefix).stdout, seen, "after it, killed before step %d" % n)
        expect_equal(run("replace", prefix, 3).stdout, "0\n", "replacing after step %d" % n)
        left = sorted(path.name for path in folder.glob(prefix.name + ".*"))
        expect_equal(left, [prefix.name + ".bin", prefix.name + ".tmi"], "files after step %d" % n)
        if killed.returncode != -signal.SIGKILL:
            expect_equal((killed.stdout, seen), ("0\n", "2\n"), "a run that was not killed")
            return "%d steps" % (n - 1)


def what_was_being_replaced_is_restored(folder):
    return kill_at_each_step(folder)


def the_same_without_hard_links(folder):
    return kill_at_each_step(folder, "-")


sys.exit(run_in_folders("next_writer: "))
