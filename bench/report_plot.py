# SPDX-License-Identifier: Apache-2.0
"""report_plot.py - the three kinds of drawings, as SVG inside a page: bars, dots and lines.

All are 360 wide, the width of a phone, and as high as needed: a page sets them side by side if
there is room. Their colours are defined by the page. Labels are above their bars, so that they
cannot overlap at any length."""

import dataclasses
import math
from html import escape

from report_rows import Row, distribution_of, percentile
from report_table import number, percent, short_number, value_range

WIDTH, FONT, SMALL = 360, 13, 11.5
LEADING, TRACK = 16, 10  # from one line of text to the next; height of a bar
BAR_GAP, DOT_GAP, LABEL_PIXELS, MAX_LABEL_LINES = 13, 16, 52, 4
LEFT, RIGHT, PLOT_HEIGHT, INDENT = 50, WIDTH - 10, 190, 18
MAX_LINES = 8
SUPERSCRIPT = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075"
                            "\u2076\u2077\u2078\u2079")
GLYPHS = ("m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",  # disc
          "m0 -5l5 5l-5 5l-5 -5z",  # diamond
          "m-3.5 -3.5h7v7h-7z",  # square
          "m0 -5l4.8 8.5h-9.6z",  # triangle
          "m0 5l4.8 -8.5h-9.6z",  # triangle, downwards
          "m-1.3 -5h2.6v10h-2.6z",  # upright
          "m-5 -1.3h3.7v-3.7h2.6v3.7h3.7v2.6h-3.7v3.7h-2.6v-3.7h-3.7z",  # cross
          "m-5 -1.5h10v3h-10z")  # level


def groups(rows, key):
    """{key: the rows that have it}, both in the order of the rows."""
    found = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


# ---- Axes ----


def tick_text(value):
    """0.01, 5, 2,000, and powers of ten beyond as 10 with a small exponent."""
    exponent = round(math.log10(value)) if value > 0 else 0
    power = float(f"1e{exponent}")
    if -3 <= exponent <= 4 or abs(value - power) > 1e-9 * power:
        return number(value)
    return "10" + str(exponent).translate(SUPERSCRIPT)


class LogAxis:
    """Whole decades around the values above 0. With room, the least is not at its beginning."""

    text = staticmethod(tick_text)

    def __init__(self, values, room=False):
        values = [value for value in values if value > 0] or [1]
        least, most = math.log10(min(values)), math.log10(max(values))
        self.low, self.high = math.floor(least + 1e-9), math.ceil(most - 1e-9)
        self.low -= room and least - self.low < 0.12
        self.low = max(self.low, -323)
        self.high = min(max(self.high, self.low + 1), 308)

    def place(self, value):
        """0 to 1; the ends for what is beyond them."""
        at = math.log10(value) if value > 0 else self.low
        return min(max((at - self.low) / (self.high - self.low), 0), 1)

    def ticks(self, pixels, label_pixels):
        """(value, whether there is room for its label)"""
        decade = pixels / (self.high - self.low)
        step = math.ceil(label_pixels / decade)
        for exponent in range(self.low, self.high + 1, step):
            yield float(f"1e{exponent}"), True
            for digit in (2, 5) if step == 1 and exponent < self.high else ():
                yield float(f"{digit}e{exponent}"), decade * 0.3 >= label_pixels


class PartAxis:
    """From 0 to 1 and a little more; beyond 2 there is no place."""

    text = staticmethod(percent)

    def __init__(self, most):
        self.high = min(math.ceil(min(max(1.1, most), 2) * 5 - 1e-9) / 5, 2)

    def place(self, value):
        return min(max(value / self.high, 0), 1)

    def ticks(self, pixels, label_pixels):
        step = 0.5 if self.high > 1.3 else 0.25
        return [(i * step, True) for i in range(int(self.high / step + 1e-9) + 1)]


# ---- Text that fits, where nothing can be measured ----


