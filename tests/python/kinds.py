# SPDX-License-Identifier: Apache-2.0
"""Columns as users have them, of NumPy, pandas, polars and Arrow: (package, name, what makes the column from the module
of the package, and its values or the exception with which it is refused). A column is taken exactly, or refused."""

import datetime
import decimal

import numpy as np

BIG = 2**53 + 1  # no float64 is equal to it
INTS, GAPS = [3, 0, BIG, 7], [3, None, BIG, 7]
REALS, REAL_GAPS = [0.5, -2.0, 1e300, 0.0], [0.5, None, 1e300, 0.0]
TRUTHS, TRUTH_GAPS = [True, False, True, True], [True, None, False, True]
WORDS, WORD_GAPS = ["a", "", "a", "h\u00e9"], ["a", None, "", "a"]
TOO_LARGE = [1, 2, 3, 2**63]
DAYS = [datetime.datetime(2026, 1, day) for day in (1, 2, 3, 4)]

KINDS = []


def kind(package, name, wanted, make):
    KINDS.append((package, name, make, wanted))


# ---- NumPy ----

for bits in (8, 16, 32, 64):
    for sign, least in (("int", -2**(bits - 1)), ("uint", 0)):
        most = min(2**(bits - (sign == "int")) - 1, 2**63 - 1)
        kind("numpy", f"{sign}{bits}", [least, 0, 1, most],
             lambda m, t=f"{sign}{bits}", a=least, b=most: np.array([a, 0, 1, b], t))
for name in ("float32", "float64"):
    kind("numpy", name, [0.5, -2.0, 0.0, float("inf")], lambda m, name=name: np.array([0.5, -2, 0, np.inf], name))
kind("numpy", "float16", [0.5, -2.0, 0.0, 65504.0], lambda m: np.array([0.5, -2, 0, 65504], np.float16))
kind("numpy", "bool", TRUTHS, lambda m: np.array(TRUTHS))
kind("numpy", "str", WORDS, lambda m: np.array(WORDS))
kind("numpy", "object", GAPS, lambda m: np.array(GAPS, object))
kind("numpy", "object_of_numpy", INTS, lambda m: np.array([np.int8(3), np.uint64(0), np.int64(BIG), np.int16(7)], object))
kind("numpy", "masked", GAPS, lambda m: np.ma.MaskedArray([3, 9, BIG, 7], [0, 1, 0, 0]))
kind("numpy", "masked_uint64_above", GAPS, lambda m: np.ma.MaskedArray(np.array([3, 2**63, BIG, 7], np.uint64), [0, 1, 0, 0]))
kind("numpy", "big_endian", INTS, lambda m: np.array(INTS, ">i8"))
kind("numpy", "every_second", INTS, lambda m: np.repeat(np.array(INTS), 2)[::2])
kind("numpy", "uint64_above", OverflowError, lambda m: np.array(TOO_LARGE, np.uint64))
kind("numpy", "object_above", OverflowError, lambda m: np.array(TOO_LARGE, object))
kind("numpy", "longdouble", TypeError, lambda m: np.array([1, 2, 3, 4], np.longdouble))
kind("numpy", "complex", TypeError, lambda m: np.array([1, 2, 3, 4j]))
kind("numpy", "datetime64_ns", TypeError, lambda m: np.array(DAYS, "M8[ns]"))
kind("numpy", "timedelta64_ns", TypeError, lambda m: np.array([1, 2, 3, 4], "m8[ns]"))
kind("numpy", "object_datetime64", TypeError, lambda m: np.array([None, None, None, np.datetime64(1, "ns")], object))
kind("numpy", "bytes", TypeError, lambda m: np.array([b"a", b"b", b"c", b"d"]))
kind("numpy", "list", GAPS, lambda m: GAPS)
kind("numpy", "tuple_of_numbers", [3.0, 0.5, 0.0, 2.0**53], lambda m: (3, 0.5, 0, 2**53))
kind("numpy", "range", [0, 1, 2, 3], lambda m: range(4))
kind("numpy", "list_that_float64_does_not_hold", ValueError, lambda m: [BIG, 0.5, 1, 2])
kind("numpy", "tuple_with_an_integer_above", OverflowError, lambda m: (2**63, -1, 0, 0))
kind("numpy", "list_with_a_lone_surrogate", ValueError, lambda m: ["a", "b", "c", "\ud800"])
kind("numpy", "list_of_numbers_and_strings", ValueError, lambda m: [1, 2, 3, "a"])
kind("numpy", "list_of_decimals", TypeError, lambda m: [1, 2, 3, decimal.Decimal("0.1")])

