#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Columns of Parquet files as pyarrow, DuckDB and Polars write them: the values are those of these programs. The
files in parquet/ are small, and are read without them."""

import gzip
import itertools
import json
import os
import pathlib
import struct
import sys
from random import Random

import ref_thrift
from ref_protocol import Skip, expect, expect_equal, need, need_parquet, run_in_folders, run_program

HERE = pathlib.Path(__file__).parent / "parquet"
MEMORY = 64 << 20
TEXTS = ["", "a", "The quick brown fox", "\u00e4\u6f22\U0001f600", "x" * 5000, "line\nbreak", "nul \0 inside", "prefix one",
         "prefix one two", "prefix one two three"]


def run(path, column, memory=MEMORY, row=0):
    return run_program("tool_parquet", path, column, memory, row)


def parse(data):
    """The values, and the checksum of what was read."""
    values, at = [], 0
    while data[at:at + 1] != b"e":
        kind, at = data[at:at + 1], at + 1
        if kind == b"n":
            values.append(None)
            continue
        number, = struct.unpack_from("<q", data, at)
        at += 8
        if kind == b"s":
            values.append(data[at:at + number])
            at += number
        else:
            values.append(number if kind == b"i" else struct.unpack_from("<d", data, at - 8)[0])
    return values, data[at + 1:]


def read(path, column, **options):
    done = run(path, column, **options)
    skip_if_small(done)
    expect(done.returncode == 0, "%s %s: %s" % (path, column, done.stderr.decode("utf-8", "replace")))
    return parse(done.stdout)[0]


def skip_if_small(done):
    if b"this build has no" in done.stderr:
        raise Skip(done.stderr.decode().strip())


def refused(path, column, *words, **options):
    done = run(path, column, **options)
    said = done.stderr.decode("utf-8", "replace")
    expect_equal(done.returncode, 3, "status for %s" % path)
    for word in words:
        expect(word in said, "%r is not in: %s" % (word, said))
    return said


def plain(values):
    """As the tool gives them: strings as bytes, booleans as numbers, times as stored."""
    return [v.encode() if isinstance(v, str) else int(v) if isinstance(v, bool) else v for v in values]


def texts(n, nulls):
    out = [TEXTS[i * 7 % len(TEXTS)] + str(i % 50) for i in range(n)]
    if nulls == "some":
        out = [None if i % 3 == 1 or 40 < i < 90 else t for i, t in enumerate(out)]
    return [None] * n if nulls == "all" else out


# ---- Committed files ----


def committed_files_have_their_values(folder):
    names = sorted(HERE.glob("*.parquet"))
    expect(len(names) >= 5, "there are committed files")
    for path in names:
        for column, values in json.loads(path.with_suffix(".json").read_text()).items():
            expect_equal(read(path, column), plain(values), "%s %s" % (path.name, column))


def a_file_without_text_names_its_columns(folder):
    said = refused(HERE / "numbers_plain.parquet", "?", 'no column "text"', "use --field with one of meta.name")
    expect("meta.name" in said and "score" not in said, said)


def packed(folder, *inputs, **options):
    """The dataset id, the number of documents, and the message."""
    out = folder / "out"
    words = [word for name, value in options.items() for word in ("--" + name, str(value))]
    done = run_program("tokmap", "pack", "--force", "--json", "--tokenizer", "bytes", *words, *inputs, "-o", out)
    skip_if_small(done)
    expect_equal(done.returncode, 0, "pack: %s" % done.stderr.decode())
    said = json.loads(done.stdout)
    return said["dataset_id"], said["n_documents"], done.stderr.decode()


def pack_gives_the_ids_of_the_same_texts_as_jsonl(folder):
    names = [p for p in sorted(HERE.glob("*.parquet")) if "numbers" not in p.name]
    lines = folder / "same.jsonl"
    texts = [json.loads(p.with_suffix(".json").read_text())["text"] for p in names]
    lines.write_text("".join(json.dumps({"text": t}) + "\n" for some in texts for t in some if t is not None))
    want, n_documents, _ = packed(folder, lines)
    for threads in (1, 3):
        got, n_same, message = packed(folder, *names, threads=threads)
        expect_equal((got, n_same), (want, n_documents), "dataset id and documents with %d threads" % threads)
    n_nulls = sum(map(len, texts)) - n_documents
    expect("%d records without a text left out" % n_nulls in message, message)


def parquet_on_stdin_or_compressed_is_refused_with_a_hint(folder):
    data = (HERE / "duckdb.parquet").read_bytes()
    (folder / "a.gz").write_bytes(gzip.compress(data))
    for name, given in (("-", data), (str(folder / "a.gz"), b"")):
        done = run_program("tokmap", "pack", "--tokenizer", "bytes", name, "-o", folder / "out", input=given)
        skip_if_small(done)
        expect_equal(done.returncode, 3, "exit code")
        expect(b"is a Parquet file" in done.stderr and b"copy it to one" in done.stderr, done.stderr.decode())


def a_dry_run_tells_the_column_and_how_it_is_stored(folder):
    done = run_program("tokmap", "pack", "--dry-run", "--tokenizer", "bytes", HERE / "text_dictionary_gzip.parquet",
                       "-o", folder / "out")
    skip_if_small(done)
    for word in ("parquet, gzip, PLAIN, RLE_DICTIONARY, 20 rows in 2 row groups", "column text (the default)"):
        expect(word in done.stdout.decode(), "%r is not in: %s%s" % (word, done.stdout.decode(), done.stderr.decode()))


def pack_refuses(path, *words):
    done = run_program("tokmap", "pack", "--force", "--tokenizer", "bytes", path, "-o", path.with_suffix(".out"))
    skip_if_small(done)
    said = done.stderr.decode()
    expect_equal(done.returncode, 3, "exit code for %s: %s" % (path.name, said))
    for word in words:
        expect(word in said, "%r is not in: %s" % (word, said))


def joined_and_cut_files_are_refused(folder):
    datas = [p.read_bytes() for p in sorted(HERE.glob("*.parquet")) if "numbers" not in p.name]
    path = folder / "a.parquet"
    for first, second in itertools.product(datas, datas):
        path.write_bytes(first + second)
        same = first == second
        pack_refuses(path, *(["byte %d: another Parquet file begins here" % len(first)] if same else [path.name]))
    for n_bytes in (4, 5, 11, 12, len(datas[0]) // 2, len(datas[0]) - 1):
        path.write_bytes(datas[0][:n_bytes])
        pack_refuses(path, "truncated Parquet file")
    size, = struct.unpack("<I", datas[0][-8:-4])
    for first, is_seam in ((b"\x15", True), (b"\0", False)):  # what a footer of one byte would begin with
        path.write_bytes(datas[0][:-8 - size] + first + struct.pack("<I", 1) + b"PAR1PAR1" + datas[0][-8 - size:])
        if is_seam:
            pack_refuses(path, "byte %d: another Parquet file begins here" % (len(datas[0]) - size + 1))
        else:
            done = run_program("tokmap", "pack", "--force", "--tokenizer", "bytes", path, "-o", path.with_suffix(".out"))
            expect_equal(done.returncode, 0, done.stderr)


def edit_footer(data, edit):
    """The file with a footer that was changed, and in which field numbers take more bytes."""
    size, = struct.unpack("<I", data[-8:-4])
    footer = ref_thrift.Reader(data[-8 - size:-8]).struct()
    edit(footer)
    encoded = ref_thrift.encode(ref_thrift.STRUCT, footer)
    return data[:-8 - size] + encoded + struct.pack("<I", len(encoded)) + b"PAR1"


def chunks_of(footer):
    """The column chunks, and their metadata."""
    for group in footer[4][1][1]:
        for chunk in group[1][1][1]:
            yield chunk, chunk[3][1]


def what_a_footer_may_leave_out_or_get_wrong(folder):
    data, path = (HERE / "text_dictionary_gzip.parquet").read_bytes(), folder / "edited.parquet"
    want = plain(json.loads((HERE / "text_dictionary_gzip.json").read_text())["text"])
    integer = ref_thrift.I64

    def no_dictionary_offset(chunk, meta):
        meta[9] = meta.pop(11)  # the dictionary page is the first of the data pages

    def dictionary_offset_of_0(chunk, meta):
        meta[9], meta[11] = meta[11], (integer, 0)

    def dictionary_header_not_counted(chunk, meta):
        meta[7] = (integer, meta[7][1] - 9)

    for change in (lambda chunk, meta: None, no_dictionary_offset, dictionary_offset_of_0, dictionary_header_not_counted):
        path.write_bytes(edit_footer(data, lambda footer: [change(*pair) for pair in chunks_of(footer)]))
        expect_equal(read(path, "text"), want, getattr(change, "__name__", "change"))

    def set_field(number, kind, value, of_meta=True):
        return lambda footer: [pair[of_meta].__setitem__(number, (kind, value)) for pair in chunks_of(footer)]

    def set_rows(footer):
        footer[3] = (integer, 21)

    def set_group_rows(footer):
        footer[3] = (integer, 30)
        for group in footer[4][1][1]:
            group[3] = (integer, 15)

    for edit, words in ((set_field(1, ref_thrift.BINARY, b"other.parquet", False), ["in another file"]),
                        (set_field(8, ref_thrift.STRUCT, {}, False), ["encrypted"]),
                        (set_field(4, ref_thrift.I32, 3), ["lzo cannot be read"]),
                        (set_field(4, ref_thrift.I32, 77), ["unknown cannot be read"]),
                        (set_field(5, integer, 13), ["not as many values"]),
                        (set_field(5, integer, -1), ["damaged footer"]),
                        (set_field(7, integer, 1 << 40), ["damaged footer"]),
                        (set_field(9, integer, len(data)), ["damaged footer"]),
                        (set_field(1, ref_thrift.I32, 2), ["different types"]),
                        (set_rows, ["not have as many rows"]), (set_group_rows, ["not as many values"]),
                        (lambda footer: footer.pop(4), ["damaged footer"]),
                        (lambda footer: footer[2][1][1].pop(), ["schema is incomplete"]),
                        (lambda footer: footer[2][1][1][1].__setitem__(5, (ref_thrift.I32, -1)), ["schema is malformed"])):
        path.write_bytes(edit_footer(data, edit))
        refused(path, "text", *words)


def damage(data, random):
    """Changes, removes, adds or copies bytes in a few places."""
    data, kind = bytearray(data), random.randrange(5)
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        at, n = random.randrange(len(data)), random.randrange(1, 9)
        if kind == 0:
            data[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            data[at] = random.randrange(256)
        elif kind == 2:
            del data[at:at + n]
        elif kind == 3:
            data[at:at] = bytes(random.randrange(256) for _ in range(n))
        else:
            source = random.randrange(len(data))
            data[at:at + n] = data[source:source + n]
    return bytes(data)


def damaged_files_with_checksums_never_give_another_text(folder):
    names = ["text_dictionary_gzip", "text_delta_bytes", "text_plain_snappy"]
    counts, path = {0: 0, 3: 0}, folder / "damaged.parquet"
    for seed in range(2000 if os.environ.get("TOKMAP_LONG") == "all" else 60):
        random = Random(seed)
        name = random.choice(names)
        path.write_bytes(damage((HERE / (name + ".parquet")).read_bytes(), random))
        done = run(path, "text")
        expect(done.returncode in counts, "%s, seed %d: status %d" % (name, seed, done.returncode))
        counts[done.returncode] += 1
        if done.returncode == 0:
            want = json.loads((HERE / (name + ".json")).read_text())["text"]
            expect_equal(parse(done.stdout)[0], plain(want), "%s, seed %d" % (name, seed))
    return "%d refused, %d read" % (counts[3], counts[0])


# ---- pyarrow ----


def write(pa, pq, path, data, **options):
    pq.write_table(pa.table(data), str(path), **options)
    return path


def pyarrow_writes_text(folder):
    pa, pq = need_parquet()
    codecs = ["none", "snappy", "gzip", "zstd"]
    encodings = [None, "PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "dictionary"]
    n = 0
    for codec, encoding, version, nulls, size, crc in itertools.product(
            codecs, encodings, ("1.0", "2.0"), ("no", "some", "all"), (500, 1 << 20), (True, False)):
        values = texts(300, nulls)
        options = {"compression": codec, "data_page_version": version, "data_page_size": size, "write_batch_size": 32,
                   "write_page_checksum": crc, "dictionary_pagesize_limit": 2000 if encoding is None else 1 << 20,
                   "use_dictionary": encoding in (None, "dictionary"), "row_group_size": 170}
        if encoding not in (None, "dictionary"):
            options["column_encoding"] = {"text": encoding}
        path = write(pa, pq, folder / "a.parquet", {"id": list(range(300)), "text": pa.array(values, pa.string())}, **options)
        expect_equal(read(path, "text"), plain(values), str(options))
        expect_equal(read(path, "text", row=173), plain(values[173:]), str(options))
        n += 1
    return "%d files" % n


def pyarrow_writes_nested_columns(folder):
    pa, pq = need_parquet()
    leaf = [{"a": {"t": t}} if i % 5 else None if i % 2 else {"a": None} for i, t in enumerate(texts(200, "some"))]
    want = [r and r["a"] and r["a"]["t"] for r in leaf]
    kind = pa.struct([("a", pa.struct([("t", pa.large_string())]))])
    required = pa.struct([pa.field("t", pa.binary(), nullable=False)])
    for version, dictionary in itertools.product(("1.0", "2.0"), (True, False)):
        schema = pa.schema([pa.field("meta", kind), pa.field("must", required, nullable=False), pa.field("a.b", pa.string()),
                            pa.field("tags", pa.list_(pa.string())), pa.field("map", pa.map_(pa.string(), pa.string()))])
        data = {"meta": leaf, "must": [{"t": t.encode()} for t in texts(200, "no")], "a.b": texts(200, "no"),
                "tags": [["x"]] * 200, "map": [{"k": "v"}] * 200}
        path = folder / "n.parquet"
        pq.write_table(pa.table(data, schema=schema), str(path), data_page_version=version, use_dictionary=dictionary,
                       data_page_size=700, write_batch_size=16, compression="zstd")
        expect_equal(read(path, "meta.a.t"), plain(want), "optional groups")
        expect_equal(read(path, "must.t"), plain(texts(200, "no")), "required groups")
        expect_equal(read(path, "a.b"), plain(texts(200, "no")), "a dot in the name")
    refused(path, "tags", "is a list or map", "it has meta.a.t, must.t, a.b")
    refused(path, "tags.list.element", "is a list or map")
    refused(path, "map", "is a list or map")
    refused(path, "meta.a", "is a group of columns")
    refused(path, "nothing", 'no column "nothing"')


def pyarrow_writes_values(folder):
    pa, pq = need_parquet()
    n = 500
    number = [(i * 2654435761) % (1 << 62) - (1 << 61) for i in range(n)]
    columns = {
        "i8": ([v % 256 - 128 for v in number], pa.int8()), "u8": ([v % 256 for v in number], pa.uint8()),
        "i16": ([v % 65536 - 32768 for v in number], pa.int16()), "u16": ([v % 65536 for v in number], pa.uint16()),
        "i32": ([v % (1 << 32) - (1 << 31) for v in number], pa.int32()), "u32": ([v % (1 << 32) for v in number], pa.uint32()),
        "i64": (number, pa.int64()), "u64": ([abs(v) for v in number], pa.uint64()),
        "f32": ([v / 4 for v in range(n)], pa.float32()), "f64": ([v / 7e9 for v in number], pa.float64()),
        "b": ([v % 3 == 0 for v in number], pa.bool_()), "s": (texts(n, "no"), pa.large_string()),
        "day": ([v % 20000 for v in number], pa.date32()), "us": ([v % (1 << 50) for v in number], pa.timestamp("us")),
        "none": ([None] * n, pa.null()),
    }
    encodings = {"PLAIN": columns, "DELTA_BINARY_PACKED": ("i8", "u16", "i32", "u32", "i64", "u64", "day", "us"),
                 "BYTE_STREAM_SPLIT": ("i32", "i64", "f32", "f64"), "RLE": ("b",), None: columns}
    for nulls, version, codec in itertools.product((False, True), ("1.0", "2.0"), ("none", "zstd")):
        schema = pa.schema([pa.field(name, kind) for name, (_, kind) in columns.items()])
        want = {name: [None if nulls and i % 4 == 0 else v for i, v in enumerate(values)]
                for name, (values, _) in columns.items()}
        arrays = [pa.array(want[name], pa.int64() if kind in (pa.date32(), pa.timestamp("us")) else kind)
                  if kind != pa.date32() else pa.array(want[name], pa.int32()) for name, (_, kind) in columns.items()]
        table = pa.table([a.cast(f.type) for a, f in zip(arrays, schema)], schema=schema)
        for encoding, names in encodings.items():
            path = folder / "v.parquet"
            options = {} if encoding is None else {"use_dictionary": False,
                                                   "column_encoding": {name: encoding for name in names if name != "none"}}
            pq.write_table(table.select(list(names)), str(path), data_page_version=version, data_page_size=600,
                           write_batch_size=64, compression=codec, **options)
            for name in names:
                expect_equal(read(path, name), plain(want[name]), "%s %s %s" % (name, encoding, version))
    path = write(pa, pq, folder / "u.parquet", {"u": pa.array([1 << 63], pa.uint64())})
    expect_equal(read(path, "u"), [2.0**63], "a number above int64, as the nearest double")
    import decimal
    pq.write_table(pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]), str(folder / "t.parquet"))
    said = refused(folder / "t.parquet", "?", 'two columns "text", which cannot be told apart')
    expect("use --field" not in said, said)
    path = write(pa, pq, folder / "w.parquet", {"d": pa.array([decimal.Decimal("1.5")]), "x": pa.array([b"ab"], pa.binary(2))})
    expect_equal(read(path, "d"), [1.5], "a decimal, as the nearest double")
    refused(path, "x", "fixed-length bytes")


def what_cannot_be_read_is_refused_by_name(folder):
    pa, pq = need_parquet()
    for codec in ("brotli", "lz4"):
        path = write(pa, pq, folder / "c.parquet", {"text": ["a"] * 9}, compression=codec)
        refused(path, "text", {"brotli": "brotli", "lz4": "lz4_raw"}[codec], "row group 0",
                'write the file with zstd, snappy or gzip, such as compression="zstd" in pandas')
    data = path.read_bytes()
    path.write_bytes(data[:-4] + b"PARE")
    refused(path, "text", "encrypted")
    path.write_bytes(data[:-5])
    refused(path, "text", "truncated", "PAR1")
    path.write_bytes(data[:-8] + struct.pack("<I", 1 << 31) + b"PAR1")
    refused(path, "text", "damaged footer")
    path.write_bytes(b"")
    refused(path, "text", "PAR1")
    refused("-", "text", "stdin")
    refused(folder, "text", "regular file")


def memory_does_not_change_values(folder):
    pa, pq = need_parquet()
    values = texts(20000, "some")
    path = write(pa, pq, folder / "m.parquet", {"text": values}, data_page_size=4000, write_batch_size=12,
                 row_group_size=7000, compression="zstd", use_dictionary=False)
    whole = run(path, "text").stdout
    for memory in (1 << 15, 1 << 17, 1 << 24):
        expect(run(path, "text", memory=memory).stdout == whole, "%d bytes of memory" % memory)
    for row in (0, 1, 6999, 7000, 7001, 19999, 20000):
        expect_equal(read(path, "text", row=row), plain(values[row:]), "row %d" % row)
    said = refused(path, "text", "--memory", "row group 0, page 0", memory=1000)
    needed = int(said.rsplit("--memory ", 1)[1].split("M")[0]) * 10**6
    expect_equal(run(path, "text", memory=needed).returncode, 0, "with the memory that was asked for")


def large_pages_change_nothing(folder):
    pa, pq = need_parquet()
    path = folder / "large.parquet"
    data = {"text": ["a", "b " * 5000000, "c"]}
    pq.write_table(pa.table(data), path, data_page_size=1 << 20, write_batch_size=3, compression="none",
                   use_dictionary=False)
    want = packed(folder, path, memory="256M", threads=2)
    got = packed(folder, path, memory="24M", threads=2)
    expect_equal(got[:2], want[:2], "dataset id and documents")


def the_memory_that_a_message_names_is_enough(folder):
    pa, pq = need_parquet()
    random = Random(1)
    long = ["%d" % random.randrange(1 << 60) * 50 for _ in range(40000)]
    for options in ({"use_dictionary": False, "data_page_size": 1 << 30, "write_batch_size": 1 << 20},
                    {"dictionary_pagesize_limit": 1 << 30}):
        path = write(pa, pq, folder / "m.parquet", {"text": ["a"] * len(long), "m": long, "n": [1] * len(long)}, **options)
        memory = 8000000

        def pack():
            return run_program("tokmap", "pack", "--force", "-q", "--threads", "1", "--memory", memory, "--tokenizer",
                               "bytes", "--meta", "@row", "--where", "n == 1 and m != ''", path, "-o", folder / "out")

        for tries in range(3):
            done = pack()
            if done.returncode == 0:
                break
            said = done.stderr.decode()
            expect("column m: reading it takes" in said, said)
            named = int(said.split("use --memory ")[1].split("M")[0]) * 1000000
            expect(named > memory, "more than %d: %s" % (memory, said))
            memory = named
        # A dictionary that does not fit is found before the page that needs it.
        expect_equal((done.returncode, tries), (0, 1 + ("use_dictionary" not in options)), "exit code, and failed runs")
        memory = named * 9 // 10
        expect("column m: reading it takes" in pack().stderr.decode(), "a tenth less than was named is enough")


def checksums_find_damage(folder):
    pa, pq = need_parquet()
    path = write(pa, pq, folder / "d.parquet", {"text": texts(2000, "no")}, data_page_size=4000, write_batch_size=32,
                 write_page_checksum=True, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    at = data.index(b"The quick", len(data) // 2)
    data[at] ^= 1
    path.write_bytes(data)
    said = refused(path, "text", "CRC-32", "row group 0, page ", "byte ", "column text")
    expect(said.count("page") >= 1, said)


# ---- Other writers ----


def duckdb_writes_the_same(folder):
    duckdb = need("duckdb")
    want = texts(5000, "some")
    codecs = ("uncompressed", "zstd", "gzip", "snappy")
    base = duckdb.connect()
    base.execute("create table t (id bigint, text varchar, score double, ok boolean, meta struct(lang varchar))")
    rows = [(i, t, i / 8, i % 2 == 0, {"lang": None if i % 7 == 0 else "l%d" % (i % 3)}) for i, t in enumerate(want)]
    base.executemany("insert into t values (?, ?, ?, ?, ?)", rows)
    for codec, version, size in itertools.product(codecs, ("v1", "v2"), (2048, 122880)):
        path = folder / "d.parquet"
        base.execute("copy (select * from t order by id) to '%s' (format parquet, compression %s, parquet_version %s, "
                     "row_group_size %d)" % (path, codec, version, size))
        told = "%s %s" % (codec, version)
        expect_equal(read(path, "text"), plain(want), told)
        expect_equal(read(path, "id"), [r[0] for r in rows], told)
        expect_equal(read(path, "score"), [r[2] for r in rows], told)
        expect_equal(read(path, "ok"), [int(r[3]) for r in rows], told)
        expect_equal(read(path, "meta.lang"), plain([r[4]["lang"] for r in rows]), told)


def polars_writes_the_same(folder):
    polars = need("polars")
    want = texts(5000, "some")
    codecs = ("uncompressed", "zstd", "gzip", "snappy")
    frame = polars.DataFrame({"text": want, "id": list(range(5000)), "score": [i / 8 for i in range(5000)],
                              "ok": [i % 2 == 0 for i in range(5000)],
                              "meta": [{"lang": None if i % 7 == 0 else "l%d" % (i % 3)} for i in range(5000)]})
    for codec, size in itertools.product(codecs, (1000, None)):
        path = folder / "p.parquet"
        frame.write_parquet(str(path), compression=codec, row_group_size=size, data_page_size=3000)
        expect_equal(read(path, "text"), plain(want), codec)
        expect_equal(read(path, "id"), list(range(5000)), codec)
        expect_equal(read(path, "score"), [i / 8 for i in range(5000)], codec)
        expect_equal(read(path, "ok"), [int(i % 2 == 0) for i in range(5000)], codec)
        expect_equal(read(path, "meta.lang"), plain(frame["meta"].struct.field("lang").to_list()), codec)


def fastparquet_writes_the_same(folder):
    pandas, fastparquet = need("pandas"), need("fastparquet")
    codecs = ("UNCOMPRESSED", "ZSTD", "GZIP", "SNAPPY")
    try:
        for nulls, codec, version, n, declared in itertools.product(("no", "some", "all"), codecs, (1, 2), (1, 900), (True, None)):
            fastparquet.writer.DATAPAGE_VERSION = version
            want = texts(n, nulls)
            frame = pandas.DataFrame({"text": pandas.Series(want, dtype=object), "id": range(n), "score": [i / 8 for i in range(n)],
                                      "ok": [i % 3 == 0 for i in range(n)], "kind": pandas.Series(want).astype("category")})
            path = folder / "f.parquet"
            fastparquet.write(str(path), frame, compression=codec, row_group_offsets=350, object_encoding={"text": "utf8"},
                              has_nulls=declared)
            told = "%s nulls %s v%d has_nulls=%s" % (nulls, codec, version, declared)
            expect_equal(read(path, "text"), plain(want), told)
            if declared or nulls == "no":  # else fastparquet writes nulls into a column that it calls required
                expect_equal(read(path, "kind"), plain(want), told)
            expect_equal(read(path, "id"), list(range(n)), told)
            expect_equal(read(path, "score"), [i / 8 for i in range(n)], told)
            expect_equal(read(path, "ok"), [int(i % 3 == 0) for i in range(n)], told)
    finally:
        fastparquet.writer.DATAPAGE_VERSION = 1
    fastparquet.write(str(path), pandas.DataFrame({"text": ["needle"]}), compression="UNCOMPRESSED", stats=False)
    data = bytearray(path.read_bytes())
    at = data.index(b"needle") + len("needle")
    expect_equal(data[at], 0, "the first byte of the padding")
    data[at] = 1
    path.write_bytes(data)
    refused(path, "text", "damaged page: trailing data after its last value")


def columns_without_a_value_are_null_texts(folder):
    pa, pq = need_parquet()
    path = write(pa, pq, folder / "n.parquet", {"text": pa.nulls(9), "old": pa.array([None] * 9, pa.int32()),
                                                "some": pa.array([None] * 8 + [1], pa.int32())})
    for column in ("text", "old"):
        _, n_documents, said = packed(folder, path, field=column, where='text is null and old != "x" or text is null')
        expect("9 records without a text left out" in said and n_documents == 0, said)
    done = run_program("tokmap", "pack", "--field", "some", path, "-o", folder / "out")
    expect(done.returncode == 3 and b'"some" has the type int32, which cannot be text' in done.stderr, done.stderr.decode())


if __name__ == "__main__":
    sys.exit(run_in_folders(""))
