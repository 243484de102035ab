#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tar archives of Python and GNU tar: tokmap pack writes the dataset of the same texts as JSON lines.
`test_tar.py --seeds FOLDER` writes archives for tests/fuzz/fuzz_tar.c, after bytes that choose its options."""

import gzip
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

from packed import compare, dataset_of, pack, refused
from ref_protocol import Skip, expect, expect_equal, run_in_folders

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "pax": tarfile.PAX_FORMAT, "gnu": tarfile.GNU_FORMAT}
MARK = "\ufeff"


def archive(members, form="pax", **options):
    """Members are (name, bytes), or (name, type of a link or a folder)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=FORMATS[form], **options) as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            if isinstance(data, tuple):
                member.type, member.linkname = data
                tar.addfile(member)
            else:
                data = data if isinstance(data, bytes) else data.encode()
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def texts_of(n=60):
    return ["Text %d \u00e4\n" % i * (i * 7 % 40) for i in range(n)]


def text_members(form="pax"):
    """Long names, empty members, and members of other kinds in between."""
    members = []
    for i, text in enumerate(texts_of()):
        name = "folder/" * (i % 5) + "n" * (i * 3 % 90) + "%04d" % i
        if form != "ustar" and i % 8 == 1:
            name = "\u00e4" * 60 + name + "n" * 120
        members.append((name + (".txt", ".md", ".text")[i % 3], text))
        if i % 5 == 0:
            members += [(name + ".cls", "1"), ("folder%d" % i, (tarfile.DIRTYPE, ""))]
        if i % 9 == 0:
            members += [("l%d.txt" % i, (tarfile.SYMTYPE, name[:99])), ("h%d.txt" % i, (tarfile.LNKTYPE, "a")),
                        ("._%d.txt" % i, "\0\5\x16\7"), ("p%d.txt" % i, (tarfile.FIFOTYPE, ""))]
    return members


def json_members():
    """Records over several lines, lines of records, blank members; text in between is left out."""
    members = []
    for i, text in enumerate(texts_of()):
        record = {"a": [1, {"text": "no"}], "text": text, "id": i}
        if i % 4 == 0:
            members.append(("%04d.json" % i, json.dumps(record, indent=2)))
        elif i % 4 == 1:
            following = {"text": texts_of()[i + 1]}
            members.append(("%04d.jsonl" % i, MARK * (i % 8 == 1) + json.dumps(record) + "\n\n" + json.dumps(following)))
        elif i % 4 == 3:
            members += [("%04d.json" % i, " \n" + json.dumps(record) + "\n\n"), ("%04d.ndjson" % i, " \n \n")]
        members.append(("%04d.txt" % i, "not this"))
    return members


def archives_of_all_formats_have_their_texts(folder):
    for form in FORMATS:
        data = archive(text_members(form), form)
        compare(folder, form, data, texts_of())
        compare(folder, form + ".gz", gzip.compress(data), texts_of(), "-j", "3")
        code, message, name = pack(folder, "-", data=data)
        expect_equal((code, name), (0, dataset_of(folder, texts_of())), form + " on stdin: " + message)


def json_members_are_records_and_lines(folder):
    for form in FORMATS:
        compare(folder, form, archive(json_members(), form), texts_of())
    message = compare(folder, "one kind", archive(json_members()), texts_of(), "--format", "jsonl")
    expect("member 0000.txt is left out: JSON is read from this archive" in message, message)
    wanted = [t for i, t in enumerate(texts_of()) if i > 40 and i % 4 != 2]
    data = archive(m for m in json_members() if m[0].endswith(".json"))
    compare(folder, "--where", data, [t for i, t in enumerate(texts_of()) if i > 40 and i % 4 in (0, 3)],
            "--where", "id > 40")
    compare(folder, "@row", archive(text_members()), texts_of()[7:31], "--where", "@row > 6 and @row < 31")
    expect(len(wanted) > 0, "nothing was compared")


def the_first_member_or_the_format_decides(folder):
    members = [("a.cls", "7"), ("a.txt", "one\ntwo"), ("a.json", '{"text": "three"}'), ("b.txt", "")]
    compare(folder, "auto", archive(members), ["one\ntwo", ""])
    compare(folder, "jsonl", archive(members), ["three"], "--format", "jsonl")
    compare(folder, "lines", archive(members), ["one", "two"], "--lines")
    compare(folder, "text", archive(members[2:] + members[:2]), ["", "one\ntwo"], "--format", "text")
    compare(folder, "auto", archive(members[2:] + members[:2]), ["three"])
    compare(folder, "--separator", archive([("a.txt", "1--2--"), ("b.txt", "3--4"), ("c.txt", "")]), list("1234"),
            "--separator", "--")


def other_members_are_named_and_counted(folder):
    data = archive([("%02d.jpg" % i, "x") for i in range(14)] + [("a.txt", "A"), ("b.txt", (tarfile.SYMTYPE, "a.txt"))])
    message = compare(folder, "images", data, ["A"])
    lines = message.strip().split("\n")
    expect_equal(len(lines), 11, message)
    expect("member 00.jpg is left out: neither text nor JSON by its name" in lines[0], message)
    expect("5 more members are left out" in lines[10], message)
    data = archive([("%02d.jpg" % i, "x") for i in range(11)] + [("a.txt", "A")])
    expect("1 more member is left out" in compare(folder, "11 images", data, ["A"]), "the last one")
    data = archive([("d/", (tarfile.DIRTYPE, "")), ("d/a.txt", "A")])
    expect_equal(compare(folder, "a folder", data, ["A"]), "", "notes about a folder")


