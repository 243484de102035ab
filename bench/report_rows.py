# SPDX-License-Identifier: Apache-2.0
"""report_rows.py - result files, checked, as rows.

A result file is what `tokbench --json`, `make bench-peers` and `make bench-gpu` write: {"schema":
1, "command", "machine": {"cpu", "processors", "memory_gib", "kernel", "architecture"}, "rows":
[...]}. A machine may have "gpu". "busy" may have "others_percent" and "steal_percent": how much of
the processors' time other programs and other virtual machines took during the run. A row has
"page", "name", "unit", "median", "values"; and where it has a target, "target": {"at_least" or
"at_most": number, "reached": bool}.

A row may have more keys, which improve how it is shown:

"line" and  Its place in a table with several columns; without them it has its own line. In the
"column"    columns "p50", "p99", "p99.9" and "max" are percentiles of a time.
"system"    Whose figure it is: "tokmap", "tokmap, gather", "nanoGPT". Ours begin with "tokmap".
            Each system comes once in a group.
"group"     Rates (units that end in "/s") and p99 of one group are drawn together, under this
            title: "hot, int64, 1024 tokens". A group that begins with "gpu", and the page "gpu",
            say that a GPU did the work: a stand-in for a GPU must not be named so.
"limit"     Name of the row in the same file that does the same work in a simple way, or a limit
            without a row: "steps that never wait"; and
"fraction"  this figure as a part of that limit, 1 for all of it; the median over rounds.
"x"         Place on the horizontal axis, above 0, and
"x_unit"    what that counts. Absent: "tokens", the size of the corpus. Rows that only differ in a
            part of the name that begins with a digit ("open, 10^9 tokens") are one line.
"left_out"  Why there is no figure ("not installed"); then no "unit", "median" or "values".
"version"   Of the system, and
"note"      what a reader must know about its figures. Both are shown once for a system.

A row of bench/peers/compare.py has "tokenizer", "text", "system" and up to four figures ("cold",
"cold_ratio", "warm", "warm_ratio"), each of which becomes a row."""

import dataclasses
import json
import math
import os
import pathlib
import re

TIMES = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "ms": 1e-3, "s": 1}
CALLED = {str: "a text", float: "a number", list: "an array", dict: "an object"}
# Control characters, those that turn the direction of text, halves of pairs, and what XML forbids.
UNSHOWN = re.compile("[\0-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
                     "\ufffe\uffff]")
NEEDED = object()


class Refused(Exception):
    """Why a file is not a result."""


@dataclasses.dataclass
class Row:
    page: str
    name: str
    unit: str
    median: float
    values: list
    line: str = ""
    column: str = ""
    system: str = ""
    group: str = ""
    limit: str = ""
    x_unit: str = ""
    x: float = None
    fraction: float = None  # of the limit
    goal: str = ""  # "at least", "at most" or none
    target: float = 0
    reached: bool = False

    def __post_init__(self):
        self.least, self.most = min(self.values), max(self.values)
        self.is_rate = self.unit.endswith("/s")
        self.is_ours = self.system.startswith("tokmap")
        self.is_on_gpu = self.page == "gpu" or self.group.startswith("gpu")

    def missed(self):
        return bool(self.goal) and not self.reached


@dataclasses.dataclass
class Run:
    """A file is one run: only its own figures are compared with each other."""

    file: str
    command: str
    version: str
    machine: dict
    busy: dict
    rows: list
    remarks: list  # (system, text, place or "")


# ---- Reading ----


def take(fields, key, kind, default=NEEDED):
    """A field of an object. One that is absent or null is the default, if there is one."""
    value = fields.get(key)
    if value is None and default is not NEEDED:
        return default
    if value is None:
        raise Refused(f'no field "{key}"')
    if not isinstance(value, kind):
        raise Refused(f'"{key}" is not {CALLED[kind]}')
    if kind is float and not math.isfinite(value):
        raise Refused(f'"{key}" is too large')
    return UNSHOWN.sub("\ufffd", value) if kind is str else value


def read_figure(fields):
    """unit, median, values; a median that was rounded may miss its values by that."""
    unit, median, values = take(fields, "unit", str), take(fields, "median", float), take(fields, "values", list)
    if not values or not all(isinstance(v, float) and math.isfinite(v) for v in values):
        raise Refused('no field "values" with only numbers in it')
    room = 1e-4 + 1e-5 * abs(median)
    if not min(values) - room <= median <= max(values) + room:
        raise Refused(f"the median {median:g} is not between the smallest and the largest value")
    return unit, median, values


