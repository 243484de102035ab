# SPDX-License-Identifier: Apache-2.0
"""report_rows.py - result files, checked, as rows; and what the name of a row says about it.

A result file is what `tokbench --json`, `make bench-peers` and `make bench-gpu` write: {"schema":
1, "command", "machine": {"cpu", "processors", "memory_gib", "kernel", "architecture"}, "rows":
[...]}. A machine may have "gpu". A row has "page", "name", "unit", "median", "values"; and where it
has a target, "target": {"at_least" or "at_most": number, "reached": bool}.

A row may have more keys, which improve how it is shown:

"line" and  Its place in a table with several columns; without them it has its own line.
"column"
"system"    Whose figure it is: "tokmap", "tokmap, gather", "nanoGPT". Rates (units that end in
            "/s") of several systems are drawn side by side. Ours begin with "tokmap". Each system
            comes once in a group.
"group"     Rows of one group are drawn together, under this title: "hot, int64, 1024 tokens".
            Without it the last part of the name counts when it is like "1024 tokens", else the
            page. A group that begins with "gpu", and the page "gpu", say that a GPU did the work:
            figures of a stand-in for a GPU must not be named so.
"limit"     Name of the row in the same file that does the same work in a simple way; with a
            fraction also a limit without a row: "steps that never wait".
"fraction"  This figure as a part of that limit, 1 for all of it; the median over rounds. Without
            it the medians are divided when both have one unit, the other way round for times.
"x"         Place on the horizontal axis, above 0, and
"x_unit"    what that counts. Absent: "tokens", the size of the corpus; times and memory against it
            are how tokmap starts up. Something else: "tokens a row", "bytes". Rows that only differ
            in a part of the name that begins with a digit ("open, 10^9 tokens") are one line.
"left_out"  Why there is no figure ("not installed"); then no "unit", "median" or "values".
"version"   Of the system, and
"note"      what a reader must know about its figures. Both are shown once for a system.

A latency is a row for each percentile: of one line, in the columns "p50", "p99", "p99.9" or "max", the
unit a time. In a group they are those of one system.
On the page "stall", and where a GPU did the work, the p99 are drawn against 50 us too.

A row of bench/peers/compare.py has "tokenizer", "text", "system" and up to four figures ("cold",
"cold_ratio", "warm", "warm_ratio"), each of which becomes a row."""

import dataclasses
import json
import math
import os
import re

TIMES = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "ms": 1e-3, "s": 1}
PASSES = ("cold", "cold_ratio", "warm", "warm_ratio")
# Control characters, those that turn the direction of text, halves of pairs, and what XML forbids.
UNSHOWN = re.compile("[\0-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
                     "\ufffe\uffff]")



class Refused(Exception):
    """A file that is no result, and why."""


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
    x: float = 0  # 0: the file does not say
    goal: str = ""  # "at_least", "at_most" or none
    target: float = 0
    reached: bool = False
    fraction: float = None  # of the limit
    limit_found: bool = False  # the row that `limit` names is in the same file

    def least(self):
        return min(self.values)

    def most(self):
        return max(self.values)

    def is_rate(self):
        return self.unit.endswith("/s") and len(self.unit) > 2

    def is_ours(self):
        return self.system.startswith("tokmap")

    def is_on_gpu(self):
        return self.page == "gpu" or self.group.startswith("gpu")

    def missed(self):
        return bool(self.goal) and not self.reached


@dataclasses.dataclass
class Run:
    """A file is one run: only its own figures are compared with each other."""

    file: str
    command: str
    version: str
    machine: dict
    rows: list
    remarks: list  # (system, text, place or "")


# ---- Reading ----


