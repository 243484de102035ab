#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap verify --files: it names what must be copied again, and nothing else. A copy of these files makes the dataset
whole."""

import json
import os
import random
import shutil
import sys

import ref_writer
from commands import said, tokmap
from ref_content import ContentHash
from ref_lane import lane_bytes
from ref_protocol import expect, expect_equal, program, run_in_folders, run_program

LENGTHS = [300_000, 0, 7, 400_000, 12_000, 5]  # some token files have several blocks, with tokens of two bytes
TOKENS = [i * 7919 % 1000 for i in range(sum(LENGTHS))]
SIZES = [700_000, 5, 12_007]
NAMES = ["cells/0.bin", "cells/1.bin", "last"]


def hash_of(tokens):
    content = ContentHash()
    content.add(b"".join(t.to_bytes(4, "little") for t in tokens))
    return content.stored()


def write_lane(path, tokens):
    path.write_bytes(lane_bytes(hash_of(tokens), len(tokens), "u8", 1, 0, bytes(t % 251 for t in tokens), b""))


def add_beside(p):
    """A late column and a view."""
    rows = p.parent / "rows.jsonl"
    rows.write_text("".join(json.dumps({"score": d}) + "\n" for d in range(len(LENGTHS))))
    said("columns", "add", "-q", p, rows)
    said("view", "-q", p, "--where", "score < 3")
    rows.unlink()


def make_flat(folder):
    ref_writer.write(str(folder / "p"), TOKENS, LENGTHS, vocab=1000)
    write_lane(folder / "p.weight.tml", TOKENS)
    add_beside(folder / "p")
    return folder / "p"


def make_joined(folder):
    (folder / "cells").mkdir(parents=True)
    segments = [(name.encode(), size, b"") for name, size in zip(NAMES, SIZES)]
    ref_writer.write(str(folder / "p"), TOKENS, LENGTHS, vocab=1000, segments=segments)
    first = 0
    for name, size in zip(NAMES, SIZES):
        path = folder / name
        write_lane(path.with_name(path.name.replace(".bin", "") + ".weight.tml"), TOKENS[first:first + size])
        first += size
    add_beside(folder / "p")
    return folder / "p"


def bad_files(p, *options):
    """The names that it prints, after what it must keep: exit status, and silence of a whole dataset."""
    code, out, err = tokmap("verify", "--files", *options, p)
    expect_equal(code, 4 if out else 0, "exit status with %r: %s" % (out, err))
    expect(out == "" or out.endswith("\n"), out)
    expect(out or not err, err)
    return out.splitlines()


def change_byte(path, at):
    with open(path, "r+b") as f:
        f.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        byte = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte[0] ^ 1]))


def files_of(folder):
    """Without views, whose names the caller does not know."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def a_whole_dataset_has_none(folder):
    for make, place in ((make_flat, "flat"), (make_joined, "joined")):
        (folder / place).mkdir()
        p = make(folder / place)
        expect_equal(tokmap("verify", "--files", p), (0, "", ""), place)
        expect_equal(tokmap("verify", "--files", str(p) + ".tmi"), (0, "", ""), place)
    ref_writer.write(str(folder / "none"), [], [0, 0], vocab=10, segments=[])
    expect_equal(tokmap("verify", "--files", folder / "none"), (0, "", ""), "no tokens")


def each_damage_names_its_file(folder):
    n = 0
    for make, place in ((make_flat, "flat"), (make_joined, "joined")):
        (folder / place).mkdir()
        p = make(folder / place)
        for name in files_of(folder / place):
            path = folder / place / name
            before = path.read_bytes()
            for how in ("missing", "short", "long", "first byte", "last byte"):
                if how == "missing":
                    if name.endswith((".tmc", ".tmw")) or name in ("p.weight.tml", "cells/0.weight.tml"):
                        continue  # no other file says that there is one
                    path.unlink()
                elif how in ("short", "long"):
                    path.write_bytes(before[:-1] if how == "short" else before + b"\0")
                else:
                    change_byte(path, 0 if how == "first byte" else -1)
                got = bad_files(p, *(["-q"] if n % 2 else []))
                path.write_bytes(before)
                expect_equal(got, [name], "%s of %s is %s" % (name, place, how))
                n += 1
    return "%d damages" % n


def of_a_flat_dataset_the_suffix_counts(folder):
    ref_writer.write(str(folder / "p"), TOKENS[:9], [9], vocab=1000, suffix=".npy")
    os.rename(folder / "p.npy", folder / "away")
    expect_equal(bad_files(folder / "p"), ["p.npy"], "names")
    ref_writer.write(str(folder / "e"), [], [0], vocab=10)
    os.remove(folder / "e.bin")
    expect_equal(bad_files(folder / "e"), ["e.bin"], "a token file without tokens")
    os.remove(folder / "e.tmi")
    expect_equal(bad_files(folder / "e"), ["e.tmi"], "no index")


