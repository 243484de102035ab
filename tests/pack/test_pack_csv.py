#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CSV and TSV as inputs of pack, plan, columns add and scan: which files are read as such, the columns of several files,
the types of their values. test_csv.py compares the rows; test_resume.py, test_plan.py and `make chaos` have a CSV among
their inputs."""

import csv
import gzip
import io
import json
import re
import sys

import pack_corpus
from ref_protocol import expect, expect_equal, need_parquet, run_in_folders, run_program

USAGE, BAD_INPUT, OTHER_RUN = 2, 3, 5
ROWS = [{"id": str(i), "score": ("", "0.5", "3", "1e3")[i % 4], "lang": "en" if i % 3 else "de", "zip": "%05d" % (7 * i),
         "text": "line %d\nof, \"%s\"" % (i, "word " * (i % 9)) if i % 10 else ""} for i in range(200)]


def run(folder, *arguments, code=0, data=None):
    """What it says."""
    done = run_program("tokmap", *arguments, cwd=folder, **({"input": data} if data is not None else {}))
    said = (done.stdout + done.stderr).decode()
    expect_equal(done.returncode, code, "exit status of %s; it said %s" % (arguments, said))
    return said


def kind_of(folder, name):
    """What it is packed as."""
    return re.search("packed as ([a-z]+)", run(folder, "pack", name, "--dry-run"))[1]


def pack(folder, *arguments, code=0, out="o", **named):
    return run(folder, "pack", "-f", *arguments, "-o", out, code=code, **named)


def refused(folder, *arguments, words, code=BAD_INPUT, command=pack, **named):
    said = command(folder, *arguments, code=code, **named)
    for word in words:
        expect(word in said, "%r is not in: %s" % (word, said))


def id_of(said):
    return re.search("id ([0-9a-f]{32})", said)[1]


def write_csv(path, rows=ROWS, names=None, tabs=False, header=True, end="\r\n"):
    """In TSV, a text has neither tabs nor line ends."""
    names, out = names or list(rows[0]), io.StringIO(newline="")
    how = {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None} if tabs else {}
    writer = csv.writer(out, lineterminator=end, **how)
    for row in [dict(zip(names, names))] * header + rows:
        writer.writerow([row[name].replace("\n", " ") if tabs else row[name] for name in names])
    path.write_bytes(out.getvalue().encode())
    return path.name


def number(value):
    return (json.loads(value) if re.fullmatch(r"-?\d[\d.e]*", value) else value) if value else None


def write_jsonl(path, rows=ROWS, texts=("zip",), change=lambda text: text):
    """The same documents, with numbers as numbers."""
    path.write_text("".join(json.dumps({
        name: change(value) or None if name == "text" else value or None if name in texts else number(value)
        for name, value in row.items()}) + "\n" for row in rows))
    return path.name


def values(folder, name="o"):
    """What the columns of a dataset are."""
    return run(folder, "columns", "list", name)


# ---- Which files ----


def the_name_of_a_file_chooses(folder):
    wanted = id_of(pack(folder, write_jsonl(folder / "a.jsonl")))
    one_line = id_of(pack(folder, write_jsonl(folder / "b.jsonl", change=lambda text: text.replace("\n", " "))))
    write_csv(folder / "a.csv")
    write_csv(folder / "a.tsv", tabs=True, end="\n")
    write_csv(folder / "plain.CSV", end="\n")
    names = {"a.csv": wanted, "a.tsv": one_line, "plain.CSV": wanted}
    if pack_corpus.has_zlib():
        for name in ("a.csv", "a.tsv"):
            (folder / (name + ".gz")).write_bytes(gzip.compress((folder / name).read_bytes()))
            names[name + ".gz"] = names[name]
    for name, dataset in names.items():
        said = pack(folder, name)
        expect_equal(id_of(said), dataset, name)
        expect_equal(kind_of(folder, name), "tsv" if "tsv" in name else "csv", name)
        expect("20 records without a text" in said, said)
    (folder / "other").write_bytes((folder / "a.csv").read_bytes())
    expect_equal(kind_of(folder, "other"), "text", "a file without the name")
    expect_equal(id_of(pack(folder, "other", "--format", "csv")), wanted, "--format csv")
    expect_equal(id_of(pack(folder, "-", "--format", "csv", data=(folder / "a.csv").read_bytes())), wanted, "stdin")
    expect("1 document" in pack(folder, "a.csv", "--format", "text"), "--format text")
    (folder / "json.csv").write_bytes((folder / "a.jsonl").read_bytes())
    refused(folder, "json.csv", words=["json.csv: line 1: byte "])
    expect_equal(id_of(pack(folder, "json.csv", "--format", "jsonl")), wanted, "--format jsonl")
    (folder / "b.csv").write_bytes(b"PK\x03\x04" + bytes(100))
    refused(folder, "b.csv", words=["b.csv: is a zip archive"])
    (folder / "c.csv").write_bytes("text\nx\n".encode("utf-16"))
    refused(folder, "c.csv", words=["c.csv: is UTF-16 text"])


def bytes_come_before_the_name(folder):
    pa, pq = need_parquet()
    pq.write_table(pa.table({"text": ["a", "b"]}), folder / "a.csv")
    expect_equal(kind_of(folder, "a.csv"), "parquet", "a Parquet file with the name of a CSV")
    pack_corpus.write_tar(folder / "b.csv", lambda n, bad: ['{"text": "x"}'] * n, lambda n: "x", 1)
    expect_equal(kind_of(folder, "b.csv"), "jsonl", "an archive with the name of a CSV")
    refused(folder, "b.csv", "--format", "csv", words=["is a tar archive, and CSV and TSV are not read from archives"])


def tables_without_the_text_are_unsuitable(folder):
    write_csv(folder / "a.csv")
    (folder / "b.csv").write_text("id,name\n1,x\n")
    (folder / "c.csv").write_text("id;text\n1;x\n")
    (folder / "d.csv").write_text('# "a" file, with notes\n')
    (folder / "e.csv").write_bytes(b"")
    refused(folder, "b.csv", words=['b.csv: it has no column "text"; use --field with one of id, name'])
    refused(folder, "c.csv", words=["c.csv: has semicolons between its columns; write it with commas"])
    refused(folder, ".", words=["b.csv: ", "c.csv: ", "d.csv: line 1: byte 2: a quote in a field", "--skip-unsuitable"])
    for options in (["--skip-unsuitable"], ["--skip-unsuitable", "--format", "csv"]):
        said = pack(folder, ".", "--exclude", "o.*", *options, "--json")
        expect_equal(json.loads(said[said.index("{"):].split("\n")[0])["unsuitable"], {"table without the column of the text": 3}, "unsuitable")
    refused(folder, "a.csv", "--tokens", "id", "--vocab-size", "9", words=["a.csv: is a table of text, which has no lists"])


# ---- Columns of several files ----


def columns_have_any_order_and_the_same_names(folder):
    wanted = id_of(pack(folder, write_jsonl(folder / "a.jsonl"), "--meta", "id,score,lang,zip,@row"))
    write_csv(folder / "1.csv", ROWS[:70])
    write_csv(folder / "2.csv", ROWS[70:140], ["text", "zip", "score", "id", "lang"])
    write_csv(folder / "3.csv", ROWS[140:], header=False)
    (folder / "3.csv").write_bytes(b"\xef\xbb\xbf\r\nid,\"score\",lang,zip,text\r\n" + (folder / "3.csv").read_bytes())
    names = ["1.csv", "2.csv", "3.csv"]
    pack(folder, "a.jsonl", "--meta", "id,score,lang,zip", out="w")
    said = pack(folder, *names, "--meta", "id,score,lang,zip", "--meta-text", "zip")
    expect_equal(id_of(said), id_of(run(folder, "pack", "a.jsonl", "-f", "-o", "w")), "id")
    pack(folder, "a.jsonl", "--meta", "id,score,lang,zip", out="w")
    print_all = ["cat", "--meta", "--json"]
    expect_equal(run(folder, *print_all, "o"), run(folder, *print_all, "w"), "values")
    expect_equal(values(folder), values(folder, "w"), "columns")
    for header in ("id,score,lang,text", "id,score,lang,zip,text,more", "id,score,lang,Zip,text"):
        (folder / "4.csv").write_text(header + "\n")
        refused(folder, *names, "4.csv", words=["4.csv: its columns are not those of 1.csv; all CSV and TSV inputs"])
        refused(folder, *names, "4.csv", "--cells", "c", out="p", command=lambda *a, **k: plan(*a, **k), words=["4.csv: its columns"])
    said = pack(folder, "a.jsonl", "1.csv", "--meta", "none,id", code=BAD_INPUT)  # JSON lines may have it
    expect("--meta: no input has values of the field none; a.jsonl: no record of 200 has the field none" in said, said)
    refused(folder, "1.csv", "2.csv", "--meta", "id,none", words=['1.csv: it has no column "none"'])
    refused(folder, "1.csv", "2.csv", "--where", "none > 1", words=['1.csv: it has no column "none"'])
    expect(wanted, "id")


def plan(folder, *arguments, code=0, out="p"):
    return run(folder, "plan", "-f", *arguments, "-o", out, code=code)


def names_of_columns_may_be_given(folder):
    wanted = id_of(pack(folder, write_csv(folder / "a.csv"), "--where", "id > 50"))
    write_csv(folder / "b.csv", header=False)
    said = pack(folder, "b.csv", "--columns", "id,score,lang,zip,text", "--where", "id > 50")
    expect_equal(id_of(said), wanted, "id")
    (folder / "c.tsv").write_text("7\tone\n8\ttwo\n")
    expect("2 documents" in pack(folder, "c.tsv", "--columns", '"a, ""b""",text', "--where", '`a, "b"` >= 7'), "quotes")
    refused(folder, "b.csv", "--columns", "id,text", words=["b.csv:1: byte 0: the row has 5 fields, and there are 2 columns"])
    (folder / "d.csv").write_text("1;x\n")
    refused(folder, "d.csv", "--columns", "id,text", words=["d.csv: has semicolons between its columns"])
    for given, word in (("a,b,a", "two columns have the same name: a"), ('a,"b', "a quote is not closed"), ("a\nb", "must be one line"),
                        ('a"b', "a quote in a field that does not begin with one")):
        refused(folder, "b.csv", "--columns", given, words=["--columns: " + word], code=USAGE)
    write_jsonl(folder / "a.jsonl")
    refused(folder, "a.jsonl", "--columns", "a", words=["--columns: no input is CSV or TSV"], code=USAGE)
    refused(folder, "a.jsonl", "--meta", "id", "--meta-text", "id", words=["--meta-text: no input is CSV or TSV"], code=USAGE)
    for options in (["--columns", "a"], ["--meta", "id", "--meta-text", "id"]):
        refused(folder, "a.jsonl", "--format", "jsonl", *options, code=USAGE,
                words=["%s works only with --format csv, tsv or auto" % options[-2]])
    refused(folder, "a.csv", "--meta", "id", "--meta-text", "zip", code=USAGE,
            words=["--meta-text zip: neither --meta nor --where names this field"])