class Fields:
    """An object of a file, whose fields are checked as they are asked for. Null is absent."""

    def __init__(self, fields, where):
        self.where = where
        if not isinstance(fields, dict):
            raise self.refused("an object was expected here")
        self.fields = {key: value for key, value in fields.items() if value is not None}

    def refused(self, text):
        return Refused(f"{self.where}: {text}" if self.where else text)

    def take(self, key, kind, called, needed):
        value = self.fields.get(key)
        if value is None and not needed:
            return None
        if value is None:
            raise self.refused(f'no field "{key}"')
        if not isinstance(value, kind):
            raise self.refused(f'"{key}" is not {called}')
        return value

    def text(self, key, needed=False):
        return UNSHOWN.sub("\ufffd", self.take(key, str, "a text", needed) or "")

    def number(self, key, needed=False):
        value = self.take(key, float, "a number", needed)
        if value is not None and not math.isfinite(value):
            raise self.refused(f'"{key}" is too large')
        return value

    def inner(self, key):
        return Fields(self.take(key, dict, "an object", True), self.where)

    def figure(self):
        """(unit, median, values)"""
        unit, median = self.text("unit", True), self.number("median", True)
        values = self.take("values", list, "an array", True)
        if not values or not all(isinstance(v, float) and math.isfinite(v) for v in values):
            raise self.refused('no field "values" with only numbers in it')
        least, most = min(values), max(values)
        if not (at_least(median, least) and at_least(most, median)):
            raise self.refused(f"the median {median:g} is not between the smallest value, "
                               f"{least:g}, and the largest, {most:g}")
        return unit, median, values


def at_least(a, b):
    """Medians are rounded to six digits or four places, so the values may miss them by that."""
    return a >= b - 1e-4 - 1e-5 * abs(b)


def read_target(fields, row):
    target = fields.inner("target")
    row.goal = next((goal for goal in ("at_least", "at_most") if goal in target.fields), "")
    if not row.goal or not isinstance(target.fields.get("reached"), bool):
        raise fields.refused('a target needs "at_least" or "at_most", and "reached"')
    row.target, row.reached = target.number(row.goal, True), target.fields["reached"]
    above = row.reached == (row.goal == "at_least")
    if not (at_least(row.median, row.target) if above else at_least(row.target, row.median)):
        said = "reached" if row.reached else "not reached"
        raise fields.refused(f"the target {row.target:g} was {said}, says the file, and the median "
                             f"is {row.median:g}")


def read_plain(fields):
    row = Row(fields.text("page", True), fields.text("name", True), *fields.figure())
    for key in ("line", "column", "system", "group", "limit", "x_unit"):
        setattr(row, key, fields.text(key))
    x, row.fraction = fields.number("x"), fields.number("fraction")
    if (x is not None and x <= 0) or (row.fraction or 0) < 0:
        raise fields.refused('"x" has to be above 0, and "fraction" not below')
    row.x = x or 0
    if "target" in fields.fields:
        read_target(fields, row)
    return row


def read_compared(fields):
    group = f"{fields.text('tokenizer')}, {fields.text('text', True)}"
    system = fields.text("system", True)
    for key in PASSES:
        ratio = key.endswith("ratio")
        if ratio and system == "tokmap" and key not in fields.fields:
            continue
        name = f"{group}: {'tokmap / ' if ratio else ''}{system}"
        yield Row(f"tokenize, {key[:4]}", name, *fields.inner(key).figure(), system, group)


def read_remarks(fields):
    system = fields.text("system") or fields.text("name")
    place = fields.text("group") or fields.text("page")
    if "tokenizer" in fields.fields and "text" in fields.fields:
        place = f"{fields.text('tokenizer')}, {fields.text('text')}"
    for key, before in (("version", "version "), ("left_out", "left out: "), ("note", "")):
        if key in fields.fields:
            yield system or fields.text("system", True), before + fields.text(key), (
                place if key != "version" else "")


