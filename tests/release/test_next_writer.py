#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A writer that replaces a dataset is killed at each step, and the next program is of another version. 0.1.0 is built
from the history of the repository; without that, this is skipped."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import ref_reader
from ref_protocol import Skip, expect, expect_equal, program, run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE = "fa18263aaee4c1c0b2619fa0e0f5d2dfef3bbae0"
EXISTS = "-9"
old_tool = None


def build_release(place):
    """The tool with the library of 0.1.0."""
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", RELEASE, "Makefile", "include", "src"], capture_output=True)
    if archive.returncode:
        raise Skip("the history of the repository is not here")
    subprocess.run(["tar", "-x", "-C", place], input=archive.stdout, check=True)
    library = os.path.join(place, "build", "libtokmap.a")
    compiler = os.environ.get("CC", "cc")
    subprocess.run(["make", "-s", "-C", place, "BUILD=build", "CFLAGS=-O0", "CC=" + compiler, "build/libtokmap.a"],
                   check=True, stdout=subprocess.DEVNULL, env={**os.environ, "MAKEFLAGS": ""})
    tool = os.path.join(place, "tool_replace")
    sources = [str(ROOT / "tests" / "support" / name) for name in ("tool_replace.c", "faults.c")]
    subprocess.run([*compiler.split(), "-std=c11", "-D_GNU_SOURCE", "-w", "-I" + place + "/include", "-I" + str(ROOT / "tests"),
                    "-o", tool, *sources, library, "-lxxhash", "-ldl", "-pthread"], check=True)
    return tool


def run(tool, *arguments):
    return subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def kill_at_each_step(folder, writer, following, *without_links):
    """`writer` replaces 1 by 2 and is killed; then `following` is the next writer of the same name."""
    n = 0
    while True:
        n += 1
        prefix = folder / ("p%d" % n)
        expect_equal(run(writer, "write", prefix, 1).stdout, "0\n", "the old dataset")
        killed = run(writer, "replace", prefix, 2, n, *without_links)
        seen = run(program("tool_replace"), "open", prefix).stdout
        expect(seen in ("1\n", "2\n"), "killed before step %d, this version sees: %s" % (n, seen))
        second = ref_reader.read(str(prefix))
        expect_equal({str(x) + "\n" for x in (*second.tokens, second.metadata_bytes.decode())}, {seen}, "the second reader")
        expect_equal(run(following, "write", prefix, 3).stdout, EXISTS + "\n", "the next writer after step %d" % n)
        for tool in (old_tool, program("tool_replace")):
            expect_equal(run(tool, "open", prefix).stdout, seen, "after it, killed before step %d" % n)
        expect_equal(run(following, "replace", prefix, 3).stdout, "0\n", "replacing after step %d" % n)
        # 0.1.0 does not know the short files of the probe, so one that a kill has left stays.
        probed = set(folder.glob(prefix.name + ".*.prob*.partial")) if following == old_tool else set()
        left = sorted(path.name for path in set(folder.glob(prefix.name + ".*")) - probed)
        expect_equal(left, [prefix.name + ".bin", prefix.name + ".tmi"], "files after step %d" % n)
        if killed.returncode != -signal.SIGKILL:
            expect_equal((killed.stdout, seen), ("0\n", "2\n"), "a run that was not killed")
            return "%d steps" % (n - 1)


def release_0_1_0_restores_what_this_version_was_replacing(folder):
    return kill_at_each_step(folder, program("tool_replace"), old_tool)


def the_same_without_hard_links(folder):
    return kill_at_each_step(folder, program("tool_replace"), old_tool, "-")


def this_version_restores_what_it_was_replacing(folder):
    return kill_at_each_step(folder, program("tool_replace"), program("tool_replace"))


def this_version_restores_what_0_1_0_was_replacing(folder):
    return kill_at_each_step(folder, old_tool, program("tool_replace"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as release:
        def prepare(_):
            global old_tool
            if os.environ.get("TOKMAP_SANITIZED"):
                raise Skip("the release would be built without the sanitizer")
            old_tool = old_tool or build_release(release)

        sys.exit(run_in_folders("next_writer: ", prepare=prepare))
