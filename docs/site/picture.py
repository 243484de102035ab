#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""picture.py - draws the pictures of README.md and docs/resume.md from bench/results: docs/rates-light.svg, docs/rates-dark.svg,
docs/resume-light.svg and docs/resume-dark.svg.

It needs no package, so that a test can draw it anywhere and compare."""

import json
import pathlib
from html import escape

from pages import CHARTS, ROOT, bars_of, short_number

PANEL, NAMES, VALUES, ROW, TITLE, GAP = 430, 122, 60, 19, 24, 18
COLOURS = {"light": {"text": "#1f2328", "quiet": "#59636e", "ours": "#1f6feb", "peer": "#b1bac4", "skipped": "#bc4c00", "shade": "#eaeef2"},
           "dark": {"text": "#e6edf3", "quiet": "#9198a1", "ours": "#58a6ff", "peer": "#57606a", "skipped": "#f0883e", "shade": "#21262d"}}
# Of the losses: the panels by the line of their rows, the first step, the steps of a point, the range, and the colour of each run.
LOSSES = (("in training", "Loss of each step"), ("after the run", "Loss of each batch, after the run"))
FIRST, STEPS, LEAST, MOST, HEIGHT, MARGIN = 40, 5, 0.7, 1.2, 170, 30
RUNS = {"right": "quiet", "repeated": "ours", "skipped": "skipped"}


def draw_panel(x, y, chart, colours):
    """Its SVG: a title, and a bar for each system. The longest bar is as wide as there is room."""
    title, result, unit, names = chart
    bars, scale = bars_of(result, names), 1e6 if unit == "M/s" else 1
    most = max(value for _, value in bars)
    title += {"M/s": ", in millions", "MB/s": ", MB/s", "ms": ", in ms: less is better"}[unit]
    yield f'<text x="{x}" y="{y + 14}" font-weight="600" fill="{colours["text"]}">{escape(title)}</text>'
    for i, (name, value) in enumerate(bars):
        top = y + TITLE + i * ROW
        width = max(1.5, (PANEL - NAMES - VALUES) * value / most)
        weight, ink = (' font-weight="600"', "text") if i == 0 else ("", "quiet")
        yield f'<text x="{x}" y="{top + 13}"{weight} fill="{colours[ink]}">{escape(name)}</text>'
        yield (f'<rect x="{x + NAMES}" y="{top + 3}" width="{width:.1f}" height="13" rx="2" '
               f'fill="{colours["peer" if i else "ours"]}"/>')
        yield (f'<text x="{x + NAMES + width + 6:.1f}" y="{top + 13}"{weight} fill="{colours[ink]}">'
               f'{short_number(value / scale)}</text>')


def draw_losses(x, title, curves, colours):
    """The SVG of a panel: a curve for each run, and the steps after the checkpoint shaded."""
    width = PANEL - MARGIN

    def place(step, loss):
        return x + MARGIN + width * (step - FIRST) / (200 - FIRST), TITLE + HEIGHT * (MOST - loss) / (MOST - LEAST)

    left, top = place(100, MOST)
    yield f'<text x="{x}" y="14" font-weight="600" fill="{colours["text"]}">{escape(title)}</text>'
    yield f'<rect x="{left:.1f}" y="{top:.1f}" width="{width / 4:.1f}" height="{HEIGHT}" fill="{colours["shade"]}"/>'
    for loss in (0.8, 1.0, 1.2):
        at = place(FIRST, loss)[1]
        yield f'<text x="{x}" y="{at + 4:.1f}" fill="{colours["quiet"]}">{loss}</text>'
        yield f'<path d="M{x + MARGIN} {at:.1f}h{width}" stroke="{colours["shade"]}"/>'
    for step in (60, 100, 140, 180):
        yield (f'<text x="{place(step, LEAST)[0]:.1f}" y="{TITLE + HEIGHT + 16}" text-anchor="middle" '
               f'fill="{colours["quiet"]}">{step}</text>')
    for run, colour in RUNS.items():
        points = [place(step + STEPS / 2, sum(curves[run][step:step + STEPS]) / STEPS) for step in range(FIRST, 200, STEPS)]
        yield (f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}" fill="none" stroke-width="2" '
               f'stroke="{colours[colour]}"/>')


def draw_resumes(colours):
    """Two panels of losses in a row, and what the colours mean."""
    rows = json.loads((ROOT / "bench/results/wrong-resume-computed.json").read_text())["rows"]
    parts = []
    for column, (line, title) in enumerate(LOSSES):
        curves = {row["column"]: row["values"] for row in rows if row["line"] == line}
        parts += draw_losses(column * (PANEL + GAP), title, curves, colours)
    for i, (label, colour) in enumerate((("right resume", "quiet"), ("40 batches repeated", "ours"), ("40 batches skipped", "skipped"))):
        x, y = MARGIN + i * 190, TITLE + HEIGHT + 40
        parts.append(f'<path d="M{x} {y - 4}h24" stroke-width="3" stroke="{colours[colour]}"/>')
        parts.append(f'<text x="{x + 32}" y="{y}" fill="{colours["text"]}">{label}</text>')
    return svg(parts, TITLE + HEIGHT + 50)


def svg(parts, height):
    width = 2 * PANEL + GAP
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="12.5">\n' + "\n".join(parts) + "\n</svg>\n")


def draw(colours):
    """Two panels in a row."""
    parts, y, charts = [], 0, CHARTS["first"]
    for left in range(0, len(charts), 2):
        pair = charts[left:left + 2]
        for column, chart in enumerate(pair):
            parts += draw_panel(column * (PANEL + GAP), y, chart, colours)
        y += TITLE + max(len(names) for *_, names in pair) * ROW + GAP
    return svg(parts, y - GAP)


def pictures():
    """{path: text}"""
    return {ROOT / f"docs/{name}-{scheme}.svg": function(colours) for scheme, colours in COLOURS.items()
            for name, function in (("rates", draw), ("resume", draw_resumes))}


if __name__ == "__main__":
    for path, text in pictures().items():
        path.write_text(text)
