# SPDX-License-Identifier: Apache-2.0
"""loader_rows.py - the results of loaders.py: the rows of all systems, their ratios, and the
targets."""

from compare import figures
from loader_run import COLD_EQUAL, EQUALS

DEVICE_BYTES_ROW_TOKENS = 8192  # rows of 16 KiB, for which there is a target
LIMIT_MS = 10  # of starting up, at any size
FAR_TOKENS = 10**12  # reckoned where nobody names another number
START_GROUP = "starting up, to the first batch"
# The lengths of tokbench.
C_BATCH_ROWS = 32
C_START_GROUP = "opening, and the first batch"


def shared_rounds(top, bottom):
    """Ratios within rounds."""
    return [top[n] / bottom[n] for n in sorted(top) if n in bottom and bottom[n] > 0]


def ratio_rows(page, systems):
    """tokmap's speed divided by the speed of each other system that does equal work."""
    by_name = {system.name: system for system in systems}
    rows = []
    for system in systems:
        work = system.adapter.work
        equal = by_name.get(COLD_EQUAL if page == "cold" else EQUALS[work])
        rows += ratios_against(equal, page, system, "ratio")
        if page == "hot" and system.adapter.equal_new:
            rows += ratios_against(by_name.get(system.adapter.equal_new), page, system, "ratio_new")
    return rows


def ratios_against(ours, page, system, measure):
    rows = []
    if ours is None or ours is system:
        return rows
    for (of_page, length, n_rows, of_measure), values in system.values.items():
        if (of_page, of_measure) != (page, "speed"):
            continue
        ratios = shared_rounds(ours.values.get((page, length, n_rows, "speed"), {}), values)
        if ratios:
            row = system.row(page, (length, n_rows), (measure, "x", ""), dict(enumerate(ratios)))
            where = "%d x %d tokens" % (n_rows, length)
            row["name"] = "%s / %s, %s" % (ours.name, system.name, where)
            rows.append({**row, "against": ours.name})
    return rows


def c_rows(tokbench, options):
    """The figures of the C loader, to compare with the Python package."""
    rows = []
    known = {row["name"]: row for row in tokbench if row["page"] == "load"}
    for length in options.lengths if C_BATCH_ROWS in options.batches else ():
        for work, name, factor in (
            ("u16", "batch gathered, u16", 1e9 / (2 * (length + 1)) * length),
            ("i64", "inputs and labels, i64", 1e9),
        ):
            row = known.get("%s, %d tokens" % (name, length))
            if row is None:
                continue
            where = "%d x %d tokens" % (C_BATCH_ROWS, length)
            rows.append(
                {
                    "page": "loaders hot",
                    "name": "tokmap-c-%s, %s, speed" % (work, where),
                    "system": "tokmap-c-" + work,
                    "group": "hot, %s, %s" % (work, where),
                    "note": "tokbench load, with a file of its own of the same size",
                    "measure": "speed",
                    "length": length,
                    "rows": C_BATCH_ROWS,
                    **figures("tokens/s", [value * factor for value in row["values"]]),
                }
            )
    return rows


def c_start_rows(tokbench, options):
    """The same, at sizes that only a sparse dataset can have."""
    return [
        {
            "page": "loaders startup",
            "name": "tokmap-c, %g tokens, to the first batch" % row["x"],
            "system": "tokmap-c",
            "group": START_GROUP,
            "x": row["x"],
            "x_unit": "tokens",
            "measure": "first_ms",
            "length": options.lengths[-1],
            "rows": options.batches[-1],
            "tokens": row["x"],
            "extrapolated": False,
            **figures("ms", [value / 1e3 for value in row["values"]]),
        }
        for row in tokbench
        if row["page"] == "start"
        and row.get("group") == C_START_GROUP
        and row["name"].startswith("map")
    ]


