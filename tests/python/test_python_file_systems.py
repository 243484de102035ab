#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Loader reads the same rows on every file system; io="auto" takes the map only where the kernel says that the data
are in memory; reads are side by side where each takes long; a lost mount, a bad byte and a replaced file are errors with
a name, or go on. Real mounts: overlayfs, squashfs, tmpfs, ramfs, xfs, btrfs, and a FUSE server."""

import errno
import gc
import os
import re
import subprocess
import sys
import time
import warnings

import mounts
from grouped import grouped
from package import ROOT
from ref_protocol import Skip, expect, expect_equal, run_in_folders

import numpy
import tokmap

LENGTH, ROWS, TOKENS = 512, 4, 3 << 20
UNKNOWN = "the file system cannot say what is in memory"


def write(folder, n_tokens=TOKENS):
    """A dataset `P` of n_tokens in folder/source, and its tokens."""
    source = folder / "source"
    source.mkdir()
    tokens = numpy.random.default_rng(5).integers(1, 60000, n_tokens, dtype=numpy.uint16)
    with tokmap.Writer(source / "P", vocab_size=60000) as writer:
        for part in numpy.split(tokens, 1 << 10):
            writer.document(part)
    return source, tokens


def loader(place, **options):
    return tokmap.Loader(place / "P", LENGTH, ROWS, **grouped(**{"seed": 3, "max_epochs": 1, **options}))


def forget(path, n_bytes=0):
    """Drops what is in memory of a file, or of its first bytes."""
    os.sync()
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, n_bytes, os.POSIX_FADV_DONTNEED)


def expect_rows(found, tokens, n_steps):
    for _ in range(n_steps):
        batch = next(found)
        for row, sample in zip(batch.inputs, batch.sample_ids):
            first = found.locate(int(sample)).first_token
            expect((row == tokens[first:first + LENGTH]).all(), "sample %d" % sample)


def auto_on(kind):
    """Whether io="auto" takes the map of data that are in memory, on this kind of file system."""
    def test(folder):
        mounts.enter_namespace()
        source, tokens = write(folder)
        shows = kind in ("overlay", "squashfs")
        with mounts.mounted(kind, folder, **({"lower": source} if shows else {})) as place:
            for name in () if shows else ("P.bin", "P.tmi"):
                (place / name).write_bytes((source / name).read_bytes())
            (place / "P.bin").read_bytes()
            for windows in ("concat", "best_fit"):
                with loader(place, windows=windows) as found:
                    stats = found.stats
                    expect_equal(stats["io"], "populate" if shows else "map", "%s, %s" % (windows, stats["io_reason"]))
                    expect(UNKNOWN in repr(found) if shows else "all in memory" in repr(found), repr(found))
            with loader(place) as found:
                expect_rows(found, tokens, 40)
            with loader(place, io="copy") as found:
                expect_equal(found.stats["io"], "copy", kind)
                expect_rows(found, tokens, 40)
    return test


for kind_ in ("tmpfs", "ramfs", "xfs", "btrfs", "ext4", "overlay", "squashfs"):
    globals()["auto_is_right_on_" + kind_] = auto_on(kind_)


def data_that_were_dropped_are_read_ahead(folder):
    mounts.enter_namespace()
    source, tokens = write(folder)
    with mounts.mounted("ext4", folder) as place:
        for name in ("P.bin", "P.tmi"):
            (place / name).write_bytes((source / name).read_bytes())
        forget(place / "P.bin", (place / "P.bin").stat().st_size // 2)
        with loader(place) as found:
            reason = found.stats["io_reason"]
            expect(re.match(r"([1-9]|[1-5]\d|6[0-3]) of 64 places in memory; \d\.\d MiB of data, ", reason), reason)
        del found  # and its map, whose pages cannot be dropped
        gc.collect()
        forget(place / "P.bin")
        with loader(place) as found:
            expect_equal(found.stats["io"], "populate", found.stats["io_reason"])
            expect("none in memory; " in found.stats["io_reason"], found.stats["io_reason"])
            expect_rows(found, tokens, 40)


def with_fuse(folder, **settings):
    mounts.enter_namespace()
    source, tokens = write(folder)
    place = folder / "fuse"
    place.mkdir()
    return place, source, tokens, mounts.fuse(source, place, **settings)


def slow_reads_are_side_by_side(folder):
    place, _, tokens, fuse = with_fuse(folder, latency=0.01)
    with fuse as server:
        (place / "P.bin").read_bytes()  # also of data that are in memory by now, nobody can say that they are
        for windows, shuffle in (("concat", "full"), ("concat", "block"), ("best_fit", "full")):
            forget(place / "P.bin")
            with loader(place, windows=windows, shuffle=shuffle) as found:
                expect_equal(found.stats["io"], "populate", found.stats["io_reason"])
                expect(UNKNOWN in found.stats["io_reason"], found.stats["io_reason"])
                if windows == "concat":
                    expect_rows(found, tokens, 20)
                else:
                    next(found).inputs
        expect(server.n_reads()[1] > 8, "at most %d reads at a time" % server.n_reads()[1])


def who_waits_has_all_data_read_in_order(folder):
    place, _, tokens, fuse = with_fuse(folder, latency=0.005)
    with fuse as server:
        with loader(place) as found:
            expect_rows(found, tokens, 200)  # of 1,535
            end = time.monotonic() + 60
            before = None
            while server.n_reads()[0] != before and time.monotonic() < end:
                before = server.n_reads()[0]
                time.sleep(0.5)
            (place / "P.bin").read_bytes()
            expect_equal(server.n_reads()[0], before, "reads of what was not in memory")
            expect_rows(found, tokens, 1000)


def one_rank_of_many_reads_its_own_rows(folder):
    place, _, _, fuse = with_fuse(folder, latency=0.005)
    with fuse as server:
        with tokmap.Loader(place / "P", LENGTH, ROWS, seed=3, ranks=tokmap.Ranks(rank=0, n_ranks=9),
                           reading=tokmap.Reading(look_ahead=64)) as found:
            for _ in range(100):
                next(found).inputs
            before = server.n_reads()[0]
            (place / "P.bin").read_bytes()
            expect(server.n_reads()[0] > before + 5, "all data were read, with %d requests" % before)


def the_look_ahead_grows_where_reading_is_slow(folder):
    """At least for a try."""
    place, _, tokens, fuse = with_fuse(folder, latency=0.05, side_by_side=512)
    with fuse:
        for io, look_ahead in (("populate", 0), ("read", 0), ("populate", 64)):
            forget(place / "P.bin")
            with loader(place, io=io, look_ahead=look_ahead) as found:
                expect_equal(found.stats["look_ahead"], 64, io)
                most = 0
                for _ in range(700):
                    expect_rows(found, tokens, 1)
                    most = max(most, found.stats["look_ahead"])
                expect_equal(most > 64, look_ahead == 0, "%s, at most %d steps" % (io, most))
            del found


def need_faults():
    if os.environ.get("EMULATOR"):
        raise Skip("the emulator says of MADV_POPULATE_READ that it worked, whatever happened")


def a_bad_byte_is_named_and_the_step_is_tried_again(folder):
    need_faults()
    place, _, tokens, fuse = with_fuse(folder, bad=["P.bin", 3 << 20, 5 << 20, "EIO"])
    with fuse as server:
        for io in ("auto", "read", "copy"):
            with loader(place, io=io) as found:
                n_errors, n_good = 0, 0
                while n_errors == 0:
                    try:
                        expect_rows(found, tokens, 1)
                        n_good += 1
                    except tokmap.FileError as error:
                        n_errors += 1
                        expect_equal(error.file, str(place / "P.bin"), "the file")
                        expect(3 << 20 <= error.offset < 5 << 20, "byte %s" % error.offset)
                expect_equal(found.sample, n_good * ROWS, "the position")
                server.set(bad=None)
                expect_rows(found, tokens, 100)
            server.set(bad=["P.bin", 3 << 20, 5 << 20, "EIO"])
            forget(place / "P.bin")


def reads_that_are_always_interrupted_end(folder):
    need_faults()
    place, _, tokens, fuse = with_fuse(folder)
    with fuse as server:
        for io in ("auto", "read", "copy"):
            server.set(bad=["P.bin", 0, 1 << 40, "EINTR"])
            forget(place / "P.bin")
            with loader(place, io=io) as found:
                try:
                    next(found).inputs
                    expect(False, "%s: a batch came" % io)
                except tokmap.FileError as error:
                    expect_equal((error.file, error.errno), (str(place / "P.bin"), errno.EINTR), io)
                server.set(bad=None)
                expect_rows(found, tokens, 20)
            del found


LOSE = """
import sys, tokmap
found = tokmap.Loader(sys.argv[1], 512, 4, seed=3, max_epochs=1, reading=tokmap.Reading(io=sys.argv[2]))
next(found).inputs
print("one", flush=True)
sys.stdin.readline()
try:
    for batch in found:
        batch.inputs
