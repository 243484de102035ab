#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""arrow_writers.py FOLDER - Arrow files of pyarrow and Polars with known texts, for tests/formats/test_arrow.py;
FOLDER gets them as seeds for tests/fuzz/fuzz_arrow.c, which begin with bytes that choose its options."""

import io
import os
import sys

SEED_OPTIONS = bytes([16, 0, 0x55, 64])  # bad documents are skipped; sizes
SEED_FIELDS = bytes([16, 2, 0x33, 200])  # the same, with fields
SEED_NESTED = bytes([16, 10, 0x44, 30])


def texts_of(n=40):
    """None is a null."""
    return [None if i % 7 == 3 else "" if i % 11 == 5 else "Row %d \u00e4\U0001f600 " % i * (i % 6 + 1) for i in range(n)]


def columns(n=40):
    return {
        "id": list(range(n)),
        "score": [None if i % 5 == 1 else i / 8 for i in range(n)],
        "flag": [i % 3 == 0 for i in range(n)],
        "name": [None if i % 4 == 2 else "name %d" % (i % 5) for i in range(n)],
        "tags": [["t"] * (i % 3) for i in range(n)],
        "text": texts_of(n),
    }


def write(table, file=False, chunk=16, **options):
    import pyarrow.ipc as ipc
    out = io.BytesIO()
    make = ipc.new_file if file else ipc.new_stream
    with make(out, table.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        for batch in table.to_batches(max_chunksize=chunk):
            writer.write_batch(batch)
    return out.getvalue()


def table_of(text_type=None, n=40):
    import pyarrow as pa
    data = columns(n)
    texts = [t if text_type is None or not pa.types.is_binary(text_type) or t is None else t.encode()
             for t in data.pop("text")]
    table = pa.table(data)
    return table.append_column("text", pa.array(texts, type=text_type or pa.string()))


def dictionary_table(indices=None):
    import pyarrow as pa
    table = table_of()
    text = table["text"].combine_chunks().dictionary_encode()
    if indices:
        text = text.cast(pa.dictionary(indices, pa.string()))
    return table.set_column(table.schema.get_field_index("text"), "text", text)


def changing_dictionaries(deltas):
    """Each batch has a dictionary of its own; or what it adds to that of the batch before."""
    import pyarrow as pa
    import pyarrow.ipc as ipc
    out, known = io.BytesIO(), []
    texts = texts_of()
    schema = pa.schema([("id", pa.int64()), ("text", pa.dictionary(pa.int32(), pa.string()))])
    with ipc.new_stream(out, schema, options=ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)) as writer:
        for at in range(0, len(texts), 8):
            part = texts[at:at + 8]
            known = (known if deltas else []) + [t for t in dict.fromkeys(part) if t is not None and
                                                 (not deltas or t not in known)]
            text = pa.DictionaryArray.from_arrays(
                pa.array([None if t is None else known.index(t) for t in part], pa.int32()),
                pa.array(known, pa.string()))
            writer.write_batch(pa.record_batch([pa.array(range(at, at + len(part))), text], schema=schema))
    return out.getvalue()


def nested_table():
    """The text is s.text; whole structs are null too."""
    import pyarrow as pa
    data = columns()
    rows = [None if i % 9 == 4 else {"text": t, "n": i} for i, t in enumerate(data.pop("text"))]
    data["s"] = pa.array(rows, pa.struct([("n", pa.int32()), ("text", pa.string())]))
    return pa.table(data)


def nested_texts():
    return [None if i % 9 == 4 else t for i, t in enumerate(texts_of())]


def polars_frame():
    import polars
    return polars.DataFrame(columns())


def polars_file(**options):
    out = io.BytesIO()
    polars_frame().write_ipc(out, **options)
    return out.getvalue()


def polars_stream(**options):
    out = io.BytesIO()
    polars_frame().write_ipc_stream(out, **options)
    return out.getvalue()


def cases():
    """(name, function that writes it, --field, texts, options of a seed or None)"""
    import pyarrow as pa
    plain = texts_of()
    return [
        ("stream", lambda: write(table_of()), "text", plain, SEED_OPTIONS),
        ("file", lambda: write(table_of(), file=True), "text", plain, SEED_FIELDS),
        ("one_batch", lambda: write(table_of(), chunk=1000), "text", plain, None),
        ("small_batches", lambda: write(table_of(n=12), chunk=1), "text", texts_of(12), SEED_OPTIONS),
        ("no_rows", lambda: write(table_of(n=40).slice(0, 0)), "text", [], SEED_OPTIONS),
        ("stream_zstd", lambda: write(table_of(), compression="zstd"), "text", plain, SEED_FIELDS),
        ("file_zstd", lambda: write(table_of(), file=True, compression="zstd"), "text", plain, SEED_OPTIONS),
        ("large", lambda: write(table_of(pa.large_string())), "text", plain, None),
        ("binary", lambda: write(table_of(pa.binary())), "text", plain, None),
        ("large_binary", lambda: write(table_of(pa.large_binary())), "text", plain, None),
        ("views", lambda: write(table_of(pa.string_view())), "text", plain, SEED_OPTIONS),
        ("binary_views", lambda: write(table_of(pa.binary_view()), compression="zstd"), "text", plain, None),
        ("dictionary", lambda: write(dictionary_table()), "text", plain, SEED_FIELDS),
        ("dictionary_uint8", lambda: write(dictionary_table(pa.uint8()), file=True), "text", plain, None),
        ("dictionary_int64", lambda: write(dictionary_table(pa.int64()), compression="zstd"), "text", plain, None),
        ("dictionaries", lambda: changing_dictionaries(False), "text", plain, SEED_OPTIONS),
        ("dictionary_deltas", lambda: changing_dictionaries(True), "text", plain, SEED_OPTIONS),
        ("nested", lambda: write(nested_table(), file=True), "s.text", nested_texts(), SEED_NESTED),
        ("sliced", lambda: write(table_of(n=60).slice(13, 27)), "text", texts_of(60)[13:40], None),
        ("all_null", lambda: write(pa.table({"text": pa.array([None] * 5, pa.string())})), "text", [None] * 5, None),
        ("polars_file", lambda: polars_file(compression="uncompressed"), "text", plain, SEED_FIELDS),
        ("polars_file_zstd", lambda: polars_file(compression="zstd"), "text", plain, None),
        ("polars_stream", lambda: polars_stream(compression="uncompressed"), "text", plain, None),
        ("polars_old_strings", lambda: polars_stream(compression="zstd", compat_level=_oldest()), "text", plain, None),
    ]


def _oldest():
    import polars
    return polars.CompatLevel.oldest()


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for name, make, _, _, options in cases():
        if options:
            with open(os.path.join(folder, name), "wb") as file:
                file.write(options + make())


if __name__ == "__main__":
    main(sys.argv[1])
