#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records without a text: the values of fields in Parquet, Arrow and JSON lines, and which fields a file has."""

import gzip
import io
import json
import pathlib
import sys
import tarfile

import arrow_writers
from ref_protocol import Skip, expect, expect_equal, need, need_parquet, reads, run_in_folders, run_program

PARQUET = pathlib.Path(__file__).parent / "parquet"
ARROW = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "arrow"


def run(fields, path):
    done = run_program("tool_records", fields, path)
    said = done.stderr.decode()
    if "this build has no" in said or "this build of tokmap does not read" in said:
        raise Skip(said.strip())
    out = done.stdout.decode()
    if fields != "?" and done.returncode == 0:
        out, place = out[:-1].rpartition("\n")[0::2]
        out += "\n" if out else ""
        expect("of the text" not in place and place.startswith(str(path) if out else ""), "place: " + place)
    return done.returncode, out, said


def show(value):
    return "null" if value is None else "'%s'" % value if isinstance(value, str) else "%.17g" % value


def expect_rows(fields, path, *columns):
    wanted = "".join("\t".join(map(show, row)) + "\n" for row in zip(*columns))
    expect_equal(run(fields, path), (0, wanted, ""), "%s of %s" % (fields, path.name))


def expect_fields(path, *names):
    expect_equal(run("?", path), (0, "".join(n + "\n" for n in names), ""), "fields of %s" % path.name)


def expect_refused(fields, path, *words):
    code, _, said = run(fields, path)
    expect_equal(code, 3, "exit code for %s" % path.name)
    for word in words:
        expect(word in said, "%r is not in: %s" % (word, said))
    expect("--" not in said, "an option of pack is in: %s" % said)


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def columns_of_parquet(folder):
    for name in ("numbers_plain", "numbers_packed"):
        path = PARQUET / (name + ".parquet")
        data = json.loads(path.with_suffix(".json").read_text())
        rows = range(len(data["score"]))
        expect_rows("score,real,yes,meta.name", path, data["score"], data["real"], data["yes"], data["meta.name"])
        expect_rows("@row,real", path, rows, data["real"])
        expect_rows("meta.name", path, data["meta.name"])
        expect_fields(path, "score", "real", "yes")
        expect_refused("score,none", path, 'no column "none"')
        expect_refused("meta", path, "group of columns")
        expect_refused("@row", path, "none of the fields is a column")
    for path in sorted(PARQUET.glob("*.parquet")):
        if "numbers" not in path.name:
            expect_rows("text", path, json.loads(path.with_suffix(".json").read_text())["text"])
            expect_fields(path, "text")


def damaged_parquet_is_refused(folder):
    data = (PARQUET / "text_dictionary_gzip.parquet").read_bytes()
    wrong = bytes(b ^ 255 if i == 40 else b for i, b in enumerate(data))
    expect_refused("text", written(folder / "wrong.parquet", wrong), "wrong.parquet: row group 0", "column text: damaged")
    expect_refused("text", written(folder / "cut.parquet", data[:-9]), "truncated")
    expect_refused("?", written(folder / "cut.parquet", data[:-9]), "truncated")


def seed(folder, name):
    return written(folder / (name + ".arrow"), (ARROW / name).read_bytes()[4:])


def columns_of_arrow(folder):
    want = arrow_writers.columns()
    for name in ("stream", "file", "stream_zstd", "views", "polars_file", "dictionary"):
        path = seed(folder, name)
        expect_rows("score,name,flag,@row", path, want["score"], want["name"], want["flag"], want["id"])
        expect_rows("text,id", path, want["text"], want["id"])
        expect_fields(path, "id", "score", "flag", "name", "text")
        expect_refused("id,none", path, "none")
        expect_refused("tags", path, "list")
    expect_fields(seed(folder, "no_rows"), "id", "score", "flag", "name", "text")
    expect_rows("id", seed(folder, "no_rows"), [])
    expect_refused("?", written(folder / "cut.arrow", seed(folder, "file").read_bytes()[:100]), "cut.arrow")


def names_of_columns_that_cannot_be_fields_are_not_listed(folder):
    pa, pq = need_parquet()
    need("pyarrow")
    import pyarrow.ipc as ipc
    kinds = {"n": pa.int32(), "a.b": pa.int64(), " blank": pa.int64(), "@row": pa.int64(), "": pa.int64(),
             "x" * 256: pa.int64(), "l": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.int64()),
             "s": pa.struct([("n", pa.int64())]), "d": pa.date32(), "nothing": pa.null(), "\u00e4, \"": pa.string()}
    table = pa.table({name: pa.array([None], kind) for name, kind in kinds.items()})
    pq.write_table(table, folder / "a.parquet")
    with ipc.new_file(folder / "a.arrow", table.schema) as out:
        out.write_table(table)
    for name in ("a.parquet", "a.arrow"):
        expect_fields(folder / name, "n", "d", "nothing", "\u00e4, \"")
        expect_rows("nothing,n", folder / name, [None], [None])
    many = pa.table({"f%d" % i: [i] for i in range(65)})
    pq.write_table(many, folder / "b.parquet")
    with ipc.new_file(folder / "b.arrow", many.schema) as out:
        out.write_table(many)
    written(folder / "b.jsonl", json.dumps({"f%d" % i: i for i in range(65)}))
    for name in ("b.parquet", "b.arrow", "b.jsonl"):
        expect_refused("?", folder / name, name + ": ", "more than 64 fields")