# ---- pandas ----

for name in ("Int64", "UInt64", "int64[pyarrow]", "uint64[pyarrow]"):
    kind("pandas", name, GAPS, lambda m, name=name: m.Series(GAPS, dtype=name))
    kind("pandas", f"{name}_without_gaps", INTS, lambda m, name=name: m.Series(INTS, dtype=name))
kind("pandas", "array_Int64", GAPS, lambda m: m.array(GAPS, dtype="Int64"))
kind("pandas", "index_Int64", GAPS, lambda m: m.Index(GAPS, dtype="Int64"))
for name in ("UInt64", "uint64[pyarrow]"):
    kind("pandas", f"{name}_above", OverflowError, lambda m, name=name: m.Series([None, 1, 2, 2**63], dtype=name))
for name in ("Int8", "UInt16", "Int32", "int8[pyarrow]"):
    kind("pandas", name, [1, None, 2, 3], lambda m, name=name: m.Series([1, None, 2, 3], dtype=name))
for name in ("Float32", "float[pyarrow]"):
    kind("pandas", name, [0.5, None, -2.0, 0.0], lambda m, name=name: m.Series([0.5, None, -2, 0], dtype=name))
for name in ("Float64", "float64", "double[pyarrow]"):
    kind("pandas", name, REAL_GAPS, lambda m, name=name: m.Series(REAL_GAPS, dtype=name))
kind("pandas", "int64", INTS, lambda m: m.Series(INTS))
kind("pandas", "bool", TRUTHS, lambda m: m.Series(TRUTHS))
for name in ("boolean", "bool[pyarrow]"):
    kind("pandas", name, TRUTH_GAPS, lambda m, name=name: m.Series(TRUTH_GAPS, dtype=name))
for name in (None, "object", "string", "string[pyarrow]"):
    kind("pandas", f"words_{name}", WORD_GAPS, lambda m, name=name: m.Series(WORD_GAPS, dtype=name))
kind("pandas", "object_of_integers", GAPS, lambda m: m.Series(GAPS, dtype=object))
kind("pandas", "category", WORD_GAPS, lambda m: m.Series(WORD_GAPS, dtype="category"))
kind("pandas", "category_of_integers", GAPS, lambda m: m.Series(m.Categorical.from_codes([1, -1, 2, 0], [7, 3, BIG])))
kind("pandas", "category_without_categories", [None] * 4, lambda m: m.Series([None] * 4, dtype="category"))
kind("pandas", "sparse", INTS, lambda m: m.Series(m.arrays.SparseArray(INTS)))
kind("pandas", "datetime", TypeError, lambda m: m.Series(DAYS))
kind("pandas", "datetime_ns", TypeError, lambda m: m.Series(DAYS).astype("datetime64[ns]"))
kind("pandas", "datetime_with_gaps", TypeError, lambda m: m.Series([DAYS[0], None, DAYS[1], None]))
kind("pandas", "datetime_of_a_zone", TypeError, lambda m: m.Series(DAYS).dt.tz_localize("UTC"))
kind("pandas", "timestamp[pyarrow]", TypeError, lambda m: m.Series(DAYS, dtype="timestamp[us][pyarrow]"))

# ---- polars ----

for name in ("Int64", "UInt64"):
    kind("polars", name, GAPS, lambda m, name=name: m.Series("x", GAPS, getattr(m, name)))
    kind("polars", f"{name}_without_gaps", INTS, lambda m, name=name: m.Series("x", INTS, getattr(m, name)))
for name in ("Int8", "UInt16", "Int32"):
    kind("polars", name, [1, None, 2, 3], lambda m, name=name: m.Series("x", [1, None, 2, 3], getattr(m, name)))
