#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values of documents in the Python package: what is written is read back, as arrays and one by one, and the index
is byte for byte that of ref_writer, which was made from docs/FORMAT.md."""

import gc
import os
import random
import sys
import warnings

import ref_reader
import ref_writer
from package import raises
from ref_protocol import Skip, need, run_in_folders

import numpy as np
import tokmap
from tokmap._run import report

SORTS = {
    "int": lambda rng: rng.choice([0, -1, 2**63 - 1, -2**63, rng.randrange(1000)]),
    "float": lambda rng: rng.choice([0.0, -1.5, 1e300, float("inf"), rng.random()]),
    "number": lambda rng: rng.choice([2**53, -7, 0.25, rng.randrange(10)]),
    "word": lambda rng: rng.choice(["", "en", "de", "h\u00e9", "zero\0byte"]),
    "text": lambda rng: "%030x" % rng.getrandbits(120),
    "nothing": lambda rng: None,
}
TYPES = {"int": "int64", "float": "float64", "number": "float64", "word": "str", "text": "str", "nothing": "null"}


def make_rows(seed, n, nulls):
    rng = random.Random(seed)
    return [{name: None if rng.random() < nulls else make(rng) for name, make in SORTS.items()} for _ in range(n)]


def write(prefix, rows, names=tuple(SORTS)):
    with tokmap.Writer(prefix, 1000, meta=names) as w:
        for i, row in enumerate(rows):
            w.document([i % 1000], meta={name: value for name, value in row.items() if value is not None or i % 2})
        w.set_metadata({})


def as_stored(value):
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def written_values_are_read_back(folder):
    for n, nulls in ((1, 0), (9, 0.5), (700, 0), (700, 0.3), (3000, 0.9)):
        rows = make_rows(n, n, nulls)
        write(folder / "p", rows)
        ds = tokmap.open(folder / "p")
        ds.verify()
        for name in SORTS:
            values = [row[name] for row in rows]
            column = ds.meta(name)
            found = [None if x is np.ma.masked else x for x in column.tolist()]
            assert found == values, (name, found[:5], values[:5])
            if any(value is not None for value in values) and n > 100:
                assert ds.meta()[name] == TYPES[name]
            masked = None in values and ds.meta()[name] in ("int64", "float64")
            assert isinstance(column, np.ma.MaskedArray) == masked
        for i in range(0, n, 1 + n // 50):
            assert ds.document_meta(i) == rows[i]
            for name, value in ds.document_meta(i).items():
                if value is not None:
                    wanted = float if ds.meta()[name] == "float64" else type(rows[i][name])
                    assert type(value) is wanted
        ds.close()
        tokmap.Writer(folder / "p", 10, replace=True).finish()
        for path in folder.iterdir():
            path.unlink()


def the_index_is_that_of_the_format(folder):
    for n, nulls in ((0, 0), (1, 0), (64, 0.2), (1000, 0.5)):
        rows = make_rows(7 * n, n, nulls)
        write(folder / f"p{n}", rows)
        columns = [(name, None, [as_stored(row[name]) for row in rows]) for name in SORTS]
        ref_writer.write(str(folder / "r"), [i % 1000 for i in range(n)], [1] * n, vocab=1000, values=columns)
        assert (folder / f"p{n}.tmi").read_bytes() == (folder / "r.tmi").read_bytes(), n
        seen = ref_reader.read(str(folder / f"p{n}"))
        numbers = {"number", "float"} if n else set()
        for column, (name, _, values) in zip(seen.values, columns):
            assert column.values == [float(v) if name in numbers and v is not None else v for v in values], name


def numbers_are_views_of_the_map(folder):
    write(folder / "p", [{"a": i, "b": i / 2} for i in range(1000)], ["a", "b"])
    ds = tokmap.open(folder / "p")
    for name in "ab":
        column = ds.meta(name)
        assert not column.flags.owndata and not column.flags.writeable
        assert column.ctypes.data == ds.meta(name).ctypes.data and column.ctypes.data % 64 == 0
        raises(ValueError, column.__setitem__, 0, 1)
    del ds
    gc.collect()
    assert column.sum() == 249750.0  # the map lives on
    write(folder / "q", [{"a": i if i % 3 else None} for i in range(100)], ["a"])
    masked = tokmap.open(folder / "q").meta("a")
    assert not masked.data.flags.owndata and masked.count() == 66 and np.ma.filled(masked, -1)[0] == -1


def several_datasets_are_joined(folder):
    parts = [make_rows(1, 30, 0.2), [], make_rows(2, 20, 0), [{name: None for name in SORTS}]]
    for i, rows in enumerate(parts):
        write(folder / f"part-{i}", rows, list(SORTS) if i % 2 else list(reversed(list(SORTS))))
    ds = tokmap.open(folder / "part-*")
    rows = [row for part in parts for row in part]
    for name in SORTS:
        assert [None if x is np.ma.masked else x for x in ds.meta(name).tolist()] == [row[name] for row in rows]
    for i, row in enumerate(rows):
        assert ds.document_meta(i) == row
    write(folder / "other", [{"int": 1}], ["int"])
    both = tokmap.open([folder / "part-0", folder / "other"])
    assert "part-0.tmi" in str(raises(ValueError, both.meta, "int"))
    assert both.shards[1].meta("int").tolist() == [1]
    write(folder / "words", [{"int": "one"}], ["int"])
    mixed = tokmap.open([folder / "other", folder / "words"])
    assert "numbers in one dataset and strings in another" in str(raises(ValueError, mixed.meta, "int"))


def wrong_values_are_refused(folder):
    with tokmap.Writer(folder / "p", 10, meta=["a"]) as w:
        w.document([1], meta={"a": np.float32(0.5)})
        raises(KeyError, w.document, [1], {"b": 1})
        raises(TypeError, w.document, [1], {"a": [1]})
        raises(TypeError, w.document, [1], {"a": b"bytes"})
        raises(OverflowError, w.document, [1], {"a": 2**63})
        w.document([2], meta={"a": np.int64(3)})
        w.document([3], meta={"a": True})
    ds = tokmap.open(folder / "p")
    assert ds.meta("a").tolist() == [0.5, 3.0, 1.0] and len(ds) == 3
    assert "'a'" in str(raises(KeyError, ds.meta, "b"))
    raises(IndexError, ds.document_meta, 3)
    raises(TypeError, tokmap.Writer, folder / "q", 10, meta="name")
    raises(ValueError, tokmap.Writer, folder / "q", 10, meta=["a\0"])
    assert "two columns 'a'" in str(raises(tokmap.ArgumentError, tokmap.Writer, folder / "q", 10, meta=["a", "a"]))
    w = tokmap.Writer(folder / "q", 10, meta=["a"])
    w.document([1], meta={"a": 1})
    assert "column 'a' is a number in document 0" in str(raises(tokmap.ArgumentError, w.document, [1], {"a": "x"}))
    w.close()
    assert not list(folder.glob("q.*"))
    with tokmap.Writer(folder / "q", 10) as w:
        w.document([1])
    ds = tokmap.open(folder / "q")
    assert ds.meta() == {} and ds.document_meta(0) == {}


def late_columns_are_values_too(folder):
    write(folder / "a-0", [{"int": i} for i in range(70)], ["int"])
    write(folder / "a-1", [{"int": i} for i in range(5)], ["int"])
    ds = tokmap.open(folder / "a-*")
    n = len(ds)
    arrays = {"i8": np.arange(n) - 40, "u64": np.arange(n, dtype=np.uint64) * 2**55, "f4": np.arange(n) / 4, "f8": np.arange(n) / 7,
              "bool": np.arange(n) % 3 == 0, "masked": np.ma.MaskedArray(np.arange(n), np.arange(n) % 4 == 1)}
    lists = {"strings": [None if i % 5 == 2 else "s%d" % i for i in range(n)], "few": ["de", "en", ""] * (n // 3),
             "mixed": [None if i % 2 else i / 2 for i in range(n)]}
    for name, values in {**arrays, **lists}.items():
        ds.add_column(name, values)
        found = ds.meta(name)
        wanted = values if isinstance(values, list) else values.tolist()
        assert found.tolist() == [one for one in wanted], name
        assert [ds.document_meta(i)[name] for i in range(n)] == wanted, name
        if name in arrays:
            assert found.dtype == (np.float64 if values.dtype.kind == "f" else np.int64)
    assert list(ds.meta()) == ["int", *sorted({**arrays, **lists})]
    reference = ref_reader.read(str(folder / "a-1"))
    column, number_bytes = ref_reader.read_late(reference, "f4")
    assert number_bytes == 4 and column.values == arrays["f4"][70:].tolist()
    assert "must be one for each of the 75" in str(raises(ValueError, ds.add_column, "i8", arrays["i8"][1:]))
    assert "replace=True" in str(raises(tokmap.ExistsError, ds.add_column, "i8", arrays["i8"]))
    ds.add_column("i8", arrays["f8"], replace=True)
    assert ds.meta("i8").tolist() == arrays["f8"].tolist()
    raises(tokmap.ExistsError, ds.add_column, "int", arrays["i8"], replace=True)
    raises(tokmap.ArgumentError, ds.add_column, "a.b", arrays["i8"])
    raises(OverflowError, ds.add_column, "o", np.full(n, 2**63, np.uint64))
    raises(ValueError, ds.add_column, "o", [[1]] * n)
    assert not list(folder.glob("*.o.*"))
    kept = ds.meta("f4")
    view = tokmap.open(folder / "a-0").meta("f8")
    del ds
    gc.collect()
    assert kept[3] == 0.75 and view[7] == 1.0  # arrays outlive the dataset


def columns_of_other_libraries(folder):
    write(folder / "p", [{}] * 4, [])
    ds = tokmap.open(folder / "p")
    wanted = [1.5, None, 2.5, 0.0]
    for name, make in (("pandas", lambda m: m.Series(wanted)), ("polars", lambda m: m.Series("x", wanted)),
                       ("pyarrow", lambda m: m.array(wanted))):
        try:
            module = need(name)
        except Skip:
            continue
        ds.add_column("x", make(module), replace=True)
        assert [None if one is np.ma.masked else one for one in ds.meta("x")] == wanted, name


def damaged_late_columns_are_named(folder):
    write(folder / "p", [{}] * 4, [])
    ds = tokmap.open(folder / "p")
    ds.add_column("good", [1, 2, 3, 4])
    ds.add_column("bad", [1, 2, 3, 4])
    path = folder / "p.bad.tmc"
    path.write_bytes(path.read_bytes()[:-1])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert list(ds.meta()) == ["good"]
    assert len(said) == 1 and "p.bad.tmc: damaged" in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "p.bad.tmc" in str(raises(tokmap.DamagedError, ds.meta, "bad"))
        assert "'good'" in str(raises(KeyError, ds.meta, "none"))


def values_of_late_columns_are_compared_with_their_checksums(folder):
    write(folder / "p", [{}] * 50, [])
    ds = tokmap.open(folder / "p")
    ds.add_column("late", np.arange(50))
    view = folder / os.path.basename(ds.write_view(where="late >= 7").paths[0])
    ds.verify()
    for path, at in ((folder / "p.late.tmc", 128 + 5), (view, view.stat().st_size - 1)):
        good = path.read_bytes()
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1:])
        assert path.name in str(raises(tokmap.DamagedError, ds.verify))
        if path != view:
            for call in (lambda: ds.meta("late"), lambda: ds.where("late < 3"), lambda: report._values_of(ds, "late", "value")):
                assert path.name in str(raises(tokmap.DamagedError, call))
        path.write_bytes(good)
    assert ds.meta("late").tolist() == list(range(50)) and report._values_of(ds, "late", "value")
    ds.verify()


def damaged_values_are_refused(folder):
    write(folder / "p", [{"word": "en"}, {"word": "en"}, {"word": "en"}], ["word"])
    path = folder / "p.tmi"
    good = path.read_bytes()
    at = good.index(b"en", 448) - 64 + 8  # where the first string ends
    path.write_bytes(good[:at] + bytes([good[at] ^ 9]) + good[at + 1:])
    ds = tokmap.open(folder / "p")
    for call in (lambda: ds.meta("word"), lambda: ds.document_meta(0), ds.verify):
        assert "p.tmi" in str(raises(tokmap.DamagedError, call))


if __name__ == "__main__":
    sys.exit(run_in_folders("python_"))