EMS = {c: width for letters, width in (("ijlI|'.,:; ", 0.34), ('ftr()[]/\\-!"`', 0.42),
                                       ("ABCDEFGHJKLNOPQRSTUVXYZ=+<>#~^&", 0.84), ("mwMW%@", 0.99))
       for c in letters}


def text_width(text, font):
    """Pixels that it needs at most in the usual fonts."""
    return font * sum(EMS.get(c, 0.65 if c < "\x80" else 1) for c in text)


def wrap(text, width, font=FONT):
    """Lines of at most `width` pixels, broken at spaces; a word too long for a line anywhere."""
    lines, line, words = [], "", text.split(" ")
    while words:
        word = words.pop(0)
        longer = f"{line} {word}" if line else word
        if text_width(longer, font) <= width or len(longer) < 2:
            line = longer
        elif line:
            lines.append(line)
            line, words = "", [word, *words]
        else:
            n = next(i for i in range(1, len(word)) if text_width(word[:i + 1], font) > width)
            lines.append(word[:n])
            words = [word[n:], *words]
    lines.append(line)
    if len(lines) > MAX_LABEL_LINES:
        lines = [*lines[:MAX_LABEL_LINES - 1], lines[MAX_LABEL_LINES - 1][:-2] + "\u2026"]
    return [line for line in lines if line] or [""]


# ---- Shapes ----


