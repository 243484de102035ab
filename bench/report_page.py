# SPDX-License-Identifier: Apache-2.0
"""report_page.py - runs as one HTML page: what they say in a few sentences, charts for each
question, and tables with all figures.

The page needs no script, font or picture. It is also well-formed XML."""

import pathlib
import re
from html import escape

import report_charts
from report_rows import TIMES, machine_text
from report_table import (Table, figure_tables, groups, number, percent, remark_lines, short_number, target_text,
                          value_range)
from report_words import HEADLINES, NAMES, REASONS

TITLE = "tokmap, measured"
STYLE = pathlib.Path(__file__).with_name("report.css").read_text()
STALL_AIM_SECONDS = 50e-6
MAX_BARS, MAX_PANELS, MAX_LINES = 30, 6, 8
BUSY_PERCENT = {"steal_percent": (1, "other virtual machines"), "others_percent": (5, "other programs")}
NO_CHARTS = ("<p class=\"absent\">There are no charts, because this Python has no matplotlib. Install it with "
             "<code>python3 -m pip install -r bench/requirements.txt</code>, or on Debian with <code>apt install "
             "python3-matplotlib</code>.</p>\n")


# ---- Tables ----


def number_of(n, noun):
    return f"{number(n)} {noun}{'' if n == 1 else 's'}"


def folded(summary, content, is_open):
    state = ' open=""' if is_open else ""
    return f"<details{state}><summary>{escape(summary)}</summary>\n{content}</details>\n"


def all_figures(runs):
    for run in runs:
        tables = "".join(folded(f"{table.title}: {number_of(len(table.lines), 'figure')}", table.html(), False)
                         for table in figure_tables(run))
        remarks = "".join(f"<li><b>{escape(system)}</b>: {escape(text)}</li>\n"
                          for system, text in remark_lines(run))
        notes = f'<ul class="remarks">\n{remarks}</ul>\n' if remarks else ""
        yield folded(f"{run.file}: {number_of(len(run.rows), 'figure')}{run.version and f', tokmap {run.version}'}",
                     f"<p><code>{escape(run.command)}</code></p>\n{tables}{notes}", len(runs) == 1)


# ---- In words ----


def listed(parts):
    return " and ".join(([", ".join(parts[:-1])] if parts[1:] else []) + parts[-1:])


def headlines(rows):
    """The rows that miss no target."""
    missed = {(row.page, row.line or row.name) for row in rows if row.missed()}
    for page, name, text in HEADLINES:
        row = next((row for row in rows if re.fullmatch(page, row.page) and re.fullmatch(name, row.name)
                    and (row.page, row.line or row.name) not in missed), None)
        if row and ("{share}" not in text or row.fraction is not None):
            value = number(row.median) + (" times" if row.unit == "x" else f" {row.unit}")
            yield escape(text.format(value=value, share=number(row.fraction or 0)))


def busy_text(run):
    return listed([f"{who} took {percent(run.busy[key] / 100)}" for key, (most, who) in BUSY_PERCENT.items()
                   if run.busy[key] >= most])


def reason_of(run, row):
    """Why the target is missed; "": not known."""
    known = next((reason for name, reason in REASONS if re.search(name, row.name)), "")
    return known or ("the machine was busy" if busy_text(run) else "")


def summary(runs):
    """What this machine does well, what it misses and why."""
    rows = [(run, row) for run in runs for row in run.rows]
    well, n_aims = list(headlines([row for _, row in rows])), sum(bool(row.goal) for _, row in rows)
    missed = groups([one for one in rows if one[1].missed()], lambda one: reason_of(*one))
    if well:
        yield f'<p class="lead">On this machine tokmap {listed(well)}.</p>\n'
    if n_aims:
        n = sum(len(own) for own in missed.values())
        whys = "; ".join(f"{len(own)} because {reason}" if reason else f"{len(own)} for no known reason"
                         for reason, own in missed.items())
        text = f"It reaches {n_aims - n} of {n_aims} targets." + (f" It misses {whys}." if n else "")
        yield f'<p class="lead">{escape(text)}</p>\n'
    for run in runs:
        if busy_text(run):
            yield (f'<p class="absent"><b>The machine was busy:</b> during {escape(run.file)}, {busy_text(run)} of '
                   "the processors' time. Figures may be too low.</p>\n")