def device_rows(systems, tokbench):
    """Speed divided by the rate of the device in the same round: of random reads of a row, or for
    block shuffle of sequential reads."""
    known = {row["name"]: row["values"] for row in tokbench}
    rows = []
    for system in systems:
        kind = "sequential" if "block" in system.name else "random reads of a row"
        for (page, length, n_rows, measure), values in system.values.items():
            rates = known.get("device, %s, %d tokens" % (kind, length))
            if page != "cold" or measure != "speed" or not rates:
                continue
            by_round = dict(enumerate(rates))
            speeds = {number: value / length for number, value in values.items()}
            shares = dict(enumerate(shared_rounds(speeds, by_round)))
            if shares:
                called = "of the device's rate, " + kind
                row = system.row(page, (length, n_rows), ("share", "x", called), shares)
                rows.append({**row, "limit": "device, %s, %d tokens" % (kind, length)})
    return rows


def start_rows(systems, options):
    """Measured sizes, and the largest one, extrapolated if it was not measured."""
    rows = []
    where = (options.lengths[-1], options.batches[-1])
    for system in systems:
        for n_tokens in dict.fromkeys([*options.startup_tokens, options.far_tokens]):
            for measure, unit, called in (
                ("first_ms", "ms", "to the first batch"),
                ("peak_mib", "MiB", "most memory"),
            ):
                values = system.values.get(("startup %g" % n_tokens, *where, measure))
                if values is None:
                    continue
                about = {
                    "name": "%s, %g tokens, %s" % (system.name, n_tokens, called),
                    "group": START_GROUP if measure == "first_ms" else "starting up, most memory",
                    "x": n_tokens,
                    "x_unit": "tokens",
                    "tokens": n_tokens,
                    "extrapolated": False,
                }
                if n_tokens not in options.startup_tokens:
                    about["note"] = "once"
                row = system.row("startup", where, (measure, unit, called), values)
                rows.append({**row, **about})
    return rows + reckoned(systems, rows, options.far_tokens or FAR_TOKENS)


def reckoned(systems, rows, far_tokens):
    """The largest size, for systems whose start grows with the data: extrapolated from the smallest
    and the largest measured size. Cache misses make the real growth steeper."""
    found = []
    for system in systems:
        for measure in ("first_ms", "peak_mib") if system.adapter.grows else ():
            sizes = [r for r in rows if (r["system"], r["measure"]) == (system.name, measure)]
            sizes.sort(key=lambda row: row["tokens"])
            if len(sizes) < 2 or sizes[-1]["tokens"] >= far_tokens:
                continue
            low, high = sizes[0], sizes[-1]
            slope = (high["median"] - low["median"]) / (high["tokens"] - low["tokens"])
            far = high["median"] + slope * (far_tokens - high["tokens"])
            name = high["name"].replace("%g tokens" % high["tokens"], "%g tokens" % far_tokens)
            about = {"name": name + ", extrapolated", "tokens": far_tokens, "x": far_tokens}
            if system.why_not_far:
                about["note"] = system.why_not_far
            about["extrapolated"] = True
            found.append({**high, **about, **figures(high["unit"], [far])})
    return [row for row in found if row["median"] > 0]


# ---- Targets ----


def target(name, row, **bound):
    (kind, value), median = next(iter(bound.items())), row["median"]
    reached = median >= value if kind == "at_least" else median <= value
    return {
        "page": "loaders targets",
        "name": name,
        **{key: row[key] for key in ("unit", "median", "values")},
        "target": {kind: value, "reached": reached},
    }


class Finder:
    def __init__(self, rows):
        self.rows = rows

    def all(self, page, measure, *systems):
        return [
            row
            for row in self.rows
            if row["page"] == "loaders " + page
            and row.get("measure") == measure
            and row["system"] in systems
        ]


