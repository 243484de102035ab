# SPDX-License-Identifier: Apache-2.0
"""report_page.py - runs as one HTML page: a section for each question, and tables with all figures.

The page is self-contained: it has no script, font or picture. It is also well-formed XML."""

import dataclasses
import pathlib
from html import escape

from report_plot import (MAX_LINES, Bar, LogAxis, PartAxis, draw_bars, draw_dots, draw_lines,
                         groups, tick_text)
from report_rows import (TIMES, distribution_of, drawn_fraction, line_of, machine_text, percentile,
                         size_at_end, x_unit)
from report_table import Table, number, percent, value_range

TITLE = "tokmap, measured"
STALL_AIM_SECONDS = 50e-6
STYLE = pathlib.Path(__file__).with_name("report.css").read_text()


# ---- Tables ----


def target_text(row):
    return f"{row.goal.replace('_', ' ')} {number(row.target)} {row.unit}" if row.goal else ""


def target_cell(row):
    if not row.goal:
        return ""
    return (f"{target_text(row)}: {'reached' if row.reached else 'not reached'}",
            "yes" if row.reached else "no")


def limit_text(row):
    if row.limit and row.fraction is not None:
        return f"{percent(row.fraction)} of {row.limit}"
    return f"{row.limit}: not in this run" if row.limit and not row.limit_found else row.limit


def figure_tables(run):
    """A table for each page of a run."""
    columns = [("what", ""), ("system", ""), ("median", "number"), ("min .. max", "number quiet"),
               ("unit", ""), ("of its limit", ""), ("target", "")]
    for page, rows in groups(run.rows, lambda row: row.page).items():
        yield Table(page, columns, [
            [row.name, row.system, number(row.median), value_range(row.least(), row.most()),
             row.unit, limit_text(row), target_cell(row)] for row in rows])


def remark_lines(run):
    """Each once, with all its places: ("tiktoken", "left out: no model (gpt2, tldr; t5, tldr)")."""
    for (system, text), remarks in groups(run.remarks, lambda remark: remark[:2]).items():
        places = "; ".join(place for _, _, place in remarks if place)
        yield system, f"{text} ({places})" if places else text


def run_table(runs):
    columns = [("run", ""), ("command", "code"), ("tokmap", ""), ("figures", "number")]
    lines = [[run.file, run.command, run.version, str(len(run.rows))] for run in runs]
    return Table("", columns, lines).html("Runs")


def missed_targets(runs):
    """They come first on a page: nobody should have to look for them."""
    aims = [(run, row) for run in runs for row in run.rows if row.goal]
    lines = [[row.name, (number(row.median), "no"), value_range(row.least(), row.most()),
              target_text(row), row.page, run.file] for run, row in aims if row.missed()]
    if aims:
        yield f"<h3>Targets: {len(aims) - len(lines)} of {len(aims)} reached</h3>\n"
    if lines:
        columns = [("what", ""), ("median", "number"), ("min .. max", "number quiet"),
                   ("target", ""), ("page", "quiet"), ("run", "quiet")]
        table = Table("", columns, lines)
        yield "<p>Not reached:</p>\n" + table.html("Targets that were not reached")


def all_figures(runs):
    for run in runs:
        yield f"<h4>{escape(run.file)}</h4>\n<p><code>{escape(run.command)}</code></p>\n"
        yield from (table.html() for table in figure_tables(run))
        remarks = [f"<li><b>{escape(system)}</b>: {escape(text)}</li>\n"
                   for system, text in remark_lines(run)]
        if remarks:
            yield f'<ul class="remarks">\n{"".join(remarks)}</ul>\n'


# ---- Sets of drawings: (title, unit, [(caption, drawing)]) ----


def place_of(row, in_group):
    """Which drawing of its group a row belongs to: that of a size."""
    x = f"{tick_text(row.x)} {row.x_unit}".strip() if row.x else ""
    return x if in_group else size_at_end(row)[1] or x


def bar_panels(rows):
    """(caption, rows, whether it states their size): one drawing for each group and size, unless
    each size would have a single bar. Rows that are alone in their group share one drawing."""
    by_group = groups(rows, lambda row: row.group)
    alone = [own[0] for own in by_group.values() if len(own) == 1]
    sets = [(group, own) for group, own in by_group.items() if len(own) > 1]
    for group, own in [*sets, ("", alone)] if alone else sets:
        places = groups(own, lambda row: place_of(row, group))
        if len(places) == len(own):
            places = {"": own}
        for place, panel in places.items():
            said = place in group  # "hot, 1024 tokens" says it
            caption = group if said else f"{group}: {place}" if group else place
            yield caption, panel, bool(place)


