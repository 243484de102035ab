# SPDX-License-Identifier: Apache-2.0
"""Values of documents: the columns of a dataset as NumPy arrays, and rows for the writer."""

import ctypes
import os
import re
import warnings
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from .._c import arguments
from .._c import structs as _lib
from .._c.errors import DamagedError, Error, Handle, call, check
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
    """Memory of an open dataset or column: an array that NumPy makes of it keeps it, and so what is open."""

    def __init__(self, handle: Any, address: int, n: int, dtype: str) -> None:
        self.handle = handle
        self.__array_interface__ = {"data": (address, True), "shape": (n,), "typestr": np.dtype(dtype).str, "version": 3}


class Column:
    """A column of one dataset, late or not."""

    def __init__(self, shard: Any, name: str) -> None:
        self.name, self.n_documents = name, int(shard.info.n_documents)
        self.handle = Handle(lib.tokmap_column_close, shard.handle)
        call(lib.tokmap_column_open, ctypes.byref(self.handle.pointer), shard.handle.pointer, name.encode())
        self.info = _lib.MetaColumn()
        lib.tokmap_column_get_info(self.handle.pointer, ctypes.byref(self.info))
        self.path: str = os.fsdecode(self.info.path) if self.info.path else shard.path
        self.type: int = self.info.type
        self._table: Optional[List[Value]] = None

    def verify(self) -> "Column":
        """Compares a late column with its checksums, before all of it is used."""
        call(lib.tokmap_column_verify, self.handle.pointer, None, None)
        return self

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

    def numbers(self, dtype: "np.dtype[Any]", first: int = 0, n: Optional[int] = None) -> Array:
        """A view of n numbers, if they are of this type; else a copy."""
        n = self.n_documents - first if n is None else n
        if self.type == NULL:
            return np.zeros(n, dtype)
        kind = ("<i" if self.type == INT64 else "<f") + str(self.info.number_bytes)
        view = self._view(self.info.values, kind, self.n_documents)[first:first + n]
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
            unique, numbers = np.unique(self.numbers(dtype, first, n), return_inverse=True)
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
        if lib.tokmap_column_get_value(self.handle.pointer, document, ctypes.byref(found)):
            raise self._damaged()
        if found.type == STRING:
            return decode(ctypes.string_at(found.text, found.text_bytes) if found.text_bytes else b"")
        number: Value = (None, found.integer, found.real)[found.type]
        return number

    def _damaged(self) -> DamagedError:
        return DamagedError(f"{self.path}: damaged: the values of column {self.name!r}", -6, file=self.path)


def decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def prefix_of(shard: Any) -> str:
    """P, the name that files beside the index begin with."""
    return re.sub(r"\.tmi(\.replaced)?$", "", shard.full_path)


def _names_of(shard: Any) -> Iterator[str]:
    """The columns of the index, then the late ones beside it."""
    info = _lib.MetaColumn()
    for i in range(shard.info.n_meta_columns):
        status = lib.tokmap_dataset_get_meta_column(shard.handle.pointer, i, ctypes.byref(info))
        if status:
            raise shard.index_error("its columns cannot be read", status)
        yield ctypes.string_at(info.name, info.name_bytes).decode()
    if shard.source is not None:
        return  # a store is not listed
    folder, prefix = os.path.split(prefix_of(shard))
    late = re.compile(re.escape(prefix) + r"\.([A-Za-z0-9_-]{1,64})\.tmc")
    for found in filter(None, map(late.fullmatch, sorted(os.listdir(folder)))):
        yield found[1]


def columns_of(shard: Any) -> Dict[str, Column]:
    """All columns by name. A late column that cannot be read is left out, with a warning."""
    columns = {}
    for name in _names_of(shard):
        try:
            columns[name] = Column(shard, name)
        except Error as error:
            warnings.warn(str(error), stacklevel=4)
    return columns


def verify_beside(shard: Any) -> None:
    """Compares the late columns and the views beside a dataset with their checksums."""
    for name in _names_of(shard):
        Column(shard, name).verify()
    folder, prefix = os.path.split(prefix_of(shard))
    view = re.compile(re.escape(prefix) + r"\.[^.]+\.tmw")
    for found in filter(view.fullmatch, sorted(os.listdir(folder))):
        handle = Handle(lib.tokmap_view_close, shard.handle)
        options = _lib.ViewOptions(path=os.fsencode(os.path.join(folder, found)))
        call(lib.tokmap_view_open, ctypes.byref(handle.pointer), shard.handle.pointer, ctypes.byref(options))
        call(lib.tokmap_view_verify, handle.pointer, None, None)


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
    encoded = [arguments.text("a name of meta", name, "a string") for name in names]
    return (ctypes.c_char_p * len(encoded))(*encoded)


def value_of(name: str, value: Any, document: Optional[int] = None) -> _lib.Value:
    """The value as the library takes it; `keep` holds its text. Exceptions name the column, and the document if given."""
    place = name if document is None else f"{name}, document {document}"
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":  # whose item() may be an int
        value = value.item()
    if value is None:
        return _lib.Value(type=NULL)
    if isinstance(value, int):
        if not -2**63 <= value < 2**63:
            raise OverflowError(f"{place}: {value} does not fit into a signed integer of 64 bits")
        return _lib.Value(type=INT64, integer=value)
    if isinstance(value, float):
        return _lib.Value(type=FLOAT64, real=value)
    if isinstance(value, str):
        try:
            text = value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise ValueError(f"{place}: {error.reason}: {value!r:.80}") from None
        found = _lib.Value(type=STRING, text=ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p), text_bytes=len(text))
        found.keep = text
        return found
    raise TypeError(f"{place}: a value is an int, a float, a string or None, not a {type(value).__name__}")


