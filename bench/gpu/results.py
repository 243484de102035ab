"""results.py - what the experiments wrote, as one result file (bench/report_rows.py) and as tables."""

import json
import os
import re

WIDTH = 96


class Results:
    """States of steps and their rows; rows are read from the steps' own files each time, so that
    what a step that was stopped had written by then counts."""

    def __init__(self, folder, command, machine):
        self.folder, self.command, self.machine = folder, command, machine
        self.device = self.no_device = None
        self.steps = []

    def add(self, step, state, reason, seconds):
        self.steps.append({"id": step.id, "title": step.title, "state": state, "reason": reason,
                           "seconds": round(seconds, 1)})

    def rows_of(self, id):
        try:
            text = (self.folder / f"{id}.jsonl").read_text(errors="replace")
        except OSError:
            return []
        if id == "copies":  # what tokbench writes
            return json.loads(text)["rows"] if text else []
        found = []
        for line in text.split("\n"):
            try:
                found += [json.loads(line)] if line.strip() else []
            except ValueError:
                continue  # its writer was killed in the middle of it
        return found

    def rows(self):
        found, names = [], set()
        for step in self.steps:
            rows = self.rows_of(step["id"])
            if step["state"] != "done" and not any("values" in row for row in rows):
                name = f"{step['id']}: {step['title']}"
                rows.append({"page": "gpu", "name": name, "left_out": step["reason"]})
            for row in rows:
                if row["name"] not in names:
                    found.append(row)
                names.add(row["name"])
        return found

    def has_figures(self):
        return any("values" in row for row in self.rows())

    def as_dict(self, version):
        environment = None
        try:
            environment = json.loads((self.folder / "environment.json").read_text())
        except (OSError, ValueError):
            pass
        machine = {**self.machine, **({"gpu": self.device} if self.device else {})}
        result = {"schema": 1, "tokmap": version, "command": self.command, "machine": machine,
                  "figures": self.has_figures()}
        if not result["figures"]:
            result["no_figures"] = self.no_device or "no experiment came to a figure"
        return {**result, "experiments": self.steps, "environment": environment,
                "rows": self.rows()}

    def write(self, path, version):
        """Whole, or not at all. A line for each row, as tokbench does it."""
        result = self.as_dict(version)
        rows = result.pop("rows")
        head = json.dumps(result, indent=2)[:-2]
        body = ",\n".join("    " + json.dumps(row) for row in rows)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        partial.write_text(head + ',\n  "rows": [\n' + body + "\n  ]\n}\n")
        os.replace(partial, path)


# ---- Tables ----


def number(value):
    if value is None:
        return ""
    if value != 0 and not 1e-3 <= abs(value) < 1e7:
        return "%.3g" % value
    return "{:,.0f}".format(value) if abs(value) >= 1000 else "%.4g" % value


def table(title, head, lines):
    """Columns but the first to the right."""
    if not lines:
        return ""
    widths = [max(len(str(line[i])) for line in [head, *lines]) for i in range(len(head))]
    text = [title, ""]
    for line in [head, *lines]:
        cells = [str(c).ljust(w) if i == 0 else str(c).rjust(w)
                 for i, (c, w) in enumerate(zip(line, widths))]
        text.append("  " + "  ".join(cells).rstrip())
    return "\n".join(text) + "\n\n"


def targets(rows):
    lines = []
    for row in rows:
        target = row.get("target")
        if target and "median" in row:
            kind = "at_least" if "at_least" in target else "at_most"
            sign = ">=" if kind == "at_least" else "<="
            lines.append((row["name"][:66], f"{number(row['median'])} {row['unit']}",
                          f"{sign} {number(target[kind])}",
                          "yes" if target["reached"] else "NO"))
    return table("What has an aim", ("", "median", "aim", "reached"), lines)


def steps_of_training(rows):
    """Sources down, lengths of a step and shapes of a batch across."""
    found, columns = {}, []
    for row in rows:
        match = re.fullmatch(r"(step time|stall p99), (.*), (\d+ ms step, .*)", row["name"])
        if not match or "median" not in row:
            continue
        columns += [] if match[3] in columns else [match[3]]
        found.setdefault(match[2], {})[match[1], match[3]] = row["median"]
    lines = []
    for name, parts in found.items():
        cells = (" / ".join(number(parts[what, column]) if (what, column) in parts else "-"
                            for what in ("step time", "stall p99")) for column in columns)
        lines.append((name, *cells))
    return table("Training steps", ("ms of a step / us of stall, p99", *columns), lines)


def others(rows):
    lines = [(row["name"][:70], f"{number(row['median'])} {row['unit']}",
              "%.0f %%" % (100 * row["fraction"]) if "fraction" in row else "")
             for row in rows
             if "median" in row and not row["name"].startswith(("step time", "stall"))]
    return table("Copies and the first batch", ("", "median", "of its limit"), lines)


def states(steps, budget):
    lines = []
    for step in steps:
        lines.append((f"{step['id']:<8} {step['title'][:50]}", step["state"],
                      "%.1f" % step["seconds"]))
    total = sum(step["seconds"] for step in steps)
    lines.append(("all", "", "%.1f of %.0f" % (total, budget)))
    text = table("Steps", ("", "state", "seconds"), lines)
    reasons = {}
    for step in steps:
        if step["reason"]:
            reasons.setdefault(step["reason"], []).append(step["id"])
    for reason, ids in reasons.items():
        text += f"  {', '.join(ids)}: {reason}\n"
    return text


def print_tables(results, budget):
    rows = results.rows()
    print()
    for make in (others, steps_of_training, targets):
        print(make(rows), end="")
    print(states(results.steps, budget), flush=True)
