#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""This version reads the files of every release (docs/VERSIONS.md): the library and the second reader see in them what
the release saw. They are never changed: see make.py; those of 0.2.0 are made again until it is published. Plans and
cells are missing from 0.1.0: theirs had another form, and it was never published. And what newer files say to this
version."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import make
import ref_faults
import ref_plan
import ref_reader
import ref_release
import ref_writer
from ref_protocol import Skip, expect, expect_equal, program, run_in_folders, tokmap

HERE = pathlib.Path(__file__).resolve().parent
# The checksum of the SHA256SUMS of each release, which has those of its files.
RELEASES = {"0.1.0": "4f00bce02017fcf8768a4b47f6875d4ac48fa4c69781456743845e87606988ef",
            "0.2.0": "72df0a5fad61ee9847ca25729953ee1da733f3be6d80de77066a06952493dcdc"}
HUGE_BYTES = 8589934996


def copy_releases(folder):
    for name in RELEASES:
        shutil.copytree(HERE / name, folder / name)
        with open(folder / name / "huge.bin", "wb") as f:
            try:
                f.truncate(HUGE_BYTES)
            except OSError as e:
                raise Skip("no sparse file of 8 GiB: %s" % e) from None


def the_files_of_releases_are_never_changed(folder):
    for name, wanted in RELEASES.items():
        sums = (HERE / name / "SHA256SUMS").read_bytes()
        expect_equal(hashlib.sha256(sums).hexdigest(), wanted, name + "/SHA256SUMS")
        listed = dict(reversed(line.split("  ")) for line in sums.decode().splitlines())
        files = {str(path.relative_to(HERE / name)): path for path in (HERE / name).rglob("*") if path.is_file()}
        expect_equal(sorted(files), sorted([*listed, "SHA256SUMS"]), "files of " + name)
        for file, checksum in listed.items():
            expect_equal(hashlib.sha256(files[file].read_bytes()).hexdigest(), checksum, "%s/%s" % (name, file))


def lines_differ(name, got, wanted):
    for a, b in zip(got.splitlines(), wanted.splitlines()):
        expect_equal(a, b, name)
    expect_equal(len(got), len(wanted), name + ": size of the text")


def the_library_sees_what_the_release_saw(folder):
    for name in RELEASES:
        contents, wanted = ((folder / name / file).read_bytes() for file in ("contents.txt", "expected.txt"))
        done = subprocess.run([program("tool_release")], cwd=folder / name, input=contents, capture_output=True, timeout=300)
        expect_equal((done.returncode, done.stderr), (0, b""), "tool_release")
        lines_differ(name, done.stdout, wanted)


def the_second_reader_and_order_agree(folder):
    for name in RELEASES:
        contents = (folder / name / "contents.txt").read_text()
        lines_differ(name, ref_release.show(folder / name, contents), (folder / name / "expected.txt").read_bytes())


def all_datasets_are_sound(folder):
    for name in RELEASES:
        datasets = sorted(path.stem for path in (folder / name).glob("*.tmi") if path.stem != "huge")
        said = tokmap(folder / name, "verify", *datasets)
        expect_equal(said.count(": OK"), len(datasets), said)
        tokmap(folder / name, "verify", "--fraction", "0.005", "huge")


def moved_plan(place):
    """run.plan and its cells, as if they had been made in this folder."""
    was = ref_plan.read_plan((place / "run.plan").read_bytes())
    lines = (place / "run.plan").read_bytes().replace(b"folder " + was["folder"], b"folder " + os.fsencode(place))
    (place / "run.plan").write_bytes(ref_plan.signed(lines[:lines.rindex(b"checksum")]))
    now = ref_plan.read_plan((place / "run.plan").read_bytes())
    for index in (place / "cells").glob("*.tmi"):
        cell, data = int(index.name[:6]), index.read_bytes()
        for a, b in ((ref_plan.cell_hash(was, cell), ref_plan.cell_hash(now, cell)), (was["origin"], now["origin"])):
            data = data.replace(a.encode(), b.encode())
        index.write_bytes(ref_writer.sign(data))
    return now


