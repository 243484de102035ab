#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Patterns with **: each command and the package find the same names, in the same order."""

import json
import os
import re
import sys

import package  # noqa: F401
from ref_protocol import expect, expect_equal, run_in_folders, run_program

import tokmap

FILES = ["t", "n2", "n10", "a/t", "a/n2", "a/b/t", "a/b/n10", "a/b/c/t", "z/t", "a/.t", ".h/t", "a/.h/t"]
LINKS = {"z/up": "../a", "a/b/self": "..", "a/b/z": "c"}
# pattern, without the suffix of the files: names in their order. An "n10" that is sorted as text comes before "n2".
CASES = {
    "**/t": "a/b/c/t a/b/t a/t t z/t",
    "a/**/t": "a/b/c/t a/b/t a/t",
    "**/n*": "a/b/n10 a/n2 n2 n10",
    "a/b/**/n?": "a/b/self/n2",
    "a/b/c/**/n?": "",
    "**/b/t": "a/b/t",
    "**/b/**/t": "a/b/c/t a/b/self/t a/b/t",
    "**/**/c/**/**/t": "a/b/c/t",
    "**/[bc]/**": "a/b/c/t a/b/n10 a/b/self/n2 a/b/self/t a/b/t",
    "a/**": "a/b/c/t a/b/n10 a/b/t a/n2 a/t",
    "a/**/*": "a/b/c/t a/b/n10 a/b/t a/n2 a/t",
    "**": "a/b/c/t a/b/n10 a/b/t a/n2 a/t n2 n10 t z/t",
    "*/**/n*": "a/b/n10 a/n2",
    "z/**/n*": "z/up/b/n10 z/up/n2",
    "**/.h/t": ".h/t a/.h/t",
    "a/**/.*": "a/.t",
    ".h/**/t": ".h/t",
    "a**/t": "a/t",
    "**t": "t",
    "no/**/t": "",
}
HIDDEN = {"**/t": 3, "a/**/t": 2, "**": 3, "a/**": 2, "z/**/n*": 2, "a/b/**/n?": 2}


def make_tree(folder, write):
    """With an empty folder, a hidden one, hidden files, and links to folders that are elsewhere in it too."""
    for number, name in enumerate(FILES, 1):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write(folder / name, number)
    (folder / "a" / "empty").mkdir()
    for link, target in LINKS.items():
        (folder / link).symlink_to(target)


def cases_of(folder, suffix=""):
    """(arguments, names, hidden ones that are reported)"""
    for pattern, names in CASES.items():
        whole = pattern if pattern.endswith("**") else pattern + suffix
        yield str(folder / "x")[:-1] + whole, names.split(), HIDDEN.get(pattern)


def check_hidden(message, n, pattern):
    counted = [int(one) for one in re.findall(r"left out (\d+) hidden", message)]
    expect_equal(counted[:1], [n] if n else [], "hidden names of %s: %s" % (pattern, message))


def short(names, folder):
    """As in CASES: all names are absolute."""
    return [name[len(str(folder)) + 1:] for name in names]


def files_of_pack_and_plan(folder):
    tree = folder / "tree"
    make_tree(tree, lambda path, number: path.with_name(path.name + ".txt").write_text("%d\n" % number))
    for pattern, names, hidden in cases_of(tree, ".txt"):
        done = run_program("tokmap", "pack", "-f", pattern, "-o", folder / "out")
        expect_equal(done.returncode, 0 if names else 3, "%s: %s" % (pattern, done.stderr))
        if not names:
            expect(b"no file matches this pattern" in done.stderr or b"cannot read the folder" in done.stderr, done.stderr)
            continue
        found = json.loads(run_program("tokmap", "info", "--json", folder / "out", check=True).stdout)["inputs"]
        expect_equal(short([one["name"] for one in found], tree), [name + ".txt" for name in names], pattern)
        if hidden is not None:
            check_hidden(done.stderr.decode(), hidden, pattern)
        run_program("tokmap", "plan", "-f", pattern, "--cells", folder / "cells", "-o", folder / "plan", check=True)
        found = re.findall("(?m)^input .* text (.*)$", (folder / "plan").read_text())
        expect_equal(short(found, tree), [name + ".txt" for name in names], "plan of " + pattern)
        (folder / "list").write_text(pattern + "\n")
        done = run_program("tokmap", "pack", "-f", "-q", "@%s" % (folder / "list"), "-o", folder / "listed", check=True)
        expect_equal((folder / "listed.bin").read_bytes(), (folder / "out.bin").read_bytes(), "a list with " + pattern)
        expect_equal(done.stderr, b"", "notes with -q")