def find_limits(rows):
    """Of several rows with the name of a limit, one on the page of limits, else the first."""
    found = {}
    for row in sorted(rows, key=lambda row: row.page != "limits"):
        found.setdefault(row.name, row)
    for row in rows:
        limit = found.get(row.limit) if row.limit else None
        if limit is row:
            limit = next((other for other in rows
                          if other.name == row.limit and other is not row), None)
        row.limit_found = limit is not None
        if limit and row.fraction is None and row.unit == limit.unit:
            over, under = (row, limit) if row.is_rate() else (limit, row)
            part = over.median / under.median if under.median else math.inf
            row.fraction = part if part >= 0 and math.isfinite(part) else None


def read_machine(fields):
    machine = {key: fields.text(key, True) for key in ("cpu", "kernel", "architecture")}
    machine |= {key: fields.number(key, True) for key in ("processors", "memory_gib")}
    return machine | {"gpu": fields.text("gpu")}


def unique(pairs):
    fields = dict(pairs)
    for key, _ in pairs if len(fields) < len(pairs) else ():
        if [other for other, _ in pairs].count(key) > 1:
            raise Refused(f'"{key}" twice')
    return fields


def no_constant(name):
    raise Refused(f"{name} is no number of JSON")


def parse(text):
    try:
        return json.loads(text.decode(), parse_int=float, parse_constant=no_constant,
                          object_pairs_hook=unique)
    except UnicodeDecodeError as error:
        raise Refused(f"byte {error.start}: not UTF-8") from None
    except json.JSONDecodeError as error:
        raise Refused(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise Refused("nested too deeply") from None


def read_result(path):
    """Raises OSError or Refused."""
    with open(path, "rb") as file:
        fields = Fields(parse(file.read()), "")
    for key in ("schema", "command", "machine", "rows"):
        if key not in fields.fields:
            raise Refused(f'no field "{key}": not a result of tokbench or compare.py')
    if fields.number("schema") != 1:
        raise Refused(f"schema {fields.number('schema'):g}; this program reads schema 1")
    machine = read_machine(Fields(fields.fields["machine"], "machine"))
    run = Run(UNSHOWN.sub("\ufffd", os.path.basename(path)), fields.text("command"),
              fields.text("tokmap"), machine, [], [])
    for i, row in enumerate(fields.take("rows", list, "an array", True)):
        row = Fields(row, f"row {i + 1}")
        run.remarks += read_remarks(row)
        if "left_out" not in row.fields:
            run.rows += read_compared(row) if "tokenizer" in row.fields else [read_plain(row)]
    if not run.rows and not run.remarks:
        raise Refused("there is no row in it")
    find_limits(run.rows)
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


# ---- What a name says ----


def percentile(row):
    """0.99 of a time in the column "p99", 1 in the column "max"; else 0."""
    digits = re.fullmatch(r"p([0-9]+(?:\.[0-9]+)?)", row.column)
    part = float(digits.group(1)) / 100 if digits else float(row.column == "max")
    return part if row.unit in TIMES and part <= 1 else 0


def x_unit(row):
    return row.x_unit or "tokens"


def size_at_end(row):
    """("batch gathered, u16", "1024 tokens") of the two with a comma; else (name, "")."""
    head, _, tail = row.name.rpartition(", ")
    return (head, tail) if head and re.fullmatch(r"[0-9].* tokens", tail) else (row.name, "")


def drawn_fraction(row):
    """Its part of a limit, or None; the ratio of two that is to reach a part of 1 is one, too."""
    is_ratio = " / " in row.name and row.goal == "at_least" and row.target <= 1
    return row.median if not row.limit and row.unit == "x" and is_ratio else (
        row.fraction if row.limit else None)


def with_system(row, rest):
    what = rest or row.page
    return f"{row.system}, {what}" if row.system and row.system not in what else what


def line_of(row):
    """The name without its parts that begin with a digit: rows with one such are a line."""
    parts = [part for part in row.name.split(", ") if not re.match("[0-9]", part)]
    return with_system(row, ", ".join(parts))


def distribution_of(row):
    """The system, where the row has a group; else what its percentiles have in common."""
    return row.system if row.group and row.system else with_system(row, row.line)