def row_of(names: Sequence[str], values: Mapping[str, Any]) -> Any:
    """The values of a document in the order of the columns; what is missing is null."""
    if not isinstance(values, Mapping):
        raise TypeError(f"meta is {values!r:.80}: must be a mapping from names to values")
    unknown = [name for name in values if name not in names]
    if unknown:
        raise KeyError(f"there is no column {unknown[0]!r}: the columns are {', '.join(map(repr, names)) or 'none'}")
    found = [value_of(name, values.get(name)) for name in names]
    row: Any = (_lib.Value * len(names))(*found)
    row.keep = found
    return row


# ---- Late columns ----

_CHUNK = 1 << 16
_VALUE = np.dtype({"names": ["type", "integer", "real", "text", "text_bytes"], "formats": ["<i4", "<i8", "<f8", "<u8", "<u8"],
                   "offsets": [getattr(_lib.Value, name).offset for name, *_ in _lib.Value._fields_],
                   "itemsize": ctypes.sizeof(_lib.Value)})


# Types of Arrow and polars that NumPy has too. A dictionary may have nulls that null_count does not count.
_PLAIN_TYPE = re.compile("bool(ean)?|u?int(8|16|32|64)|(half)?float(16|32|64)?|double", re.IGNORECASE)


def as_array(values: Any) -> Array:
    """What a user gives as a column: an array, masked where there is no value, or of objects with None. No number is
    rounded: NumPy and pandas make float64 of integers beside a float or a missing value, so these stay objects, or get a
    mask."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "isna"):
        return _of_pandas(values)
    as_list = getattr(values, "to_pylist", getattr(values, "to_list", None))  # of Arrow, and of polars
    if as_list:
        n_nulls = values.null_count
        has_nulls = n_nulls() if callable(n_nulls) else n_nulls
        if has_nulls or not _PLAIN_TYPE.fullmatch(str(getattr(values, "type", getattr(values, "dtype", "")))):
            values = as_list()
    return np.asarray(values) if hasattr(values, "__array__") else np.array(values, object)


def _of_pandas(values: Any) -> Array:
    """A column of pandas, for which NaN means that there is no value."""
    missing, own = np.asarray(values.isna(), bool), getattr(values, "array", values)
    data: Any
    if hasattr(own, "codes"):  # a code of each category
        categories, codes = as_array(own.categories), np.where(missing, 0, own.codes)
        data = categories[codes] if len(categories) else np.full(len(missing), None)
    elif hasattr(values.dtype, "numpy_dtype") and values.dtype.kind in "biuf":  # nullable, or of Arrow
        data = values.to_numpy(dtype=values.dtype.numpy_dtype, na_value=values.dtype.numpy_dtype.type(0).item())
    elif not isinstance(values.dtype, np.dtype):
        data = values.to_numpy(dtype=object)
    else:
        data = np.asarray(values)
    found: Any = np.where(missing, None, data) if data.dtype.kind == "O" else np.ma.MaskedArray(data, missing)
    return np.asanyarray(found)


def _rows_of(name: str, values: Array, first: int) -> Tuple[Array, Any]:
    """The values of documents from `first` on as the library takes them, and what holds their texts."""
    rows = np.zeros(len(values), _VALUE)
    mask, data = np.ma.getmaskarray(values), np.ma.getdata(values)
    kind = data.dtype.kind
    if kind in "biu" or kind == "f" and data.dtype.itemsize <= 8:
        if kind == "u":
            too_large = np.flatnonzero(~mask & (data >= 2**63))
            for i in too_large[:1].tolist():
                value_of(name, int(data[i]), first + i)  # raises
        rows["type"] = np.where(mask, NULL, FLOAT64 if kind == "f" else INT64)
        rows["real" if kind == "f" else "integer"] = np.where(mask, 0, data)
        return rows, None
    plain = data if kind in "mM" else data.tolist()
    found = [value_of(name, None if missing else one, first + i) for i, (one, missing) in enumerate(zip(plain, mask.tolist()))]
    kept = (_lib.Value * len(found))(*found)
    return np.frombuffer(memoryview(kept).cast("B"), _VALUE), (kept, found)


def add_column(shard: Any, name: str, values: Array, replace: bool) -> None:
    options = _lib.ColumnOptions(name=arguments.text("name", name, "the name of a column"), replace=replace)
    pointer, detail = ctypes.c_void_p(), _lib.ErrorDetail()
    status = lib.tokmap_column_writer_open(ctypes.byref(pointer), shard.handle.pointer, ctypes.byref(options),
                                           ctypes.byref(detail))
    check(status, detail, ": set replace=True to replace it" if detail.reason == _lib.REPLACEABLE else "")
    try:
        for first in range(0, len(values), _CHUNK):
            rows, kept = _rows_of(name, values[first:first + _CHUNK], first)
            call(lib.tokmap_column_writer_put, pointer, first, rows.ctypes.data, len(rows))
        call(lib.tokmap_column_writer_finish, pointer)
    finally:
        lib.tokmap_column_writer_close(pointer)