def bar_set(rows, axis, make_bar, reference=0):
    for caption, panel, sized in bar_panels(rows):
        bars = [make_bar(row, panel, size_at_end(row)[0] if sized else row.name) for row in panel]
        yield caption, draw_bars(caption or panel[0].page, bars, axis, reference)


def log_axis_of(rows, *more):
    values = [value for row in rows for value in (row.least(), row.most(), row.target)]
    return LogAxis([*values, *more], room=True)


def by_page_and_unit(rows):
    for (page, unit), own in groups(rows, lambda row: (row.page, row.unit)).items():
        yield page, unit, own


def rate_bar(row, panel, name):
    """Named after the system, where no other bar of the drawing has the same."""
    is_alone = row.system and [other.system for other in panel].count(row.system) == 1
    paint = "ours" if row.is_ours() else "peer"
    return Bar(row.system if is_alone else name, row,
               paint if any(other.is_ours() for other in panel) else "plain", row.target)


def is_rate_of_system(row):
    return row.is_rate() and bool(row.system or not row.x)


def rates(run):
    for page, unit, rows in by_page_and_unit(filter(is_rate_of_system, run.rows)):
        if len(rows) > 1:  # else there is nothing to compare: the tables have it
            yield page, unit, bar_set(rows, log_axis_of(rows), rate_bar)


def fraction_bar(row, _, name):
    """Here the medians are parts of 1 already."""
    return Bar(name, row, "plain", 0 if row.limit else row.target, row.limit and f"of {row.limit}")


def fractions(run):
    rows = [dataclasses.replace(row, median=drawn_fraction(row), unit="of the limit",
                                values=[row.fraction] if row.limit else row.values)
            for row in run.rows if drawn_fraction(row) is not None]
    for page, own in groups(rows, lambda row: row.page).items():
        axis = PartAxis(max(row.most() for row in own))
        yield page, "", bar_set(own, axis, fraction_bar, reference=1)


def stalls(run):
    found = [row for row in run.rows
             if percentile(row) == 0.99 and (row.page == "stall" or row.is_on_gpu())]
    for page, unit, rows in by_page_and_unit(found):
        aim = STALL_AIM_SECONDS / TIMES[unit]
        yield page, unit, bar_set(rows, log_axis_of(rows, aim), lambda row, _, name: Bar(
            name, row, "ours" if row.is_on_gpu() else "peer", aim))


def title_of(row):
    return row.group or row.page


def latencies(run):
    sets = groups(filter(percentile, run.rows), lambda row: (title_of(row), row.unit, x_unit(row)))
    for (title, unit, _), rows in sets.items():
        if len(groups(rows, distribution_of)) < len(rows):  # a single point is no distribution
            yield title, unit, [("", draw_dots(title, rows))]


def curves(rows):
    """The units of one title stand side by side."""
    for title, of_title in groups(rows, title_of).items():
        figures = []
        for (unit, by), own in groups(of_title, lambda row: (row.unit, x_unit(row))).items():
            lines = list(groups(own, line_of).items())
            figures += [(f"{unit}, by {by}", draw_lines(title, lines[i:i + MAX_LINES]))
                        for i in range(0, len(lines), MAX_LINES)]
        yield title, "", figures


def is_start(row):
    return row.x > 0 and not row.is_rate() and x_unit(row) == "tokens"


def starts(run):
    return curves(filter(is_start, run.rows))


def by_size(run):
    return curves(row for row in run.rows
                  if row.x and not is_start(row) and not is_rate_of_system(row))


# ---- Sections: (id, title, introduction, what is said where no file has such figures, sets) ----


