# SPDX-License-Identifier: Apache-2.0
"""tokbench compare: two results of one kind, row by row."""

import json
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from .terminal import Given, Refused, WrongUse, ends_as_program, plain, print_json, warn

_TIMES = ("ns", "us", "ms", "s")
# Of tokbench fit, tokmap.measure and tokbench file-system.
_PHASES = ("cold", "hot", "without_pauses", "block_shuffle", "replay", "tokens_per_second", "calls_us")
_LEFT_OUT = ("schema_version", "n_steps", "n_tokens", "step_ms")  # what was asked for


class _Row(NamedTuple):
    place: Tuple[str, str, str]  # group, name, unit
    median: float
    least: float
    most: float


class _Result(NamedTuple):
    path: str
    kind: str
    command: str
    machine: Dict[str, Any]
    rows: List[_Row]


def _row(group: str, name: str, figure: Dict[str, Any], unit: str) -> _Row:
    values = figure["values"]
    return _Row((group, name, unit), float(figure["median"]), float(min(values)), float(max(values)))


def _rows_of_pages(rows: List[Dict[str, Any]]) -> Iterator[_Row]:
    """Of tokbench, and of make bench-peers, whose rows have up to four figures."""
    for row in rows:
        if "left_out" in row or None in row.get("values", ()):
            continue
        if "tokenizer" not in row:
            yield _row(row["page"], row["name"], row, row["unit"])
            continue
        for key in ("cold", "cold_ratio", "warm", "warm_ratio"):
            if key in row:
                yield _row(f"tokenize, {key}", f"{row['tokenizer']}, {row['text']}: {row['system']}", row[key], row[key]["unit"])


def _rows_of_figures(group: str, fields: Dict[str, Any]) -> Iterator[_Row]:
    """Of numbers whose names end with their unit."""
    for name, value in fields.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool) and name not in _LEFT_OUT:
            words = name.split("_")
            unit = "/s" if "second" in words + group.split("_") else next(
                (word for word in words + group.split("_") if word in _TIMES), "")
            yield _Row((group, name, unit), value, value, value)
        elif name in _PHASES and isinstance(value, dict):
            yield from _rows_of_figures(name, value)


def _read(path: str) -> _Result:
    with open(path, "rb") as file:
        text = file.read()
    try:
        fields = json.loads(text)
        if fields.get("schema_version", fields.get("schema")) != 1:
            raise ValueError("its schema_version is not 1")
        kind = fields.get("kind", "pages")
        rows = _rows_of_pages(fields["rows"]) if kind == "pages" else _rows_of_figures("", fields)
        return _Result(path, kind, fields.get("command", ""), fields.get("machine", {}), list(rows))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{path}: is not a result of tokbench: {error}") from None


def _number(value: float) -> str:
    for letter in ("", " k", " M", " G"):
        if abs(value) < 999.5:
            return f"{value:.3g}{letter}"
        value /= 1000
    return f"{value:.3g} T"


class _Change(NamedTuple):
    old: _Row
    new: _Row

    @property
    def rounds(self) -> Tuple[float, float]:
        """How many times the old one the new one is, at least and at most."""
        return self.new.least / self.old.most, self.new.most / self.old.least

    @property
    def verdict(self) -> str:
        """Rates and times are faster or slower; other values are more or less."""
        (least, most), unit = self.rounds, self.old.place[2]
        if least <= 1 <= most or not self.has_rounds:
            return ""
        is_rate = unit.endswith("/s")
        return ("faster" if (least > 1) == is_rate else "slower") if is_rate or unit in _TIMES else "more" if least > 1 else "less"

    @property
    def has_rounds(self) -> bool:
        return (self.old.least, self.new.least) != (self.old.most, self.new.most)

    def cells(self) -> List[str]:
        old, new = self.old, self.new
        return [old.place[1], _number(old.median), _number(new.median), old.place[2], f"{new.median / old.median:.3g} x",
                "{:.3g}..{:.3g}".format(*self.rounds) if self.has_rounds else "", self.verdict]

    def fields(self) -> Dict[str, Any]:
        group, name, unit = self.old.place
        return {"group": group, "name": name, "unit": unit, "old": self.old.median, "new": self.new.median,
                "ratio": self.new.median / self.old.median, "rounds": list(self.rounds) if self.has_rounds else None,
                "verdict": self.verdict or None}


def _print(group: str, lines: List[List[str]]) -> None:
    heads = [group or "", "old", "new", "unit", "new / old", "rounds", ""]
    widths = [max(len(line[i]) for line in [heads, *lines]) for i in range(len(heads))]
    for line in [heads, *lines]:
        cells = [cell.rjust(width) if i in (1, 2, 4) else cell.ljust(width) for i, (cell, width) in enumerate(zip(line, widths))]
        print(plain("  ".join(cells).rstrip()))
    print()


def _check(old: _Result, new: _Result) -> None:
    if old.kind != new.kind:
        raise WrongUse(f"{old.path} is a result of kind {old.kind!r}, and {new.path} of kind {new.kind!r}: their figures "
                       "are not about the same")
    if any(old.machine.get(key) != new.machine.get(key) for key in old.machine.keys() & new.machine.keys()):
        raise Refused(f"{old.path} and {new.path} are of different machines, whose figures say nothing about each other: "
                      f"{old.machine} and {new.machine}")
    if old.command != new.command:
        warn("compare", f"the runs were not asked for the same: {old.command}; {new.command}")


def main(arguments: List[str]) -> None:
    given = Given(arguments)
    with ends_as_program("compare", bool(given.json)):
        old, new = map(_read, given.operands)
        _check(old, new)
        known = {row.place: row for row in reversed(new.rows)}
        pairs = [_Change(row, known[row.place]) for row in old.rows if row.place in known]
        changes = [one for one in pairs if min(one.old.median, one.new.median, one.old.least, one.new.least) > 0]
        if not changes:
            warn("compare", "no row is in both")
            sys.exit(1)
        left_out = [len(old.rows) - len(changes), len(new.rows) - len(changes)]
        if given.json:
            print_json(rows=[one.fields() for one in changes], n_only_old=left_out[0], n_only_new=left_out[1])
            return
        groups: Dict[str, List[List[str]]] = {}
        for one in changes:
            groups.setdefault(one.old.place[0], []).append(one.cells())
        for group, lines in groups.items():
            _print(group, lines)
        n_differ = sum(bool(one.verdict) for one in changes)
        differ = f", {n_differ} differ by more than their rounds do" if old.kind == "pages" else ""
        print(f"{len(changes)} rows compared{differ}; not compared: {left_out[0]} of the old, {left_out[1]} of the new")
