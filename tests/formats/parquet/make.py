# SPDX-License-Identifier: Apache-2.0
"""make.py - writes the files of this folder: for each NAME.parquet a NAME.json with the values of its columns.
Needs pyarrow, duckdb and polars. The tests read the files also where these are missing."""

import json
import pathlib

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent
TEXTS = ["one", "", None, "two words", "Stra\u00dfe \u6f22", None, "one", "prefix a", "prefix ab", "last"]


def expected(name, columns):
    (HERE / (name + ".json")).write_text(json.dumps(columns) + "\n")


def arrow(name, columns, schema=None, **options):
    pq.write_table(pa.table(columns, schema=schema), str(HERE / (name + ".parquet")), write_statistics=False,
                   store_schema=False, **options)


def write_text(name, **options):
    arrow(name, {"text": TEXTS * 2}, data_page_size=60, write_batch_size=4, row_group_size=12, **options)
    expected(name, {"text": TEXTS * 2})


def write_numbers(name, **options):
    columns = {"score": [1, -5, None, 1 << 40], "real": [0.5, None, -1e300, 2.0], "yes": [True, False, None, True]}
    meta = [{"name": "a", "n": 1}, None, {"name": None, "n": 2}, {"name": "b", "n": 3}]
    kind = pa.struct([("name", pa.string()), ("n", pa.int32())])
    schema = pa.schema([("score", pa.int64()), ("real", pa.float64()), ("yes", pa.bool_()), ("meta", kind)])
    arrow(name, dict(columns, meta=meta), schema=schema, **options)
    expected(name, dict(columns, **{"meta.name": ["a", None, None, "b"], "meta.n": [1, None, 2, 3]}))


def main():
    write_text("text_plain_snappy", compression="snappy", use_dictionary=False, write_page_checksum=True)
    write_text("text_dictionary_gzip", compression="gzip", write_page_checksum=True)
    write_text("text_mixed_v2", compression="none", data_page_version="2.0", dictionary_pagesize_limit=20)
    write_text("text_delta_length_zstd", compression="zstd", use_dictionary=False, data_page_version="2.0",
               column_encoding={"text": "DELTA_LENGTH_BYTE_ARRAY"})
    write_text("text_delta_bytes", compression="none", use_dictionary=False, write_page_checksum=True,
               column_encoding={"text": "DELTA_BYTE_ARRAY"})
    write_numbers("numbers_plain", compression="none", use_dictionary=False)
    write_numbers("numbers_packed", compression="none", use_dictionary=False, data_page_version="2.0", column_encoding={
        "score": "DELTA_BINARY_PACKED", "real": "BYTE_STREAM_SPLIT", "yes": "RLE", "meta.name": "PLAIN", "meta.n": "PLAIN"})
    base = duckdb.connect()
    base.execute("create table t (text varchar)")
    base.executemany("insert into t values (?)", [[text] for text in TEXTS])
    base.execute("copy t to '%s' (format parquet, compression zstd)" % (HERE / "duckdb.parquet"))
    expected("duckdb", {"text": TEXTS})
    polars.DataFrame({"text": TEXTS}).write_parquet(str(HERE / "polars.parquet"), compression="zstd", statistics=False)
    expected("polars", {"text": TEXTS})


main()
