# SPDX-License-Identifier: Apache-2.0
"""report_table.py - one table as HTML, as Markdown or for a terminal; numbers for people; and the
tables of a run."""

import html
import re
import sys


def number(value):
    """Three digits, all of them from a thousand on: 0.00167, 31, 453, 92,884."""
    return f"{value:,.0f}" if 999.5 <= abs(value) < 1e15 else f"{value:.3g}"


def short_number(value):
    """The same with a letter from a million on: 7.1 G. For drawings."""
    if not 999500 <= abs(value) < 1e15:
        return number(value)
    for letter in "MGT":
        value /= 1e6 if letter == "M" else 1e3
        if abs(value) < 999.5:
            break
    return f"{number(value)} {letter}"


def percent(part):
    return number(min(100 * part, sys.float_info.max)) + " %"


def value_range(least, most, text=number):
    return f"{text(least)} .. {text(most)}"


def escape_markdown(text):
    """An underscore between letters, as in O_DIRECT, means nothing to Markdown, and "<=" is not a tag."""
    text = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text.replace("&", "&amp;"))
    return re.sub(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", text)


class Table:
    """Columns are (head, style), cells a text or (text, style). Styles: "number" is aligned right,
    "no" is highlighted, "yes", "quiet" and "code" are for a page. A column without text is left
    out."""

    def __init__(self, title, columns, lines):
        lines = [[cell if isinstance(cell, tuple) else (cell, "") for cell in line]
                 for line in lines]
        used = [i for i in range(len(columns)) if any(line[i][0] for line in lines)]
        self.title = title
        self.columns = [columns[i] for i in used]
        self.lines = [[(line[i][0], f"{columns[i][1]} {line[i][1]}".strip()) for i in used]
                      for line in lines]

    def html(self, label=None):
        head = "".join(f'<th scope="col"{class_of(style)}>{html.escape(name)}</th>'
                       for name, style in self.columns)
        caption = f"<caption>{html.escape(self.title)}</caption>\n" if self.title else ""
        body = "".join(f"<tr>{''.join(map(html_cell, range(len(line)), line))}</tr>\n"
                       for line in self.lines)
        return (f'<div class="wide" role="region" tabindex="0" aria-label="'
                f'{html.escape(label or self.title)}"><table>\n{caption}<thead><tr>{head}</tr>'
                f"</thead>\n<tbody>\n{body}</tbody></table></div>\n")

    def markdown(self):
        title = f"**{escape_markdown(self.title)}**\n\n" if self.title else ""
        rule = ["---:" if is_number(style) else "---" for _, style in self.columns]
        rows = [[escape_markdown(name) for name, _ in self.columns], rule]
        rows += [[f"**{escape_markdown(text)}**" if "no" in style.split() else escape_markdown(text)
                  for text, style in line] for line in self.lines]
        return title + "".join(f"|{''.join(f' {cell} |' if cell else ' |' for cell in row)}\n"
                               for row in rows)

    def terminal(self):
        rows = [self.columns, *self.lines]
        widths = [max(len(row[i][0]) for row in rows) for i in range(len(self.columns))]
        text = f"{self.title}\n" if self.title else ""
        for row in rows:
            cells = [cell[0].rjust(width) if is_number(column[1]) else cell[0].ljust(width)
                     for cell, column, width in zip(row, self.columns, widths)]
            text += ("  " + "  ".join(cells)).rstrip() + "\n"
        return text


def is_number(style):
    return "number" in style.split()


def class_of(style):
    return f' class="{style}"' if style else ""


def html_cell(i, cell):
    text, style = cell
    tag, scope = ("td", "") if i else ("th", ' scope="row"')
    return f"<{tag}{scope}{class_of(style)}>{html.escape(text)}</{tag}>"


# ---- The tables of a run ----


def groups(rows, key):
    """{key: the rows that have it}, both in the order of the rows."""
    found = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def target_text(row):
    return f"{row.goal} {number(row.target)} {row.unit}" if row.goal else ""


def target_cell(row):
    state = ("reached", "yes") if row.reached else ("not reached", "no")
    return (f"{target_text(row)}: {state[0]}", state[1]) if row.goal else ""


def figure_tables(run):
    """A table for each page of a run."""
    columns = [("what", ""), ("system", ""), ("median", "number"), ("min .. max", "number quiet"),
               ("unit", ""), ("of its limit", ""), ("target", "")]
    for page, rows in groups(run.rows, lambda row: row.page).items():
        yield Table(page, columns, [
            [row.name, row.system, number(row.median), value_range(row.least, row.most), row.unit,
             row.limit if row.fraction is None else f"{percent(row.fraction)} of {row.limit}",
             target_cell(row)] for row in rows])


def remark_lines(run):
    """Each once, with all its places: ("tiktoken", "left out: no model (gpt2, tldr; t5, tldr)")."""
    for (system, text), remarks in groups(run.remarks, lambda remark: remark[:2]).items():
        places = "; ".join(place for _, _, place in remarks if place)
        yield system, f"{text} ({places})" if places else text