def read_target(target):
    goal = next((goal for goal in ("at_least", "at_most") if goal in target), None)
    if not goal or not isinstance(target.get("reached"), bool):
        raise Refused('a target needs "at_least" or "at_most", and "reached"')
    return {"goal": goal.replace("_", " "), "target": take(target, goal, float), "reached": target["reached"]}


def read_plain(fields):
    more = {key: take(fields, key, str, "") for key in ("line", "column", "system", "group", "limit", "x_unit")}
    more |= {key: take(fields, key, float, None) for key in ("x", "fraction")}
    if any(more[key] is not None and more[key] < 0 for key in ("x", "fraction")):
        raise Refused('"x" and "fraction" must not be below 0')
    if fields.get("target") is not None:
        more |= read_target(take(fields, "target", dict))
    return Row(take(fields, "page", str), take(fields, "name", str), *read_figure(fields), **more)


def read_compared(fields):
    place = f"{take(fields, 'tokenizer', str)}, {take(fields, 'text', str)}"
    system = take(fields, "system", str)
    for key in ("cold", "cold_ratio", "warm", "warm_ratio"):
        ratio = key.endswith("ratio")
        if not (ratio and system == "tokmap" and key not in fields):
            yield Row(f"tokenize, {key[:4]}", f"{place}: {'tokmap / ' if ratio else ''}{system}",
                      *read_figure(take(fields, key, dict)), system=system, group=f"{key[:4]}, {place}")


def read_remarks(fields):
    system = take(fields, "system", str, "") or take(fields, "name", str, "")
    place = take(fields, "group", str, "") or take(fields, "page", str, "")
    if "tokenizer" in fields:
        place = f"{take(fields, 'tokenizer', str)}, {take(fields, 'text', str, '')}"
    for key, before in (("version", "version "), ("left_out", "left out: "), ("note", "")):
        if fields.get(key) is not None:
            yield system, before + take(fields, key, str), place if key != "version" else ""


def read_machine(fields):
    machine = {key: take(fields, key, str) for key in ("cpu", "kernel", "architecture")}
    machine |= {key: take(fields, key, float) for key in ("processors", "memory_gib")}
    return machine | {"gpu": take(fields, "gpu", str, "")}


def read_row(run, fields):
    if not isinstance(fields, dict):
        raise Refused("an object was expected")
    run.remarks += read_remarks(fields)
    if "left_out" not in fields:
        run.rows += read_compared(fields) if "tokenizer" in fields else [read_plain(fields)]


def read_result(path):
    """Raises OSError or Refused."""
    data, where = pathlib.Path(path).read_bytes(), ""
    try:
        fields = json.loads(data, parse_int=float)
        if not isinstance(fields, dict) or take(fields, "schema", float) != 1:
            raise Refused('this program reads an object with "schema": 1')
        busy = take(fields, "busy", dict, {})
        run = Run(UNSHOWN.sub("\ufffd", os.path.basename(path)), take(fields, "command", str),
                  take(fields, "tokmap", str, ""), {},
                  {key: take(busy, key, float, 0) for key in ("others_percent", "steal_percent")}, [], [])
        rows, where = take(fields, "rows", list), "machine: "
        run.machine = read_machine(take(fields, "machine", dict))
        for i, row in enumerate(rows, 1):
            where = f"row {i}: "
            read_row(run, row)
    except (ValueError, RecursionError, Refused) as error:  # of JSON, of UTF-8
        raise Refused(f"{where}{error}") from None
    if not run.rows and not run.remarks:
        raise Refused("it has no rows")
    return run


# ---- Machines ----


def same_machine(a, b):
    """A file need not name its GPU."""
    return all(a[key] == b[key] or (key == "gpu" and not (a[key] and b[key])) for key in a)


def machine_text(machine):
    m = machine
    plural = "" if m["processors"] == 1 else "s"
    return (f"{m['cpu']}, {m['processors']:g} processor{plural}, {m['memory_gib']:g} GiB, "
            f"Linux {m['kernel']} ({m['architecture']}){', ' if m['gpu'] else ''}{m['gpu']}")
