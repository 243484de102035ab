#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the first release does with states of this version, and this one with those of the first: it is built from its
commit."""

import os
import pathlib
import shutil
import subprocess
import sys

import ref_writer
from ref_protocol import Skip, expect, expect_equal, program, run_in_folders

HERE = pathlib.Path(__file__).resolve().parent


def save(tool, place, line):
    """The state of a loader, into states/."""
    subprocess.run([tool], cwd=place, input=b"save " + line, check=True, timeout=300)


def build_release(folder, commit, *targets):
    """The programs of a release, from its sources."""
    place = folder / commit
    if os.environ.get("TOKMAP_SANITIZED"):
        raise Skip("with a sanitizer or an emulator, the release would be built for another machine")
    if shutil.which("git") is None:
        raise Skip("there is no git")
    archive = subprocess.run(["git", "-C", HERE.parents[1], "archive", commit], capture_output=True)
    if archive.returncode:
        raise Skip("no history of git with commit " + commit)
    place.mkdir()
    subprocess.run(["tar", "-x"], cwd=place, input=archive.stdout, check=True)
    environment = {name: value for name, value in os.environ.items() if name not in ("TOKMAP_BUILD", "CFLAGS", "LDFLAGS")}
    done = subprocess.run(["make", "-s", "-j2", "CFLAGS=-O0", *targets], cwd=place, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise Skip("it does not build: %.200s" % done.stderr)
    return [place / target for target in targets]


def the_first_release_goes_on_with_what_it_understands(folder):
    old, = build_release(folder, "fa18263", "build/tool_release")
    place = folder / "data"
    shutil.copytree(HERE / "0.1.0", place)
    plain = b"state next=24 seed=1 length=16 rows=4 ranks=2 source=lines:1:0:0 source=texts:0:0:0 phase=24:0.5,0.5"
    save(program("tool_release"), place, plain + b" skip=8-16")  # an amended state, whose skip is over
    shown = [subprocess.run([tool], cwd=place, input=b"loader " + plain, capture_output=True, check=True, timeout=300).stdout
             for tool in (old, program("tool_release"))]
    expect_equal(shown[1], shown[0], "this version")
    save(program("tool_release"), place, plain + b" skip=30-31")
    done = subprocess.run([old], cwd=place, input=b"loader " + plain, capture_output=True, timeout=300)
    expect(done.returncode != 0 and b"use a newer one" in done.stderr and b"damaged" not in done.stderr, done.stderr)
    ref_writer.write(str(place / "spanned"), range(100), [40, 60], vocab=100, spans=[(3, 9, 0)])
    spanned = b"loader state next=0 seed=1 length=16 rows=4 ranks=2 source=spanned:1:0:0"
    done = subprocess.run([old], cwd=place, input=spanned, capture_output=True, timeout=300)
    expect(done.returncode != 0 and b"section of kind 7" in done.stderr and b"use a newer one" in done.stderr, done.stderr)
    save(old, place, plain)  # and the other way round
    done = subprocess.run([program("tool_release")], cwd=place, input=b"loader " + plain, capture_output=True, timeout=300)
    expect_equal((done.stdout, done.returncode), (shown[1], 0), "the state of 0.1.0")


sys.exit(run_in_folders(""))