# ---- Types ----

LOOK = 1 << 20


def a_column_is_of_numbers_or_of_strings(folder):
    numbers = "id,text\n" + "1,x\n" * 10
    (folder / "a.csv").write_text(numbers)
    (folder / "b.csv").write_text('id,text\n"7",x\n01,x\n')
    (folder / "late.csv").write_text(numbers + "1,%s\n" % ("x" * LOOK) + "2,x\nn/a,x\n")
    pack(folder, "a.csv", "--meta", "id")
    expect("id: int64" in values(folder), values(folder))
    pack(folder, "a.csv", "b.csv", "--meta", "id")  # a string in one of them
    expect("id: string" in values(folder), values(folder))
    expect('"id": "7"' in run(folder, "cat", "--meta", "--json", "o"), "a number as it is written")
    pack(folder, "a.csv", "--meta", "id", "--meta-text", "id")
    expect("id: string" in values(folder), values(folder))
    message = 'late.csv: line 14: byte %d: the value in the column "id" is not a number' % (8 + 40 + 3 + LOOK + 4)
    for options in (["--meta", "id"], ["--where", "id > 0"]):
        refused(folder, "a.csv", "late.csv", *options, "--on-error", "skip", words=[message, "--meta-text id"])
        run(folder, "pack", "a.csv", "late.csv", *options, "-o", "o", "--restart", "-f", code=BAD_INPUT)
    pack(folder, "a.csv", "late.csv", "--meta", "id", "--meta-text", "id", "--restart")
    pack(folder, "late.csv", "a.csv", "b.csv", "--meta", "id")
    refused(folder, "a.csv", "--where", 'id == "1"', words=["a.csv: --where: character 1: compares a number with a string"])
    expect("10 documents" in pack(folder, "a.csv", "--where", 'id == "1"', "--meta-text", "id"), "a string")
    refused(folder, "a.csv", "b.csv", "--where", "id == 1", words=["a.csv: --where: "])
    expect("10 documents" in pack(folder, "-", "--format", "csv", "--meta", "id", data=numbers.encode()), "stdin")
    expect("id: int64" in values(folder), values(folder))
    (folder / "c.csv").write_text("id,text\n,x\n\"\",x\n3,x\n")
    expect("2 documents" in pack(folder, "c.csv", "--where", "id is null"), "empty values")
    expect("1 document," in pack(folder, "c.csv", "--where", "@row == 2", "--meta", "@row,id"), "@row")
    (folder / "d.csv").write_text("id,text\n18446744073709551616,x\n")
    pack(folder, "d.csv", "--meta", "id")
    (folder / "d.csv").write_text("id,text\n9007199254740993000,x\n9223372036854775809,x\n")
    refused(folder, "d.csv", "--meta", "id", words=["d.csv:3: byte 30: --meta: the number in field id is neither a signed integer of 64 "
                                                    "bits nor exactly a float64; --meta-text id keeps the values of this column as strings"])
    pack(folder, "d.csv", "--meta", "id", "--meta-text", "id", "--restart")
    (folder / "e.csv").write_text("id,text\n,%s\nn/a,x\n" % ("x" * LOOK))  # the look finds no value
    refused(folder, "e.csv", "--meta", "id", words=['the value in the column "id" is not a number, and the values of this column are '
                                                    "kept as numbers; --meta-text id keeps them as strings"])


