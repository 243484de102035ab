# SPDX-License-Identifier: Apache-2.0
"""loader_report.py - the results of loaders.py as tables, for a terminal or in Markdown."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from report_table import Table, short_number, value_range  # noqa: E402

REASON_LETTERS = 60
LEFT_OUT = ("wrong", "failed", "not_installed", "not_run")


def spread(row):
    return value_range(min(row["values"]), max(row["values"]), short_number)


def columns(heads, align):
    """align: for each column "<" or ">", which is for numbers"""
    return [(head, "number" if a == ">" else "") for head, a in zip(heads, align)]


class Result:
    """Rows of a result, by their subject."""

    def __init__(self, result):
        self.result = result
        self.systems = {system["system"]: system for system in result["systems"]}
        self.rows = {}
        for row in result["rows"]:
            if "measure" in row:
                where = (row["length"], row["rows"], row.get("tokens"))
                key = (row["page"].removeprefix("loaders "), *where)
                self.rows.setdefault(key, {}).setdefault(row["system"], {})[row["measure"]] = row

    def places(self, page):
        return [key for key in self.rows if key[0] == page]

    def about(self, name):
        system = self.systems.get(name, {})
        return system.get("work", name.rsplit("-", 1)[-1]), system.get("note") or ""


def cell(found, measure, text="%s"):
    return text % short_number(found[measure]["median"]) if measure in found else ""


# ---- Tables ----


def hot_tables(result):
    for key in result.places("hot"):
        heads = ["system", "hands out", "tokens/s", "min .. max", "p50 us", "p99 us", "CPU us"]
        heads += ["CPU ns a token", "% of a CPU for 8 GPUs", "first ms", "MiB", "tokmap is", "new arrays", ""]
        lines = []
        for name, found in result.rows[key].items():
            work, note = result.about(name)
            line = [name, work, cell(found, "speed"), spread(found["speed"])]
            line += [cell(found, m) for m in ("p50_us", "p99_us", "cpu_us", "cpu_ns")]
            line += [cell(found, m) for m in ("feed_percent", "first_ms")]
            line += [cell(found, "private_mib"), cell(found, "ratio", "%s x")]
            lines.append([*line, cell(found, "ratio_new", "%s x"), note])
        order = {"views": 0, "u16": 1, "i64": 2}
        lines.sort(key=lambda line: order.get(line[1], 3))
        title = "Hot, %d rows of %s tokens" % (key[2], "{:,}".format(key[1]))
        yield Table(title, columns(heads, "<<>>>>>>>>>>><"), lines)


def cold_tables(result):
    heads = ["system", "tokens/s", "min .. max", "p50 us", "p99 us", "device bytes a byte"]
    heads += ["of the device's rate", "tokmap is"]
    for key in result.places("cold"):
        lines = []
        for name, found in result.rows[key].items():
            share = cell(found, "share", "%s")
            if share and "sequential" in found["share"]["name"]:
                share += " (sequential)"
            line = [name, cell(found, "speed"), spread(found["speed"])]
            line += [cell(found, m) for m in ("p50_us", "p99_us", "device_bytes_a_byte")]
            lines.append([*line, share, cell(found, "ratio", "%s x")])
        title = "Cold, %d rows of %s tokens; " % (key[2], "{:,}".format(key[1]))
        yield Table(title + conditions(result.result), columns(heads, "<>>>>>>>"), lines)


def conditions(result):
    cold = result.get("cold", {})
    limit = cold.get("memory_limit_mib")
    memory = (
        "%d MiB of memory" % limit
        if limit
        else "dropped from the page cache before, memory not limited (%s)"
        % cold.get("no_limit_because")
    )
    ahead = cold.get("read_ahead_kib")
    text = "a file of %s MiB, %s" % (cold.get("file_mib"), memory)
    return text + (", read-ahead of %d KiB" % ahead if ahead is not None else "")


def start_tables(result):
    lines = []
    for key in result.places("startup"):
        for name, found in result.rows[key].items():
            if "first_ms" not in found:
                continue
            line = [name, "%g" % key[3], cell(found, "first_ms"), spread(found["first_ms"])]
            lines.append([*line, cell(found, "peak_mib"), remark(found["first_ms"])])
    lines.sort(key=lambda line: float(line[1]))
    heads = ["system", "tokens", "ms", "min .. max", "most memory, MiB", ""]
    if lines:
        title = "Starting up, to the first batch; what is imported is not counted"
        yield Table(title, columns(heads, "<>>>><"), lines)


def remark(row):
    """A note on a size that was not measured like the others."""
    note = row.get("note", "")
    if not row.get("extrapolated"):
        return note
    if len(note) > REASON_LETTERS:
        note = note[: REASON_LETTERS - 3] + "..."
    return "extrapolated: " + note if note else "extrapolated"


def resume_tables(result):
    heads = ["system", "at step", "ms to the next batch", "min .. max", "state, bytes"]
    for key in result.places("resume"):
        lines = []
        for name, found in result.rows[key].items():
            about = result.systems[name].get("resumed", {})
            step, n_bytes = (short_number(about.get(k, 0)) for k in ("step", "state_bytes"))
            ms = cell(found, "first_ms")
            lines.append([name, step, ms, spread(found["first_ms"]), n_bytes])
        title = "Resuming, %d rows of %s tokens" % (key[2], "{:,}".format(key[1]))
        yield Table(title, columns(heads, "<>>>>"), lines)


def target_tables(result):
    lines = []
    for row in result.result["rows"]:
        if row["page"] != "loaders targets":
            continue
        bound = row["target"]
        text = ">= %g" % bound["at_least"] if "at_least" in bound else "<= %g" % bound["at_most"]
        reached = ("yes", "yes") if bound["reached"] else ("no", "no")
        figure = "%s %s" % (short_number(row["median"]), row["unit"])
        lines.append([row["name"], figure, spread(row), text, reached])
    if lines:
        heads = ["what", "figure", "min .. max", "target", "reached"]
        yield Table("Targets", columns(heads, "<>>><"), lines)


def copy_tables(result):
    lines = []
    for name, system in result.systems.items():
        for copy in system["copies"]:
            if copy["n_tokens"] == result.result["tokens"]:
                share = "%.3g x" % (copy["bytes"] / 2 / copy["n_tokens"])
                length, seconds = short_number(copy["length"]), short_number(copy["seconds"])
                lines.append([name, length, seconds, share])
    if lines:
        heads = ["system", "rows of", "seconds", "of the flat file"]
        yield Table("Copies that some need", columns(heads, "<>>>"), lines)


def print_left_out(result, out, markdown):
    for kind in LEFT_OUT:
        called = "WRONG" if kind == "wrong" else kind.replace("_", " ")
        for name, reason in result[kind].items():
            out.write("%s%s: %s: %s\n" % ("- " if markdown else "", name, called, reason))


def show(result, out, markdown=False):
    found = Result(result)
    for make in (
        hot_tables,
        cold_tables,
        start_tables,
        resume_tables,
        copy_tables,
        target_tables,
    ):
        for table in make(found):
            out.write((table.markdown() if markdown else table.terminal()) + "\n")
    print_left_out(result, out, markdown)
