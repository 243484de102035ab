#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands that write on file systems that lack something: locks, rename, links, flushes of folders, writes in any
order. What is needed and missing is said before any work, with what to do; what is not needed is not missed. And real
file systems: overlayfs, tmpfs, ramfs, xfs, btrfs, ext4."""

import contextlib
import os
import shutil

import mounts
from ref_protocol import expect, expect_equal, run_in_folders, run_program

TEXT = "".join('{"text": "document %d %s"}\n' % (i, "word " * (i % 50)) for i in range(2000))
NO_LOCKS, NO_RENAME, NO_ORDER = ("this file system " + what for what in (
    "has no locks; ", "cannot rename files; ", "writes files only from front to back; "))


def prepare(folder):
    """`local` has inputs and datasets; `shown` is what the FUSE file system at `mount` shows."""
    mounts.enter_namespace()
    local, shown, mount = (folder / name for name in ("local", "shown", "mount"))
    for path in (local, shown, mount):
        path.mkdir()
    (local / "c.jsonl").write_text(TEXT)
    (local / "bad.jsonl").write_text('{"text": "a"}\n{"text": 1}\n' + TEXT)
    (local / "u.jsonl").write_text(TEXT)
    (local / "list").write_text("3\n5\n")
    for words in (["pack", "c.jsonl", "-o", "a"],
                  ["plan", "c.jsonl", "--cells", "cells", "--cell-size", "20k", "-o", "run.plan"],
                  ["pack", "--plan", "run.plan"], ["join", "run.plan", "-o", "joined"],
                  ["plan", "c.jsonl", "--cells", mount / "cells", "--cell-size", "20k", "-o", "there.plan"],
                  ["plan", "u.jsonl", "--cells", "others", "--cell-size", "20k", "-o", shown / "u.plan"]):
        expect_equal(run(local, *words)[0], 0, "tokmap %s" % words)
    with open(local / "u.jsonl", "a") as file:
        file.write(TEXT)
    for name in ("a.bin", "a.tmi"):
        shutil.copy(local / name, shown / name)
    shutil.copy(local / "a.bin", shown / "raw.bin")


def run(folder, *words, **more):
    """(exit status, all that tokmap says)"""
    done = run_program("tokmap", *words, cwd=folder, text=True, errors="replace", **more)
    return done.returncode, done.stdout + done.stderr


def commands(out):
    """Each command that writes. It writes to the folder `out`, and is run in `local`."""
    return [("pack", "bad.jsonl", "--on-error", "skip", "-o", out / "packed", "--report", out / "report",
             "--also", "megatron", "--split", "valid=0.1"),
            ("plan", "c.jsonl", "--cells", "cells", "--cell-size", "20k", "-o", out / "plan"),
            ("plan", "--update", out / "u.plan"),
            ("pack", "--plan", "there.plan"),
            ("join", "run.plan", "-o", out / "joined"),
            ("merge", "joined", "-o", out / "flat"),
            ("merge", "a", "joined", "-o", out / "merged"),
            ("index", "--dtype", "u16", "--eod", "256", out / "raw.bin"),
            ("redact", "--documents", "@list", "a", "-o", out / "redacted"),
            ("export", "--to", "megatron", out / "a", "-o", out / "exported"),
            ("export", "--to", "llmc", "--shard-tokens", "100000", "a", "-o", out / "shards"),
            ("rows", "-l", "64", out / "a")]


def contents(top):
    """By name, the bytes of each file below it."""
    return {str(path.relative_to(top)): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}


def check_refused(folder, told, code=3, **settings):
    """Each command is refused, says this, has not begun, and leaves nothing."""
    local, place = folder / "local", folder / "mount"
    with mounts.fuse(folder / "shown", place, **settings):
        before = contents(folder / "shown")
        for words in commands(place):
            status, said = run(local, *words)
            expect_equal((status, told in said), (code, True), "%s said %s" % (words, said))
            expect("bad.jsonl:2" not in said, "it had begun: %s" % said)
            expect_equal(contents(folder / "shown"), before, "files after %s" % (words,))


def check_works(folder, *options, **settings):
    """Each command writes what it writes elsewhere."""
    local, place = folder / "local", folder / "mount"
    with mounts.fuse(folder / "shown", place, **settings):
        for words in commands(place):
            status, said = run(local, *words, *options)
            expect_equal(status, 0, "%s said %s" % (words, said))
    made = contents(folder / "shown")
    expect(not [name for name in made if "partial" in name or "prob" in name], "left: %s" % list(made))
    for name, like in (("flat.bin", "a.bin"), ("exported.bin", "a.bin"), ("cells/000000.bin", "cells/000000.bin")):
        expect_equal(made[name], (local / like).read_bytes(), name)
    for name in ("packed", "packed-valid", "joined", "flat", "merged", "raw", "redacted", "cells/000000"):
        status, said = run(folder / "shown", "verify", name)
        # Joined datasets name their cells by the path from the mount.
        expect(status == 0 or name == "joined", "%s: %s" % (name, said))
    return made


def test_a_file_system_without_locks_is_refused_before_any_work(folder):
    for error in ("ENOSYS", "EOPNOTSUPP", "ENOLCK"):
        check_refused(folder, NO_LOCKS, flock=error)
    status, said = run(folder / "local", *commands(folder / "mount")[0])
    expect_equal((status, "--no-lock" in said), (0, False), said)


def test_no_lock_writes_where_there_are_no_locks(folder):
    check_works(folder, "--no-lock", flock="ENOSYS")


def test_no_lock_takes_no_lock(folder):
    """Also where locks work: each command runs while every lock that it would take is held by another process."""
    check_works(folder, "--no-lock", flock="EWOULDBLOCK")


def test_locks_that_need_a_file_open_for_writing(folder):
    """As on NFS and SMB: after a kill too, when a partial file is left."""
    for name in ("exported.bin", "exported.idx", "shards_000001.bin", "plan", "report", "a.64.tmr"):
        (folder / "shown" / (name + ".partial")).write_bytes(b"left")
    check_works(folder, flock="nfs")


def test_a_file_system_without_rename_is_refused_before_any_work(folder):
    check_refused(folder, NO_RENAME, refuse={"RENAME": "ENOSYS", "RENAME2": "ENOSYS"})
    check_refused(folder, NO_RENAME, refuse={"RENAME": "EPERM", "RENAME2": "EPERM", "LINK": "EPERM"})


def test_a_file_system_that_writes_only_in_order_is_refused_before_any_work(folder):
    check_refused(folder, NO_ORDER, sequential=True)
    check_refused(folder, NO_ORDER, sequential=True, refuse=dict.fromkeys(("RENAME", "RENAME2", "LINK"), "ENOSYS"))


def test_a_folder_that_cannot_be_flushed(folder):
    check_refused(folder, "cannot flush", code=75, refuse={"FSYNCDIR": "EIO"})


def test_what_is_not_needed_is_not_missed(folder):
    """Links, rename without replacing, flushes of folders, copies in the kernel, locks of other machines."""
    for error in ("ENOSYS", "EOPNOTSUPP", "EINVAL"):
        shutil.copytree(folder / "shown", folder / error)
        with contextlib.ExitStack() as undo:
            undo.callback(shutil.copytree, folder / error, folder / "shown", dirs_exist_ok=True)
            undo.callback(shutil.rmtree, folder / "shown")
            check_works(folder, refuse={"FSYNCDIR": error, "RENAME2": "EINVAL",
                                        "LINK": "EPERM" if error == "EINVAL" else error})


def check_kind(folder, kind):
    """All commands write what they write elsewhere."""
    with mounts.mounted(kind, folder) as place:
        for name in os.listdir(folder / "shown"):
            shutil.copy(folder / "shown" / name, place / name)
        mounts.mount(place, folder / "mount", None, 4096)       # MS_BIND, for the plan of `there.plan`
        try:
            for words in commands(place):
                status, said = run(folder / "local", *words)
                expect_equal(status, 0, "%s said %s" % (words, said))
            for name in ("flat", "exported"):
                expect_equal((place / (name + ".bin")).read_bytes(), (folder / "local" / "a.bin").read_bytes(), name)
            status, said = run(place, "verify", *(place / name for name in ("packed", "joined", "flat", "merged",
                                                                            "raw", "redacted")))
            expect_equal(status, 0, said)
        finally:
            mounts.unmount(folder / "mount")


def test_resume_of_what_a_lower_layer_has(folder):
    """An image of a container can hold an unfinished output, and one whose writer was killed after it had given the
    names: files of a lower layer become others when they are first written, and hard links are separate files then."""
    local, shown = folder / "local", folder / "shown"
    (local / "second.jsonl").write_text('{"text": "a"}\n{"text": 1}\n' + TEXT)
    (local / "first.jsonl").write_text(20 * TEXT)
    words = ("pack", "-j1", "first.jsonl", "second.jsonl", "-o")
    status, said = run(local, *words, shown / "p", env={**os.environ, "TOKMAP_CHECKPOINT_MS": "0"})
    expect_equal((status, "Progress is saved" in said), (3, True), said)
    (local / "second.jsonl").write_text('{"text": "a"}\n' + TEXT)
    expect_equal(run(local, *words, shown / "q")[0], 0, "without a bad input")
    for suffix in (".bin", ".tmi"):
        os.link(shown / ("q" + suffix), shown / ("q" + suffix + ".partial"))
    with mounts.mounted("overlay", folder, lower=shown) as place:
        for name, code, told in (("p", 0, "resuming after "), ("q", 5, "there is nothing to resume")):
            status, said = run(local, *words, place / name)
            expect_equal((status, told in said), (code, True), said)
            expect_equal(run(place, "verify", name)[0], 0, "verify %s" % name)
            expect_equal(sorted(path.name for path in place.glob(name + ".*")), [name + ".bin", name + ".tmi"], "files")
        expect_equal((place / "p.bin").read_bytes(), (place / "q.bin").read_bytes(), "tokens")


def test_overlayfs(folder):
    check_kind(folder, "overlay")


def test_tmpfs(folder):
    check_kind(folder, "tmpfs")


def test_ramfs(folder):
    check_kind(folder, "ramfs")


def test_xfs(folder):
    check_kind(folder, "xfs")


def test_btrfs(folder):
    check_kind(folder, "btrfs")


def test_ext4(folder):
    check_kind(folder, "ext4")


if __name__ == "__main__":
    raise SystemExit(run_in_folders("file_systems: ", prepare=prepare))
