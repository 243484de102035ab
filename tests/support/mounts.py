# SPDX-License-Identifier: Apache-2.0
"""File systems of all kinds for a test, which nobody else sees and which end with it.

    mounts.enter_namespace()                    # once, at the start of a script, before threads: or a Skip
    with mounts.mounted("overlay", folder) as place:      # one of KINDS, in a folder of its own below `folder`

Programs that the test starts see the mounts too. A kind that cannot be had is a Skip with the reason.
"""
import contextlib
import ctypes
import os
import pathlib
import shutil
import subprocess

from fuse_server import Fuse
from ref_protocol import Skip

libc = ctypes.CDLL(None, use_errno=True)
NEW_NAMES, NEW_USER = 0x20000, 0x10000000


def enter_namespace():
    """Mounts of this process from now on are its own; where it is not root, by a user namespace in which it is."""
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(NEW_NAMES if uid == 0 else NEW_NAMES | NEW_USER) != 0:
        raise Skip("no private namespace of mounts: " + os.strerror(ctypes.get_errno()))
    if uid != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", "0 %d 1" % uid), ("gid_map", "0 %d 1" % gid)):
            pathlib.Path("/proc/self", name).write_text(text)
    mount(None, "/", None, 1 << 14 | 1 << 18)               # MS_REC | MS_PRIVATE


def mount(source, place, kind, flags=0, options=None):
    words = [None if word is None else str(word).encode() for word in (source, place, kind, options)]
    if libc.mount(words[0], words[1], words[2], flags, words[3]) != 0:
        raise Skip("mount %s: %s" % (kind, os.strerror(ctypes.get_errno())))


def unmount(place):
    libc.umount2(str(place).encode(), 2)                    # MNT_DETACH


def run(*words):
    if not shutil.which(words[0], path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
        raise Skip(words[0] + " not found")
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"))
    if done.returncode != 0:
        raise Skip("%s: %s" % (words[0], done.stdout.strip()[:200]))


def tmpfs(folder, place):
    mount("tests", place, "tmpfs", options="size=4g")


def ramfs(folder, place):
    mount("tests", place, "ramfs")


def overlay(folder, place, lower=None):
    """Over `lower`, a folder; its upper layer is on a tmpfs of its own, since it may not be on an overlay."""
    layers = folder / "layers"
    layers.mkdir()
    tmpfs(folder, layers)
    for name in ("lower", "upper", "work"):
        (layers / name).mkdir()
    mount("tests", place, "overlay",
          options="lowerdir=%s,upperdir=%s,workdir=%s" % (lower or layers / "lower", layers / "upper", layers / "work"))


def loop(folder, place, make, kind, n_bytes=4 << 30):
    """Of a file of holes: it takes what is written."""
    image = folder / "image"
    with open(image, "wb") as file:
        file.truncate(n_bytes)
    run(*make, image)
    run("mount", "-o", "loop", "-t", kind, image, place)


def xfs(folder, place):
    loop(folder, place, ("mkfs.xfs", "-q"), "xfs")


def btrfs(folder, place):
    loop(folder, place, ("mkfs.btrfs", "-q"), "btrfs")


def ext4(folder, place):
    loop(folder, place, ("mkfs.ext4", "-q", "-F"), "ext4")


def squashfs(folder, place, lower):
    """To read only: what `lower` holds."""
    run("mksquashfs", lower, folder / "image", "-no-progress", "-quiet", "-noappend")
    run("mount", "-o", "loop,ro", "-t", "squashfs", folder / "image", place)


KINDS = {kind.__name__: kind for kind in (tmpfs, ramfs, overlay, xfs, btrfs, ext4, squashfs)}


@contextlib.contextmanager
def mounted(kind, folder, **options):
    """The folder of a new file system of this kind, or of a Fuse with these options ("fuse", source=...)."""
    folder = pathlib.Path(folder) / ("a_" + kind)
    place = folder / "place"
    place.mkdir(parents=True)
    try:
        if kind == "fuse":
            with fuse(folder, place, **options):
                yield place
        else:
            KINDS[kind](folder, place, **options)
            yield place
    finally:
        for path in (place, folder / "layers"):
            unmount(path)


@contextlib.contextmanager
def fuse(source, place, **settings):
    """A Fuse, or a Skip."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise Skip("/dev/fuse cannot be opened")
    try:
        server = Fuse(source, place, **settings)
    except OSError as error:
        raise Skip(error.strerror)
    with server:
        yield server