def bad_rows_are_left_out_and_listed(folder):
    (folder / "a.csv").write_text('text,id\nfine,1\n"two\nlines",2\none\n"x"y,3\nlast,4\n')
    refused(folder, "a.csv", words=["a.csv:5: byte 29: the row has 1 field, and there are 2 columns", "--on-error skip"])
    said = pack(folder, "a.csv", "--meta", "id,@row", "--on-error", "skip", "--restart", "--report", "r.json")
    expect("3 documents" in said and "2 bad documents" in said, said)
    report = (folder / "r.json").read_text()
    expect("5: " in report or '"line": 5' in report, report)
    rows = [json.loads(line)["meta"]["@row"] for line in run(folder, "cat", "--meta", "--json", "o").splitlines()]
    expect_equal(rows, [0, 1, 4], "@row")
    (folder / "b.csv").write_text("text\n" + "x" * 1000 + "\nshort\n\"" + "y\n" * 500 + '"\nshort\n')
    said = pack(folder, "b.csv", "--max-document", "100", "--on-error", "skip")
    expect("2 documents" in said and "2 bad documents" in said, said)
    (folder / "c.csv").write_bytes(b"text\nx\nb\xff\n")
    refused(folder, "c.csv", "--utf8", "error", words=["c.csv:3: byte 7: the document is not valid UTF-8 at its byte 1"])


