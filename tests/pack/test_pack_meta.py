#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap pack --meta: the values that Python reads, with the right documents; the same bytes for any number of
threads and memory."""

import json
import sys

import ref_reader
from ref_protocol import expect, expect_equal, run_program
from test_pack_where import BAD_INPUT, EXPRESSIONS, USAGE, main, same_bytes_for_threads_and_memory

NAMES = ["meta.n", "lang", "@row", "id", "missing", "text", "ok"]
TYPES = ["float64", "dictionary", "int64", "int64", "null", "dictionary", "int64"]


def columns(corpus, out):
    """The names and types of a dataset, and the values of each document."""
    ds = ref_reader.read(str(corpus.folder / out))
    rows = list(zip(*(column.values for column in ds.values)))
    tokens = ds.tokens
    texts = [bytes(list(tokens[first : end - 1])) for first, end in ds.documents]
    return [(column.name, column.type) for column in ds.values], rows, texts


def wanted_rows(records):
    return [tuple(record[name] for name in NAMES) for record in records]


def values_are_those_of_python(corpus):
    text = EXPRESSIONS[0]
    kept, counts = corpus.expected(text)
    corpus.pack("o", text, "--meta", ",".join(NAMES), "--on-error", "skip", "--report", "o.json")
    shape, rows, texts = columns(corpus, "o")
    expect_equal(shape, list(zip(NAMES, TYPES)), "columns")
    expect(rows == wanted_rows(kept), "other values")
    expect(texts == [row[NAMES.index("text")] for row in rows], "values of other documents")
    report = json.loads((corpus.folder / "o.json").read_text())
    expect_equal({name: report[name] for name in counts}, counts, "counts")
    return "%d documents" % len(rows)


def each_split_has_the_values_of_its_documents(corpus):
    kept, _ = corpus.expected("score == 3")
    corpus.pack("o", "score == 3", "--meta", ",".join(NAMES), "--on-error", "skip", "--split", "v=0.3")
    found = []
    for out in ("o", "o-v"):
        _, rows, texts = columns(corpus, out)
        expect(len(rows) > len(kept) / 9, "%s has only %d documents" % (out, len(rows)))
        expect(texts == [row[NAMES.index("text")] for row in rows], "values of other documents")
        found += rows
    expect(sorted(found, key=repr) == sorted(wanted_rows(kept), key=repr), "other values")


def cat_shows_the_values(corpus):
    corpus.pack("o", "@row == 0", "--meta", "lang,@row,score,meta", "--on-error", "skip")
    done = run_program("tokmap", "cat", "--meta", "o", cwd=corpus.folder, check=True, text=True)
    shown = [json.loads(line.split("\t")[0]) for line in done.stdout.splitlines()]
    wanted = [{"lang": None, "@row": 0, "score": score, "meta": None} for score in [3] + [None] * (len(corpus.files) - 1)]
    expect_equal(shown, wanted, "values")


def threads_and_memory_make_no_difference(corpus):
    same_bytes_for_threads_and_memory(corpus, "--meta", ",".join(NAMES))


def wrong_names_are_refused_at_their_character(corpus):
    for names, character, reason in (("a,,b", 3, "expected the name of a field"), ("größe,b,größe", 9,
                                     "the field is already in the list"), ("a..b", 3, "a part of the name is empty"),
                                     (",".join("f%02d" % i for i in range(65)), 257, "more than 64 fields")):
        said = corpus.pack("o", "@row == 0", "--meta", names, code=USAGE)
        expect("tokmap pack: --meta: character %d: %s\n" % (character, reason) in said, said)
    expect_equal(corpus.outputs("o"), {}, "files")


def numbers_and_strings_in_one_column_are_refused(corpus):
    said = corpus.pack("o", "score is not null", "--meta", "ok,score", "--on-error", "skip", code=BAD_INPUT)
    expect("'score' is a number in document" in said and "but the string '3' in document" in said, said)
    expect("leave the column out of --meta" in said and ".partial" not in said, said)
    corpus.remove("o")
    said = corpus.pack("column 'o", "score is not null", "--meta", "ok,score", "--on-error", "skip", code=BAD_INPUT)
    expect("--meta: column 'score' is a number" in said, said)
    corpus.remove("column 'o")


def text_has_no_fields_but_its_row(corpus):
    (corpus.folder / "t.txt").write_text("a\nb\n\nc\n")
    corpus.pack("o", "@row != 1", "--lines", "--meta", "@row,score", of=["t.txt"], code=BAD_INPUT)
    corpus.pack("o", "@row != 1", "--lines", "--meta", "@row", of=["t.txt"])
    expect_equal(columns(corpus, "o"), ([("@row", "int64")], [(0,), (2,), (3,)], [b"a", b"", b"c"]), "values")


def numbers_that_would_be_rounded_are_refused_by_name(corpus):
    for number in ("18446744073709551615", "-9223372036854775809", "9" * 60, "1e400"):
        (corpus.folder / "b.jl").write_text('{"text": "a", "id": 1}\n{"text": "b", "id": %s}\n' % number)
        said = corpus.pack("o", "@row < 9", "--format", "jsonl", "--meta", "id", code=BAD_INPUT, of=["b.jl"])
        expect("b.jl:2: " in said and "the number in field id is neither a signed integer" in said, said)
        corpus.remove("o")
    (corpus.folder / "b.jl").write_text('{"text": "a", "id": 18446744073709551616}\n{"text": "b", "id": 0.1}\n')
    corpus.pack("o", "@row < 9", "--format", "jsonl", "--meta", "id", of=["b.jl"])
    expect_equal(columns(corpus, "o")[:2], ([("id", "float64")], [(2.0**64,), (0.1,)]), "values")


if __name__ == "__main__":
    sys.exit(main())