def names_have_no_folder_where_the_pattern_has_none(folder):
    make_tree(folder, lambda path, number: path.with_name(path.name + ".txt").write_text("%d\n" % number))
    os.mkdir(folder / "b.txt")
    (folder / "b.txt" / "README").write_text("1")
    before = os.getcwd()
    os.chdir(folder)
    try:
        done = run_program("tokmap", "pack", "**/[bt]*.txt", "-o", "b.txt/README/out")
        expect(b"**: left out 3 hidden names" in done.stderr, done.stderr)
        expect(b"**/[bt]*.txt: left out 1 folder with such a name; **/[bt]*.txt/** stands for the files in it\n" in
               done.stderr, done.stderr)
        done = run_program("tokmap", "pack", "**/t.txt", "-o", ".out/out", check=True)  # hidden from the pattern
        found = json.loads(run_program("tokmap", "info", "--json", ".out/out").stdout)["inputs"]
        expect_equal([one["name"] for one in found], ["a/b/c/t.txt", "a/b/t.txt", "a/t.txt", "t.txt", "z/t.txt"], "names")
    finally:
        os.chdir(before)


def what_cannot_be_looked_at_is_an_error(folder):
    make_tree(folder, lambda path, number: path.with_name(path.name + ".tmi").write_text("%d\n" % number))
    (folder / "a" / "lost").symlink_to("/not/there")
    for command in (["pack", folder / "**/t.tmi", "-o", folder / "out"], ["info", folder / "**/t"]):
        done = run_program("tokmap", *command)
        expect_equal(done.returncode, 3, done.stderr)
        expect(b"/a/lost: is a symbolic link to /not/there, which does not exist" in done.stderr, done.stderr)
    try:
        tokmap.open(folder / "**/t")
    except tokmap.FileError as error:
        expect("/a/lost: is a symbolic link to /not/there, which does not exist" in str(error), error)
    else:
        raise AssertionError("a lost link is no error")


def write_dataset(path, number):
    with tokmap.Writer(path, vocab_size=100) as writer:
        writer.document([number])


def datasets_of_the_commands_and_of_the_package(folder):
    tree = folder / "tree"
    make_tree(tree, write_dataset)
    for pattern, names, hidden in cases_of(tree):
        done = run_program("tokmap", "info", "--no-lengths", pattern)
        if not names:
            expect_equal(done.returncode, 3, "%s: %s" % (pattern, done.stdout))
            try:
                tokmap.open(pattern)
            except tokmap.FileError:
                continue
            raise AssertionError("no dataset matches %s" % pattern)
        expect_equal(done.returncode, 0, "%s: %s" % (pattern, done.stderr))
        found = re.findall("index file: *(.*).tmi,", done.stdout.decode())
        expect_equal(short(found, tree), names, "info " + pattern)
        if hidden is not None:
            check_hidden(done.stderr.decode(), hidden and hidden + 1, pattern)  # .t.bin and .t.tmi
        found = re.findall("(?m)^(.*).tmi: OK", run_program("tokmap", "verify", pattern, check=True).stdout.decode())
        expect_equal(short(found, tree), names, "verify " + pattern)
        run_program("tokmap", "merge", "-f", "-q", pattern, "-o", folder / "out", check=True)
        found = [FILES[document[0] - 1] for document in tokmap.open(folder / "out")]
        expect_equal([os.path.realpath(tree / one) for one in found], [os.path.realpath(tree / one) for one in names],
                     "merge " + pattern)
        opened = tokmap.open(pattern)
        expect_equal(short(opened.paths, tree), [name + ".tmi" for name in names], "tokmap.open " + pattern)


if __name__ == "__main__":
    sys.exit(run_in_folders("patterns_"))
