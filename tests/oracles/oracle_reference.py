# SPDX-License-Identifier: Apache-2.0
"""What the oracles share: one interface to reference implementations, and the list of oracles."""

import importlib
import json
import os
import tempfile
from collections import namedtuple

import oracle_texts
from ref_protocol import run_program

PLAIN = oracle_texts.plain_texts()
EVERY_FAMILY = "ORACLE_FAMILIES" in os.environ  # make test-tokenizers: all that is published, and packed corpora

# make(seed, folder) writes what it needs below folder and returns (tokenizer file, further options
# for tokmap, Reference). must: it is a family that has to work, not one that may be refused.
# texts: these and no random ones. memories: a corpus is packed with each. refused: what tokmap says, which refuses it.
Oracle = namedtuple("Oracle", "name must make texts memories refused", defaults=[None, (), None])


class Reference:
    """encode: functions by policy of specials, decode: a function or None; each takes a list and
    returns one. marks: strings that mean something in a text. offsets(policy, texts): for each text the ids and, in
    characters, what the reference says of their places: in tiktoken the beginnings, else pairs; or None.
    fused_ids: those of which it gives each in a row the place of all."""

    def __init__(self, encode, decode=None, marks=(), special_ids=(), offsets=None, fused_ids=()):
        self.encode = encode
        self.offsets = offsets
        self.fused_ids = frozenset(fused_ids)
        self.decode = decode
        self.marks = marks
        self.special_ids = frozenset(special_ids)


def package(name):
    """The module, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def tokmap(command, file, lines, *options):
    """(rows, None), or (None, why it refused). A text is written in turn in all ways."""
    with tempfile.TemporaryFile() as f:
        for i, line in enumerate(lines):
            written = json.dumps(line, ensure_ascii=i % 2 == 0)
            if command == "encode" and i % 3 > 0:
                written = '{"id":%d,"text" : %s, "x":[null]}' % (i, written)
            f.write(written.encode("utf-8", "surrogatepass") + b"\n")
        f.seek(0)
        done = run_program("tokmap", command, "--tokenizer", file, *options, stdin=f)
    if done.returncode:
        return None, "exit %d: %s" % (done.returncode, done.stderr.decode("utf-8", "replace").strip())
    rows = done.stdout.decode().split("\n")[:-1]
    assert len(rows) == len(lines), (len(rows), len(lines))
    return [json.loads(row) for row in rows], None


def first_difference(texts, got, wanted):
    for i, text in enumerate(texts):
        if got[i] != wanted[i]:
            return text
    return None


def shrink(text, differs):
    """A shorter text, or list, that still differs; differs takes several and returns the first that
    does."""
    while len(text) > 1:
        shorter, size = [], len(text) // 2
        while size >= 1 and len(shorter) < 1500:
            shorter += [text[:at] + text[at + size :] for at in range(0, len(text), size)]
            size //= 2
        found = differs(shorter)
        if found is None:
            break
        text = found
    return text
