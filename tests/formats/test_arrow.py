#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arrow files of pyarrow and Polars: tokmap pack writes the dataset of the same texts as JSON lines. The files in
tests/fuzz/corpus/arrow are read without the packages that wrote them."""

import decimal
import gzip
import io
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import arrow_writers
from packed import compare, dataset_of, pack, refused
from ref_protocol import Skip, call, expect, expect_equal, need, reads, run_in_folders

SEEDS = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "arrow"
TEXTS = {"nested": arrow_writers.nested_texts(), "no_rows": [], "small_batches": arrow_writers.texts_of(12)}
FIELDS = {"nested": "s.text"}


def require_codecs():
    if not (reads("zlib") and reads("zstd")):
        raise Skip("this build lacks a library that decompresses")


def seed(name):
    return (SEEDS / name).read_bytes()[4:]


def seeds_have_their_texts(folder):
    require_codecs()
    names = sorted(path.name for path in SEEDS.iterdir() if not path.name.startswith("found"))
    expect(len(names) >= 12, "seeds are missing")
    for name in names:
        texts = TEXTS.get(name, arrow_writers.texts_of())
        compare(folder, name, seed(name), texts, "--field", FIELDS.get(name, "text"))


def files_of_the_real_writers_have_their_texts(folder):
    for name, make, field, texts, _ in writers():
        compare(folder, name, make(), texts, "--field", field)


def writers():
    require_codecs()
    need("pyarrow"), need("polars")
    return arrow_writers.cases()


def the_same_on_stdin_and_compressed(folder):
    require_codecs()
    wanted = dataset_of(folder, arrow_writers.texts_of())
    for name in ("stream", "file_zstd", "views"):
        code, message, got = pack(folder, "-", data=seed(name))
        expect_equal((code, got), (0, wanted), "%s on stdin: %s" % (name, message))
        compressed = {"gz": gzip.compress(seed(name))}
        if shutil.which("zstd"):
            compressed["zst"] = subprocess.run(["zstd", "-c"], input=seed(name), capture_output=True).stdout
        for suffix, data in compressed.items():
            (folder / "in").write_bytes(data)
            code, message, got = pack(folder, folder / "in", "-j", "3")
            expect_equal((code, got), (0, wanted), "%s.%s: %s" % (name, suffix, message))


def fields_decide_which_rows_are_packed(folder):
    require_codecs()
    rows = arrow_writers.columns()
    rows = [{k: v[i] for k, v in rows.items()} for i in range(len(rows["id"]))]
    for where, keeps in (
        ("id >= 10 and id != 12", lambda r: r["id"] >= 10 and r["id"] != 12),
        ("score > 2.5", lambda r: r["score"] is not None and r["score"] > 2.5),
        ("flag == true or name == 'name 3'", lambda r: r["flag"] or r["name"] == "name 3"),
        ("name is null", lambda r: r["name"] is None),
        ("text != ''", lambda r: bool(r["text"])),
        ("@row < 20", lambda r: r["id"] < 20),
    ):
        kept = [r for r in rows if keeps(r)]
        wanted = dataset_of(folder, [r["text"] for r in kept])
        for name in ("stream", "file", "stream_zstd", "views", "polars_file", "dictionary"):
            (folder / "in").write_bytes(seed(name))
            code, message, got = pack(folder, folder / "in", "--where", where)
            expect_equal((code, got), (0, wanted), "%s --where %s: %s" % (name, where, message))


def values_of_all_types_are_those_of_pyarrow(folder):
    pa = need("pyarrow")
    numbers = [None if i % 4 == 1 else i for i in range(20)]
    small = [pa.array(numbers, t) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(),
                                            pa.uint32(), pa.uint64(), pa.float32(), pa.float64())]
    times = [pa.array(numbers, pa.int64()).cast(t) for t in (pa.timestamp("ns"), pa.timestamp("s", "UTC"), pa.time64("us"),
                                                             pa.duration("ms"))]
    times += [pa.array(numbers, pa.int32()).cast(t) for t in (pa.date32(), pa.time32("s"))]
    words = pa.array([None if n is None else "w\u00f6rd %d" % (n % 3) for n in numbers])
    strings = [words.cast(t) for t in (pa.large_string(), pa.string_view(), pa.binary())] + [words.dictionary_encode()]
    others = [pa.array([None if n is None else n % 2 == 0 for n in numbers]), pa.nulls(20),
              pa.array([-2**63, 2**63 - 1] * 10), pa.array([0.1, -1e300] * 10), pa.array([n for n in numbers]).dictionary_encode()]
    data = {"c%d" % i: c for i, c in enumerate(small + times + strings + others)}
    table = pa.table({"text": [str(i) for i in range(20)], **data})
    wanted = []
    for i in range(20):
        row = {}
        for name, column in data.items():
            value = column[i].cast(pa.int64()).as_py() if column in times[:4] else column[i].as_py()
            if column in times[4:]:
                value = column[i].cast(pa.int32()).as_py()
            row[name] = value.decode() if isinstance(value, bytes) else int(value) if isinstance(value, bool) else value
        row["@row"] = i
        wanted.append(row)
    for options in ({}, {"file": True, "compression": "zstd"}):
        (folder / "in").write_bytes(arrow_writers.write(table, chunk=7, **options))
        code, message, _ = pack(folder, folder / "in", "--meta", ",".join(data) + ",@row")
        expect_equal((code, message), (0, ""), "pack --meta")
        lines = call("tokmap", "cat", "--meta", "--json", str(folder / "out"))[1].split(b"\n")[:-1]
        got = [json.loads(line)["meta"] for line in lines]
        for i, row in enumerate(wanted):
            expect_equal({k: got[i].get(k) for k in row}, row, "row %d" % i)
    large = pa.table({"text": ["a", "b"], "n": pa.array([1, 2**63 + 1], pa.uint64())})
    refused(folder, arrow_writers.write(large), "record batch 0, row 1", "the number in field n is neither",
            options=["--meta", "n"])


def as_many_fields_as_there_may_be_are_read_beside_the_text(folder):
    """Each column has a dictionary of its own."""
    pa = need("pyarrow")
    names = ["f%d" % i for i in range(64)]
    table = pa.table({name: pa.array(["%s of row %d" % (name, row) for row in range(2)]).dictionary_encode()
                      for name in ["text", *names]})
    compare(folder, "the texts", arrow_writers.write(table), ["text of row 0", "text of row 1"])
    code, message, _ = pack(folder, folder / "in", "--meta", ",".join(names))
    expect_equal(code, 0, message)
    lines = call("tokmap", "cat", "--meta", "--json", str(folder / "out"))[1].splitlines()
    expect_equal([json.loads(line)["meta"] for line in lines],
                 [{name: "%s of row %d" % (name, row) for name in names} for row in range(2)], "values")


def decimals_are_the_nearest_doubles(folder):
    pa = need("pyarrow")
    numbers = [decimal.Decimal("1.25"), None, decimal.Decimal("-30000000.01"), decimal.Decimal(0)]
    kinds = {"d128": pa.decimal128(20, 2), "d256": pa.decimal256(60, 2)}
    table = pa.table({"text": list("abcd"), **{name: pa.array(numbers, kind) for name, kind in kinds.items()}})
    (folder / "in").write_bytes(arrow_writers.write(table))
    code, message, _ = pack(folder, folder / "in", "--meta", ",".join(kinds))
    expect_equal((code, message.count("the nearest float64 of each is kept")), (0, 2), message)
    lines = call("tokmap", "cat", "--meta", "--json", str(folder / "out"))[1].splitlines()
    wanted = [None if number is None else float(number) for number in numbers]
    expect_equal([json.loads(line)["meta"] for line in lines], [dict.fromkeys(kinds, value) for value in wanted], "values")


def columns_of_a_struct_share_its_nulls(folder):
    """And the memory of their bits."""
    pa = need("pyarrow")
    rows = [None if i % 3 == 1 else {"text": "text %d" % i, "n": i} for i in range(40)]
    (folder / "in").write_bytes(arrow_writers.write(pa.table({"s": rows})))
    code, message, _ = pack(folder, folder / "in", "--field", "s.text", "--meta", "s.n", "--where", "s.n >= 0 or s.n is null")
    expect_equal(code, 0, message)
    expect("13 records without" in message, message)
    lines = call("tokmap", "cat", "--meta", "--json", str(folder / "out"))[1].splitlines()
    expect_equal([json.loads(line)["meta"]["s.n"] for line in lines], [row["n"] for row in rows if row], "values")


def columns_without_a_value_are_null_texts(folder):
    pa, polars = need("pyarrow"), need("polars")
    nulls = {"a string": pa.nulls(9, pa.string()), "nothing": pa.nulls(9), "a dictionary": pa.nulls(9, pa.dictionary(pa.int8(), pa.string())),
             "a dictionary of nothing": pa.DictionaryArray.from_arrays(pa.nulls(9, pa.int8()), pa.nulls(0))}
    data = {what: arrow_writers.write(pa.table({"text": column}), file=file) for what, column in nulls.items() for file in (False, True)}
    empty = polars.DataFrame({"text": polars.Series([None] * 9, dtype=polars.Categorical)})
    empty.write_ipc(str(folder / "f.arrow"))
    empty.write_ipc_stream(str(folder / "s.arrow"))
    data.update({name: (folder / name).read_bytes() for name in ("f.arrow", "s.arrow")})
    for what, some in data.items():
        (folder / "in").write_bytes(some)
        code, said, _ = pack(folder, folder / "in", "--where", 'text is null or text == "x"', "--meta", "text")
        expect_equal(code, 0, "%s: %s" % (what, said))
        expect("9 records without a text left out" in said, "%s: %s" % (what, said))


def columns_that_cannot_be_read_are_named(folder):
    data = seed("stream")
    refused(folder, data, 'no column "body"', "id (int64), score (double), flag (bool), name (string), tags (list), "
            "text (string)", "--field", options=["--field", "body"])
    refused(folder, data, '"tags" is of type list', options=["--field", "tags"])
    refused(folder, data, '"id" is of type int64', options=["--field", "id"])
    refused(folder, data, 'no column "level"', options=["--where", "level > 1"])
    refused(folder, data, '"tags" is of type list', options=["--where", "tags == 1"])
    refused(folder, seed("nested"), 'no column "text"', "s.text (string)")


def bad_texts_have_their_place(folder):
    data = seed("stream").replace(b"Row 20 \xc3\xa4", b"Row 20 \xff\xff")
    refused(folder, data, "in: record batch 1, row 4: byte 7 of the text", options=["--utf8", "error"])
    (folder / "in").write_bytes(data)
    report = folder / "report"
    code, message, _ = pack(folder, folder / "in", "--utf8", "error", "--on-error", "skip", "--report", report)
    expect_equal(code, 0, message)
    found = [(bad["row"], bad["reason"]) for bad in json.loads(report.read_text())["skipped"]]
    expect_equal(found, [(20, "the document is not valid UTF-8 at its byte 7")], "the report")


def long_texts_are_packed_or_left_out(folder):
    """Also texts that are not in memory, because their record batch is larger than that."""
    pa = need("pyarrow")
    bad, long = b"x" * 3000000 + b"\xff" + b"y" * 3000000, "z" * 3000000
    for text_type, compression in ((pa.binary(), None), (pa.binary(), "zstd"), (pa.binary_view(), "zstd")):
        data = arrow_writers.write(pa.table({"text": pa.array([b"a", bad, long.encode(), b"b"], text_type)}), compression=compression)
        options = ["-j", "8", "--memory", "8M", "--on-error", "skip"]
        compare(folder, "bad", data, ["a", long, "b"], *options, "--utf8", "error")
        compare(folder, "long", data, ["a", long, "b"], *options, "--max-document", "4M")
        message = compare(folder, "longer", data, ["a", "b"], *options, "--max-document", "2M")
        expect(message.count("longer than --max-document allows") == 2, message)


def damaged_and_foreign_files_are_refused(folder):
    stream, file = seed("stream"), seed("file")
    refused(folder, file[:-1], "footer")
    refused(folder, file[:-20], "footer")
    refused(folder, file + b"x", "footer")
    refused(folder, stream[:-3], "truncated")
    refused(folder, stream[:3000], "truncated", "record batch")
    third = [found.start() for found in re.finditer(b"\xff{4}", stream)][2]
    refused(folder, stream[:third + 2], "in: byte %d: the input ends before a message" % (third + 2))
    refused(folder, stream + b"x", "data after the end of the stream")
    refused(folder, stream + stream, "data after the end of the stream")
    refused(folder, b"ARROW1\0\0" + struct.pack("<I", 100) + bytes(200), "Arrow before 0.15")
    refused(folder, b"\xff\xff\xff\xff" + struct.pack("<I", 0x7FFFFFF8) + bytes(200), "metadata")
    expect_equal(stream[-8:], b"\xff\xff\xff\xff\0\0\0\0", "the end of the stream")
    (folder / "in").write_bytes(stream[:-8])
    expect_equal(pack(folder, folder / "in")[2], dataset_of(folder, arrow_writers.texts_of()),
                 "a stream without an end marker")



def nulls_that_no_bitmap_names_are_refused(folder):
    pa = need("pyarrow")
    table, out = pa.table({"text": ["a"] * 1234, "other": ["b"] * 1234}), io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    data = out.getvalue()
    nodes = [found.start() for found in re.finditer(re.escape(struct.pack("<qq", 1234, 0)), data)]
    expect(len(nodes) >= 2, "%d nodes" % len(nodes))
    for at in nodes[:2]:
        wrong = data[:at + 8] + struct.pack("<q", 1) + data[at + 16:]
        refused(folder, wrong, "does not state which rows are null", options=["--where", "other is null or text == 'a'"])

def lz4_and_big_batches_are_refused_by_name(folder):
    pa = need("pyarrow")
    refused(folder, arrow_writers.write(arrow_writers.table_of(), compression="lz4"), "lz4", "zstd or uncompressed")
    big = pa.table({"text": pa.array(["x" * 100] * 400000, pa.string_view())})
    refused(folder, arrow_writers.write(big, chunk=400000), "record batch 0", "use --memory",
            "or more threads (-j)", options=["--memory", "8M", "-j", "1"])
    compare(folder, "with more threads", (folder / "in").read_bytes(), ["x" * 100] * 400000, "--memory", "8M", "-j", "32")
    texts = ["Row %d " % i * 20 for i in range(60000)]
    for compression in (None, "zstd"):
        big = pa.table({"text": texts, "id": list(range(len(texts)))})
        compare(folder, "a large batch", arrow_writers.write(big, chunk=len(texts), compression=compression), texts,
                "--memory", "8M", "-j", "1")
    long = ["x" * 5000000, "y", "\u00e4z" * 2000000]
    for compression in (None, "zstd"):
        compare(folder, "long texts", arrow_writers.write(pa.table({"text": long}), compression=compression), long,
                "--memory", "8M", "-j", "8")


if __name__ == "__main__":
    sys.exit(run_in_folders(""))
