#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap pack --where: the documents that Python keeps, the counts of the report, the same bytes for any number of
threads and memory."""

import datetime
import decimal
import functools
import gzip
import io
import json
import math
import os
import pathlib
import random
import struct
import sys
import tarfile
import tempfile
from fractions import Fraction

import pack_corpus
import ref_fields
import ref_protocol
from ref_protocol import expect, expect_equal

LONG = os.environ.get("TOKMAP_LONG") == "all"
N_LINES = 10000
USAGE, BAD_INPUT, OTHER_RUN = 2, 3, 5
NAMES = ["score", "lang", "meta.n", "meta.x-y", "ok", "id", "missing", "text"]
EXPRESSIONS = [
    'score >= 3 and lang == "en"', "not score >= 3", "score != 3", "lang is null", "lang is not null and not lang < 'de'",
    "@row < 1000 or @row >= 29990", "meta.n > score", "score == 2.5 or ok == true or lang == 'größe'", "missing == 1 or @row == 7",
    "missing is null", 'lang in ("en", "de") and not score in (3, 2.5, 0)', "text is not null and text < 'c'", "id > 9007199254740992 and id < 9007199254740994.0",
    "(score < 2 or score > 4) and not (lang == 'en' or `meta.x-y` is null)",
]


def random_line(rng, i):
    what = rng.random()
    if what < 0.01:
        return rng.choice(['{"score": 3', "not JSON", '{"text": "x"} x'])
    if what < 0.02:
        return rng.choice(["", " \t"])
    words = ["word%d" % k for k in range(50)] + ["größe", "\n", "\U0001f600", '"', "\\"]
    document = {"id": 2**53 + i - 100, "text": " ".join(rng.choices(words, k=rng.choice((0, 1, 5, 30)))),
                "score": rng.choice((0, 1, 2, 2.5, 3, 4, 5, None, "3", [3])), "lang": rng.choice(("en", "de", "größe", None)),
                "meta": rng.choice(({"n": rng.randrange(6), "x-y": 1}, {"n": 2.25}, 7)), "ok": rng.choice((True, False))}
    for name in ("score", "lang", "meta", "ok", "text"):
        if rng.random() < (0.01 if name == "text" else 0.1):
            del document[name]
    if rng.random() < 0.01:
        document["text"] = None
    names = list(document)
    rng.shuffle(names)
    return json.dumps({name: document[name] for name in names}, ensure_ascii=rng.random() < 0.5)


class Corpus(pack_corpus.Packing):
    """Two files of lines; what Python keeps of them."""

    def __init__(self, folder):
        super().__init__(folder)
        rng = random.Random(12)
        self.files = {"a.jsonl": ["{\"text\": \"first\", \"score\": 3, \"missing\": null}"] + [random_line(rng, i) for i in range(N_LINES)],
                      "b.jsonl": ["{\"text\": \"first\"}"] + [random_line(rng, i) for i in range(N_LINES // 10)]}
        for name, lines in self.files.items():
            (folder / name).write_text("\n".join(lines) + "\n")
        if pack_corpus.has_zlib():
            self.files["c.gz"] = self.files["b.jsonl"]
            (folder / "c.gz").write_bytes(gzip.compress((folder / "b.jsonl").read_bytes()))

    @functools.cached_property
    def records(self):
        """The values of each line that is not blank, in order; None: not JSON."""
        def read(row, line):
            try:
                document = ref_fields.read_line(line.encode())
            except ValueError:
                return None
            return {"@row": row, "null": '"text": null' in line, **{name: ref_fields.field_value(document, name) for name in NAMES}}

        return [read(row, line) for lines in self.files.values() for row, line in enumerate(lines) if line.strip()]

    def expected(self, text):
        """The records of the documents that are kept, and the counts of the report."""
        tree, kept = ref_fields.parse(text), []
        counts = dict.fromkeys(("n_documents", "records", "filtered_documents", "bad_documents", "null_documents", "empty_documents"), 0)
        for values in self.records:
            counts["records"] += 1
            if values is not None and not ref_fields.holds(tree, values):
                counts["filtered_documents"] += 1
            elif values is not None and values["null"]:
                counts["null_documents"] += 1
            elif values is None or not isinstance(values["text"], bytes):
                counts["bad_documents"] += 1
            else:
                kept.append(values)
                counts["n_documents"] += 1
                counts["empty_documents"] += values["text"] == b""
        return kept, counts

    def command(self, out, text, *arguments, of=None):
        return [self.program, "pack", *(of or self.files), "-o", out, "--where", text, *arguments]


def tokens_of(texts):
    """The ids of --tokenizer bytes."""
    return b"".join(bytes(b for c in text for b in (c, 0)) + b"\x00\x01" for text in texts)


def it_keeps_what_python_keeps(corpus):
    for i, text in enumerate(EXPRESSIONS):
        kept, counts = corpus.expected(text)
        corpus.pack("o", text, "--on-error", "skip", "--report", "o.json", "-j", str(1 + i % 3))
        expect(corpus.outputs("o")[".bin"] == tokens_of(r["text"] for r in kept), "other tokens for " + text)
        report = json.loads((corpus.folder / "o.json").read_text())
        expect_equal({name: report[name] for name in counts}, counts, text)
        expect_equal(report["records"], sum(report[name] for name in (
            "n_documents", "bad_documents", "filtered_documents", "null_documents")), "records of " + text)
        expect_equal(report["options"]["where"], text, "the expression in the report")
        corpus.remove("o")
    return "%d expressions, %d records" % (len(EXPRESSIONS), len(corpus.records))


def same_bytes_for_threads_and_memory(corpus, *arguments):
    wanted = None
    for machine in (["-j", "1"], ["-j", "2", "--memory", "8M"], ["-j", "7"], ["-j", "7", "--memory", "300M"]):
        corpus.pack("o", EXPRESSIONS[0], "--on-error", "skip", "--split", "v=0.2", *machine, *arguments)
        got = corpus.outputs("o")
        corpus.remove("o")
        expect_equal(sorted(got), ["-v.bin", "-v.tmi", ".bin", ".tmi"], "files")
        expect(wanted in (None, got), "other bytes with %s" % machine)
        wanted = got


def threads_and_memory_make_no_difference(corpus):
    same_bytes_for_threads_and_memory(corpus)


def constants_of_python_are_numbers(corpus):
    """As its json reads and writes them, in lines that are short and in one that is long; not with --strict-json."""
    rows = [{"text": str(i), "x": x, "y": [x]} for i, x in enumerate((math.nan, math.inf, -math.inf, 1.5, None))]
    lines = [json.dumps(row) for row in rows]
    lines.append(json.dumps({"text": "5", "y": math.nan, "long": "x" * (3 << 20), "z": [-math.inf]}))
    (corpus.folder / "n.jsonl").write_text("\n".join(lines) + "\n")
    for text, kept in (("x > 1", "13"), ("x < 1", "2"), ("not x <= 1", "01345"), ("x is not null", "0123")):
        corpus.pack("o", text, "--memory", "64M", of=["n.jsonl"])
        expect(corpus.outputs("o")[".bin"] == tokens_of([one.encode() for one in kept]), "other documents for " + text)
        corpus.remove("o")
    ref_protocol.run_program("tokmap", "pack", corpus.folder / "n.jsonl", "--memory", "8M", "-o", corpus.folder / "all", check=True)
    expect((corpus.folder / "all.bin").read_bytes() == tokens_of(b"%d" % i for i in range(6)), "other documents")
    strict = ["--format", "jsonl", "--strict-json", "--on-error", "skip"]
    expect("left out" in corpus.pack("o", "@row >= 0", *strict, of=["n.jsonl"]), "no note")
    expect(corpus.outputs("o")[".bin"] == tokens_of([b"3", b"4"]), "other documents with --strict-json")
    corpus.remove("o")
    expect("not JSON" in corpus.pack("o", "@row >= 0", *strict[:3], of=["n.jsonl"], code=BAD_INPUT), "accepted")
    ref_protocol.run_program("tokmap", "plan", corpus.folder / "n.jsonl", *strict, "--cells", corpus.folder / "c", "-o",
                             corpus.folder / "n.plan", check=True)
    ref_protocol.run_program("tokmap", "pack", "--plan", corpus.folder / "n.plan", "-q", check=True)
    ref_protocol.run_program("tokmap", "join", corpus.folder / "n.plan", "-o", corpus.folder / "joined", check=True)
    ref_protocol.run_program("tokmap", "merge", corpus.folder / "joined", "-o", corpus.folder / "merged", check=True)
    expect((corpus.folder / "merged.bin").read_bytes() == tokens_of([b"3", b"4"]), "other documents of a plan")
    for constant in ("NaN", "-Infinity"):
        (corpus.folder / "n.jsonl").write_text('{"text": %s}\n' % constant)
        expect("the field is not a string" in corpus.pack("o", "@row >= 0", of=["n.jsonl"], code=BAD_INPUT), constant)


def another_expression_does_not_resume(corpus):
    corpus.leave_unfinished("o", EXPRESSIONS[1], "--on-error", "skip", "-j", "1", "--memory", "8M", journal_bytes=0)
    said = corpus.pack("o", EXPRESSIONS[2], "--on-error", "skip", "--memory", "8M", code=OTHER_RUN)
    expect("--where was not score >= 3 and is now score != 3" in said, said)


def wrong_expressions_are_refused_at_their_character(corpus):
    for text, character, reason in (
            ('score >= 3 an lang == "en"', 12, "expected `and`, `or` or the end"),
            ("größe = 1", 7, "unknown sign; equal is =="), (" ", 2, "expected a field, a number or a string"),
            ("score == 'x", 10, "a string without its closing '")):
        said = corpus.pack("o", text, code=USAGE)
        expect("tokmap pack: --where: character %d: %s\n" % (character, reason) in said, said)
    expect_equal(corpus.outputs("o"), {}, "files")


def text_has_no_fields_but_its_row(corpus):
    (corpus.folder / "t.txt").write_text("a\nb\n\nc\n")
    for text, texts in (("@row == 1", [b"b"]), ("@row != 1", [b"a", b"", b"c"]), ("not @row < 3", [b"c"])):
        corpus.pack("o", text, "--lines", of=["t.txt"])
        expect(corpus.outputs("o")[".bin"] == tokens_of(texts), "other tokens for " + text)
        corpus.remove("o")
    for arguments in (["--lines"], ["--format", "text"]):
        said = corpus.pack("o", "@row > 0 or score > 3", *arguments, of=["t.txt"], code=BAD_INPUT)
        expect("t.txt" in said and "score" in said, said)


def misspelt_fields_and_types_that_never_meet_are_noted(corpus):
    lines = [{"text": "t%d" % i, "language": "en", "url": "http", "meta": {"score": i}, "tags": [1],
              "mixed": [i] if i % 7 else i} for i in range(300)]
    (corpus.folder / "m.jl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for text, meta, code, *notes in (
            ('langauge == "en"', "lang", BAD_INPUT, "no record of 300 has the field langauge; the nearest one is language",
             "no record of 300 has the field lang; the nearest one is language"),
            ("url > 0.9", "url", BAD_INPUT, "--where: character 1: compares a string with a number in every record"),
            ("meta.scroe > 3 or @row < 2", "meta.score", 0, "no record of 300 has the field meta.scroe; the nearest one is meta.score"),
            ('meta == "u"', "tags", BAD_INPUT, "the field meta is an object or a list wherever a record of 300 has it",
             "the field tags is an object or a list wherever a record of 300 has it"),
            ("@row < 2", "mixed", 0, "the field mixed is an object or a list in some records of 300 and counts as missing there"),
            ("meta.score > 300", "url", BAD_INPUT), ("meta.score > 298 or url is null", "url,@row", 0)):
        for dry in ([], ["--dry-run"]):
            said = corpus.pack("o", text, "--format", "jsonl", "--meta", meta, *dry, code=code, of=["m.jl"])
            for note in notes:
                expect("m.jl: " + note in said, "%s: %s" % (text, said))
            expect_equal(said.count("m.jl: "), len(notes), "notes for %s: %s" % (text, said))
            expect(("--where kept no document of 300" in said) == (code != 0), said)
            expect_equal(".tmi" in corpus.outputs("o"), not dry and code == 0, "a dataset for " + text)
            corpus.remove("o")


def a_cell_may_be_without_a_document_but_not_all(corpus):
    def run(*words, code=0):
        return ref_protocol.tokmap(corpus.folder, *words, code=code)

    for i in range(3):
        (corpus.folder / ("p%d.jl" % i)).write_text(json.dumps({"text": "x", "n": i}) + "\n")
    for n, code in ((1, 0), (7, BAD_INPUT)):
        run("plan", "p0.jl", "p1.jl", "p2.jl", "--format", "jsonl", "--where", "n == %d" % n, "--cell-size", "1", "--cells", "c%d" % n,
            "-o", "r%d.plan" % n)
        run("pack", "--plan", "r%d.plan" % n)
        said = run("join", "r%d.plan" % n, "-o", "o", "--force", code=code)
        expect(("--where kept no document of 3 in all cells" in said) == (code != 0), said)


def a_long_line_is_read_with_its_fields(corpus):
    line = json.dumps({"text": "word " * 500000, "score": 3})
    (corpus.folder / "long.jsonl").write_text('{"text": "a", "score": 3}\n%s\n{"text": "b", "score": 3}\n' % line)

    def pack(*arguments, code=0):
        said = corpus.pack("o", "score == 3", *arguments, of=["long.jsonl"], code=code)
        size = len(corpus.outputs("o").get(".bin", b""))
        corpus.remove("o")
        return said, size

    expect_equal(pack("--memory", "8M")[1], 8 + 2 * 2500001, "bytes of tokens")
    said, _ = pack("--max-document", "1M", code=BAD_INPUT)
    expect("long.jsonl:2: byte 26: longer than --max-document allows" in said, said)
    expect_equal(pack("--max-document", "1M", "--on-error", "skip")[1], 8, "bytes of tokens")


def a_long_record_is_left_out_by_its_number(corpus):
    """Without a bad document, and without reading its fields; not if another field is asked first."""
    texts = ["a", "word " * 500000, "b"]
    lines = [json.dumps({"text": text, "score": 3}) for text in texts]
    (corpus.folder / "numbered.jsonl").write_text("\n".join(lines) + "\n")
    (corpus.folder / "numbered.txt").write_text("\n".join(texts) + "\n")
    with tarfile.open(corpus.folder / "numbered.tar", "w") as archive:
        for text in texts:
            member = tarfile.TarInfo(text[:1] + ".txt")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    for name, *format_of in (("numbered.jsonl",), ("numbered.txt", "--lines"), ("numbered.txt", "--separator", "\n"),
                             ("numbered.tar",)):
        for reads_on in ((), ("--on-error", "skip")):
            said = corpus.pack("o", "@row != 1", "--max-document", "1M", *format_of, *reads_on, of=[name])
            expect("long" not in said and "max-document" not in said, said)
            expect_equal(len(corpus.outputs("o")[".bin"]), 8, f"bytes of tokens of {name}")
            corpus.remove("o")
    for text, code in (("@row < 1 and score == 3", 0), ("not @row >= 1 or @row > 1", 0),
                       ("score == 3 and @row != 1", BAD_INPUT), ("@row >= 1", BAD_INPUT)):
        corpus.pack("o", text, "--max-document", "1M", of=["numbered.jsonl"], code=code)
        corpus.remove("o")


def make_columns(folder, records):
    """Files with the records as columns, and the records as they are in them."""
    pyarrow, _ = ref_protocol.need_parquet()
    records = [dict(record) for record in records if record]
    for row, record in enumerate(records):
        record["@row"] = row
        for name in ("text", "lang"):
            record[name] = record[name].decode() if record[name] is not None else None
        for name in ("score", "meta.n", "meta.x-y"):
            record[name] = float(record[name]) if isinstance(record[name], (int, float)) else None
        record["ok"] = None if record["ok"] is None else bool(record["ok"])
    columns = {name: [record[name] for record in records] for name in ("text", "id", "score", "lang", "ok")}
    columns["missing"] = pyarrow.array([None] * len(records), pyarrow.int32())
    columns["meta"] = [{"n": record["meta.n"], "x-y": record["meta.x-y"]} for record in records]
    table = pyarrow.table(columns)
    pyarrow.parquet.write_table(table, folder / "c.parquet", row_group_size=7000, data_page_size=4096,
                                compression="zstd" if pack_corpus.has_zstd() else "none")
    with pyarrow.ipc.new_stream(str(folder / "c.arrows"), table.schema) as out:
        out.write_table(table, max_chunksize=5000)
    for record in records:
        for name in ("text", "lang"):
            record[name] = record[name].encode() if record[name] is not None else None
    return ["c.parquet", "c.arrows"], records


def columns_have_the_documents_that_python_keeps(corpus):
    names, records = make_columns(corpus.folder, corpus.records)
    for i, text in enumerate(EXPRESSIONS):
        tree = ref_fields.parse(text)
        wanted = [record for record in records if ref_fields.holds(tree, record)]
        texts = [record["text"] for record in wanted if record["text"] is not None]
        counts = {"n_documents": len(texts), "records": len(records), "null_documents": len(wanted) - len(texts),
                  "filtered_documents": len(records) - len(wanted), "bad_documents": 0}
        for name in names:
            corpus.remove("o")
            corpus.pack("o", text, "--report", "o.json", "-j", str(1 + i % 3), of=[name])
            expect(corpus.outputs("o")[".bin"] == tokens_of(texts), "%s: other tokens for %s" % (name, text))
            report = json.loads((corpus.folder / "o.json").read_text())
            expect_equal({name: report[name] for name in counts}, counts, "%s: %s" % (name, text))
    return "%d records" % len(records)


def columns_of_numbers_are_compared_exactly(corpus):
    pyarrow, _ = ref_protocol.need_parquet()
    rng = random.Random(7)
    reals = [0.1, -0.0, 1.1, 5e-324, 1e23, 2.0**53, 2.0**63, 2.0**64, 1.7976931348623157e308, math.inf, -math.inf, math.nan, None]
    whole = [k + d for k in (0, 2**24, 2**31, 2**53, 2**63) for d in (-2, -1, 0, 1)] + [2**64 - 1, 2**64 - 1024, 255, None]
    types = {"i": pyarrow.int64(), "u": pyarrow.uint64(), "w": pyarrow.uint32(), "f": pyarrow.float32(), "d": pyarrow.float64()}
    limits = {"i": (-(2**63), 2**63), "u": (0, 2**64), "w": (0, 2**32)}
    records = []
    for row in range(200):
        record = {name: rng.choice([v for v in whole if v is None or low <= v < high] + [low, high - 1])
                  for name, (low, high) in limits.items()}
        real = rng.choice(reals)
        single = None if real is None else math.inf if 1e308 < real < math.inf else struct.unpack("<f", struct.pack("<f", real))[0]
        records.append({**record, "f": single, "d": real})
    table = pyarrow.table({"text": [str(i) for i in range(len(records))],
                           **{name: pyarrow.array([r[name] for r in records], of) for name, of in types.items()}})
    pyarrow.parquet.write_table(table, corpus.folder / "n.parquet", row_group_size=77, compression="none")
    with pyarrow.ipc.new_file(str(corpus.folder / "n.arrow"), table.schema) as out:
        out.write_table(table, max_chunksize=33)
    seen = [{name: ref_fields.Written(str(v)) if name == "u" and v is not None and v >= 2**63 else v for name, v in r.items()}
            for r in records]
    literals = [repr(v) for v in reals[:-4] + whole[:-1]] + [
        "9007199254740993.0", "9007199254740992.5", "16777217", "1e400", "-1e400", "0.10000000149011612", "1e23", "1" + "0" * 23,
        "18446744073709551615.0", "18446744073709551615.1", "18446744073709551616", "-9223372036854775809", "1e-400", "0.1000"]
    n_kept = 0
    for i in range(2000 if LONG else 17):
        sides = [rng.choice(sorted(types)), rng.choice(literals) if rng.random() < 0.8 else rng.choice(sorted(types))]
        text = rng.choice(("==", "!=", "<", "<=", ">", ">=")).join(rng.sample(sides, 2))
        tree = ref_fields.parse(text)
        wanted = [str(row).encode() for row, record in enumerate(seen) if ref_fields.holds(tree, record)]
        corpus.pack("o", text, of=["n.arrow" if i % 2 else "n.parquet"], code=0 if wanted else None)
        expect(not wanted or corpus.outputs("o")[".bin"] == tokens_of(wanted), "other documents for " + text)
        n_kept += len(wanted)
        corpus.remove("o")
    return "%d documents" % n_kept


DECIMALS = {"a": (9, 2), "b": (18, 0), "c": (38, 0), "d": (38, 20), "e": (76, 40), "f": (5, 5), "g": (30, 3)}
UNITS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}  # nanoseconds


def decimal_types(pyarrow):
    return {name: (pyarrow.decimal128 if digits <= 38 else pyarrow.decimal256)(digits, scale)
            for name, (digits, scale) in DECIMALS.items()}


def random_decimal(rng, digits, scale):
    """As an integer, which is divided by 10^scale: many are equal or neighbours, or near the limits."""
    most = 10**digits - 1
    base = rng.choice((0, 10**scale, 2**31, 2**53, 2**63, 2**64, 10**17, 10**22, most, rng.randrange(most)))
    return rng.choice((1, -1)) * min(base + rng.choice((0, 0, 1, -1)), most)


def write_columns(corpus, columns, name, options):
    """A file of Parquet or Arrow with these columns and the texts "0", "1" ..."""
    import pyarrow.parquet
    n = len(next(iter(columns.values())))
    table = pyarrow.table({"text": [str(i) for i in range(n)], **columns})
    if name.endswith(".parquet"):
        pyarrow.parquet.write_table(table, corpus.folder / name, row_group_size=77, **options)
    else:
        with pyarrow.ipc.new_file(str(corpus.folder / name), table.schema) as out:
            out.write_table(table, max_chunksize=33)


OPTIONS = {"dictionary.parquet": {}, "plain.parquet": {"use_dictionary": False}, "integers.parquet": {"store_decimal_as_integer": True},
           "prefixes.parquet": {"use_dictionary": False, "column_encoding": dict.fromkeys(DECIMALS, "DELTA_BYTE_ARRAY")},
           "split.parquet": {"use_dictionary": False, "use_byte_stream_split": list(DECIMALS)}, "batches.arrow": {}}
OPERATORS = {"==": lambda c: c == 0, "!=": lambda c: c != 0, "<": lambda c: c < 0, "<=": lambda c: c <= 0, ">": lambda c: c > 0,
             ">=": lambda c: c >= 0}


def check_kept(corpus, name, text, kept):
    corpus.pack("o", text, of=[name], code=0 if any(kept) else None)
    wanted = [str(row).encode() for row, keeps in enumerate(kept) if keeps]
    expect(not wanted or corpus.outputs("o")[".bin"] == tokens_of(wanted), "%s: other documents for %s" % (name, text))
    corpus.remove("o")
    return len(wanted)


def decimals_are_compared_exactly(corpus):
    pyarrow, _ = ref_protocol.need_parquet()
    rng, n_kept = random.Random(17), 0
    values = {name: [None if rng.random() < 0.1 else random_decimal(rng, *shape) for _ in range(200)] for name, shape in DECIMALS.items()}
    exact = {name: [None if v is None else Fraction(v, 10 ** DECIMALS[name][1]) for v in some] for name, some in values.items()}
    context = decimal.Context(prec=100)
    columns = {name: pyarrow.array([None if v is None else context.scaleb(decimal.Decimal(v), -DECIMALS[name][1]) for v in some],
                                   decimal_types(pyarrow)[name]) for name, some in values.items()}
    for name, options in OPTIONS.items():
        write_columns(corpus, columns, name, options)
    for i in range(2000 if LONG else 20):
        left, right = rng.choice(sorted(DECIMALS)), rng.choice(sorted(DECIMALS))
        sign = rng.choice(sorted(OPERATORS))
        other, word = exact[right], right
        if rng.random() < 0.7:
            digits, scale = DECIMALS[right]
            number = rng.choice([v for v in values[left] + values[right] if v is not None])
            other = [Fraction(number, 10**scale)] * 200
            word = rng.choice(("%de-%d" % (number, scale), format(decimal.Context(prec=100).scaleb(decimal.Decimal(number), -scale), "f")))
        kept = [a is not None and b is not None and OPERATORS[sign]((a > b) - (a < b)) for a, b in zip(exact[left], other)]
        n_kept += check_kept(corpus, rng.choice(sorted(OPTIONS)), "%s %s %s" % (left, sign, word), kept)
    return "%d documents" % n_kept


def random_moment(rng):
    """Nanoseconds since 1970, at all units; text that says so."""
    day = rng.choice((0, 1, 59, 10957, 20782, -1, -25567, rng.randrange(-90000, 90000)))
    of_day = rng.choice((0, 0, 1, 10**9, 86399 * 10**9, 86400 * 10**9 - 1, rng.randrange(86400 * 10**9)))
    of_day -= of_day % rng.choice((1, 1000, 10**6, 10**9, 60 * 10**9, 86400 * 10**9))
    return day * 86400 * 10**9 + of_day


def moment_text(rng, moment):
    zone = rng.choice(("", "", "Z", "+00:00", "+02:00", "-0830", "+14", "-11:59"))
    minutes = {"+02:00": 120, "-0830": -510, "+14": 840, "-11:59": -719}.get(zone, 0)
    local = moment + minutes * 60 * 10**9
    date = datetime.date(1970, 1, 1) + datetime.timedelta(days=local // (86400 * 10**9))
    seconds, fraction = divmod(local % (86400 * 10**9), 10**9)
    if not zone and not seconds and not fraction and rng.random() < 0.7:
        return date.isoformat()
    text = "%s%s%02d:%02d" % (date.isoformat(), rng.choice("T "), seconds // 3600, seconds // 60 % 60)
    if seconds % 60 or fraction or rng.random() < 0.5:
        text += ":%02d" % (seconds % 60)
        digits = ("%09d" % fraction).rstrip("0")
        text += "." + digits.ljust(rng.randrange(len(digits), 10), "0") if digits else ""
    return text + zone


def times_are_compared_with_texts(corpus):
    pyarrow, _ = ref_protocol.need_parquet()
    rng, n_kept = random.Random(18), 0
    moments = [None if rng.random() < 0.1 else random_moment(rng) for _ in range(200)]
    units = {**{"t_" + unit: factor for unit, factor in UNITS.items()}, "z_ms": 10**6, "day": 86400 * 10**9}
    types = {"day": pyarrow.date32(), "z_ms": pyarrow.timestamp("ms", "America/New_York"),
             **{"t_" + unit: pyarrow.timestamp(unit) for unit in UNITS}}
    numbers = {name: [None if m is None else m // factor for m in moments] for name, factor in units.items()}
    columns = {name: pyarrow.array(some, pyarrow.int32() if name == "day" else pyarrow.int64()).cast(types[name])
               for name, some in numbers.items()}
    columns["words"] = pyarrow.array([None if m is None else moment_text(rng, m) if i % 5 else "soon" for i, m in enumerate(moments)])
    write_columns(corpus, columns, "times.parquet", {})
    write_columns(corpus, {**columns, "day": columns["day"].cast(pyarrow.date64())}, "times.arrow", {})
    known = [m for m in moments if m is not None]
    for i in range(1500 if LONG else 17):
        left, right, sign = rng.choice(sorted(types)), rng.choice(sorted(types)), rng.choice(sorted(OPERATORS))
        of_left, of_right = ([None if v is None else v * units[name] for v in numbers[name]] for name in (left, right))
        word, what = right, rng.random()
        if what < 0.7:
            moment = rng.choice(known + [m // 10**9 * 10**9 for m in known]) + rng.choice((0, 0, 0, 1, -1))
            of_right, word = [moment] * 200, "'%s'" % moment_text(rng, moment)
        elif what < 0.8 and left != "t_s":  # which Parquet stores as milliseconds
            number = rng.choice([v for v in numbers[left] if v is not None])
            of_left, of_right, word = numbers[left], [number] * 200, str(number)
        elif what < 0.9:
            of_right, word = [m if i % 5 else None for i, m in enumerate(moments)], "words"
        kept = [a is not None and b is not None and OPERATORS[sign]((a > b) - (a < b)) for a, b in zip(of_left, of_right)]
        n_kept += check_kept(corpus, "times.arrow" if i % 2 else "times.parquet", "%s %s %s" % (left, sign, word), kept)
    for name in ("times.parquet", "times.arrow"):
        got = corpus.pack("o", "@row > 3 and t_us < 'soon'", of=[name], code=BAD_INPUT)
        expect("character 14: compares a date or time with a string that is not one; write it as 2026-11-25" in got, got)
    return "%d documents" % n_kept


def databases_keep_the_same_decimals_and_times(corpus):
    pyarrow, _ = ref_protocol.need_parquet()
    duckdb, rng = ref_protocol.need("duckdb"), random.Random(19)
    columns = {"d": pyarrow.array([decimal.Decimal(rng.randrange(-500, 500)).scaleb(-2) for _ in range(200)], pyarrow.decimal128(20, 2)),
               "t": pyarrow.array([rng.randrange(10**15) for _ in range(200)]).cast(pyarrow.timestamp("us")),
               "day": pyarrow.array([rng.randrange(20000) for _ in range(200)], pyarrow.int32()).cast(pyarrow.date32())}
    write_columns(corpus, columns, "x.parquet", {})
    database, n_kept = duckdb.connect(), 0
    for theirs, ours in (("d >= 1.25", "d >= 1.25"), ("d = -0.10", "d == -0.1"), ("d < 0.005", "d < 0.005"), ("d in (1, 2.50)", "d in (1, 2.50)"),
                         ("t < TIMESTAMP '1990-05-17 03:04:05.5'", "t < '1990-05-17T03:04:05.5Z'"),
                         ("t >= TIMESTAMP '1985-01-01'", "t >= '1985-01-01'"), ("day > DATE '1999-12-31'", "day > '1999-12-31'"),
                         ("day <> DATE '1980-02-29' AND t < day", "day != '1980-02-29' and t < day")):
        rows = {int(text) for text, in database.execute("SELECT text FROM '%s' WHERE %s" % (corpus.folder / "x.parquet", theirs)).fetchall()}
        n_kept += check_kept(corpus, "x.parquet", ours, [row in rows for row in range(200)])
    return "%d documents" % n_kept


def kept_decimals_are_whole_or_the_nearest_double(corpus):
    pyarrow, _ = ref_protocol.need_parquet()
    whole = [None if i % 7 == 3 else (-1) ** i * (2**63 - 1 - i) for i in range(50)]
    parts = [None if i % 5 == 2 else decimal.Decimal((-1) ** i * (10**25 // 7 + i)).scaleb(-3) for i in range(50)]
    columns = {"whole": pyarrow.array(whole, pyarrow.decimal128(38, 0)), "part": pyarrow.array(parts, pyarrow.decimal128(38, 3))}
    for name in ("x.parquet", "x.arrow"):
        write_columns(corpus, columns, name, {})
        said = corpus.pack("o", "@row >= 0", "--meta", "whole,part", of=[name])
        expect_equal(said.count("%s: --meta: the field part has decimals; the nearest float64 of each is kept" % name), 1, said)
        expect("the field whole" not in said, said)
        lines = ref_protocol.call("tokmap", "cat", "--meta", "--json", str(corpus.folder / "o"))[1].split(b"\n")[:-1]
        got = [json.loads(line)["meta"] for line in lines]
        expect_equal([row["whole"] for row in got], whole, "%s: whole numbers" % name)
        expect_equal([row["part"] for row in got], [None if v is None else float(v) for v in parts], "%s: doubles" % name)
        corpus.remove("o")
        columns_of_more = {"n": pyarrow.array([2**63 + 1], pyarrow.decimal128(38, 0))}
        write_columns(corpus, columns_of_more, "more" + name[1:], {})
        said = corpus.pack("o", "@row >= 0", "--meta", "n", of=["more" + name[1:]], code=BAD_INPUT)
        expect("the number in field n is neither a signed integer" in said, said)


def columns_of_another_type_are_refused_at_their_character(corpus):
    numbers = pathlib.Path(__file__).resolve().parents[1] / "formats/parquet/numbers_plain.parquet"
    for text, said in (("score > 0 or 'x' == score", "character 14: compares a string with a number"),
                       ("meta.name < @row", "character 1: compares a string with a number")):
        got = corpus.pack("o", text, "--field", "meta.name", of=[numbers], code=BAD_INPUT)
        expect("numbers_plain.parquet: --where: " + said in got, got)
    expect_equal(corpus.outputs("o"), {}, "files")


def main():
    """Runs the tests of the script."""
    with tempfile.TemporaryDirectory() as name:
        corpus = Corpus(pathlib.Path(name))

        def run(test):
            corpus.remove("o")
            return test(corpus)

        return ref_protocol.run_tests([(test.__name__, functools.partial(run, test))
                                       for test in ref_protocol.tests_of_script(parameter="corpus")])


if __name__ == "__main__":
    sys.exit(main())