def an_archive_without_text_or_json_is_refused(folder):
    refused(folder, archive([("a.jpg", "x"), ("b.csv", "y")]), "no member of this archive is text or JSON by its name")
    compare(folder, "capital letters", archive([("A.TXT", "A"), ("b.jpg", "x")]), ["A"])
    compare(folder, "no members", archive([("d", (tarfile.DIRTYPE, ""))]), [])


def archives_of_gnu_tar_have_their_texts(folder):
    if not shutil.which("tar"):
        raise Skip("there is no tar")
    (folder / "members").mkdir()
    texts = {("d%d" % (i % 3)) + "n" * (i * 5) + ".txt": t for i, t in enumerate(texts_of(40))}
    for name, text in texts.items():
        (folder / "members" / name).write_text(text)
    os.link(folder / "members" / "d0.txt", folder / "members" / "zz.txt")
    names = sorted(texts) + ["zz.txt"]
    for form in ("v7", "oldgnu", "gnu", "ustar", "pax"):
        kept = [n for n in names if len(n) < 99]
        subprocess.run(["tar", "-C", folder / "members", "--format", form, "-cf", folder / "made.tar", *kept], check=True)
        compare(folder, form, (folder / "made.tar").read_bytes(), [texts[n] for n in kept[:-1]])
    with open(folder / "members" / "sparse.txt", "wb") as file:
        file.truncate(1 << 20)
    for form in ("gnu", "pax"):
        subprocess.run(["tar", "-C", folder / "members", "--format", form, "-Scf", folder / "made.tar", "sparse.txt"], check=True)
        refused(folder, (folder / "made.tar").read_bytes(), "sparse.txt", "sparse file")


def messages_name_the_member(folder):
    lines = '{"text": "a"}\n{"text": 5}\n'
    data = archive([("x/a.jsonl", '{"text": "b"}\n'), ("x/b.jsonl", lines)])
    refused(folder, data, "in: member x/b.jsonl:2: byte")
    refused(folder, archive([("x/a.json", '{"text": "b"} {}')]), "in: member x/a.json:1: byte")
    message = compare(folder, "skip", data, ["b", "a"], "--on-error", "skip")
    expect("in: member x/b.jsonl:2: byte" in message, message)
    refused(folder, archive([("a.txt", "A"), ("pic.txt", b"\x89PNG\r\n\x1a\n" + bytes(100))]), "member pic.txt", "is a PNG image, not text")
    refused(folder, archive([("a.txt", archive([("b.txt", "B")]))]), "member a.txt", "a tar archive inside another")
    refused(folder, archive([("a.txt", b"A" * 5000 + b"\xff")]),
            "in: member a.txt:1: byte", options=["--utf8", "error"])


def damaged_archives_are_refused(folder):
    data = archive(text_members("ustar"), "ustar")
    end = len(data.rstrip(b"\0")) // 512 * 512 + 512
    refused(folder, data[:end], "its end is missing")
    compare(folder, "one block of zeros", data[:end] + bytes(512), texts_of())
    refused(folder, data[:end - 700], "truncated")
    refused(folder, data[:700], "truncated")
    refused(folder, data + b"x", "data after the end of the archive")
    refused(folder, data + data, "data after the end of the archive", "--ignore-zeros")
    second = data.index(b"ustar", 512) - 257
    refused(folder, data[:second] + b"X" + data[second + 1:], "byte %d: " % second, "checksum")


def long_members_come_in_pieces(folder):
    texts = ["\u00e4 text that is long. " * 400000, "short", "x" * 9000000]
    members = [("%d.txt" % i, t) for i, t in enumerate(texts)]
    compare(folder, "text", archive(members), texts, "--memory", "8M", "-j", "2")
    members = [("%d.json" % i, json.dumps({"n": [1, 2], "text": t}, indent=1)) for i, t in enumerate(texts)]
    compare(folder, "JSON", gzip.compress(archive(members), 1), texts, "--memory", "8M", "-j", "2")


SEEDS = {
    "text": (bytes([16, 0, 0x44, 80]), lambda: archive(text_members()[:9] + [("e.txt", "")])),
    "gnu": (bytes([17, 1, 0x33, 0]), lambda: archive(text_members("gnu")[:9], "gnu")),
    "lines": (bytes([18, 0, 0x22, 7]), lambda: archive(text_members("ustar")[3:9], "ustar")),
    "json": (bytes([19, 2, 0x55, 200]), lambda: archive(json_members()[:10])),
    "auto_json": (bytes([16, 0, 0x34, 99]), lambda: archive(json_members()[3:12], pax_headers={"comment": "global"})),
}


def write_seeds(place):
    os.makedirs(place, exist_ok=True)
    for name, (options, make) in SEEDS.items():
        pathlib.Path(place, name).write_bytes(options + make().rstrip(b"\0") + bytes(1536))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--seeds"]:
        sys.exit(write_seeds(sys.argv[2]))
    sys.exit(run_in_folders(""))
