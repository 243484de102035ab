# SPDX-License-Identifier: Apache-2.0
"""report_charts.py - bars and lines as SVG for a page, by matplotlib if this Python has it.

The colours become variables of report.css, so that a chart follows the colour scheme of the page.
All charts are 360 wide, the width of a phone."""

import io
import math
import re
import warnings
from html import escape

from report_table import number

try:
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
except ImportError:
    matplotlib = None

WIDTH, BAR_ROW, PLOT_HEIGHT, LEGEND_ROW, LETTERS = 360, 28, 190, 16, 50
MARKERS = "oDs^vPXd"
# A colour that no other part of a chart has, for each variable.
INK = {name: f"#0000{i:02x}" for i, name in enumerate(
    ("text", "back", "quiet", "rule", "track", "ours", "peer", "plain", "mark", *(f"c{i}" for i in range(8))), 1)}
SUPERSCRIPT = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def new_figure(height, what):
    """`what` is in the chart: ids are made from it, so that no other chart of the page has them."""
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": repr(what), "text.parse_math": False,
                                "font.size": 12, "axes.edgecolor": INK["rule"]})
    return Figure(figsize=(WIDTH / 72, height / 72))


def svg(figure, title):
    """Text stays text, in the font of the page."""
    out = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the font for measuring lacks a letter
        figure.savefig(out, format="svg", transparent=True,
                       metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = out.getvalue().partition("<svg")[2].partition(">")
    box = re.search(r'viewBox="[^"]*"', text[0])[0]
    body = re.sub(r'<style.*?</style>|<clipPath.*?</clipPath>| clip-path="[^"]*"|(?<=<g) id="[^"]*"|'
                  r"font-family: [^;]*;", "", text[2], flags=re.S)
    body = re.sub(r"((?:fill|stroke): )#0000(..)",
                  lambda ink: f"{ink[1]}var(--{list(INK)[int(ink[2], 16) - 1]})", body)
    return (f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" {box} role="img" '
            f'aria-label="{escape(title)}">{body}')


def shortened(text, letters):
    return text if len(text) <= letters else text[:letters - 1] + "\u2026"


def draw_bars(title, bars, target=None):
    """bars: (name, value, ratio, paint, least, median, most), the last three as parts of the width;
    one that is longer ends in an arrow."""
    figure = new_figure(len(bars) * BAR_ROW + 4, (title, bars))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 1), ylim=(len(bars) + 0.1, 0))
    axes.set_axis_off()
    places = [i + 0.85 for i in range(len(bars))]
    axes.barh(places, 1, 0.22, color=INK["track"])
    axes.barh(places, [min(bar[5], 1) for bar in bars], 0.22, color=[INK[bar[3]] for bar in bars])
    value_end = 0.8 if any(bar[2] for bar in bars) else 1
    for place, (name, value, ratio, paint, least, median, most) in zip(places, bars):
        n_letters = int(LETTERS * value_end) - len(value)
        axes.text(0, place - 0.27, shortened(name, n_letters), color=INK["text"],
                  weight="bold" if paint == "ours" else "normal")
        axes.text(value_end, place - 0.27, value, color=INK["text"], ha="right")
        axes.text(1, place - 0.27, ratio, color=INK["quiet"], ha="right")
        if median > 1:
            axes.plot(0.985, place, ">", markersize=7, color=INK["back"])
        elif most > least:
            axes.plot([least, min(most, 1)], [place, place], color=INK["text"], linewidth=1.4)
        if target:
            axes.plot([target, target], [place - 0.17, place + 0.17], color=INK["mark"], linewidth=2)
    return svg(figure, title)


def tick_text(value):
    """0.01, 5, 2,000, and powers of ten beyond as 10 with a small exponent."""
    exponent = round(math.log10(value))
    return number(value) if -3 <= exponent <= 4 else "10" + str(exponent).translate(SUPERSCRIPT)


def whole_decades(values):
    low, high = math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9)
    return 10.0**low, 10.0**max(high, low + 1)


def draw_lines(title, lines, target=None):
    """lines: (name with its figures, [(x, least, median, most)]), on logarithmic scales."""
    legend = LEGEND_ROW * (len(lines) + (target is not None)) + 6
    height = legend + PLOT_HEIGHT
    figure = new_figure(height, (title, lines))
    ends = [value for _, points in lines for point in points for value in point[1:]] + list(target or ())[:1]
    axes = figure.add_axes((50 / WIDTH, 26 / height, 1 - 60 / WIDTH, (PLOT_HEIGHT - 34) / height),
                           xscale="log", yscale="log", ylim=whole_decades(ends))
    for i, (name, points) in enumerate(lines):
        xs, lows, middles, highs = zip(*points)
        axes.vlines(xs, lows, highs, color=INK["text"], linewidth=0.8)
        axes.plot(xs, middles, color=INK[f"c{i}"], marker=MARKERS[i], markersize=6, linewidth=2,
                  label=shortened(name, LETTERS - 4))
    if target is not None:
        axes.axhline(target[0], color=INK["mark"], linewidth=2, label=target[1])
    for axis, n_ticks in ((axes.xaxis, 6), (axes.yaxis, 5)):
        axis.set_major_locator(LogLocator(numticks=n_ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
    axes.grid(color=INK["rule"], linewidth=0.8)
    axes.tick_params(length=0, labelsize=11.5, labelcolor=INK["quiet"])
    axes.spines[:].set_visible(False)
    figure.legend(loc="upper left", bbox_to_anchor=(0, 1), frameon=False, labelcolor=INK["text"],
                  borderpad=0, borderaxespad=0, labelspacing=0.25, handlelength=1.2)
    return svg(figure, title)