class Drawing:
    """Grows downwards: y is where the next part begins."""

    def __init__(self):
        self.parts, self.y = [], 0

    def add(self, text):
        self.parts.append(text + "\n")

    def text(self, x, y, style, text):
        self.add(f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>')

    def path(self, style, d):
        self.add(f'<path class="{style}" d="{d}"/>')

    def line(self, x1, y1, x2, y2, style):
        self.path(style, f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}")

    def glyph(self, x, y, shape, colour):
        self.path(f"glyph c{colour % 8}", f"M{x:.1f} {y:.1f}{GLYPHS[shape % 8]}")

    def begin_figure(self, name, row):
        self.add(f"<g><title>{escape(name)}: {number(row.median)} "
                 f"({value_range(row.least(), row.most())}) {escape(row.unit)}</title>")

    def labels(self, lines, style, x=0):
        for line in lines:
            self.y += LEADING
            self.text(x, self.y - 4, style, line)

    def labels_with_value(self, label, value, style, x=0):
        y = self.y
        self.labels(wrap(label, WIDTH - x - text_width(value, FONT) - 14), style, x)
        self.text(WIDTH, y + LEADING - 4, "value", value)

    def track(self, axis):
        """What a bar or dots lie on, with the marks of the axis."""
        places = [axis.place(value) for value, _ in axis.ticks(WIDTH, LABEL_PIXELS)]
        self.add(f'<rect class="track" x="0" y="{self.y:.1f}" width="{WIDTH}" height="{TRACK}"/>')
        self.path("grid", "".join(f"M{WIDTH * place:.1f} {self.y:.1f}v{TRACK}" for place in places
                                  if 0 < place < 1) or "M0 0")

    def mark(self, place, style):
        """Across the track, and a little longer than that."""
        x = min(max(WIDTH * place, 1), WIDTH - 1)
        self.line(x, self.y - 3, x, self.y + TRACK + 3, style)

    def tick_labels(self, axis, left, right, y):
        """The first and the last, and of the others those that have room."""
        placed = []
        for value, labelled in axis.ticks(right - left, LABEL_PIXELS):
            text = axis.text(value)
            half = text_width(text, SMALL) / 2
            if labelled:
                x = left + (right - left) * axis.place(value)
                placed.append((min(max(x, half), WIDTH - half), half, text))
        end = -WIDTH
        for i, (x, half, text) in enumerate(placed):
            before_last = placed[-1][0] - placed[-1][1] - 4
            if i + 1 == len(placed) or (end + 4 <= x - half and x + half <= before_last):
                self.text(x, y + SMALL, "tick", text)
                end = x + half

    def svg(self, kind, title, height):
        return (f'<svg class="{kind}" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
                f'height="{height:.0f}" role="img" aria-label="{escape(title)}">\n'
                f"{''.join(self.parts)}</svg>\n")


# ---- Bars: the median, and from the smallest to the largest value ----


@dataclasses.dataclass
class Bar:
    label: str
    row: Row
    paint: str  # "ours", "peer" or "plain"
    target: float = 0  # 0: none
    detail: str = ""


def draw_bar(drawing, bar, axis, reference):
    row, parts = bar.row, isinstance(axis, PartAxis)
    drawing.begin_figure(bar.label, row)
    drawing.labels_with_value(bar.label, (percent if parts else short_number)(row.median),
                              "label strong" if bar.paint == "ours" else "label")
    drawing.labels(wrap(bar.detail, WIDTH, SMALL) if bar.detail else [], "detail")
    drawing.y += 2
    drawing.track(axis)
    y, middle = drawing.y, drawing.y + TRACK / 2
    drawing.add(f'<rect class="bar {bar.paint}" x="0" y="{y:.1f}" '
                f'width="{WIDTH * axis.place(row.median):.1f}" height="{TRACK}"/>')
    if parts and row.median > axis.high:  # longer than there is place for
        drawing.path("cut", "".join(f"M{x} {y + TRACK + 2:.1f}l5 -14"
                                    for x in (WIDTH - 22, WIDTH - 16)))
    if row.most() > row.least():
        left, right = WIDTH * axis.place(row.least()), WIDTH * axis.place(row.most())
        for style in ("halo", "whisker"):  # to be seen on a bar, too
            drawing.path(style, f"M{left:.1f} {middle:.1f}H{right:.1f}M{left:.1f} "
                                f"{middle - 3:.1f}v6M{right:.1f} {middle - 3:.1f}v6")
    for value, style in ((reference, "reference"), (bar.target, "target")):
        if value > 0:
            drawing.mark(axis.place(value), style)
    drawing.add("</g>")
    drawing.y += TRACK + BAR_GAP


def draw_bars(title, bars, axis, reference=0):
    drawing = Drawing()
    for bar in bars:
        draw_bar(drawing, bar, axis, reference)
    drawing.tick_labels(axis, 0, WIDTH, drawing.y - BAR_GAP + 3)
    return drawing.svg("bars", title, drawing.y + LEADING)


# ---- Dots: a line for each distribution, with a mark for each of its percentiles ----


def shape_of(part):
    """p50, up to p99.8, up to p99.99, max: each has its shape wherever it is."""
    return (part > 0.5) + (part >= 0.998) + (part >= 1)


def put_words(drawing, rows):
    """The percentiles in words, each with its glyph."""
    x, glyph_width = 0, 14
    drawing.y += LEADING
    for row in rows:
        part = percentile(row)
        words = f"{'max' if part == 1 else f'p{100 * part:.6g}'} {short_number(row.median)}"
        if row.goal:
            words += f" ({row.goal.replace('_', ' ')} {short_number(row.target)})"
        width = glyph_width + text_width(words, SMALL)
        if x > 0 and x + width > WIDTH:
            x = 0
            drawing.y += LEADING
        drawing.glyph(x + 5, drawing.y - 8, shape_of(part), 0)
        drawing.text(x + glyph_width, drawing.y - 4,
                     "detail wrong" if row.missed() else "detail", words)
        x += width + 12


def draw_distribution(drawing, rows, axis):
    put_words(drawing, rows)
    drawing.y += 2
    drawing.track(axis)
    middle = drawing.y + TRACK / 2
    places = [WIDTH * axis.place(row.median) for row in rows]
    drawing.line(places[0], middle, places[-1], middle, "span")
    for row in rows:
        if row.goal:
            drawing.mark(axis.place(row.target), "target")
    for row, x in zip(rows, places):
        drawing.begin_figure(row.name, row)
        drawing.glyph(min(max(x, 5), WIDTH - 5), middle, shape_of(percentile(row)), 0)
        drawing.add("</g>")
    drawing.y += TRACK + DOT_GAP


def draw_dots(title, rows):
    """Those that are not ours step back."""
    drawing = Drawing()
    axis = LogAxis([value for row in rows for value in (row.median, row.target)], room=True)
    any_ours = any(row.is_ours() for row in rows)
    for label, own in groups(rows, distribution_of).items():
        ours = own[0].is_ours()
        drawing.add('<g class="peers">' if any_ours and not ours else "<g>")
        drawing.labels(wrap(label, WIDTH), "label strong" if ours else "label")
        draw_distribution(drawing, sorted(own, key=percentile), axis)
        drawing.add("</g>")
    drawing.tick_labels(axis, 0, WIDTH, drawing.y - DOT_GAP + 3)
    return drawing.svg("dots", title, drawing.y + LEADING)


# ---- Lines: values against a size ----


def draw_frame(drawing, x_axis, y_axis, top, bottom):
    for value, labelled in y_axis.ticks(PLOT_HEIGHT, 26):
        y = bottom - PLOT_HEIGHT * y_axis.place(value)
        if labelled:
            drawing.line(LEFT, y, RIGHT, y, "grid")
            drawing.text(LEFT - 6, y + 4, "tick end", tick_text(value))
    for value, labelled in x_axis.ticks(RIGHT - LEFT, LABEL_PIXELS):
        x = LEFT + (RIGHT - LEFT) * x_axis.place(value)
        if labelled:
            drawing.line(x, top, x, bottom, "grid")
    drawing.tick_labels(x_axis, LEFT, RIGHT, bottom + 6)


def put_legend(drawing, lines, target):
    """Each line with its first and last value."""
    for i, (label, rows) in enumerate(lines):
        ends = [short_number(row.median) for row in rows[:1] + rows[1:][-1:]]
        drawing.glyph(6, drawing.y + LEADING - 8.5, i, i)
        drawing.labels_with_value(label, " \u2026 ".join(ends), "label", INDENT)
    if target:
        words = f"target: {target.goal.replace('_', ' ')} {short_number(target.target)}"
        drawing.labels([words], "detail", INDENT)
        drawing.line(0, drawing.y - 8.5, 12, drawing.y - 8.5, "target")


def draw_lines(title, lines):
    """lines: (label, rows). A target is drawn when all rows that have one have the same."""
    drawing = Drawing()
    lines = [(label, sorted(own, key=lambda row: (row.x, row.median)))
             for label, own in lines]
    rows = [row for _, own in lines for row in own]
    targets = {(row.goal, row.target): row for row in rows if row.goal}
    target = next(iter(targets.values())) if len(targets) == 1 else None
    values = [value for row in rows for value in (row.median, row.least(), row.most())]
    x_axis = LogAxis([row.x for row in rows])
    y_axis = LogAxis([*values, target.target] if target else values)
    put_legend(drawing, lines, target)
    top, bottom = drawing.y + 12, drawing.y + 12 + PLOT_HEIGHT

    def at(x, y):
        return LEFT + (RIGHT - LEFT) * x_axis.place(x), bottom - PLOT_HEIGHT * y_axis.place(y)

    draw_frame(drawing, x_axis, y_axis, top, bottom)
    if target:
        drawing.line(LEFT, at(1, target.target)[1], RIGHT, at(1, target.target)[1], "target")
    for i, (_, own) in enumerate(lines):
        points = [at(row.x, row.median) for row in own]
        drawing.path(f"line c{i % 8}", "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points))
        for row, point in zip(own, points):
            drawing.begin_figure(row.name, row)
            if row.most() > row.least():
                drawing.line(*at(row.x, row.least()), *at(row.x, row.most()), "whisker thin")
            drawing.glyph(*point, i, i)
            drawing.add("</g>")
    return drawing.svg("lines", title, bottom + 22)