LINES = '{"id": "a", "score": 0.5, "m": {"n": 3}, "l": [1], "bad.name": 1, "ok": true, "z": null, "nan": NaN, ' \
        '"\\u00e4": "\\ud800", "text": 4, "@row": 1}\n' \
        '{"score": 7, "text": "t", "m": null}\n\n{}\n'


def values_of_json_lines(folder):
    rows = [0.5, 7, None], ["a", None, None], [4, "t", None], [3, None, None], [0, 1, 2]
    names = "id", "score", "ok", "z", "nan", "\u00e4", "text"
    for name in ("s.jsonl", "s.txt", "s", "s.json", "s.parquet"):
        path = written(folder / name, LINES)
        expect_fields(path, *names)
        if name != "s.jsonl":
            expect_rows("score,id,text,m.n", path, *rows[:4])
    expect_rows("score,id,text,m.n", folder / "s.jsonl", *rows[:4])
    expect_rows("ok,l", folder / "s.jsonl", [1, None, None], [None] * 3)
    expect_rows("text", written(folder / "bom.jsonl", "\ufeff" + LINES), rows[2])
    expect_rows("n", written(folder / "last", '{"n": 1}'), [1])
    array = written(folder / "array.json", '[{"n": 1, "x": [{}]},\n {"n":\n null}]')
    expect_rows("n", array, [1, None])
    expect_fields(array, "n")


def compressed_json_lines(folder):
    if not reads("zlib"):
        raise Skip("this build does not read .gz")
    path = written(folder / "s.jsonl.gz", gzip.compress(LINES.encode()))
    expect_rows("score,id", path, [0.5, 7, None], ["a", None, None])
    expect_fields(path, "id", "score", "ok", "z", "nan", "\u00e4", "text")


def files_without_records(folder):
    for name, text in (("a.jsonl", ""), ("a", "\n \n"), ("b.json", "[]"), ("c", "\ufeff")):
        expect_fields(written(folder / name, text))
        expect_rows("n", folder / name, [])


def lines_that_are_no_objects_are_bad(folder):
    path = written(folder / "a.jsonl", '3\n{"n": 1,}\n"text"\n{"n": 1}\n[1]\n{"n": 2')
    code, out, said = run("n", path)
    expect_equal((code, said), (0, ""), "status")
    expect_equal([line.split(":")[0] for line in out.splitlines()],
                 ["not an object", "not JSON", "not an object", "1", "a JSON array, which is read only from a .json "
                  "file of its own", "not JSON"], "records")
    expect_fields(path, "n")


def keys_with_escapes(folder):
    long = "\u00e4" * 127
    line = json.dumps({long: 1, "\u00e4" * 128: 2, "tab\t": 3, 'q"': 4, "\ud800": 5, "n": 1, "n ": 2})
    path = written(folder / "a.jsonl", line)
    expect_fields(path, long, 'q"', "n")
    expect_rows(long, path, [1])


def columns_of_tables(folder):
    path = written(folder / "a.csv", 'id,bad.name,score,"a ""b""",@row,,zip\n1,2,0.5,"x, y",3,4,01\n,,,,,,\n')
    expect_fields(path, "id", "score", 'a "b"', "zip")
    expect_rows("id,score,zip,bad.name,@row", path, [1, None], [0.5, None], ["01", None], [2, None], [0, 1])
    expect_refused("id,none", path, 'it has no column "none"; it has id, bad.name, score')
    expect_rows('a "b"', path, ["x, y", None])
    expect_rows("n", written(folder / "a.tsv", "n\tm\n1\t\"\n"), [1])
    expect_fields(folder / "a.tsv", "n", "m")
    if reads("zlib"):
        expect_rows("score", written(folder / "a.csv.gz", gzip.compress(path.read_bytes())), [0.5, None])


def other_files_are_refused(folder):
    pdf, wide = b"%PDF-1.4\n\0\x01", "id,score\n".encode("utf-16-le")
    for name, text, words in (
            ("a.csv", "id;score\n1;2\n", ("a.csv: has semicolons between its columns",)),
            ("a.tsv", wide, ("a.tsv: is UTF-16 text",)),
            ("a.parquet", "text\n", ("its name says a Parquet file", "repair or remove it")),
            ("a.txt", b"a\0b", ("a NUL, so this is not text",)),
            ("a.pdf", pdf, ("is a PDF document",)),
            ("wide", wide, ("convert it to UTF-8",)),
            ("a.jsonl", b'["a"]', ("is a JSON array; write its elements as JSON lines",)),
            ("latin", b"\xe4\xf6\xfc" * 9, ("are not valid UTF-8; convert it",))):
        expect_refused("n", written(folder / name, text), *words)
        expect_refused("?", folder / name, *words)
    if reads("zlib"):
        data = (PARQUET / "numbers_plain.parquet").read_bytes()
        expect_refused("score", written(folder / "a.gz", gzip.compress(data)), "is a Parquet file", "copy it to one")


def archives_have_values_but_list_no_fields(folder):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, text in (("a.txt", b"text"), ("b.json", b'{"n":\n1}'), ("c.jsonl", b'{"n":2}\n{}\n')):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    path = written(folder / "a.tar", out.getvalue())
    expect_rows("n,@row", path, [1, 2, None], [0, 1, 2])
    expect_refused("?", path, "a.tar: ", "is a tar archive, whose fields cannot be listed; name them")


if __name__ == "__main__":
    sys.exit(run_in_folders(""))