def missed_targets(runs):
    lines = [[row.name, (number(row.median), "no"), value_range(row.least, row.most), target_text(row),
              f"{row.page}, {run.file}"] for run in runs for row in run.rows if row.missed()]
    if lines:
        columns = [("missed target", ""), ("median", "number"), ("min .. max", "number quiet"),
                   ("target", ""), ("where", "quiet")]
        yield Table("", columns, lines).html("Targets that were not reached")


# ---- Charts: (caption, drawing) ----


def one_of_each_size(sets):
    """Chooses six groups of a page: of names that differ only in a number, the one with 4096 or the first."""
    for page, own in groups(sets.items(), lambda item: item[0][0]).items():
        kinds = groups(own, lambda item: re.sub(r"\b[0-9][0-9,]*\b", "#", item[0][1]))
        chosen = [next((one for one in alike if "4096" in one[0][1]), alike[0]) for alike in kinds.values()]
        yield from chosen[:MAX_PANELS]


def bar_name(row, rows):
    """Its system, where no other bar of the chart has the same."""
    is_alone = row.system and [other.system for other in rows].count(row.system) == 1
    return row.system if is_alone else row.name.removesuffix(", p99")


def bar_chart(page, group, rows, aim=None):
    """Sorted bars. A figure is followed by its ratio to its limit, if limits are among the bars;
    else to the fastest of tokmap."""
    is_rate = rows[0].is_rate
    rows = sorted(rows, key=lambda row: -row.median if is_rate else row.median)
    ours = next((row for row in rows if row.is_ours and row.median > 0), None)
    by_limit = any(row.limit and row.fraction is not None and (row.is_ours or not row.system) for row in rows)
    unit, ratio = rows[0].unit, ""
    if by_limit:
        ratio = "; x: of the plain way"
    elif is_rate and ours and len(rows) > 1:
        ratio = f"; x: of {bar_name(ours, rows)}"
    scale = max([row.most for row in rows[:MAX_BARS]] + [aim or 0]) or 1
    scale = min(scale, 10 * aim) if aim else scale

    def bar(row):
        part = row.fraction if by_limit else row.median / ours.median if ratio else None
        paint = "ours" if row.is_ours else "peer" if ours else "plain"
        return (bar_name(row, rows), short_number(row.median), "" if part is None else f"{number(part)} x",
                paint, *(min(max(value / scale, 0), 1.1) for value in (row.least, row.median, row.most)))

    left_out = f"; {len(rows) - MAX_BARS} more in the tables" if len(rows) > MAX_BARS else ""
    title = group or page
    return f"{title}: {unit}{ratio}{left_out}", report_charts.draw_bars(
        title, [bar(row) for row in rows[:MAX_BARS]], aim and aim / scale)


def bar_charts(rows, aim_of=lambda unit: None):
    sets = groups(rows, lambda row: (row.page, row.group, row.unit))
    chosen = list(one_of_each_size(sets))
    for (page, unit), alone in groups([own[0] for _, own in chosen if len(own) == 1],
                                      lambda row: (row.page, row.unit)).items():
        chosen = [one for one in chosen if one[1][0] not in alone]
        chosen += [((page, "", unit), alone)] if len(alone) > 1 else []
    chosen.sort(key=lambda one: not any(row.is_ours for row in one[1]))
    for (page, group, unit), own in chosen:
        yield bar_chart(page, group, own, aim_of(unit))


def rates(run):
    return bar_charts(row for row in run.rows if row.is_rate and (row.system or not row.x))


def waits(run):
    found = [row for row in run.rows if row.column == "p99" and row.unit in TIMES
             and (row.page == "stall" or row.is_on_gpu)]
    return bar_charts(found, lambda unit: STALL_AIM_SECONDS / TIMES[unit])


