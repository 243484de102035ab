#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Result files of tokbench, make bench-peers and make bench-gpu, for people.

    report.py FILE... -o PAGE.html    one HTML page: charts, and every figure in tables
    report.py FILE... --markdown      the tables as Markdown
    report.py --document FILE         renew the tables in a Markdown document

The page needs nothing else: no network, no script. Charts need matplotlib (bench/requirements.txt).
The same files give the same bytes. Figures are drawn together only when they come from one file,
which is one run.

Two results are compared by `tokbench compare`. Exit status: 0 done; 1 an output cannot be written, or
--check found another table; 2 wrong usage; 3 a file cannot be read, is not a result, or is of another machine."""

import argparse
import contextlib
import io
import json
import os
import pathlib
import re
import sys

from report_rows import Refused, machine_text, read_result, same_machine
from report_table import Table, escape_markdown, figure_tables, groups, number, remark_lines

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARKER = re.compile(r"(<!-- (tokbench|peers|loaders): (\S+) ?(\w*) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
FAILED, BAD_INPUT = 1, 3


class Stop(Exception):
    """Ends the program: a message and an exit status."""


def read(path):
    try:
        return read_result(path)
    except (OSError, Refused) as error:
        raise Stop(f"{path}: {getattr(error, 'strerror', None) or error}", BAD_INPUT) from None


# ---- Page and tables ----


def parts_of(runs, by_machine):
    """[(machine, its runs)]"""
    parts = []
    for run in runs:
        part = next((part for part in parts if same_machine(part[0], run.machine)), None)
        if part is None:
            parts.append(part := (dict(run.machine), []))
        part[0]["gpu"] = part[0]["gpu"] or run.machine["gpu"]
        part[1].append(run)
    if len(parts) > 1 and not by_machine:
        two = "\n".join(f"  {own[0].file}: {machine_text(machine)}" for machine, own in parts[:2])
        raise Stop(f"these files are of different machines, whose figures are not comparable:\n{two}\n"
                   "With --by-machine each machine gets a part of its own.", BAD_INPUT)
    return parts


def markdown(parts):
    for machine, runs in parts:
        for run in runs:
            yield (f"**{escape_markdown(run.file)}** ({escape_markdown(run.command)}), "
                   f"{escape_markdown(machine_text(machine))}:\n\n")
            yield from (table.markdown() + "\n" for table in figure_tables(run))
            remarks = [f"- {escape_markdown(system)}: {escape_markdown(text)}\n"
                       for system, text in remark_lines(run)]
            yield "".join(remarks) + "\n" if remarks else ""


def write(path, text):
    """An existing file stays until everything is written; a link is replaced, not followed."""
    if path == "-":
        print(text, end="", flush=True)
    elif os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe
        pathlib.Path(path).write_text(text, encoding="utf-8")
    else:
        partial = f"{path}.{os.getpid()}.partial"
        with open(partial, "x", encoding="utf-8") as file:
            file.write(text)
        os.replace(partial, path)


def report(options):
    parts = parts_of([read(path) for path in options.files], options.by_machine)
    if options.output:
        from report_page import page  # and matplotlib, which takes a second

        write(options.output, page(parts))
    if options.markdown:
        write("-", "".join(markdown(parts)))
    return 0


# ---- Tables of a document ----


def rounded(value):
    return number(float(f"{value:.3g}"))


def document_cell(row):
    text = rounded(row.median)
    if len(row.values) > 1:
        text += f" ({rounded(row.least)} .. {rounded(row.most)})"
    if row.fraction is not None and row.unit != "%":
        part = 100 * row.fraction
        text += f", {part:.{0 if part >= 9.95 else 1}f} %"
    return (text + ", missed", "no") if row.missed() else text


def document_tables(run, page_name):
    """A table of the rows that give a line and a column, with what was left out, and one of those that
    have a line each. A unit is in the head of its column, or in the line if a column has several."""
    rows = [row for row in run.rows if row.page == page_name]
    cells, others = [row for row in rows if row.column], [row for row in rows if not row.column]
    columns = groups(cells, lambda row: row.column)
    units = {column: {row.unit for row in own} for column, own in columns.items()}
    mixed = any(len(found) > 1 for found in units.values())
    lines = groups(cells, lambda row: f"{row.line}, {row.unit}" if mixed else row.line)
    if cells:
        heads = [column if mixed else f"{column}, {units[column].pop()}" for column in columns]
        texts = [(line, {row.column: document_cell(row) for row in own}) for line, own in lines.items()]
        texts += [(f"{system}: {text}", {}) for system, text, place in run.remarks
                  if place == page_name and text.startswith("left out: ")]
        yield Table("", [("", ""), *((head, "number") for head in heads)],
                    [[line, *(own.get(column, "") for column in columns)] for line, own in texts])
    if others:
        yield Table("", [("", ""), ("median (min .. max)", "number")],
                    [[f"{row.name}, {row.unit}", document_cell(row)] for row in others])


def peers_tables(kind, path):
    """As compare.py and loaders.py show them."""
    sys.path.append(str(ROOT / "bench/peers"))
    import compare
    import loader_report

    result, out = json.loads(path.read_text(encoding="utf-8")), io.StringIO()
    if kind == "peers":
        return compare.table(result["rows"]).markdown()
    loader_report.show(result, out, markdown=True)
    return out.getvalue().strip() + "\n"


def renew(path, check):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    others = []

    def table(match):
        head, kind, result, name, old, end = match.groups()
        new = peers_tables(kind, ROOT / result) if kind != "tokbench" else "\n".join(
            table.markdown() for table in document_tables(read(ROOT / result), name))
        if not new:
            raise Stop(f"{result} has no page {name}", FAILED)
        if new != old:
            others.append(f"{path}: a table differs from {result}: {kind} {name}".strip())
        return head + new + end

    new = MARKER.sub(table, text)
    if not check:
        write(path, new)
        return 0
    print("\n".join(others) or f"{len(MARKER.findall(text))} tables agree with their files")
    return FAILED if others or not MARKER.search(text) else 0


# ---- Command line ----


def say(message):
    print("report.py: " + message.replace("\n", "\nreport.py: "), file=sys.stderr)


def parse_options(arguments):
    about, usage, text = __doc__.split("\n\n", 2)
    parser = argparse.ArgumentParser("report.py", usage.strip(), about, text, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="result files")
    add("-o", "--output", metavar="PAGE", help="the page; - is standard output")
    add("-m", "--markdown", action="store_true", help="print all figures as Markdown tables")
    add("--by-machine", action="store_true", help="files of several machines: a part for each")
    add("--document", metavar="FILE",
        help="what is between a line '<!-- tokbench: RESULT.json PAGE -->' and the next '<!-- end -->' "
        "becomes that table; 'peers: RESULT.json' and 'loaders: RESULT.json' are tables of bench/peers")
    add("--check", action="store_true", help="only say which tables differ")
    options = parser.parse_args(arguments)
    makes, n_files = bool(options.output or options.markdown), len(options.files)
    if makes + bool(options.document) != 1:
        parser.error("ask for one of: -o and --markdown, --document")
    if (n_files > 0) != makes:
        parser.error("--document takes no result files, the others at least one")
    if options.markdown and options.output == "-":
        parser.error("the page and the tables would both go to standard output")
    names = [os.path.basename(path) for path in options.files]
    if len(set(names)) < n_files:
        parser.error("two files have one name, the page could not tell them apart")
    for path in options.files if options.output else ():
        with contextlib.suppress(OSError):
            if os.path.samefile(path, options.output):
                parser.error(f"{options.output} is an input")
    return options


def main(arguments):
    options = parse_options(arguments)
    sys.stdout.reconfigure(encoding="utf-8")
    try:
        if options.document:
            return renew(options.document, options.check)
        return report(options)
    except Stop as stop:
        say(stop.args[0])
        return stop.args[1]
    except OSError as error:
        say(f"{error.filename or 'stdout'}: {error.strerror}")
        return FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