# ---- Plans, and what goes on ----


def a_plan_does_not_cut_and_keeps_the_types(folder):
    write_csv(folder / "a.csv", ROWS * 5)
    write_csv(folder / "b.csv", ROWS)
    options = ["a.csv", "b.csv", "--meta", "id,zip,score", "--where", "score > 0.5 or zip > '00100'", "--meta-text", "zip"]
    wanted = pack(folder, *options)
    said = plan(folder, *options, "--cells", "c", "--cell-size", "3k")
    expect("2 cells" in said and "a.csv: " in said and "stay in one cell: its format is csv" in said, said)
    for task in ("1/2", "0/2"):
        run(folder, "pack", "--plan", "p", "--task", task)
    expect_equal(id_of(run(folder, "join", "p", "-o", "j")), id_of(wanted), "id")
    # A string in one input makes the column one of strings for all tasks.
    write_csv(folder / "b.csv", [{**ROWS[0], "id": "x"}])
    options[3:] = ["id"]
    pack(folder, *options)
    plan(folder, *options, "--cells", "d")
    expect(b"meta-text id\n" in (folder / "p").read_bytes(), (folder / "p").read_bytes())
    run(folder, "pack", "--plan", "p")
    run(folder, "join", "p", "-o", "j", "-f")
    expect_equal(values(folder, "j"), values(folder), "columns")
    write_csv(folder / "b.csv", [{**ROWS[0], "id": "y"}])
    run(folder, "plan", "--update", "p")

    def refuse_update(*words):
        refused(folder, "--update", "p", words=words, command=lambda folder, *a, **k: run(folder, "plan", *a, **k))

    (folder / "b.csv").write_text("id,text\n1,x\n")
    refuse_update("b.csv: its columns are not those of a.csv")
    # A column of numbers in the plan stays one: its tasks cannot be told otherwise.
    write_csv(folder / "b.csv", ROWS[:3])
    plan(folder, "a.csv", "b.csv", "--meta", "id", "--cells", "e")
    write_csv(folder / "b.csv", [{**ROWS[0], "id": "y"}])
    refuse_update('b.csv: the column "id" has values that are not numbers, and was one of numbers when the plan was made; make a new plan')


