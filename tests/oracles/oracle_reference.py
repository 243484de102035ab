# SPDX-License-Identifier: Apache-2.0
"""What the oracles share: one interface to reference implementations, and the list of oracles."""

import importlib
from collections import namedtuple

import oracle_texts

PLAIN = oracle_texts.plain_texts()

# make(seed, folder) writes what it needs below folder and returns (tokenizer file, further options
# for tokmap, Reference). must: it is a family that has to work, not one that may be refused.
# texts: these and no random ones.
Oracle = namedtuple("Oracle", "name must make texts", defaults=[None])


class Reference:
    """encode: functions by policy of specials, decode: a function or None; each takes a list and
    returns one. marks: strings that mean something in a text."""

    def __init__(self, encode, decode=None, marks=(), special_ids=()):
        self.encode = encode
        self.decode = decode
        self.marks = marks
        self.special_ids = frozenset(special_ids)


def package(name):
    """The module, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
