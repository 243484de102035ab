#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source archive: the same bytes in another folder, on another day and from its own content; and what a
release refuses."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

from ref_protocol import Skip, expect, expect_equal, run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import build_backend as backend  # noqa: E402

DATE = "1700000000"
GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "t", "GIT_COMMITTER_NAME": "t",
       "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_EMAIL": "t@t", "GIT_AUTHOR_DATE": f"{DATE} +0000",
       "GIT_COMMITTER_DATE": f"{DATE} +0000"}


def run(folder, *command, status=0, umask=0o022, **more):
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    done = subprocess.run(list(map(str, command)), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env={**environment, **GIT, **more}, preexec_fn=lambda: os.umask(umask))
    expect_equal(done.returncode, status, f"status of {command}: {done.stdout[-1000:]}")
    return done.stdout.strip()


def checkout(place):
    """A commit of the source as it is here."""
    if not shutil.which("git"):
        raise Skip("git not found")
    for path in backend.source_files():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, place / path)
        (place / path).chmod((ROOT / path).stat().st_mode & 0o700)
    run(place, "git", "init", "-q", ".")
    run(place, "git", "-c", "core.compression=0", "add", "-A")
    run(place, "git", "commit", "-q", "-m", "all")
    return place


def archive(folder, out, **more):
    out.mkdir()
    run(folder, sys.executable, "python/build_backend.py", "sdist", out, **more)
    return out / f"tokmap-{backend.version()}.tar.gz"


def it_has_the_same_bytes_everywhere(folder):
    first = archive(checkout(folder / "one"), folder / "first")
    other = checkout(folder / "a second place")
    for path in other.rglob("*.h"):
        os.utime(path, (1, 1))
    (other / "not tracked.c").write_text("int x;\n")
    second = archive(other, folder / "second", TZ="Pacific/Apia", LC_ALL="C.UTF-8", LANG="tr_TR.UTF-8", umask=0o077)
    expect(first.read_bytes() == second.read_bytes(), "two archives of one commit differ")
    shutil.unpack_archive(first, folder)
    unpacked = folder / f"tokmap-{backend.version()}"
    again = archive(unpacked, folder / "third", umask=0o027)
    expect(first.read_bytes() == again.read_bytes(), "the archive of an unpacked archive differs")
    with tarfile.open(first) as members:
        entries = members.getmembers()
    expect_equal({entry.mtime for entry in entries}, {int(DATE)}, "times: that of the commit")
    expect_equal({(entry.uid, entry.gid, entry.uname, entry.gname) for entry in entries}, {(0, 0, "", "")}, "owners")
    expect_equal({entry.mode for entry in entries}, {0o644, 0o755}, "modes")
    inside = {entry.name.partition("/")[2] for entry in entries}
    expect_equal(inside, set(backend.source_files()) | set(backend.GENERATED), "files: those of git")


def it_brings_xxhash_once_that_was_fetched(folder):
    source = checkout(folder / "source")
    fetched = source / backend.XXHASH.relative_to(ROOT)
    fetched.mkdir(parents=True)
    version = "".join(f"#define XXH_VERSION_{name} {n}\n" for name, n in (("MAJOR", 9), ("MINOR", 8), ("RELEASE", 7)))
    (fetched / "xxhash.h").write_text(version)
    first = archive(source, folder / "first")
    shutil.unpack_archive(first, folder)
    unpacked = folder / f"tokmap-{backend.version()}"
    expect_equal((unpacked / "xxhash/xxhash.h").read_text(), version, "what it brings")
    parts = {one["name"]: one for one in json.loads((unpacked / "sbom.cdx.json").read_text())["components"]}
    expect_equal(parts["xxHash"]["version"], "9.8.7", "the version that it lists")
    expect("BSD-2-Clause" in (unpacked / "PKG-INFO").read_text(), "PKG-INFO does not name its licence")
    expect(first.read_bytes() == archive(unpacked, folder / "again").read_bytes(), "its own archive differs")


def a_release_is_of_a_commit_and_its_tag(folder):
    source = checkout(folder / "source")
    script = "import sys; sys.path.insert(0, 'python'); import make_dist; print(make_dist.release_name())"

    def name(status=0):
        return run(source, sys.executable, "-c", script, status=status)

    commit = run(source, "git", "rev-parse", "--short=12", "HEAD")
    expect_equal(name(), commit, "a commit without a tag")
    run(source, "git", "tag", "v9.9.9")
    said = name(status=1)
    expect("the tag is v9.9.9, the version in include/tokmap.h is " + backend.version() in said, said)
    run(source, "git", "tag", "v" + backend.version())
    expect_equal(name(), backend.version(), "a commit with the tag of its version")
    with open(source / "README.md", "a") as readme:
        readme.write("more\n")
    said = name(status=1)
    expect(said.endswith("not committed: README.md"), said)
    run(source, "git", "checkout", "-q", "README.md")
    (source / "src/new.c").write_text("int x;\n")
    said = name(status=1)
    expect(said.endswith("not committed: src/new.c"), said)
    shutil.rmtree(source / ".git")
    said = name(status=1)
    expect("needs a git checkout" in said, said)


def make_folders(folder):
    for name in ("one", "a second place", "source"):
        (folder / name).mkdir()


if __name__ == "__main__":
    sys.exit(run_in_folders("source_archive_", prepare=make_folders))
