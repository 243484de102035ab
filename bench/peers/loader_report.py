"""loader_report.py - tables of what loaders.py has written, for a terminal or as Markdown."""

REASON_LETTERS = 60
LEFT_OUT = ("wrong", "failed", "not_installed", "not_run")


def number(value):
    if value >= 1e9:
        return "%.3g G" % (value / 1e9)
    if value >= 1e6:
        return "%.3g M" % (value / 1e6)
    return "{:,.0f}".format(value) if value >= 1000 else "%.3g" % value


def spread(row):
    return "%s .. %s" % (number(min(row["values"])), number(max(row["values"])))


class Table:
    def __init__(self, title, head, align):
        self.title, self.head, self.align, self.lines = title, head, align, []

    def write_terminal(self, out):
        widths = [max(len(line[i]) for line in [self.head, *self.lines]) for i in self.columns()]
        out.write(self.title + "\n\n")
        for line in [self.head, *self.lines]:
            cells = ["{:{}{}}".format(*cell) for cell in zip(line, self.align, widths)]
            out.write("  ".join(cells).rstrip() + "\n")
        out.write("\n")

    def write_markdown(self, out):
        out.write("**%s**\n\n| %s |\n" % (self.title, " | ".join(self.head)))
        out.write("| %s |\n" % " | ".join("---" if a == "<" else "---:" for a in self.align))
        for line in self.lines:
            out.write("| %s |\n" % " | ".join(line))
        out.write("\n")

    def columns(self):
        return range(len(self.head))


class Result:
    """Rows of a result by what they are of."""

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
    return text % number(found[measure]["median"]) if measure in found else ""


# ---- Tables ----


def hot_tables(result):
    for key in result.places("hot"):
        # Files that were written before there was such a ratio are shown as they were.
        new = any("ratio_new" in found for found in result.rows[key].values())
        table = Table(
            "Hot, %d rows of %s tokens" % (key[2], "{:,}".format(key[1])),
            [
                "system",
                "hands out",
                "tokens/s",
                "min .. max",
                "p50 us",
                "p99 us",
                "CPU us",
                "first ms",
                "MiB",
                "tokmap is",
                *(["new arrays"] if new else []),
                "",
            ],
            "<<>>>>>>>>%s<" % (">" if new else ""),
        )
        for name, found in result.rows[key].items():
            work, note = result.about(name)
            line = [name, work, cell(found, "speed"), spread(found["speed"])]
            line += [cell(found, m) for m in ("p50_us", "p99_us", "cpu_us", "first_ms")]
            line += [cell(found, "private_mib"), cell(found, "ratio", "%s x")]
            line += [cell(found, "ratio_new", "%s x")] if new else []
            table.lines.append([*line, note])
        order = {"views": 0, "u16": 1, "i64": 2}
        table.lines.sort(key=lambda line: order.get(line[1], 3))
        yield table


def cold_tables(result):
    for key in result.places("cold"):
        table = Table(
            "Cold, %d rows of %s tokens; %s"
            % (key[2], "{:,}".format(key[1]), conditions(result.result)),
            [
                "system",
                "tokens/s",
                "min .. max",
                "p50 us",
                "p99 us",
                "device bytes a byte",
                "of the device's rate",
                "tokmap is",
            ],
            "<>>>>>>>",
        )
        for name, found in result.rows[key].items():
            share = cell(found, "share", "%s")
            if share and "sequential" in found["share"]["name"]:
                share += " (sequential)"
            line = [name, cell(found, "speed"), spread(found["speed"])]
            line += [cell(found, m) for m in ("p50_us", "p99_us", "device_bytes_a_byte")]
            table.lines.append([*line, share, cell(found, "ratio", "%s x")])
        yield table


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
    table = Table(
        "Starting up, to the first batch; what is imported is not counted",
        ["system", "tokens", "ms", "min .. max", "most memory, MiB", ""],
        "<>>>><",
    )
    for key in result.places("startup"):
        for name, found in result.rows[key].items():
            if "first_ms" not in found:
                continue
            line = [name, "%g" % key[3], cell(found, "first_ms"), spread(found["first_ms"])]
            table.lines.append([*line, cell(found, "peak_mib"), remark(found["first_ms"])])
    table.lines.sort(key=lambda line: float(line[1]))
    if table.lines:
        yield table


def remark(row):
    """On a size that was not measured like the others."""
    note = row.get("note", "")
    if not row.get("extrapolated"):
        return note
    if len(note) > REASON_LETTERS:
        note = note[: REASON_LETTERS - 3] + "..."
    return "extrapolated: " + note if note else "extrapolated"


def resume_tables(result):
    for key in result.places("resume"):
        table = Table(
            "Resuming, %d rows of %s tokens" % (key[2], "{:,}".format(key[1])),
            ["system", "at step", "ms to the next batch", "min .. max", "state, bytes"],
            "<>>>>",
        )
        for name, found in result.rows[key].items():
            about = result.systems[name].get("resumed", {})
            step, n_bytes = (number(about.get(k, 0)) for k in ("step", "state_bytes"))
            ms = cell(found, "first_ms")
            table.lines.append([name, step, ms, spread(found["first_ms"]), n_bytes])
        yield table


def target_tables(result):
    table = Table("Targets", ["what", "figure", "min .. max", "target", "reached"], "<>>><")
    for row in result.result["rows"]:
        if row["page"] != "loaders targets":
            continue
        bound = row["target"]
        text = ">= %g" % bound["at_least"] if "at_least" in bound else "<= %g" % bound["at_most"]
        reached = "yes" if bound["reached"] else "**no**"
        figure = "%s %s" % (number(row["median"]), row["unit"])
        table.lines.append([row["name"], figure, spread(row), text, reached])
    if table.lines:
        yield table


def copy_tables(result):
    table = Table(
        "Copies that some need", ["system", "rows of", "seconds", "of the flat file"], "<>>>"
    )
    for name, system in result.systems.items():
        for copy in system["copies"]:
            if copy["n_tokens"] == result.result["tokens"]:
                share = "%.3g x" % (copy["bytes"] / 2 / copy["n_tokens"])
                table.lines.append([name, number(copy["length"]), number(copy["seconds"]), share])
    if table.lines:
        yield table


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
            (table.write_markdown if markdown else table.write_terminal)(out)
    print_left_out(result, out, markdown)
