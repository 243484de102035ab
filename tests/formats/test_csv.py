#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CSV and TSV: the values of random files are those of Python's csv and of polars; a table of cases of files that RFC
4180 does not allow."""

import csv
import io
import json
import os
import random
import re
import struct
import sys

import ref_fields
from ref_protocol import call, expect, expect_equal, need, run_in_folders

LONG = os.environ.get("TOKMAP_LONG") == "all"
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def answers(files, fields):
    """What the tool says of (letter, bytes) pairs: (rows, failure); a row is a list of values, or a text."""
    stdin = [b"F" + struct.pack("<I", len(fields)) + fields.encode()]
    stdin += [letter + struct.pack("<I", len(data)) + data for letter, data in files]
    out, at = call("tool_csv", stdin=b"".join(stdin))[1], 0
    n_fields = len(fields.split(","))
    for _ in files:
        rows, failure = [], None
        while True:
            kind, at = out[at], at + 1
            if kind == 0:
                break
            if kind == 1:
                values = []
                for _ in range(n_fields):
                    value, at = ref_fields.read_value(out, at)
                    values.append(value)
                rows.append(values)
                continue
            n = struct.unpack_from("<I", out, at)[0]
            text, at = out[at + 4:at + 4 + n].decode(), at + 4 + n
            if kind == 3:
                failure = text
                break
            rows.append(text)
        yield rows, failure
    expect_equal(at, len(out), "bytes of output")


# ---- Files that RFC 4180 allows ----

PIECES = ["a", "word ", "\u00e4", "\u8a9e", " ", "x=1", "1", ";", "'", "\\", "\u2028", "\x00", "\x1c"]
QUOTED = PIECES + ['"', ",", "\n", "\r\n", "\r", "\t"]
NUMBERS = ["0", "-0", "7", "-1", "0.5", "1e3", "9223372036854775807", "9223372036854775808", "1.0", "2E-3"]
NO_NUMBERS = ["01", "1,5", "+1", ".5", "1.", "NaN", " 1", "0x1", "1e", "--1", "1 ", "Infinity", "1_0"]
NAMES = ["id", "score", "text", "lang"]


def random_table(rng, tabs):
    """The rows as strings, and the bytes of a file that has them."""
    names = rng.sample(NAMES, rng.randrange(1, 5))
    kinds = [rng.choice("nnxtt") for _ in names]
    rows = [names]
    for _ in range(rng.choice([0, 1, 2, 5, 30])):
        row = []
        for kind in kinds:
            if rng.random() < 0.15:
                row.append("")
            elif kind == "n" or (kind == "x" and rng.random() < 0.7):
                row.append(rng.choice(NUMBERS))
            elif kind == "x":
                row.append(rng.choice(NO_NUMBERS))
            else:
                row.append("".join(rng.choices(PIECES + ['"'] if tabs else QUOTED, k=rng.choice([1, 2, 5, 40]))))
        rows.append(row)
    end = rng.choice(["\n", "\r\n"])

    def field(value, alone):
        if tabs:
            return value
        needs = re.search('[",\n\r]', value) or (alone and not value)
        return '"%s"' % value.replace('"', '""') if needs or rng.random() < 0.3 else value

    lines = [("\t" if tabs else ",").join(field(v, len(row) == 1) for v in row) for row in rows]
    text = end.join(lines) + (end if rng.random() < 0.7 else "")
    return rows, (b"\xef\xbb\xbf" if rng.random() < 0.1 else b"") + text.encode()


def read_by_csv(data, tabs):
    how = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if tabs else {"strict": True}
    return [row for row in csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), **how) if row]


def read_by_polars(pl, data, tabs):
    frame = pl.read_csv(data, infer_schema=False, separator="\t" if tabs else ",", quote_char=None if tabs else '"')
    return [frame.columns, *([value or "" for value in row] for row in frame.rows())]


def typed(rows, names):
    """The values of these columns, as they are kept: None where there is no such column."""
    header, columns = rows[0], []
    for name in names:
        values = [row[header.index(name)] for row in rows[1:]] if name in header else [""] * (len(rows) - 1)
        is_number = all(NUMBER.fullmatch(v) for v in values if v)
        read = (lambda v: json.loads(v, parse_int=ref_fields.read_integer, parse_float=ref_fields.Written)) if is_number \
            else str.encode
        columns.append([read(v) if v else None for v in values])
    return [list(row) for row in zip(*columns)]


def random_files_are_those_of_csv_and_polars(folder):
    pl = need("polars")
    rng = random.Random(8)
    n_files = n_values = n_numbers = 0
    for _ in range(100 if LONG else 3):
        tables = [(tabs, *random_table(rng, tabs)) for tabs in (rng.random() < 0.3 for _ in range(1000))]
        found = answers([(b"T" if tabs else b"C", data) for tabs, _, data in tables], ",".join(NAMES))
        for (tabs, rows, data), (got, failure) in zip(tables, found):
            what = "%.300r" % data
            if not (tabs and len(rows[0]) == 1): # an empty line is no row
                expect_equal(read_by_csv(data, tabs), rows, "csv of " + what)
            if b"\x00" not in data and not (tabs and len(rows[0]) == 1): # polars
                expect_equal(read_by_polars(pl, data, tabs), rows, "polars of " + what)
            if tabs and len(rows[0]) == 1:
                rows = [row for row in rows if row != [""]]
            wanted = typed(rows, NAMES)
            expect(failure is None and len(got) == len(wanted), "%s: %s, %d rows" % (what, failure, len(got)))
            for one, other in zip(got, wanted):
                expect(not isinstance(one, str) and all(map(ref_fields.same, one, other)), "%s: %r, %r" % (what, one, other))
                n_values += sum(v is not None for v in one)
                n_numbers += sum(isinstance(v, (int, float)) for v in one)
        n_files += len(tables)
    expect(n_numbers > n_files, "only %d numbers" % n_numbers)
    return "%d files, %d values, %d of them numbers" % (n_files, n_values, n_numbers)


# ---- Files that it does not allow ----

BAD_QUOTE = "a quote in a field that does not begin with one"
AFTER = "data after the quote that ends a field"
RETURN = "a carriage return without a line feed"
UNCLOSED = "the input ends within quotes that begin here; it is truncated, or a quote is missing"
HEADER = ", in the row that names the columns"

# The bytes; the rows (a list of texts, or the text of a bad one); why reading failed.
CASES = [
    (b"", [], None), (b"\n\r\n", [], None), (b"\xef\xbb\xbf", [], None), (b"a", [], None), (b"\na\n\n1\n\n", [[1]], None),
    (b"a,b\n1\n2,3\n1,2,3\n", ["2: the row has 1 field, and there are 2 columns", [2, 3],
                                 "4: the row has 3 fields, and there are 2 columns"], None),
    (b'a,b\nx"y,1\nz,2\n', ["2: " + BAD_QUOTE, [b"z", 2]], None),
    (b'a,b\nx"\ny",1\nz,2\n', ["2: " + BAD_QUOTE, "3: " + BAD_QUOTE, [b"z", 2]], None),
    (b'a,b\n"x"y,1\nz,2\n', ["2: " + AFTER, [b"z", 2]], None),
    (b'a,b\n"x" ,1\n "y",2\n', ["2: " + AFTER, "3: " + BAD_QUOTE], None),
    (b'a,b\n"x\n"y,"\n\n",1\nz,2\n', ["2: " + AFTER, [b"z", 2]], None),
    (b"a,b\rc,d\n1,2\n", None, "line 1: byte 3: " + RETURN + HEADER),
    (b"a,b\nx\ry,1\nz,2\r", ["2: " + RETURN, "3: " + RETURN], None),
    (b'a,b\n"x"\r,1\n"y",2\r\r\nz,3\r\n', ["2: " + RETURN, "3: " + RETURN, [b"z", 3]], None),
    (b'a,b\n1,2\n3,"4\n5,6\n', [[1, 2]], "line 3: byte 10: " + UNCLOSED),
    (b'a,b\n1,2\n"x\n\n","', [[1, 2]], "line 5: byte 14: " + UNCLOSED),
    (b'a,b\n1,""",\n', [], "line 2: byte 6: " + UNCLOSED),
    (b'a,"b\n1,2\n', None, "line 1: byte 0: a quote that is not closed" + HEADER),
    (b'a,b"\n1,2\n', None, "line 1: byte 3: " + BAD_QUOTE + HEADER),
    (b'\n"a"b,c\n', None, "line 2: byte 4: " + AFTER + HEADER),
    (b"a,b,a\n1,2,3\n", None, "two columns have the same name: a"),
    (b'a,"a"\n', None, "two columns have the same name: a"),
    (b'"a\n",b,"a\n"\n', None, "two columns have the same name"),
    (b"a,,\n1,2,3\n", [[1, None]], None),
    (b"a;b\n1;2\n", None, "has semicolons between its columns; write it with commas, as RFC 4180 says"),
    (b'"a";"b"\n1;2\n', None, "has semicolons between its columns; write it with commas, as RFC 4180 says"),
    (b"a\tb\n1\t2\n", None, "has tabs between its columns, and no commas; use --format tsv"),
    (b"a" * (1 << 20) + b"a\n1\n", None, "line 1: byte 0: more than 1 MiB" + HEADER),
    (b"a,b\n" + b"1,2\n" * (1 << 18) + b"x,\n", 1 << 18, 'line 262146: byte 1048580: the value in the column "a" is not a '
     "number, and the values of this column are kept as numbers; --meta-text a keeps them as strings"),
    (b"a,b\nx,1\n" + b"1,2\n" * (1 << 18) + b"x,\n", (1 << 18) + 2, None),
    (b"a,b\n1,\n,2\n\"\",x\n", [[1, None], [None, b"2"], [None, b"x"]], None),
]
TABS = [
    (b'a\tb\n"x\t1\n""\t2\n', [[b'"x', 1], [b'""', 2]], None),
    (b"a\tb\nx\ry\t1\n", ["2: " + RETURN], None),
    (b"a,b\n1,2\n", None, "has commas between its columns, and no tabs; use --format csv"),
    (b"a\tb\n1\t2\t3\n", ["2: the row has 3 fields, and there are 2 columns"], None),
    (b"a\tb\r\n1\t2\r\n\r\n", [[1, 2]], None),
]