SECTIONS = (
    ("rates", "Throughput by system",
     "A bar is the median over the rounds of a run; the thin line on it goes from the smallest to "
     "the largest round. Scales are logarithmic and the same within a set. What stands in one set "
     "was measured in one run.",
     "No two rates of one kind are in these files: <code>tokbench load</code> and <code>make "
     "bench-peers</code> measure them.", rates),
    ("latency", "Latency",
     "Half of all calls take no longer than the disc says (p50), 99 in 100 no longer than the "
     "diamond, 999 in 1,000 no longer than the square, and none longer than the triangle. "
     "Logarithmic scales; a red mark is a target.",
     "No percentiles are in these files: <code>tokbench stall</code> measures them.", latencies),
    ("start", "Starting up, by the size of the corpus",
     "Both scales are logarithmic: a level line does not depend on the size. Beside each name its "
     "value at the smallest and at the largest size.",
     "No sizes are in these files: <code>tokbench start</code> measures starting up at each.",
     starts),
    ("size", "By size", "Both scales are logarithmic.", "", by_size),
    ("limits", "Part of the machine's limit",
     "Each figure as a part of what the machine itself does, measured in the same run. The black "
     "or white mark is 100 %, a red one a target. A figure can go beyond: a limit is a plain way "
     "of doing the same work, not a law.",
     "No figure in these files names its limit: <code>tokbench limits load</code> measures both "
     "in one run.", fractions),
    ("stall", "Stall of a training step",
     "How long a step waits for its batch, in 99 of 100 steps at most. The red mark is 50 "
     "microseconds, the aim with a GPU.",
     "No stalls are in these files: <code>tokbench stall</code> measures them.", stalls),
)


def set_html(run, title, unit, figures):
    about = f"{escape(unit)}, {escape(run.file)}" if unit else escape(run.file)
    yield (f'<div class="set">\n<h4>{escape(title)} <span>{about}</span></h4>\n'
           '<div class="figures">\n')
    for caption, drawing in figures:
        head = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        yield f"<figure>{head}\n{drawing}</figure>\n"
    yield "</div>\n</div>\n"


def sections(runs, n):
    for id, title, intro, absent, sets in SECTIONS:
        drawn = "".join(part for run in runs for one in sets(run) for part in set_html(run, *one))
        if drawn or absent:
            yield f'<h3 id="m{n}-{id}">{title}</h3>\n'
            yield (f'<p>{intro}</p>\n<div class="sets">\n{drawn}</div>\n' if drawn else
                   f'<p class="absent">{absent}</p>\n')
    if not any(row.is_on_gpu() for run in runs for row in run.rows):
        yield ('<p class="absent"><b>The GPU path is unmeasured here:</b> no figure in these files '
               "was taken on a GPU. <code>make bench-gpu</code> takes them.</p>\n")


# ---- The page ----


def number_of(n, noun):
    return f"{number(n)} {noun}{'' if n == 1 else 's'}"


def header(parts):
    runs = [run for _, runs in parts for run in runs]
    aims = [row for run in runs for row in run.rows if row.goal]
    n_figures = sum(len(run.rows) for run in runs)
    text = (f"{number_of(n_figures, 'figure')} from {number_of(len(runs), 'run')} on "
            f"{number_of(len(parts), 'machine')}")
    if aims:
        text += f"; {sum(row.reached for row in aims)} of {number_of(len(aims), 'target')} reached"
    apart = ("<p>Each machine has a part of its own. Figures of different machines are in no "
             "drawing together: they are not comparable.</p>\n" if len(parts) > 1 else "")
    return (f"<header>\n<h1>{TITLE}</h1>\n<p>{text}. Made by <code>bench/report.py</code> from "
            f"result files.</p>\n{apart}</header>\n")


def page(parts):
    """parts: [(machine, its runs)]"""
    text = ('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            'style-src \'unsafe-inline\'"/>\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
            '<meta name="color-scheme" content="light dark"/>\n'
            f"<title>{TITLE}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{header(parts)}")
    for n, (machine, runs) in enumerate(parts, 1):
        links = "".join(f'<a href="#m{n}-{id}">{title}</a>\n'
                        for id, title, _, absent, _ in SECTIONS if absent)
        text += (f'<main>\n<h2 id="m{n}">{escape(machine_text(machine))}</h2>\n<nav>\n{links}'
                 f'<a href="#m{n}-all">All figures</a>\n</nav>\n{run_table(runs)}')
        text += "".join([*missed_targets(runs), *sections(runs, n)])
        text += f'<h3 id="m{n}-all">All figures</h3>\n{"".join(all_figures(runs))}</main>\n'
    return text + "</body>\n</html>\n"
