# SPDX-License-Identifier: Apache-2.0
"""loader_data.py - the token file that all systems read: random ids in documents of about a
thousand tokens, the same in every run, with the indexes of tokmap and Megatron. Needs no numpy."""

import array
import os
import pathlib
import random
import struct
import subprocess

EOD = 50256
HIGH = 196  # ids are below 196 * 256 = 50176: the same chance for each, and none is EOD
SHORTEST, LONGEST = 16, 2000
AT_ONCE = 1 << 23
# The documents of the file of zeros with which starting up is measured. Megatron's index has 20 bytes a document:
# long ones spare it, and Megatron, what would not fit into memory here.
DOCUMENT_TOKENS, LONG_DOCUMENT_TOKENS = 1000, 10**6
MOST_SHORT_DOCUMENTS = 10**7


class Failure(Exception):
    """An error as one line."""


def random_tokens(source, n_tokens):
    """Tokens as bytes, little-endian."""
    low = source.randbytes(n_tokens)
    high = b""
    while len(high) < n_tokens:  # too large a byte is thrown away, so that all ids stay even
        more = source.randbytes((n_tokens - len(high)) * 4 // 3 + 64)
        high += more.translate(None, bytes(range(HIGH, 256)))
    out = bytearray(2 * n_tokens)
    out[0::2], out[1::2] = low, high[:n_tokens]
    return out


def write_tokens(path, n_tokens, seed=20261120):
    source = random.Random(seed)
    eod = EOD.to_bytes(2, "little")
    end = source.randrange(SHORTEST, LONGEST)
    with open(path, "wb") as f:
        for first in range(0, n_tokens, AT_ONCE):
            n = min(AT_ONCE, n_tokens - first)
            tokens = random_tokens(source, n)
            while end < first + n:
                tokens[2 * (end - first) : 2 * (end - first) + 2] = eod
                end += source.randrange(SHORTEST, LONGEST)
            if first + n == n_tokens:
                tokens[-2:] = eod
            f.write(tokens)
        f.flush()
        os.fdatasync(f.fileno())


def warm_up(places):
    """Reads files, and all files in folders, so that they are in the page cache: an idle file may
    have been dropped."""
    buffer = bytearray(1 << 20)
    for place in map(pathlib.Path, places):
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file():
                with open(path, "rb", buffering=0) as f:
                    while f.readinto(buffer):
                        pass


def run(command):
    try:
        done = subprocess.run(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except OSError as e:
        raise Failure("%s: %s" % (command[0], e.strerror)) from None
    if done.returncode != 0:
        last = (done.stdout.strip().split("\n") or [""])[-1]
        raise Failure("%s: exit status %d: %s" % (command[0], done.returncode, last))


def describe(folder, n_tokens):
    prefix = pathlib.Path(folder) / "tokens"
    return {
        "folder": str(folder),
        "prefix": str(prefix),
        "flat": str(prefix) + ".bin",
        "n_tokens": n_tokens,
    }


def make(folder, n_tokens, tokmap):
    """The file with documents, and both indexes."""
    folder.mkdir(parents=True)
    data = describe(folder, n_tokens)
    write_tokens(data["flat"], n_tokens)
    run([tokmap, "index", "--quiet", "--dtype", "u16", "--eod", EOD, data["flat"]])
    run([tokmap, "export", "--quiet", "--to", "megatron", data["prefix"], "-o", data["prefix"]])
    return data


def make_hole(folder, n_tokens, tokmap=None):
    """A file of zeros that takes no disk space, to measure starting. tokmap's index is made as for
    any file, by reading it once; without tokmap nothing is read. Megatron's index exists in both
    cases: its work begins with reading it."""
    folder.mkdir(parents=True)
    data = describe(folder, n_tokens)
    with open(data["flat"], "wb") as f:
        f.truncate(2 * n_tokens)
    if tokmap:
        run([tokmap, "index", "--quiet", "--dtype", "u16", "--eod", "none", data["flat"]])
    write_megatron_index(data["prefix"] + ".idx", n_tokens)
    return data


def write_megatron_index(path, n_tokens):
    """An index with documents of equal length, for a file of zeros without boundaries."""
    short = n_tokens <= MOST_SHORT_DOCUMENTS * DOCUMENT_TOKENS
    length = DOCUMENT_TOKENS if short else LONG_DOCUMENT_TOKENS
    n_documents = n_tokens // length
    with open(path, "wb") as f:
        f.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, n_documents, n_documents + 1))
        (array.array("i", [length]) * n_documents).tofile(f)
        array.array("q", range(0, 2 * length * n_documents, 2 * length)).tofile(f)
        array.array("q", range(n_documents + 1)).tofile(f)