except tokmap.FileError as error:
    print(error.file, error.offset is not None)
"""


def a_lost_mount_is_an_error(folder):
    """In a process of its own, which a signal would end."""
    need_faults()
    mounts.enter_namespace()
    source, tokens = write(folder)
    place = folder / "fuse"
    place.mkdir()
    for io in ("auto", "populate", "read", "copy"):
        with mounts.fuse(source, place) as server:
            child = subprocess.Popen([sys.executable, "-c", LOSE, place / "P", io], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True,
                                     env=dict(os.environ, PYTHONPATH=str(ROOT / "python")))
            expect_equal(child.stdout.readline(), "one\n", io)
            server.lose()
            out, _ = child.communicate("\n")
            expect_equal((child.returncode, out), (0, "%s True\n" % (place / "P.bin")), io)


def a_file_that_is_replaced_is_read_as_it_was(folder):
    place, source, tokens, fuse = with_fuse(folder)
    with fuse:
        with loader(place) as found:
            expect_rows(found, tokens, 10)
            (source / "new").write_bytes(bytes(len(tokens) * 2))
            (source / "new").rename(source / "P.bin")
            expect_rows(found, tokens, 500)


def samples_are_copied(folder):
    place, source, tokens, fuse = with_fuse(folder)
    with fuse:
        for where in (place, source):
            samples = tokmap.Samples(where / "P", LENGTH, seed=3)
            expect_equal(samples._loader.stats["io"], "copy", "samples")
            with loader(source) as found:
                for i in (0, 7, 1000, 3):
                    first = found.locate(i).first_token
                    expect((samples[i]["inputs"] == tokens[first:first + LENGTH]).all(), "sample %d" % i)
        with loader(place) as found:
            expect_equal(tokmap.Samples(found)._loader.stats["io"], "copy", "samples of a loader")


REFUSED = """
import ctypes, errno, struct, sys, warnings
libc = ctypes.CDLL(None, use_errno=True)
no_new_privileges, seccomp, filtered, io_uring_setup = 38, 22, 2, 425
refuse, allow = 0x50000 | errno.EPERM, 0x7fff0000
steps = struct.pack("=" + 4 * "HBBI", 0x20, 0, 0, 0, 0x15, 0, 1, io_uring_setup, 6, 0, 0, refuse, 6, 0, 0, allow)
program = struct.pack("@HP", 4, ctypes.cast(steps, ctypes.c_void_p).value)
if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(seccomp, filtered, program, 0, 0):
    sys.exit(77)