def segments_limit_what_is_read(folder):
    p = make_joined(folder)
    for name in NAMES:
        change_byte(folder / name, 0)
    change_byte(folder / "cells/1.weight.tml", -1)
    for segments, wanted in (("0", NAMES[:1]), ("1-1", [NAMES[1], "cells/1.weight.tml"]), ("0-1", [*NAMES[:2], "cells/1.weight.tml"]),
                             ("2", NAMES[2:]), ("0-2", [*NAMES, "cells/1.weight.tml"])):
        expect_equal(bad_files(p, "--segments", segments), wanted, segments)
    code, out, _ = tokmap("verify", "--segments", "2", p)
    expect(code == 4 and "last: block 3" in out and "cells/0" not in out, out)
    ref_writer.write(str(folder / "cells/0"), TOKENS[:SIZES[0]], [SIZES[0]], vocab=1000)  # as it was
    expect("no damage found in 2 of 4 blocks" in tokmap("verify", "--segments", "0", p)[1], "the verdict")
    expect_equal(bad_files(p, "--segments", "0"), [], "the first is whole")
    change_byte(p.parent / "p.tmi", -1)
    expect_equal(bad_files(p, "--segments", "0"), ["p.tmi"], "the index is always read")
    flat = folder / "cells/0"
    expect_equal(bad_files(flat, "--segments", "0"), [], "a flat one has one")
    for wrong, why in (("1", "no segments 1-1: it has 1 token file"), ("0-1", "no segments 0-1"), ("2-1", "must not be above"),
                       ("-", "must be A-B"), ("a", "must be A-B"), ("1-", "must be A-B"), ("0-18446744073709551615", "must not be"),
                       ("18446744073709551615", "no segments")):
        code, out, err = tokmap("verify", "--files", "--segments", wrong, flat)
        expect(code == 2 and out == "" and why in err, "%s: %d %s%s" % (wrong, code, out, err))


def a_copy_of_the_files_makes_it_whole(folder):
    good = folder / "good"
    make_joined(good)
    names, n_named = files_of(good), 0
    for seed in range(15):
        rng, place = random.Random(seed), folder / str(seed)
        shutil.copytree(good, place)
        wanted = set()
        for name in rng.sample(names, rng.randint(1, 5)):
            path = place / name
            size = path.stat().st_size
            how = rng.choice(["short", "byte", "byte", "missing"])
            if how == "missing" and name in (*NAMES, "p.tmi"):
                path.unlink()
            elif how == "short":
                os.truncate(path, rng.randrange(size))
            else:
                change_byte(path, rng.randrange(size))
            wanted.add(name)
        named, n_rounds = set(), 0
        while True:
            found = bad_files(place / "p", "-q")
            n_rounds += 1
            expect(n_rounds <= 3 and not named & set(found), "%s again after %s" % (found, named))
            if not found:
                break
            for name in found:
                shutil.copy(good / name, place / name)
            named |= set(found)
        # A damaged column or view may only be found when the index is whole, and so on: but nothing else is named.
        expect_equal(named, wanted, "seed %d" % seed)
        said("verify", "-q", place / "p")
        n_named += len(named)
        shutil.rmtree(place)
    return "%d files in 15 copies" % n_named


def other_failures_are_not_named(folder):
    p = make_joined(folder)
    code, out, err = tokmap("verify", "--files", p, folder / "cells/0")
    expect(code == 2 and out == "" and "one dataset" in err, err)
    code, out, err = tokmap("verify", "--files", "--json", p)  # prints the error as JSON
    expect(code == 2 and "use only one of" in err, out + err)
    os.remove(folder / "last")
    os.mkdir(folder / "last")  # which no copy can replace
    code, out, err = tokmap("verify", "--files", p)
    expect(code == 3 and out == "" and "last: cannot open: Is a directory" in err, "%d %s %s" % (code, out, err))
    os.remove(folder / "cells/0.bin")
    expect_equal(tokmap("verify", "--files", "-q", p)[:2], (4, "cells/0.bin\n"), "with a file that is missing")


def names_that_no_program_may_take_are_told(folder):
    (folder / "in").mkdir()
    for name, why in ((b"a\nb", b"has a line break"), (b"../x", b"outside the folder"), (b"sub/../x", b"outside the folder")):
        (folder / "in/sub").mkdir(exist_ok=True)
        ref_writer.write(str(folder / "in/p"), TOKENS[:9], [9], vocab=1000, segments=[(name, 9, b"")])
        os.remove(os.path.join(os.fsencode(str(folder / "in")), name))
        done = run_program("tokmap", "verify", "--files", folder / "in/p")
        expect((done.returncode, done.stdout) == (4, b"") and why in done.stderr, done)
    ref_writer.write(str(folder / "in/p"), TOKENS[:9], [9], vocab=1000, segments=[(b"..a/b..", 9, b"")])
    os.remove(folder / "in/..a/b..")
    expect_equal(bad_files(folder / "in/p"), ["..a/b.."], "a name with dots")


if __name__ == "__main__":
    program("tokmap")
    sys.exit(run_in_folders("verify --files: "))
