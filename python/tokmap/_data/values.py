# SPDX-License-Identifier: Apache-2.0
"""Values of documents: the columns of a dataset as NumPy arrays, and rows for the writer."""

import ctypes
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from .._c import structs as _lib
from .._c.errors import DamagedError
from .._c.structs import lib

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]
else:
    Array = np.ndarray  # numpy.typing is slow to import
Value = Union[None, int, float, str]
NULL, INT64, FLOAT64, STRING = range(4)
TYPE_NAMES = ("null", "int64", "float64", "str")


class View:
    """Memory that belongs to an open dataset: an array that NumPy makes of it keeps it, and so the dataset."""

    def __init__(self, handle: Any, address: int, n: int, dtype: str) -> None:
        self.handle = handle
        self.__array_interface__ = {"data": (address, True), "shape": (n,), "typestr": np.dtype(dtype).str, "version": 3}


class Column:
    """A column of one dataset."""

    def __init__(self, shard: Any, index: int) -> None:
        self.handle, self.path, self.n_documents = shard.handle, shard.path, int(shard.info.n_documents)
        self.index = index
        self.info = _lib.MetaColumn()
        lib.tokmap_dataset_get_meta_column(self.handle.pointer, index, ctypes.byref(self.info))
        self.name = ctypes.string_at(self.info.name, self.info.name_bytes).decode()
        self.type: int = self.info.type
        self._table: Optional[List[Value]] = None

    def _view(self, address: Optional[int], dtype: str, n: int) -> Array:
        """n numbers of the map, which lives as long as the array."""
        return np.asarray(View(self.handle, address or 0, n, dtype)) if n else np.empty(0, dtype)

    def is_null(self, first: int, n: int) -> Array:
        """For each of n documents, from a multiple of 8 on, whether it has no value."""
        if self.type == NULL or not self.info.validity:
            return np.full(n, self.type == NULL)
        bits = self._view(self.info.validity, "u1", (self.n_documents + 7) // 8)[first // 8:(first + n + 7) // 8]
        null: Array = np.unpackbits(bits, count=n, bitorder="little") == 0
        return null

    def numbers(self, dtype: "np.dtype[Any]") -> Array:
        """A view of the numbers, if they are of this type; else a copy."""
        if self.type == NULL:
            return np.zeros(self.n_documents, dtype)
        view = self._view(self.info.values, "<i8" if self.type == INT64 else "<f8", self.n_documents)
        return view if view.dtype == dtype else view.astype(dtype)

    def strings(self) -> Array:
        """The strings as objects, None where there is none."""
        found = np.full(self.n_documents, None, object)
        if self.type == NULL:
            return found
        strings = np.empty(self.info.n_strings, object)
        strings[:] = self._texts(0, self.info.n_strings)
        if self.info.code_bytes:
            codes = self._view(self.info.codes, f"<u{self.info.code_bytes}", self.n_documents)
            if self.n_documents and int(codes.max()) >= len(strings):
                raise self._damaged()
            strings = strings[codes]
        valid = ~self.is_null(0, self.n_documents)
        found[valid] = strings[valid]
        return found

    def groups(self, first: int, n: int) -> Tuple[Array, List[Value]]:
        """(numbers, values): for each of n documents, from a multiple of 8 on, the number of its value in the list of
        values."""
        values: List[Value]
        if self.type == STRING and self.info.code_bytes:
            if self._table is None:
                self._table = self._texts(0, self.info.n_strings)
            codes, values = self._view(self.info.codes, f"<u{self.info.code_bytes}", self.n_documents)[first:first + n], self._table
            if n and int(codes.max()) >= len(values):
                raise self._damaged()
            numbers = codes.astype(np.int64)
        elif self.type == STRING:
            found: Dict[Value, int] = {}
            numbers = np.array([found.setdefault(text, len(found)) for text in self._texts(first, n)], np.int64)
            values = list(found)
        else:
            dtype = np.dtype("<f8" if self.type == FLOAT64 else "<i8")
            unique, numbers = np.unique(self.numbers(dtype)[first:first + n], return_inverse=True)
            values = unique.tolist()
        if self.type == NULL:
            return np.zeros(n, np.int64), [None]
        if self.info.validity:
            numbers[self.is_null(first, n)] = len(values)
            values = [*values, None]
        return numbers, values

    def _texts(self, first: int, n: int) -> List[Value]:
        offsets = self._view(self.info.offsets, "<u8", self.info.n_strings + 1)[first:first + n + 1].astype(np.int64)
        if n == 0:
            return []
        if (np.diff(offsets) < 0).any() or offsets[0] < 0 or offsets[-1] > self.info.text_bytes:
            raise self._damaged()
        begin = int(offsets[0])
        text = ctypes.string_at(self.info.text + begin, int(offsets[-1]) - begin)
        ends = (offsets - begin).tolist()
        return [decode(text[a:b]) for a, b in zip(ends, ends[1:])]

    def value(self, document: int) -> Value:
        found = _lib.Value()
        if lib.tokmap_dataset_get_meta(self.handle.pointer, self.index, document, ctypes.byref(found)):
            raise self._damaged()
        if found.type == STRING:
            return decode(ctypes.string_at(found.text, found.text_bytes) if found.text_bytes else b"")
        number: Value = (None, found.integer, found.real)[found.type]
        return number

    def _damaged(self) -> DamagedError:
        return DamagedError(f"{self.path}: damaged: the values of column {self.name!r}", -6)


def decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def columns_of(shard: Any) -> Dict[str, Column]:
    columns = [Column(shard, i) for i in range(shard.info.n_meta_columns)]
    return {column.name: column for column in columns}


def join(columns: Sequence[Column]) -> Array:
    """A column of several datasets as one array."""
    types = {column.type for column in columns} - {NULL}
    if STRING in types and len(types) > 1:
        raise ValueError(f"column {columns[0].name!r} has numbers in one dataset and strings in another: "
                         "ask each of `shards`")
    if not types or STRING in types:
        strings = [column.strings() for column in columns]
        return strings[0] if len(strings) == 1 else np.concatenate(strings)
    dtype = np.dtype("<f8" if FLOAT64 in types else "<i8")
    numbers = [column.numbers(dtype) for column in columns]
    joined = numbers[0] if len(numbers) == 1 else np.concatenate(numbers)
    joined.flags.writeable = False
    if not any(column.info.n_nulls for column in columns):
        return joined
    mask = np.concatenate([column.is_null(0, column.n_documents) for column in columns])
    return np.ma.MaskedArray(joined, mask)


# ---- Writing ----


def name_array(names: Sequence[str]) -> Any:
    if isinstance(names, str):
        raise TypeError("meta is a list of names, not one string")
    encoded = [name.encode() for name in names]
    if any(b"\0" in name for name in encoded):
        raise ValueError("a name cannot contain a zero byte")
    return (ctypes.c_char_p * len(encoded))(*encoded)


def value_of(name: str, value: Any) -> _lib.Value:
    """The value as the library takes it; `keep` holds its text."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return _lib.Value(type=NULL)
    if isinstance(value, int):
        if not -2**63 <= value < 2**63:
            raise OverflowError(f"{name}: {value} does not fit into 64 bits")
        return _lib.Value(type=INT64, integer=value)
    if isinstance(value, float):
        return _lib.Value(type=FLOAT64, real=value)
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogateescape")
        found = _lib.Value(type=STRING, text=ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p), text_bytes=len(text))
        found.keep = text
        return found
    raise TypeError(f"{name}: a value is an int, a float, a string or None, not a {type(value).__name__}")


def row_of(names: Sequence[str], values: Mapping[str, Any]) -> Any:
    """The values of a document in the order of the columns; what is missing is null."""
    unknown = [name for name in values if name not in names]
    if unknown:
        raise KeyError(f"there is no column {unknown[0]!r}: the columns are {', '.join(map(repr, names)) or 'none'}")
    found = [value_of(name, values.get(name)) for name in names]
    row: Any = (_lib.Value * len(names))(*found)
    row.keep = found
    return row