def save(tool, place, line):
    """The state of a loader, into states/."""
    subprocess.run([tool], cwd=place, input=b"save " + line, check=True, timeout=300)


def a_run_that_skips_is_that_of_the_second_order(folder):
    place = folder / "0.1.0"
    for next_sample, skips in ((0, "5-7"), (32, "6-24 24-25 30-31 90-120"), (24, "0-24 25-500"), (600, "0-600 607-900")):
        line = b"skipping next=%d seed=9 length=12 rows=3 ranks=2 source=lines:0.7:9:0 source=texts:0.3:0:0" % next_sample
        line += b"".join(b" skip=" + one.encode() for one in skips.split())
        save(program("tool_release"), place, line)
        done = subprocess.run([program("tool_release")], cwd=place, input=b"loader " + line, capture_output=True, timeout=300)
        expect_equal((done.returncode, done.stderr), (0, b""), "tool_release")
        lines_differ(skips, done.stdout, ref_release.show(place, "loader " + line.decode()))


def packed_rows_are_those_of_the_second_order(folder):
    place = folder / "0.1.0"
    for line in make.LOADERS.split("loader "):
        if line.startswith("packed"):
            save(program("tool_release"), place, line.encode())
            done = subprocess.run([program("tool_release")], cwd=place, input=b"loader " + line.encode(),
                                  capture_output=True, timeout=300)
            expect_equal((done.returncode, done.stderr), (0, b""), "tool_release")
            lines_differ(line, done.stdout, ref_release.show(place, "loader " + line.rstrip("\n")))


def a_plan_of_a_release_is_shown_and_joined(folder):
    names = [name for name in RELEASES if (folder / name / "run.plan").exists()]
    for name in names:
        there = (folder / name).resolve()
        plan = moved_plan(there)
        status = json.loads(tokmap(there, "status", "--json", "run.plan"))
        n_cells = {"n_cells": len(plan["cells"]), "input_bytes": sum(size for size, *_ in plan["inputs"])}
        expect_equal((status["plan_hash"], status["done"]), (plan["hash"], n_cells), "status")
        tokmap(there, "join", "run.plan", "-o", "again")
        for split in ("", "-held"):
            ids = [json.loads(tokmap(there, "info", "--json", p + split))["dataset_id"] for p in ("joined", "again")]
            expect_equal(ids[0], ids[1], "dataset id")


# ---- What only one version goes on with ----


def other_version(place):
    """This program, if it had another version."""
    version = re.search(r'TOKMAP_VERSION_TEXT "(.*)"', (HERE / "../../include/tokmap.h").read_text())[1].encode()
    other = version[:-1] + (b"8" if version.endswith(b"9") else b"9")
    path, program_path = place / "other_tokmap", pathlib.Path(program("tokmap")).resolve()
    emulated = program_path.parent / "elf/tokmap"  # if there is one, the program is a script that runs it
    if emulated.exists():
        copy = place / "other_elf"
        copy.write_bytes(emulated.read_bytes().replace(version, other))
        path.write_text(program_path.read_text().replace(str(emulated), str(copy.resolve())))
        copy.chmod(0o755)
    else:
        path.write_bytes(program_path.read_bytes().replace(version, other))
    path.chmod(0o755)
    return str(path), "version was %s and is now %s" % (version.decode(), other.decode())


def an_unfinished_dataset_is_left_to_its_version(folder):
    other, why = other_version(folder)
    (folder / "numbers.txt").write_bytes(b"1234\n" * 400000 + b"bad \xff\n")
    pack = ("pack", "-q", "--lines", "--utf8", "error", "numbers.txt", "-o", "u")
    tokmap(folder, *pack, code=3, TOKMAP_CHECKPOINT_MS="0")
    left = {path.name: path.read_bytes() for path in folder.glob("u.*")}
    expect("u.tmj.partial" in left, str(sorted(left)))
    for resume in ((), ("--resume",)):
        expect(why in tokmap(folder, *pack, *resume, code=5, command=other), why)
    expect_equal({path.name: path.read_bytes() for path in folder.glob("u.*")}, left, "the unfinished files")