import tokmap
for _ in range(3):
    loader = tokmap.Loader(sys.argv[1], 512, 4, seed=3, reading=tokmap.Reading(io="direct"))
    print(next(loader).inputs.sum())
print(loader.stats["io"])
"""


def a_refused_io_uring_is_told_once(folder):
    """Containers refuse it."""
    source, _ = write(folder, 1 << 16)
    with loader(source, io="direct") as found:
        if found.stats["io"] != "direct":
            raise Skip(found.stats["io_reason"])
    said = subprocess.run([sys.executable, "-W", "default", "-c", REFUSED, source / "P"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONWARNINGS": ""})
    if said.returncode == 77:
        raise Skip("this machine allows no seccomp filter")
    expect_equal(said.returncode, 0, said.stderr)
    with loader(source) as found:
        first = next(found).inputs.sum()
    expect_equal(said.stdout.split(), 3 * [str(first)] + ["populate"], "sums of inputs")
    told = [line for line in said.stderr.splitlines() if "direct cannot be used: io_uring cannot be used: Operation not" in line]
    expect_equal(len(told), 1, said.stderr)


def metrics_are_written_where_there_are_no_locks(folder):
    mounts.enter_namespace()
    source, _ = write(folder, 1 << 16)
    place = folder / "place"
    place.mkdir()
    for error in ("ENOSYS", "EOPNOTSUPP", "ENOLCK"):
        with mounts.fuse(source, place, flock=error), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with loader(source, metrics_file=place / "metrics") as found:
                next(found)
            expect("tokmap_" in (place / "metrics").read_text(), error)
            expect_equal({"no locks" in str(one.message) for one in said}, {True}, error)
            (place / "metrics").unlink()


sys.exit(run_in_folders("file_systems_"))