def line_of(row):
    """The name without its parts that begin with a digit or are in the title: rows with one such are
    a line."""
    parts = [part for part in row.name.split(", ") if not re.match("[0-9]", part)]
    if row.system and row.system not in row.name:
        parts.insert(0, row.system)
    return ", ".join(part for part in parts if part not in row.group) or row.group or row.page


def sizes(run):
    """Values that a logarithmic scale has no place for are in the tables only."""
    rows = [row for row in run.rows if 1e-9 < (row.x or 0) < 1e18 and not (row.is_rate and row.system)
            and 1e-9 < row.least <= row.most < 1e18]
    for (title, unit, by), own in groups(rows, lambda row: (row.group or row.page, row.unit,
                                                            row.x_unit or "tokens")).items():
        targets = {(row.goal, row.target) for row in own if row.goal}
        goal, target = targets.pop() if len(targets) == 1 else ("", None)
        lines = [(name, sorted(points, key=lambda row: row.x))
                 for name, points in sorted(groups(own, line_of).items(), key=lambda line: not line[1][0].is_ours)]
        lines = [(" \u2026 ".join(dict.fromkeys(short_number(end.median) for end in (points[0], points[-1])))
                  + f"  {name}", [(row.x, row.least, row.median, row.most) for row in points])
                 for name, points in lines]
        for first in range(0, len(lines), MAX_LINES):
            yield f"{title}: {unit}, by {by}", report_charts.draw_lines(
                title, lines[first:first + MAX_LINES],
                None if target is None or not 1e-9 < target < 1e18 else
                (target, f"target: {goal} {short_number(target)}"))


SECTIONS = (
    ("How fast", "Each bar is the median of the rounds, on a scale that begins at 0; the thin line goes from "
     "the smallest round to the largest. A figure with an x is a ratio of speeds.", rates),
    ("How long a step waits", "How long 99 of 100 steps wait for their batch at most. The red mark is 50 "
     "microseconds, the aim with a GPU; a bar with an arrow is longer than the chart.", waits),
    ("What depends on the size", "Both scales are logarithmic: a level line does not depend on the size. "
     "Before each name are its values at the smallest and at the largest size.", sizes),
)


def sections(runs):
    drawn = ""
    for title, about, charts in SECTIONS if report_charts.matplotlib else ():
        found = [(run.file, list(charts(run))) for run in runs]
        most = max(len(own) for _, own in found)
        figures = ""
        for file, own in found:
            html = "".join(f"<figure><figcaption>{escape(caption)}</figcaption>\n{drawing}</figure>\n"
                           for caption, drawing in own)
            html = f'<div class="figures">\n{html}</div>\n' if own else ""
            figures += html if len(runs) == 1 or not own else folded(
                f"{file}: {number_of(len(own), 'chart')}", html, len(runs) <= 3 or len(own) == most)
        if figures:
            drawn += f"<h3>{title}</h3>\n<p>{about}</p>\n{figures}"
    words = re.sub("<[^>]*>", " ", drawn)
    terms = "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>\n" for name, found, text in NAMES
                    if re.search(rf"\b(?:{found})\b", words))
    drawn += f"<h3>Names</h3>\n<dl>\n{terms}</dl>\n" if terms else ""
    if not any(row.is_on_gpu for run in runs for row in run.rows):
        drawn += ('<p class="absent"><b>The GPU path is not measured here.</b> <code>make bench-gpu</code> '
                  "measures it.</p>\n")
    return drawn if report_charts.matplotlib else NO_CHARTS + drawn


# ---- The page ----


def page(parts):
    """parts: [(machine, its runs)]"""
    text = ('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            'style-src \'unsafe-inline\'"/>\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
            '<meta name="color-scheme" content="light dark"/>\n'
            f"<title>{TITLE}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{TITLE}</h1>\n")
    if len(parts) > 1:
        text += "<p>Figures of different machines are not comparable; each machine has its own part.</p>\n"
    for machine, runs in parts:
        text += f"<main>\n<h2>{escape(machine_text(machine))}</h2>\n{''.join(summary(runs))}"
        text += f"{''.join(missed_targets(runs))}{sections(runs)}<h3>All figures</h3>\n"
        text += f"{''.join(all_figures(runs))}</main>\n"
    return text + "</body>\n</html>\n"
