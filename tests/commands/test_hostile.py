#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that were made to do harm, given to the commands: each ends with an error that names it, soon and with little
memory, and who may read an output is what the umask says."""

import os
import resource
import stat
import struct
import sys

import ref_plan
import ref_writer
import ref_xxh3
from ref_protocol import expect, expect_equal, run_in_folders, run_program

SANITIZED = bool(os.environ.get("TOKMAP_SANITIZED"))
LITTLE = 1 << 32  # address space, of which stacks of many threads take a part


def tokmap(*arguments, umask=0o022, address=LITTLE):
    def limit():
        os.umask(umask)
        if not SANITIZED:
            resource.setrlimit(resource.RLIMIT_AS, (address, address))
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))

    done = run_program("tokmap", *arguments, preexec_fn=limit)
    return done.returncode, done.stderr.decode("utf-8", "replace")


def refused(codes, *arguments):
    code, said = tokmap(*arguments)
    expect(code in codes and len(said) < 2000 and said.count("\n") < 8, "%s: exit %d: %s" % (arguments, code, said))
    return said


def joined(folder, name):
    """A dataset of 300 tokens in two files, with any name for the second; names that need it are made here."""
    prefix = folder / "data" / "joined"
    prefix.parent.mkdir(exist_ok=True)
    tokens = list(range(300))
    plain = b"./" * ((len(name) - 1) // 2) + b"x" * (2 - len(name) % 2)
    ref_writer.write(str(prefix), tokens=tokens, lengths=[300], vocab=300, inputs=[(b"a", 1, 300, 0, 0)],
                     metadata=b"{}", segments=[(b"first", 100, b""), (plain, 200, b"")])
    index = prefix.with_suffix(".tmi")
    data = bytearray(index.read_bytes())
    at = data.rindex(b"first" + plain) + 5
    data[at:at + len(name)] = name
    index.write_bytes(ref_writer.sign(data))
    return prefix


def segments_that_are_no_token_files_are_refused(folder):
    os.mkfifo(folder / "fifo")
    (folder / "data").mkdir()
    os.symlink("/dev/zero", folder / "data" / "zero")
    os.symlink("loop", folder / "data" / "loop")
    os.symlink(".", folder / "data" / "self")
    root = b"../" * len(folder.parts)
    for name in (b"../fifo", b"zero", b"loop", b"self", root + b"dev/zero", root + b"proc/self/mem", b"..", b"\x1b[2J",
                 root + b"proc/kcore", b"a/" * 1900, b"self/" * 100 + b"first", b"joined.tmi"):
        prefix = joined(folder, name)
        for command in (["verify"], ["cat"], ["merge", "-o", folder / "out"],
                        ["export", "--to", "megatron", "-o", folder / "out"]):
            said = refused((3, 4), *command, prefix)
            expect("\x1b" not in said, said)
        expect_equal([p.name for p in folder.glob("out*")], [], "outputs")


def a_segment_may_be_outside_the_folder(folder):
    """SECURITY.md says so, and that its size has to be the right one."""
    prefix = joined(folder, b"../other")
    os.rename(folder / "data" / "xx", folder / "other")
    expect_equal(tokmap("verify", prefix)[0], 0, "verify")
    (folder / "other").write_bytes(b"root:x:0:0:")
    refused((4,), "cat", prefix)


def segments_that_begin_with_a_slash_or_are_out_of_order_are_refused(folder):
    for name in (b"/etc/passwd", b"a\0b"):
        refused((4,), "info", joined(folder, name))


def claims_of_gigantic_sizes_cost_nothing(folder):
    sparse = folder / "sparse"
    sparse.touch()
    os.truncate(sparse, 1 << 42)
    (folder / "a.txt").write_text("text")
    refused((3,), "status", sparse)
    refused((3,), "join", sparse, "-o", folder / "out")
    refused((3,), "pack", folder / "a.txt", "--tokenizer", sparse, "-o", folder / "out")
    for suffix in (".tmi", ".idx", ".ds.index"):
        os.symlink("sparse", folder / ("p" + suffix))
    (folder / "p.bin").write_bytes(bytes(64))
    (folder / "p.ds").write_bytes(bytes(64))
    refused((4,), "verify", folder / "p")
    for name in ("p.bin", "p.ds"):
        refused((2, 3, 4), "index", folder / name)


def a_sparse_index_of_segments_costs_nothing(folder):
    """Its table says that the last section is as large as one for 300 segments can be, or larger."""
    prefix = joined(folder, b"other")
    index = prefix.with_suffix(".tmi")
    data = bytearray(index.read_bytes())
    table = data[256:256 + 32 * struct.unpack_from("<I", data, 28)[0]]
    offset = struct.unpack_from("<Q", table, len(table) - 24)[0]
    for size in (300 * 4120, 1 << 34, 1 << 42):
        struct.pack_into("<Q", table, len(table) - 16, size)
        data[256:256 + len(table)] = table
        struct.pack_into("<Q", data, 32, offset + size)
        struct.pack_into("<Q", data, 240, ref_xxh3.xxh3_64(bytes(table)))
        struct.pack_into("<Q", data, 248, ref_xxh3.xxh3_64(bytes(data[:248])))
        index.write_bytes(data)
        os.truncate(index, offset + size)
        said = refused((4,), "info", prefix)
        expect("segments" in said, said)


def deep_nesting_is_refused(folder):
    deep = 10**5
    (folder / "a.jsonl").write_text('{"text": "a", "b": ' + "[" * deep + "]" * deep + "}\n")
    (folder / "t.json").write_text('{"model": ' + '{"a": ' * deep + "1" + "}" * (deep + 1))
    (folder / "a.txt").write_text("text")
    refused((3,), "pack", folder / "a.jsonl", "-o", folder / "out")
    refused((3,), "pack", folder / "a.txt", "--tokenizer", folder / "t.json", "-o", folder / "out")
    for where in ("(" * 8000 + "a > 1" + ")" * 8000, "not " * 4000 + "a > 1", " " * (deep + 1)):
        refused((2,), "pack", folder / "a.jsonl", "-o", folder / "out", "--where", where)


def outputs_have_the_permissions_that_the_umask_says(folder):
    (folder / "a.jsonl").write_text('{"text": "a"}\nbad\n')
    for umask in (0o077, 0o027, 0o022):
        code, said = tokmap("pack", "-qf", folder / "a.jsonl", "-o", folder / "out", "--on-error", "skip",
                            "--report", folder / "out.json", umask=umask)
        expect_equal(code, 0, said)
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in folder.glob("out*")}
        expect_equal(modes, dict.fromkeys(("out.bin", "out.tmi", "out.json"), 0o666 & ~umask), "modes")


def a_plan_cannot_make_pack_write_what_its_options_do_not(folder):
    """An option that names an output, or an unknown one, is none of a plan's."""
    (folder / "a.jsonl").write_text('{"text": "a"}\n' * 100)
    plan = folder / "run.plan"
    expect_equal(tokmap("plan", folder / "a.jsonl", "-o", plan, "--cells", folder / "cells", "-q")[0], 0, "plan")
    lines = plan.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("cell-size")) + 1
    for option in ("report %s" % (folder / "report"), "output %s" % (folder / "x"), "force", "plan x",
                   "split /../x=0.5", "split ../x=0.5"):
        text = "\n".join(lines[:at] + ["option " + option] + lines[at:-1]) + "\n"
        plan.write_bytes(ref_plan.signed(text.encode()))
        before = sorted(folder.rglob("*"))
        said = refused((2, 3, 4), "pack", "--plan", plan, "--task", "0/1")
        expect(option.split()[0] in said, said)
        refused((1, 2, 3, 4), "join", plan, "-o", folder / "out")
        expect_equal(sorted(folder.rglob("*")), before, "files")


sys.exit(run_in_folders(""))
