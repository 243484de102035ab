#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What commands do with lanes: redact leaves no value of a redacted document in any file, info and verify show and check
them, merge and export say that they leave them out. The lanes are those of a second writer."""

import json
import random
import sys

import ref_reader
import ref_writer
from commands import said, tokmap
from ref_content import ContentHash
from ref_lane import lane_bytes, read_lane
from ref_protocol import expect, expect_equal, kills, run_in_folders

COUNT = 5  # numbers for a token, of 4 bytes
LENGTHS = [3, 0, 7, 12, 1, 5, 9, 30, 2, 11]
FIRST = [sum(LENGTHS[:d]) for d in range(len(LENGTHS) + 1)]
ABOUT = b'{"attention": "within documents"}'


def marks(d, n_bytes=4 * COUNT):
    """The numbers of a token of document d, found nowhere else."""
    return (b"\x5a<%02d>" % d * n_bytes)[:n_bytes]


def values_of(documents):
    return b"".join(marks(d) * LENGTHS[d] for d in documents)


def tokens_of(documents):
    return [100 + d for d in documents for _ in range(LENGTHS[d])]


def hash_of(tokens):
    content = ContentHash()
    content.add(b"".join(t.to_bytes(4, "little") for t in tokens))
    return content.stored()


def write_lane(path, documents, about=ABOUT, goes_with=1):
    tokens = tokens_of(documents)
    path.write_bytes(lane_bytes(hash_of(tokens), len(tokens), "u32", COUNT, goes_with, values_of(documents), about))


def make_flat(folder, about=ABOUT):
    everything = range(len(LENGTHS))
    ref_writer.write(str(folder / "p"), tokens=tokens_of(everything), lengths=LENGTHS, vocab=300, metadata=b"{}")
    write_lane(folder / "p.topk.tml", everything, about)
    return folder / "p"


PARTS = [range(0, 3), range(3, 6), range(6, 8), range(8, 10)]


def make_joined(folder):
    (folder / "cells").mkdir()
    segments = [(b"cells/%d.bin" % k, len(tokens_of(part)), b"") for k, part in enumerate(PARTS)]
    ref_writer.write(str(folder / "p"), tokens=tokens_of(range(len(LENGTHS))), lengths=LENGTHS, vocab=300, metadata=b"{}", segments=segments)
    for k, part in enumerate(PARTS):
        write_lane(folder / "cells" / f"{k}.topk.tml", part)
    return folder / "p"


def redact(p, q, documents, *more):
    (q.parent / "list").write_text("".join(f"{d}\n" for d in documents))
    return tokmap("redact", "-q", p, "--documents", f"@{q.parent / 'list'}", "-o", q, *more)


def check_flat(path, prefix, documents):
    ds = ref_reader.read(str(prefix))
    lane = read_lane(str(path), ds.tokens_hash, ds.n_tokens)
    wanted = b"".join((bytes(4 * COUNT) if d in documents else marks(d)) * LENGTHS[d] for d in range(len(LENGTHS)))
    expect_equal((lane.type, lane.count, lane.goes_with, lane.about), ("u32", COUNT, 1, ABOUT), "the header")
    expect(lane.values == wanted, "the values")


def files_with(folder, d, pattern):
    return [f.name for f in folder.rglob(pattern) if f.is_file() and LENGTHS[d] and marks(d) in f.read_bytes()]


def redacted_documents_have_zeros(folder):
    p = make_flat(folder)
    for seed in range(10):
        documents = sorted(random.Random(seed).sample(range(len(LENGTHS)), 1 + seed))
        expect_equal(redact(p, folder / "q", documents, "-f"), (0, "", ""), "redact")
        check_flat(folder / "q.topk.tml", folder / "q", documents)
        for d in range(len(LENGTHS)):
            expect_equal(files_with(folder, d, "q*"), [] if d in documents or not LENGTHS[d] else ["q.topk.tml"], f"document {d}")
        expect(": OK" in said("verify", folder / "q"), "verify")


def of_a_joined_dataset_only_cells_that_change_get_lanes(folder):
    p = make_joined(folder)
    said("verify", p)
    before = {f.name: f.read_bytes() for f in folder.rglob("*") if f.is_file()}
    expect_equal(redact(p, folder / "q", [4, 7]), (0, "", ""), "redact")
    made = sorted(f.name for f in folder.glob("q*.tml"))
    expect_equal([len(name.split(".")) for name in made], [4, 4], f"lanes: {made}")
    expect_equal(sorted(f.name[:-len(".redacted")] for f in folder.glob("q*.redacted")), [name[:-len(".topk.tml")] for name in made], "lanes and tokens")
    for d in range(len(LENGTHS)):
        wanted = 0 if d in (4, 7) or not LENGTHS[d] or d in PARTS[0] or d in PARTS[3] else 1
        expect_equal(len(files_with(folder, d, "q*")), wanted, f"document {d}")
    said("verify", folder / "q")
    after = {f.name: f.read_bytes() for f in folder.rglob("*") if f.is_file()}
    expect(all(after[name] == data for name, data in before.items()), "a file of p has changed")
    # A second redaction removes what the first has written.
    expect_equal(redact(p, folder / "q", [3, 4, 7], "-f"), (0, "", ""), "redact")
    expect_equal(sum(map(len, (files_with(folder, d, "q*") for d in (3, 4, 7)))), 0, "files with redacted values")
    expect_equal(len(list(folder.glob("q*.tml"))), 2, "lanes")
    said("verify", folder / "q")
    # What a kill leaves is named, and removed by the next one.
    orphan = folder / "q.0123456789abcdef.topk.tml"
    orphan.write_bytes(values_of([3]))
    code, _, err = tokmap("verify", folder / "q")
    expect(code == 0 and f"{orphan}: is the lane of redacted tokens that no longer exist" in err, err)
    expect_equal(redact(p, folder / "q", [3, 4, 7], "-f"), (0, "", ""), "redact")
    expect(not orphan.exists(), "it is removed")
    # And from the redacted one.
    expect_equal(redact(folder / "q", folder / "r", [5]), (0, "", ""), "redact")
    said("verify", folder / "r")
    expect_equal(sum(map(len, (files_with(folder, d, "r*") for d in (3, 4, 5, 7)))), 0, "files with redacted values")


def a_killed_redaction_leaves_nothing_unnamed(folder):
    """Killed at each call that names or removes a file: q is the old or the new one, and the next redaction leaves no file
    with redacted values that info does not name."""
    p, q, n_killed = make_joined(folder), folder / "q", 0
    (folder / "new").write_text("4\n5\n")

    def begin():
        for f in folder.glob("q*"):
            f.unlink()
        expect_equal(redact(p, q, [4]), (0, "", ""), "redact")

    for when in kills(begin, "redact", "-q", "-f", p, "--documents", f"@{folder / 'new'}", "-o", q):
        n_killed += 1
        expect(tokmap("info", q)[0] in (0, 4), f"info after {when}")
        expect(not files_with(folder, 4, "q*"), f"document 4 is in a file after {when}")
        code, _, err = redact(p, q, [4, 5], "-f")
        expect_equal(code, 0, err)
        _, _, err = tokmap("info", q)
        for name in files_with(folder, 5, "q*"):
            digits = name.split(".")[1]
            expect(name in err or f"q.{digits}.redacted: is not used" in err, f"{name} stays after {when}: {err}")
        expect_equal(tokmap("verify", "-q", q)[0], 0, "verify")
    expect(n_killed > 5, "kills")
    return f"{n_killed} kills"


def lists_of_paths_skip_them(folder):
    p = make_joined(folder)
    expect_equal(redact(p, folder / "q", [4]), (0, "", ""), "redact")
    paths = sorted(folder.glob("q*"))
    expect_equal(sorted(f.suffix for f in paths), [".redacted", ".tmi", ".tml"], "files")
    lines = [line for line in said("info", "--json", *paths).splitlines() if line]
    expect_equal(len(lines), 1, "datasets")


def a_lane_over_all_token_files_is_redacted_as_a_whole(folder):
    p = make_joined(folder)
    write_lane(folder / "p.topk.tml", range(len(LENGTHS)))
    expect_equal(redact(p, folder / "q", [4, 7]), (0, "", ""), "redact")
    check_flat(folder / "q.topk.tml", folder / "q", [4, 7])
    said("verify", folder / "q")


def attention_across_documents_is_a_warning(folder):
    for about in (b"", b"{}", b'{"attention": "across"}', b"no JSON"):
        p = make_flat(folder, about)
        code, _, err = redact(p, folder / "q", [3], "-f")
        expect(code == 0 and 'the lane \'topk\' does not say "attention": "within documents"' in err, err)


def a_damaged_lane_is_found_before_anything_is_written(folder):
    p = make_flat(folder)
    path = folder / "p.topk.tml"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    code, _, err = tokmap("verify", p)
    expect(code == 4 and "p.topk.tml: block 0 (bytes 8192-9791) does not match its checksum" in err, (code, err))
    code, _, err = redact(p, folder / "q", [3])
    expect(code == 4 and "p.topk.tml" in err, (code, err))
    expect_equal(list(folder.glob("q*")), [], "what is written")
    write_lane(path, range(1, len(LENGTHS)))
    for command in ("info", "verify"):
        code, _, err = tokmap(command, p)
        expect(code != 0 and "values of other tokens" in err, (code, err))


def lanes_of_an_earlier_dataset_are_named(folder):
    p = make_flat(folder)
    ref_writer.write(str(folder / "q"), tokens=[1, 2], lengths=[2], vocab=300)
    (folder / "q.old.tml").write_bytes(lane_bytes(hash_of([1, 2]), 2, "u8", 1, 0, b"ab"))
    (folder / "q.topk.tml").write_bytes(lane_bytes(hash_of([1, 2]), 2, "u8", 1, 0, b"ab"))
    code, _, err = redact(p, folder / "q", [3], "-f")
    expect_equal((code, err.count("\n")), (0, 1), err)
    expect(f"{folder / 'q.old.tml'}: has the values of an earlier dataset, not redacted: remove it" in err, err)
    check_flat(folder / "q.topk.tml", folder / "q", [3])


def info_lists_them(folder):
    p = make_flat(folder)
    line = next(line for line in said("info", p).splitlines() if line.startswith("lanes:"))
    expect_equal(line.split(maxsplit=1)[1], "topk, 5 uint32 for each token as an input, from byte 8192", "the line")
    lane, = json.loads(said("info", "--json", p))["lanes"]
    hash = lane.pop("hash")
    expect(len(hash) == 16 and int(hash, 16), "hash")
    expect_equal(lane, {"name": "topk", "type": "uint32", "count": 5, "goes_with": "input", "file": str(folder / "p.topk.tml"),
                        "offset": 8192, "about": json.loads(ABOUT)}, "the object")
    (folder / "j").mkdir()
    j = make_joined(folder / "j")
    line = next(line for line in said("info", j).splitlines() if line.startswith("lanes:"))
    expect_equal(line.split(maxsplit=1)[1], "topk, 5 uint32 for each token as an input, beside the token files", "the line")
    lane, = json.loads(said("info", "--json", j))["lanes"]
    expect_equal((lane["file"], lane["offset"], lane["hash"]), (None, None, None), "of a joined dataset")


def outputs_without_them_say_so(folder):
    p = make_flat(folder)
    for command in (["merge", p, p.parent / "p2", "-o", folder / "m"], ["export", "--to", "megatron", p, "-o", folder / "x"]):
        if command[0] == "merge":
            ref_writer.write(str(folder / "p2"), tokens=[1, 2], lengths=[2], vocab=300, metadata=b"{}")
        code, _, err = tokmap(*command)
        expect(code == 0 and f"{folder / 'p.tmi'}: its lanes (topk) are not in the output" in err, (code, err))
    expect_equal([f.name for f in folder.glob("*.tml")], ["p.topk.tml"], "lanes")


sys.exit(run_in_folders("lanes_"))