def cells_are_packed_by_the_version_that_planned_them(folder):
    other, why = other_version(folder)
    (folder / "numbers.txt").write_bytes(b"1234\n" * 20)
    tokmap(folder, "plan", "-q", "--lines", "numbers.txt", "--cells", "cells", "--cell-size", "50", "-o", "run.plan")
    expect(why in tokmap(folder, "pack", "--plan", "run.plan", code=4, command=other), why)
    expect_equal(list(folder.glob("cells/*.tmi*")), [], "cells")
    tokmap(folder, "pack", "-q", "--plan", "run.plan")
    said = json.loads(tokmap(folder, "status", "--json", "run.plan", command=other))
    expect_equal(said["done"], said["all"], "cells")
    tokmap(folder, "join", "-q", "run.plan", "-o", "joined", command=other)
    expect(": OK" in tokmap(folder, "verify", "joined", command=other), "verify")


# ---- Newer files ----


def put(at, data):
    def plant(index):
        index[at:at + len(data)] = data

    return plant


def newer(folder, plant):
    """0.1.0/texts as n, changed."""
    index = bytearray((folder / "0.1.0/texts.tmi").read_bytes())
    plant(index)
    (folder / "n.tmi").write_bytes(ref_writer.sign(index))
    shutil.copy(folder / "0.1.0/texts.bin", folder / "n.bin")


def a_newer_format_is_refused_by_name(folder):
    for plant, why in (
        (put(12, b"\2\0\2\0"), "n.tmi: format 2 needs a reader of format 2, this tokmap reads up to 1: use a newer tokmap"),
        (put(16, b"\0\0\0\x80"), "n.tmi: uses features (flags 80000000) that this tokmap does not know: use a newer one"),
        (ref_faults.append_section(9, 1, b"new"), "n.tmi: has a section of kind 9"),
    ):
        newer(folder, plant)
        for command in (("info", "n"), ("verify", "n"), ("cat", "n"), ("merge", "n", "0.1.0/lines", "-o", "m")):
            said = tokmap(folder, *command, code=4)
            expect(why in said and "damaged" not in said and "newer" in said, "%s: %s" % (command[0], said))
        try:
            ref_reader.read(str(folder / "n"))
            raise AssertionError("the second reader does not refuse it: " + why)
        except ref_reader.NewerFormat:
            pass


def what_may_be_ignored_is_ignored_and_not_copied(folder):
    def plant(index):
        ref_faults.append_section(9, 0, b"new")(index)
        index[12:14] = b"\2\0"
        index[20:24] = b"\xff" * 4
        index[176:240] = b"\xff" * 64

    newer(folder, plant)
    info = json.loads(tokmap(folder, "info", "--json", "n"))
    old = json.loads(tokmap(folder, "info", "--json", "0.1.0/texts"))
    expect_equal((info["format_version"], info["lowest_reader"]), (2, 1), "versions")
    for key in ("dataset_id", "n_tokens", "inputs", "metadata"):
        expect_equal(info[key], old[key], key)
    expect(": OK" in tokmap(folder, "verify", "n"), "verify")
    expect_equal(tokmap(folder, "cat", "n"), tokmap(folder, "cat", "0.1.0/texts"), "cat")
    tokmap(folder, "merge", "n", "0.1.0/lines", "-o", "merged")
    merged = ref_reader.read(str(folder / "merged"))
    expect_equal((sorted(merged.sections), merged.format_version), ([1, 2, 3, 4], 1), "sections and version of the result")


sys.exit(run_in_folders("", prepare=copy_releases))
