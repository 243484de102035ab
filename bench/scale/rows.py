# SPDX-License-Identifier: Apache-2.0
"""The rows of a result file, as bench/report.py reads them."""

import json
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from result_file import machine  # noqa: E402


def row(page, name, unit, values, column=""):
    """A row of the table of a page; with `column`, a cell of it."""
    values = [float("%.6g" % value) for value in values]
    place = {"name": "%s, %s" % (name, column), "line": name, "column": column} if column else {"name": name}
    return {"page": page, **place, "unit": unit, "median": float("%.6g" % statistics.median(values)), "values": values}


def finish(found, command, out):
    """Prints the rows, and writes them to the file `out` if it is given, beside the rows of other pages and columns in it."""
    for each in found:
        print("%-10s %-70s %12.6g %s" % (each["page"], each["name"], each["median"], each["unit"]))
    if not out:
        return
    path, places = pathlib.Path(out), {place_of(each) for each in found}
    before = json.loads(path.read_text()) if path.exists() else {"command": "", "rows": []}
    commands = [each for each in before["command"].split("; ") if each and each != command] + [command]
    result = {"schema": 1, "command": "; ".join(commands), "machine": machine(),
              "rows": [each for each in before["rows"] if place_of(each) not in places] + found}
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def place_of(each):
    return each["page"], each.get("column")


def value(result, page, name, column):
    """The median of a row of a result file that was read."""
    found = [each["median"] for each in result["rows"] if place_of(each) == (page, column) and each["line"] == name]
    if len(found) != 1:
        raise KeyError("%d rows %s, %s, %s" % (len(found), page, name, column))
    return found[0]
