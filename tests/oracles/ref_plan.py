# SPDX-License-Identifier: Apache-2.0
"""Plans of packs in cells, as docs/FORMAT.md section 10 specifies them. Standard library only."""

import re

import ref_xxh3

NAME = rb"[a-z0-9-]{1,32}"
NUMBER = rb"0|[1-9][0-9]{0,19}"
LINES = (  # word, least, most, pattern of the rest
    (b"folder", 1, 1, rb"(/.*)"),
    (b"cells", 1, 1, rb"(.+)"),
    (b"cell-size", 1, 1, rb"(%s)" % NUMBER),
    (b"option", 0, 256, rb"(%s)(?: (.+))?" % NAME),
    (b"fact", 0, 256, rb"([^\x00-\x1f\x7f]*)"),
    (b"input", 1, 2**24, rb"(%s) (%s) (%s) (.+)" % (NUMBER, NUMBER, NAME)),
    (b"cell", 1, 2**20, rb"(%s) (%s) (%s)" % (NUMBER, NUMBER, NUMBER)),
    (b"origin", 0, 1, rb"([0-9a-f]{16})"),
    (b"checksum", 1, 1, rb"([0-9a-f]{16})"),
)


class Refused(Exception):
    pass


def require(condition, why):
    if not condition:
        raise Refused(why)


def number(digits):
    value = int(digits)
    require(value < 2**64, "too large")
    return value


def escape(text):
    out = bytearray()
    for i, c in enumerate(text):
        if c < 0x20 or c in b"\x7f\\" or (c == 0x20 and i + 1 == len(text)):
            out += b"\\x%02x" % c
        else:
            out.append(c)
    return bytes(out)


def unescape(line):
    text = re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), line)
    require(escape(text) == line and 0 < len(text) <= 16384 and 0 not in text, "not a text")
    return text


def read_lines(data):
    """{word: the groups of each of its lines}"""
    require(data.endswith(b"\n") and b"\0" not in data, "not lines")
    lines = data[:-1].split(b"\n")
    first = lines.pop(0)
    require(first == b"tokmap plan 1", "not a plan")
    found, at = {word: [] for word, *_ in LINES}, 0
    for line in lines:
        word = line.partition(b" ")[0]
        while at < len(LINES) and LINES[at][0] != word:
            at += 1
        require(at < len(LINES), "a line that is in the wrong place")
        match = re.fullmatch(LINES[at][3], line[len(word) + 1:], re.DOTALL)
        require(match and b" " in line, "a malformed line")
        found[word].append(match.groups())
    for word, least, most, _ in LINES:
        require(least <= len(found[word]) <= most, "too few or too many")
    return found


def check_cells(cells, inputs):
    require(cells[0] == (0, 0, 0), "the first cell")
    for which, offset, row in cells:
        require(which < len(inputs) or (which == len(inputs) and offset == 0), "no such input")
        require(offset == 0 or offset < inputs[which][0], "after the end")
        require(offset or not row, "a row without an offset")
    for a, b in zip(cells, cells[1:]):
        require(a[0] < b[0] or a == b or (a[0] == b[0] and a[1] < b[1] and a[2] <= b[2]), "order")


def read_plan(data):
    """The plan as a dict of bytes and numbers; raises Refused."""
    found = read_lines(data)
    plan = {
        "folder": unescape(found[b"folder"][0][0]),
        "cells_folder": unescape(found[b"cells"][0][0]),
        "cell_size": number(found[b"cell-size"][0][0]),
        "options": [(name, value and unescape(value)) for name, value in found[b"option"]],
        "facts": [fact for fact, in found[b"fact"]],
        "inputs": [(number(size), number(time), form, unescape(name))
                   for size, time, form, name in found[b"input"]],
        "cells": [tuple(map(number, cell)) for cell in found[b"cell"]],
        "hash": found[b"checksum"][0][0].decode(),
        "lines": [line + b"\n" for line in data.split(b"\n")[:-1]],
    }
    plan["origin"] = found[b"origin"][0][0].decode() if found[b"origin"] else plan["hash"]
    require(plan["cell_size"] > 0, "the size of cells")
    require(len(plan["folder"]) + len(plan["cells_folder"]) <= 4000, "the folders")
    check_cells(plan["cells"], plan["inputs"])
    before = data[:data[:-1].rindex(b"\n") + 1]
    require("%016x" % ref_xxh3.xxh3_64(before) == plan["hash"], "the checksum")
    return plan


def signed(lines):
    """The bytes of a plan that has these lines."""
    return lines + b"checksum %016x\n" % ref_xxh3.xxh3_64(lines)


def lines_of(plan, *words):
    return [line for line in plan["lines"] if line.startswith(tuple(word + b" " for word in words))]


def cell_ends(plan, cell):
    """The inputs that a cell reads as a range, and where it begins in the first one and ends in the last one."""
    begin, end = [*plan["cells"], (len(plan["inputs"]), 0, 0)][cell:cell + 2]
    if begin == end:
        return range(0), (0, 0), (0, 0)
    return range(begin[0], end[0] + (end[1] > 0)), begin[1:], end[1:]


def cell_hash(plan, cell):
    """What the datasets of the cell have in their metadata."""
    inputs, begin, end = cell_ends(plan, cell)
    lines = lines_of(plan, b"folder", b"option", b"fact") + [lines_of(plan, b"input")[i] for i in inputs]
    return "%016x" % ref_xxh3.xxh3_64(b"".join(lines) + b"cell %d %d %d %d\n" % (*begin, *end))


def cell_prefix(plan, cell, split=None):
    folder = plan["cells_folder"]
    if not folder.startswith(b"/"):
        folder = plan["folder"] + b"/" + folder
    return b"%s/%06d%s" % (folder, cell, b"-" + split if split else b"")
