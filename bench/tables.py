#!/usr/bin/env python3
"""tables.py RESULT.json PAGE - one page of a result of tokbench as a Markdown table. Behind a
figure and its smallest and largest value stands its share of its limit, where it has one.

tables.py --document FILE - writes FILE anew: what stands between a line
`<!-- tokbench: RESULT.json PAGE -->` and the next `<!-- end -->` becomes that table. With --check
it writes nothing, says which table is another one, and exits with 1."""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARKER = re.compile(r"(<!-- tokbench: (\S+) (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

# How a name says which line and which column a figure belongs to.
SPLITS = {
    "load": r"(?P<line>.*), (?P<column>\d+ tokens)$",
    "cold": r"(?:(?P<way>.*), (?P<line>\d+ tokens)(?:, (?P<column>rate|share|bytes))?)$",
    "stall": r"(?P<line>.*), (?P<column>p50|p99|p99\.9|max|CPU|busy|steps)$",
    "scale": r"(?P<line>.*), (?P<column>open|start|seek|restore|memory|RSS)$",
    "mix": r"(?P<line>.*), (?P<column>sample|locate|open|memory)$",
    "lookup": r"(?P<line>.*), (?P<column>[\d.e+]+ docs)$",
    "open": r"(?P<line>.*), (?P<column>10\^\d+ tokens)$",
}


def number(value):
    if value == 0:
        return "0"
    digits = "%.3g" % value
    return "{:,.0f}".format(float(digits)) if abs(value) >= 1000 else "%g" % float(digits)


def cell(row):
    values = row["values"]
    text = number(row["median"])
    if len(values) > 1:
        text += " (%s .. %s)" % (number(min(values)), number(max(values)))
    if "fraction" in row and row["unit"] != "%" and row["page"] != "cold":  # which has a column
        percent = 100 * row["fraction"]
        text += ", %.*f %%" % (0 if percent >= 9.95 else 1, percent)
    target = row.get("target")
    return text if not target or target["reached"] else text + " **missed**"


def place(row, page):
    """(line, column) of a figure; one that is split in no way has a line of its own."""
    match = re.match(SPLITS.get(page, "$^"), row["name"])
    if not match:
        return row["name"] + ", " + row["unit"], "median (min .. max)"
    found = match.groupdict()
    column = found["column"]
    if page in ("load", "lookup", "open"):
        return found["line"] + ", " + row["unit"], column
    if page == "cold":
        if row["unit"] == "x" and not column:
            column = "of plain reads in order"
        column = column or "rate"
        return found["line"] + ": " + found["way"], "%s, %s" % (column, row["unit"])
    return found["line"], "%s, %s" % (column, row["unit"])


def tables(result, page):
    """Lines that have the same columns are one table."""
    cells, lines, columns = {}, {}, {}
    for row in result["rows"]:
        if row["page"] == page:
            line, column = place(row, page)
            cells[line, column] = cell(row)
            lines.setdefault(line, []).append(column)
            columns.setdefault(column)
    groups = {}
    for line, own in lines.items():
        flat = own == ["median (min .. max)"]
        groups.setdefault(flat, []).append(line)
    for flat, members in sorted(groups.items()):
        wanted = [c for c in columns if any(c in lines[line] for line in members)]
        yield "| | %s |" % " | ".join(wanted)
        yield "| --- |" + " ---: |" * len(wanted)
        for line in members:
            yield "| %s | %s |" % (line, " | ".join(cells.get((line, c), "") for c in wanted))
        yield ""


def table_of(path, page):
    found = "\n".join(tables(json.loads((ROOT / path).read_text()), page))
    if not found:
        sys.exit("tables.py: %s has no page %s" % (path, page))
    return found


def renew(path, check):
    text = path.read_text()
    others = []

    def table(match):
        head, result, page, old, end = match.groups()
        new = table_of(result, page)
        if new != old:
            others.append("%s: the table of page %s is not that of %s" % (path, page, result))
        return head + new + end

    new = MARKER.sub(table, text)
    if check:
        print("\n".join(others) or "%d tables are those of their files" % len(MARKER.findall(text)))
        return 1 if others or not MARKER.search(text) else 0
    path.write_text(new)
    return 0


def main(arguments):
    if len(arguments) >= 2 and arguments[0] == "--document":
        return renew(pathlib.Path(arguments[1]), "--check" in arguments[2:])
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    print(table_of(*arguments), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