def other_columns_do_not_resume(folder):
    corpus = pack_corpus.Packing(folder)
    write_csv(folder / "a.csv", ROWS * 100, header=False)
    options = ["a.csv", "--meta", "id", "--memory", "8M", "--columns"]
    corpus.leave_unfinished("o", *options, "id,a,b,c,text", journal_bytes=3000)
    said = run(folder, "pack", *options, "id,a,c,b,text", "-o", "o", code=OTHER_RUN)
    expect("--columns was id,a,b,c,text and is now id,a,c,b,text" in said, said)
    said = run(folder, "pack", *options, "id,a,b,c,text", "--meta-text", "id", "-o", "o", code=OTHER_RUN)
    expect("--meta-text" in said, said)
    expect("resuming after" in run(folder, "pack", *options, "id,a,b,c,text", "-o", "o"), "it did not go on")


# ---- Other commands ----


def columns_are_added_from_tables(folder):
    (folder / "t.txt").write_text("word word word word word\n" * 3)
    pack(folder, "--lines", "t.txt")
    (folder / "a.csv").write_text("score,zip,name,\n0.5,01,x\"\n".replace('"', ",") + "7,,y,\n,1,\"z, z\",\n")
    said = run(folder, "columns", "add", "o", "a.csv")
    expect("score: float64" in said and "zip: string" in said and "name: string" in said, said)
    expect('"name": "z, z"' in run(folder, "cat", "--meta", "--json", "o"), "values")
    said = run(folder, "columns", "add", "o", "a.csv", "-f", "--fields", "score", "--meta-text", "score")
    expect("score: string" in said, said)
    refused(folder, "columns", "add", "o", "a.csv", "-f", "--fields", "none", command=run, words=['a.csv: it has no column "none"'])
    refused(folder, "columns", "add", "o", "a.csv", "-f", "--fields", "score", "--meta-text", "zip", command=run, code=USAGE,
            words=["--meta-text zip: is neither the key nor a field that is read"])
    # A column has one type in all files.
    (folder / "1.csv").write_text("zip,big\n1,2\n2,3\n")
    (folder / "2.csv").write_text("zip,big\n03,4\n")
    said = run(folder, "columns", "add", "o", "1.csv", "2.csv", "-f")
    expect("zip: string" in said and "big: int64" in said, said)
    (folder / "2.csv").write_text("zip,big\n3,18446744073709551617\n")
    refused(folder, "columns", "add", "o", "1.csv", "2.csv", "-f", command=run,
            words=["2.csv:2: byte 8: the number in 'big' is neither", "; --meta-text big keeps them as strings"])
    (folder / "b.csv").write_text("score\n1\n2,3\n")
    refused(folder, "columns", "add", "o", "b.csv", "-f", command=run, words=["b.csv:3: byte 8: the row has 2 fields"])
    (folder / "c.csv").write_text("text,n\nword word word word word,1\n12345,2\n")
    said = run(folder, "scan", "o", "--against", "c.csv", "--fields", "text", "-n", "5", "--name", "found")
    expect("2 examples" in said and "3 documents with one, of 1 example" in said, said)


if __name__ == "__main__":
    sys.exit(run_in_folders(""))