kind("polars", "Int128", GAPS, lambda m: m.Series("x", GAPS, m.Int128))
kind("polars", "Int128_without_gaps", INTS, lambda m: m.Series("x", INTS, m.Int128))
kind("polars", "UInt64_above", OverflowError, lambda m: m.Series("x", [None, *TOO_LARGE[1:]], m.UInt64))
kind("polars", "UInt64_above_without_gaps", OverflowError, lambda m: m.Series("x", TOO_LARGE, m.UInt64))
kind("polars", "Float64", REAL_GAPS, lambda m: m.Series("x", REAL_GAPS))
kind("polars", "Float32", [0.5, None, -2.0, 0.0], lambda m: m.Series("x", [0.5, None, -2, 0], m.Float32))
kind("polars", "Boolean", TRUTH_GAPS, lambda m: m.Series("x", TRUTH_GAPS))
kind("polars", "Boolean_without_gaps", TRUTHS, lambda m: m.Series("x", TRUTHS))
kind("polars", "String", WORD_GAPS, lambda m: m.Series("x", WORD_GAPS))
kind("polars", "String_without_gaps", WORDS, lambda m: m.Series("x", WORDS))
kind("polars", "Categorical", WORD_GAPS, lambda m: m.Series("x", WORD_GAPS, m.Categorical))
kind("polars", "Categorical_without_gaps", WORDS, lambda m: m.Series("x", WORDS, m.Categorical))
kind("polars", "Enum", WORDS, lambda m: m.Series("x", WORDS, m.Enum(["a", "", "h\u00e9"])))
kind("polars", "Null", [None] * 4, lambda m: m.Series("x", [None] * 4))
kind("polars", "Datetime", TypeError, lambda m: m.Series("x", DAYS))
kind("polars", "Datetime_ns", TypeError, lambda m: m.Series("x", DAYS, m.Datetime("ns")))
kind("polars", "Decimal", TypeError, lambda m: m.Series("x", [decimal.Decimal("0.1")] * 4))

# ---- Arrow ----

for name in ("int64", "uint64"):
    kind("pyarrow", name, GAPS, lambda m, name=name: m.array(GAPS, getattr(m, name)()))
    kind("pyarrow", f"{name}_without_gaps", INTS, lambda m, name=name: m.array(INTS, getattr(m, name)()))
for name in ("int8", "uint16", "int32"):
    kind("pyarrow", name, [1, None, 2, 3], lambda m, name=name: m.array([1, None, 2, 3], getattr(m, name)()))
kind("pyarrow", "uint64_above", OverflowError, lambda m: m.array([None, *TOO_LARGE[1:]], m.uint64()))
kind("pyarrow", "uint64_above_without_gaps", OverflowError, lambda m: m.array(TOO_LARGE, m.uint64()))
kind("pyarrow", "float64", REAL_GAPS, lambda m: m.array(REAL_GAPS))
kind("pyarrow", "float32", [0.5, None, -2.0, 0.0], lambda m: m.array([0.5, None, -2, 0], m.float32()))
kind("pyarrow", "float16", [0.5, -2.0, 0.0, 1.0], lambda m: m.array(np.array([0.5, -2, 0, 1], np.float16)))
kind("pyarrow", "bool", TRUTH_GAPS, lambda m: m.array(TRUTH_GAPS))
for name in ("string", "large_string", "string_view"):
    kind("pyarrow", name, WORD_GAPS, lambda m, name=name: m.array(WORD_GAPS, getattr(m, name)()))
    kind("pyarrow", f"{name}_without_gaps", WORDS, lambda m, name=name: m.array(WORDS, getattr(m, name)()))
kind("pyarrow", "dictionary", WORD_GAPS, lambda m: m.array(WORD_GAPS).dictionary_encode())
kind("pyarrow", "dictionary_without_gaps", WORDS, lambda m: m.array(WORDS).dictionary_encode())
kind("pyarrow", "dictionary_of_integers", GAPS, lambda m: m.array(GAPS).dictionary_encode())
kind("pyarrow", "dictionary_with_a_null", GAPS, lambda m: m.DictionaryArray.from_arrays([0, 1, 2, 3], m.array(GAPS)))
kind("pyarrow", "chunked", GAPS, lambda m: m.chunked_array([GAPS[:1], GAPS[1:]]))
kind("pyarrow", "chunked_without_gaps", INTS, lambda m: m.chunked_array([INTS[:1], INTS[1:]]))
kind("pyarrow", "chunked_dictionary", WORDS, lambda m: m.chunked_array([m.array(WORDS[:1]).dictionary_encode(),
                                                                       m.array(WORDS[1:]).dictionary_encode()]))
kind("pyarrow", "null", [None] * 4, lambda m: m.nulls(4))
kind("pyarrow", "timestamp", TypeError, lambda m: m.array(DAYS))
kind("pyarrow", "timestamp_ns", TypeError, lambda m: m.array(DAYS, m.timestamp("ns")))
kind("pyarrow", "decimal", TypeError, lambda m: m.array([decimal.Decimal("0.1")] * 4))
kind("pyarrow", "binary", TypeError, lambda m: m.array([b"a", b"b", b"c", b"d"]))