def hot_targets(find):
    found = []
    for measure, arrays in (("ratio", "usual arrays"), ("ratio_new", "two views of one array")):
        for row in find.all("hot", measure, "dataloader-u16-w0"):
            found.append(target("%s (%s)" % (row["name"], arrays), row, at_least=10))
    workers = find.all("hot", "ratio", *("dataloader-u16-w%d" % n for n in (1, 2, 4)))
    for where in dict.fromkeys((row["length"], row["rows"]) for row in workers):
        here = [row for row in workers if (row["length"], row["rows"]) == where]
        fastest = min(here, key=lambda row: row["median"])
        found.append(target(fastest["name"] + " (its best worker mode)", fastest, at_least=50))
    for row in find.all("hot", "ratio", "nanogpt", "nanogpt-kept-open"):
        found.append(target(row["name"], row, at_least=10))
    for row in find.all("hot", "ratio", "megatron-w0"):
        found.append(target(row["name"], row, at_least=20))
    return found


def cold_targets(find):
    found = []
    for system, least in (
        ("tokmap-direct", 0.9),
        ("tokmap-populate", 0.6),
        ("tokmap-block-shuffle", 0.9),
    ):
        for row in find.all("cold", "share", system):
            found.append(target("cold, " + row["name"], row, at_least=least))
    for system, most in (("tokmap-direct", 1.3), ("tokmap-block-shuffle", 1.1)):
        for row in find.all("cold", "device_bytes_a_byte", system):
            if row["length"] >= DEVICE_BYTES_ROW_TOKENS:
                found.append(target("cold, " + row["name"], row, at_most=most))
    return found


def start_targets(find):
    rows = find.all("startup", "first_ms", "tokmap-u16", "tokmap-i64")
    rows += find.all("resume", "first_ms", "tokmap-i64")
    return [
        target(row["page"].split()[1] + ", " + row["name"], row, at_most=LIMIT_MS) for row in rows
    ]


def tokbench_targets(rows):
    """Rows of the C loader, from the same run."""
    return [
        {**row, "page": "loaders targets", "name": "in C: " + row["name"]}
        for row in rows
        if row.get("target")
        and (
            (row["page"] == "load" and row["name"].startswith(("zero-copy", "gathered / memcpy")))
            or (row.get("group") == C_START_GROUP and row["name"].startswith("map"))
        )
    ]


# ---- All of them ----


def add_limits(rows, tokbench):
    """The limit of a speed, if this run has measured it."""
    known = {row["name"]: row for row in tokbench}
    shares = {(r["system"], r["length"]): r for r in rows if r.get("measure") == "share"}
    for row in rows:
        if row.get("measure") != "speed":
            continue
        length = row["length"]
        share = shares.get((row["system"], length)) if row["page"] == "loaders cold" else None
        limit = known.get("memcpy of random rows, %d tokens" % length)
        if share:
            row["limit"], row["fraction"] = share["limit"], share["median"]
        elif limit and row["page"] == "loaders hot" and row["group"].startswith("hot, u16"):
            n_bytes = row["median"] * 2 * (length + 1) / length
            row["limit"] = limit["name"]
            row["fraction"] = round(n_bytes / (limit["median"] * 1e9), 4)


def left_out_rows(systems):
    return [
        {
            "page": "loaders",
            "system": system.name,
            "left_out": ": ".join(part.replace("_", " ") for part in system.left_out),
        }
        for system in systems
        if system.left_out
    ]


def all_rows(systems, tokbench, options):
    """`tokbench`: its rows of the pages load, start and cold."""
    rows = []
    for page in ("hot", "resume", "cold"):
        for system in systems:
            rows += system.rows_of(page)
        rows += ratio_rows(page, systems) if page != "resume" else []
    rows += c_rows(tokbench, options) + device_rows(systems, tokbench)
    rows += start_rows(systems, options) + c_start_rows(tokbench, options)
    add_limits(rows, tokbench)
    find = Finder(rows)
    rows += hot_targets(find) + cold_targets(find) + start_targets(find)
    return rows + left_out_rows(systems) + tokbench_targets(tokbench) + tokbench