def a_table_of_cases(folder):
    cases = [(b"C", *case) for case in CASES] + [(b"T", *case) for case in TABS]
    for (_, data, rows, why), (got, failure) in zip(cases, answers([case[:2] for case in cases], "a,b")):
        what = "%.60r" % data
        got = [row if isinstance(row, str) or len(row) > 1 else row for row in got]
        expect_equal(failure, why, "failure of " + what)
        if isinstance(rows, int):
            expect_equal(len(got), rows, "rows of " + what)
        else:
            wide = [row if isinstance(row, str) or len(row) == 2 else [*row, None] for row in rows or []]
            expect_equal(got, wide, "rows of " + what)
    return "%d cases" % len(cases)


def what_csv_refuses_is_not_taken_as_data(folder):
    """Files that Python's csv in its strict form refuses have a bad row or are refused."""
    rng, files = random.Random(9), []
    while len(files) < (20000 if LONG else 2000):
        data = "a,b\n" + "".join(rng.choices(["x", '"', '"', ",", "\n", '""', "y", "\r\n"], k=rng.randrange(12)))
        try:
            list(csv.reader(io.StringIO(data, newline=""), strict=True))
        except csv.Error:
            files.append((b"C", data.encode()))
    for (_, data), (rows, failure) in zip(files, answers(files, "a,b")):
        expect(failure or any(isinstance(row, str) for row in rows), "%r: %r" % (data, rows))
    return "%d files" % len(files)


if __name__ == "__main__":
    sys.exit(run_in_folders(""))
