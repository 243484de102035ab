#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the commands do with values of documents, in datasets that ref_writer made from docs/FORMAT.md."""

import json
import sys

import ref_reader
import ref_writer
from commands import said, tokmap
from ref_protocol import expect, expect_equal, run_in_folders

COLUMNS = [
    ("score", None, [0.5, None, 1e300, -2.0, float("inf")]),
    ("count", None, [2**62, -1, 0, None, 7]),
    ("lang", None, [b"en", b"de", b"en", None, b"en"]),
    ("note", "string", [b"", b'"\t\x1b', "é\u2028".encode(), b"\xff", None]),
    ("nothing", None, [None] * 5),
]


def make(prefix, values, tokens=(1, 2, 3, 4, 5)):
    ref_writer.write(str(prefix), list(tokens), [1] * len(tokens), vocab=10, values=values)
    return prefix


def refused(words, *arguments):
    code, out, err = tokmap(*arguments)
    expect_equal((code, out), (4, ""), "exit status and output of %s" % (arguments,))
    expect(words in err, "%r is not in %r" % (words, err))


def cat_prints_each_value(folder):
    p = make(folder / "p", COLUMNS)
    rows = [json.loads(line) for line in said("cat", "--json", "--meta", p).splitlines()]
    for d, row in enumerate(rows):
        expect_equal(row["ids"], [d + 1], "ids")
        expect_equal(list(row["meta"]), [name for name, _, _ in COLUMNS], "names")
        for name, _, values in COLUMNS:
            wanted = values[d].decode("utf-8", "replace") if isinstance(values[d], bytes) else values[d]
            wanted = "Infinity" if wanted == float("inf") else wanted
            expect_equal(row["meta"][name], wanted, name)
            expect_equal(type(row["meta"][name]), type(wanted), "type of " + name)
    lines = said("cat", "--meta", "--with-index", "--documents", "3:", p).splitlines()
    expect_equal([line.split("\t")[0] for line in lines], ["3", "4"], "numbers")
    expect_equal(json.loads(lines[0].split("\t")[1])["score"], -2.0, "value")
    expect_equal(lines[1].split("\t")[2], "5", "ids")
    rows = said("cat", "--json", "--meta", "--with-index", "--documents", "1", p)
    expect_equal(json.loads(rows)["document"], 1, "document")
    expect("\x1b" not in said("cat", "--meta", p) and "\u2028" not in said("cat", "--meta", p), "escaped")


def info_lists_the_columns(folder):
    p = make(folder / "p", COLUMNS)
    text = said("info", p)
    for words in ("score, float64, missing in 1 document", "lang, string, 2 different, missing in 1 document",
                  "nothing, no document has one"):
        expect(words in text, "%r is not in %r" % (words, text))
    columns = json.loads(said("info", "--json", p))["meta"]
    expect_equal(columns[0], {"name": "score", "type": "float64", "n_nulls": 1, "n_distinct": None, "late": False}, "score")
    expect_equal(columns[2], {"name": "lang", "type": "string", "n_nulls": 1, "n_distinct": 2, "late": False}, "lang")
    expect_equal([c["type"] for c in columns], ["float64", "int64", "string", "string", "null"], "types")


def cat_refuses_what_it_cannot_print(folder):
    plain = make(folder / "plain", [])
    refused("its documents have no values (--meta)", "cat", "--meta", plain)
    code, _, err = tokmap("cat", "--meta", "--raw", plain)
    expect(code == 2 and "--meta does not work with --raw" in err, err)


def merge_keeps_values(folder):
    a = make(folder / "a", COLUMNS)
    b = make(folder / "b", list(reversed(COLUMNS)))
    said("merge", "-q", a, b, "-o", folder / "m")
    said("verify", folder / "m")
    is_ = {c.name: c.values for c in ref_reader.read(str(folder / "m")).values}
    expect_equal(is_, {name: values + values for name, _, values in COLUMNS}, "values")
    whole = make(folder / "w", [(n, None, v + v) for n, _, v in COLUMNS], range(10))
    said("merge", "-q", whole, "-o", folder / "again")
    for column, again in zip(ref_reader.read(str(whole)).values, ref_reader.read(str(folder / "again")).values):
        expect_equal(again, column, "column")


def many_datasets_are_merged(folder):
    wanted = {"number": [], "word": []}
    paths = []
    for i in range(150):
        n = i % 4
        numbers = [None if i % 7 == 0 else i + k / 2 if i % 5 == 0 else i + k for k in range(n)]
        words = [b"word %d" % (i * 31 % 40) if (i + k) % 3 else None for k in range(n)]
        paths.append(make(folder / ("part-%03d" % i), [("number", None, numbers), ("word", None, words)], range(n)))
        wanted["number"] += numbers
        wanted["word"] += words
    said("merge", "-q", *paths, "-o", folder / "all")
    said("verify", folder / "all")
    columns = {c.name: c for c in ref_reader.read(str(folder / "all")).values}
    expect_equal({name: c.values for name, c in columns.items()}, wanted, "values")
    expect_equal([c.type for c in columns.values()], ["float64", "dictionary"], "types")


def merge_refuses_other_columns(folder):
    a = make(folder / "a", COLUMNS[:2])
    out = folder / "m"
    refused("only %s.tmi has a column 'count' of values" % a, "merge", a, make(folder / "b", COLUMNS[:1]), "-o", out)
    refused("has a column 'lang' of values", "merge", a, make(folder / "c", COLUMNS[:3]), "-o", out)
    refused("only %s.tmi has a column 'score' of values" % a, "merge", make(folder / "d", []), a, "-o", out)
    words = [("score", None, [b"high"] * 5), COLUMNS[1]]
    refused("their column 'score' of values is float64 and string", "merge", a, make(folder / "e", words), "-o", out)
    large = [("score", None, [2**53 + 1] * 5), COLUMNS[1]]
    refused("column 'score' is 9007199254740993 in document 5, which is not exact as a float64", "merge", a,
            make(folder / "f", large), "-o", out)
    expect(not list(folder.glob("m.*")), "files of the output are left")


def verify_names_damaged_values(folder):
    p = make(folder / "p", COLUMNS)
    path = folder / "p.tmi"
    index = bytearray(path.read_bytes())
    at = index.index(b"ende")  # the text of the dictionary
    index[at] ^= 1
    path.write_bytes(index)
    code, out, err = tokmap("verify", p)
    expect(code == 4 and "the values section" in out + err, out + err)


if __name__ == "__main__":
    sys.exit(run_in_folders(""))
