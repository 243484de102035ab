# SPDX-License-Identifier: Apache-2.0
"""tokmap.Lane and tokmap.LaneWriter - numbers for each token of a dataset."""

import bisect
import ctypes
import itertools
import json
import os
import re
import sys
import warnings
import weakref
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from .._c import arguments
from .._c import structs as _lib
from .._c.arguments import flag, integer, number
from .._c.errors import DamagedError, Error, Handle, call, check
from .._c.locks import new_lock
from .._c.structs import lib
from .values import Array, View, prefix_of

# By the number that the library has for each; the types of which NumPy has none are the bits of their numbers.
TYPES = ("", "uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "bfloat16", "float32", "float8_e4m3", "float8_e5m2")
_BITS = {"bfloat16": "uint16", "float8_e4m3": "uint8", "float8_e5m2": "uint8"}
_OF_TORCH = {"bfloat16": "bfloat16", "float8_e4m3fn": "float8_e4m3", "float8_e5m2": "float8_e5m2"}
GOES_WITH = ("label", "input")
_CHUNK_BYTES = 16 << 20


def dtype_of(type_name: str) -> "np.dtype[Any]":
    return np.dtype(_BITS.get(type_name, type_name)).newbyteorder("<")


class _Part:
    """The lane of one dataset."""

    def __init__(self, shard: Any, name: str) -> None:
        self.path: str = shard.path
        self.handle = Handle(lib.tokmap_lane_close, shard.handle)
        call(lib.tokmap_lane_open, ctypes.byref(self.handle.pointer), shard.handle.pointer, arguments.text("name", name, "the name of a lane"))
        self.info = _lib.LaneInfo()
        lib.tokmap_lane_get_info(self.handle.pointer, ctypes.byref(self.info))
        self.kind: Tuple[int, int, int] = self.info.type, self.info.count, self.info.goes_with

    def range(self, first: int, n_tokens: int) -> Array:
        """All numbers of these tokens, read-only: a view if possible, else a copy."""
        address, n = ctypes.c_void_p(), n_tokens * self.info.count
        dtype = dtype_of(TYPES[self.info.type])
        if n and not lib.tokmap_lane_values(self.handle.pointer, first, n_tokens, ctypes.byref(address)):
            return np.asarray(View(self.handle, address.value or 0, n, dtype.str))
        found = np.empty(n, dtype)
        call(lib.tokmap_lane_read, self.handle.pointer, first, n_tokens, found.ctypes.data)
        found.flags.writeable = False
        return found


class Lane:
    """Numbers for each token of a Dataset: what `Dataset.lane` returns. lane[first:end] are those of these tokens, as a
    read-only array of NumPy: a view of the mapped file, or a copy if they are in several files. It has the shape
    [tokens] if there is one number for a token, else [tokens, count]. lane[i] are those of token i.

    name, type, count   of the numbers: "float16", 1. bfloat16 and float8 are arrays of their bits: uint16 or uint8
    goes_with   "label": the numbers of a token say something of it as a label, given the tokens before it, such as a
                weight or a log-probability. "input": what a model has computed at the token, such as logits, which are about
                the label after it"""

    def __init__(self, dataset: Any, name: str) -> None:
        self._dataset = dataset
        self._parts = [_Part(shard, name) for shard in dataset._shards()]
        first = self._parts[0]
        for part in self._parts:
            if part.kind != first.kind:
                raise ValueError(f"lane {name!r} has another type, count or goes_with in {first.path} than in {part.path}: "
                                 "ask each of `shards`")
        self._ends: List[int] = [0, *itertools.accumulate(int(part.info.n_tokens) for part in self._parts)]
        self.name, self.n_tokens = name, self._ends[-1]
        self.type, self.count, self.goes_with = TYPES[first.info.type], int(first.info.count), GOES_WITH[first.info.goes_with]
        self.dtype = dtype_of(self.type)

    @property
    def about(self) -> Dict[str, Any]:
        """What the writer has stored about the numbers, such as {"teacher": "..."}."""
        text, path = self._parts[0].info.about, self._parts[0].path
        try:
            found: Dict[str, Any] = json.loads(text) if text else {}
        except ValueError as error:
            raise DamagedError(f"{path}: 'about' of lane {self.name!r} is not JSON: {error}", -6, file=path) from None
        return found

    @property
    def paths(self) -> List[Optional[str]]:
        """The file of each dataset; None for a joined one whose token files each have a lane beside them."""
        return [os.fsdecode(part.info.path) if part.info.path else None for part in self._parts]

    @property
    def array(self) -> Optional[Array]:
        """All numbers as one view of the mapped file; None if they are in several files."""
        return self[:] if len(self._parts) == 1 and self._parts[0].info.path else None

    def __len__(self) -> int:
        return self.n_tokens

    def __getitem__(self, index: Any) -> Array:
        if not isinstance(index, slice):
            i = integer("index", index)
            if not -self.n_tokens <= i < self.n_tokens:
                raise IndexError(f"token {i}: there are {self.n_tokens}")
            one: Array = self._range(i % self.n_tokens, i % self.n_tokens + 1)[0]
            return one
        first, end, step = index.indices(self.n_tokens)
        if step != 1:
            raise ValueError(f"a step of {step}: take the numbers of lane[first:end] apart")
        return self._range(first, max(first, end))

    def _range(self, first: int, end: int) -> Array:
        parts = []
        for k in range(max(0, bisect.bisect_right(self._ends, first) - 1), len(self._parts)):
            begin = max(first, self._ends[k])
            parts.append(self._parts[k].range(begin - self._ends[k], max(0, min(end, self._ends[k + 1]) - begin)))
            if end <= self._ends[k + 1]:
                break
        found: Array = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, self.dtype)
        found.flags.writeable = False
        return found if self.count == 1 else found.reshape(-1, self.count)

    def document(self, index: int) -> Array:
        """The numbers of the tokens of document number `index`."""
        place = self._dataset.document(index)
        return self[place.first_token:place.first_token + place.n_tokens]

    def verify(self, threads: int = 0) -> None:
        """Reads and checks every byte. Raises DamagedError, or FileError if the system could not read."""
        options = _lib.VerifyOptions(n_threads=number("threads", threads, 64))
        for part in self._parts:
            call(lib.tokmap_lane_verify, part.handle.pointer, ctypes.byref(options))

    def __repr__(self) -> str:
        return f"<tokmap.Lane {self.name}: {f'{self.count} ' if self.count > 1 else ''}{self.type} of each {self.goes_with}>"


def _names_of(shard: Any) -> Iterator[str]:
    """The lanes beside a dataset, then those beside its first token file, if it is joined."""
    prefixes = [prefix_of(shard)]
    if shard.info.n_segments:
        segment = shard.look_up(lib.tokmap_dataset_get_segment, 0, _lib.Segment())
        path = os.path.join(os.path.dirname(shard.full_path), os.fsdecode(segment.path))
        prefixes.append(os.path.splitext(path)[0])
    seen = set()
    for folder, prefix in map(os.path.split, prefixes):
        lane = re.compile(re.escape(prefix) + r"\.([A-Za-z0-9_-]{1,64})\.tml")
        for found in filter(None, map(lane.fullmatch, sorted(os.listdir(folder)))):
            if found[1] not in seen:
                yield found[1]
            seen.add(found[1])


def lanes_of(dataset: Any) -> Dict[str, Lane]:
    """The lanes that all datasets have. One that cannot be read is left out, with a warning."""
    lanes = {}
    names = [list(_names_of(shard)) for shard in dataset._shards()]
    for name in names[0]:
        if not all(name in some for some in names):
            continue
        try:
            lanes[name] = Lane(dataset, name)
        except (Error, ValueError) as error:
            warnings.warn(str(error), stacklevel=3)
    return lanes


def verify_lanes(shard: Any, options: Any) -> None:
    for name in _names_of(shard):
        part = _Part(shard, name)
        call(lib.tokmap_lane_verify, part.handle.pointer, ctypes.byref(options))


# ---- Writing ----


def _of_torch(values: Any) -> Tuple[Array, str]:
    """The numbers of a tensor, and their type; bits of what NumPy has no type for."""
    torch, values = sys.modules["torch"], values.detach().cpu()
    name = str(values.dtype).rpartition(".")[2]
    if name in _OF_TORCH:
        bits = torch.int16 if values.element_size() == 2 else torch.uint8
        found: Array = values.contiguous().view(bits).numpy()
        return (found.view(np.uint16) if values.element_size() == 2 else found), _OF_TORCH[name]
    return values.numpy(), name


def _as_numbers(values: Any, type_name: Optional[str]) -> Tuple[Array, str]:
    """An array of numbers, and the type that is written."""
    if type(values).__module__.partition(".")[0] == "torch" and hasattr(values, "detach"):
        if values.is_floating_point() and type_name in _BITS:
            names = {ours: theirs for theirs, ours in _OF_TORCH.items()}
            values = values.to(getattr(sys.modules["torch"], names[type_name]))
        elif type_name is not None and str(values.dtype).rpartition(".")[2] in _OF_TORCH:
            values = values.float()  # else its bits would be the numbers
        array, own = _of_torch(values)
    else:
        array = values if isinstance(values, np.ndarray) else np.asarray(values)
        own = "uint8" if array.dtype.kind == "b" else array.dtype.name
    if array.dtype.kind not in "biuf" or np.ma.is_masked(array):
        raise TypeError(f"values are {array.dtype.name}: must be numbers, none of them masked")
    if type_name is None and own not in TYPES[1:]:
        raise TypeError(f"values are {own}: say as which type they are stored, such as type='float16'")
    return array, own if type_name is None else type_name


def _convert(array: Array, type_name: str) -> Array:
    """Numbers as they are stored. As floats they are rounded; as integers they must be whole and fit."""
    dtype = dtype_of(type_name)
    if type_name in _BITS and array.dtype != dtype:
        raise TypeError(f"values are {array.dtype.name}: {type_name} takes its bits as {dtype.name}, or a tensor of torch")
    if array.dtype == dtype:
        return np.ascontiguousarray(array)
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.ascontiguousarray(array, dtype)
        lost = np.isinf(found) & ~np.isinf(array) if dtype.kind == "f" else found != array
    if lost.any():
        raise ValueError(f"values: {array[lost].ravel()[0]} cannot be stored as {type_name}")
    return found


class LaneWriter:
    """Writes a lane, which becomes visible when it is complete: what `Dataset.lane_writer` returns.

        ds = tokmap.open("data/train")
        with ds.lane_writer("weight", "float16", about={"teacher": "..."}) as w:
            for document in map(ds.document, range(len(ds))):
                w.put(document.first_token, [0.5] * document.n_tokens)     # in any order

    Leaving the block finishes the lane; after an exception nothing is left. Several threads may put."""

    def __init__(self, shard: Any, name: str, type: str, count: int = 1, goes_with: str = "label",
                 about: Optional[Mapping[str, Any]] = None, replace: bool = False, partial: bool = False) -> None:
        for what, value, choices in (("type", type, TYPES[1:]), ("goes_with", goes_with, GOES_WITH)):
            if value not in choices:
                raise ValueError(f"{what} is {value!r:.80}: must be one of {', '.join(map(repr, choices))}")
        if about is not None and not isinstance(about, Mapping):
            raise TypeError(f"about is {about!r:.80}: must be a mapping")
        text = json.dumps({"attention": "within documents", **(about or {})}, ensure_ascii=False, allow_nan=False)
        options = _lib.LaneOptions(
            name=arguments.text("name", name, "the name of a lane"), about=text.encode(), type=TYPES.index(type),
            count=number("count", count, 65536, 1), goes_with=GOES_WITH.index(goes_with),
            replace=flag("replace", replace), partial=flag("partial", partial))
        pointer, detail = ctypes.c_void_p(), _lib.ErrorDetail()
        status = lib.tokmap_lane_writer_open(ctypes.byref(pointer), shard.handle.pointer, ctypes.byref(options),
                                             ctypes.byref(detail))
        check(status, detail, ": set replace=True to replace it" if detail.reason == _lib.REPLACEABLE else "")
        self.name, self.type, self.count = name, type, int(count)
        self._shard, self._pointer = shard, pointer
        self._lock: Any = new_lock(self)
        self._closer = weakref.finalize(self, lib.tokmap_lane_writer_close, pointer)

    def _open(self) -> ctypes.c_void_p:
        if not self._closer.alive:
            raise ValueError("the writer is closed")
        return self._pointer

    def put(self, first_token: int, values: Any) -> None:
        """Sets the numbers of the tokens from number first_token on: an array or tensor [tokens], or [tokens, count]. Each
        token gets its numbers once. Numbers that are stored as floats are rounded; as integers they must be whole and fit."""
        first = number("first_token", first_token, 2**64 - 1)
        array, _ = _as_numbers(values, self.type)
        if array.ndim not in (1, 2) or array.ndim == 1 and self.count != 1 or array.ndim == 2 and array.shape[1] != self.count:
            raise ValueError(f"values has the shape {array.shape}: must be [tokens{f', {self.count}' * (self.count > 1)}]")
        array = _convert(array, self.type)
        with self._lock:
            call(lib.tokmap_lane_writer_put, self._open(), first, array.ctypes.data, len(array))

    def finish(self) -> None:
        """Makes the lane visible. Without it, closing the writer removes what was written."""
        with self._lock:
            try:
                call(lib.tokmap_lane_writer_finish, self._open())
            finally:
                self.close()

    def close(self) -> None:
        """Discards the lane, unless it is finished."""
        with self._lock:
            self._closer()

    def __enter__(self) -> "LaneWriter":
        return self

    def __exit__(self, kind: Any, *exc: object) -> None:
        if kind is None and self._closer.alive:
            self.finish()
        self.close()


class LaneSpool:
    """The numbers of a lane of a dataset that is being written, in a file without a name: a lane is of complete tokens."""

    def __init__(self, folder: str, name: str, kind: Any) -> None:
        import tempfile

        given = (kind,) if isinstance(kind, str) else tuple(kind) if isinstance(kind, (tuple, list)) else ()
        if not 1 <= len(given) <= 3 or given[0] not in TYPES[1:] or not isinstance(given[1:2] or (1,), tuple) or given[2:] not in (
                (), *((one,) for one in GOES_WITH)):
            raise ValueError(f"lane {name!r} is {kind!r:.80}: must be a type, or (type, count), or (type, count, goes_with), such as "
                             "('float16', 32, 'input')")
        self.name, self._type = name, given[0]
        self._count = number("count", given[1], 65536, 1) if len(given) > 1 else 1
        self._goes_with = given[2] if len(given) > 2 else "label"
        self._dtype = dtype_of(self._type)
        self._file = tempfile.TemporaryFile(dir=folder)

    def rows(self, values: Any, n_tokens: int) -> Array:
        """The numbers of the tokens of a document, as they are stored; None: zeros."""
        shape = (n_tokens, self._count)
        if values is None:
            return np.zeros(shape, self._dtype)
        array = _convert(_as_numbers(values, self._type)[0], self._type)
        if array.shape not in (shape, (n_tokens,) if self._count == 1 else shape):
            raise ValueError(f"lane {self.name!r} has numbers of the shape {array.shape} for {n_tokens} ids: must have them for each id; if "
                             "they are of labels, put one before the first")
        return array

    def add(self, rows: Array) -> None:
        self._file.write(rows.tobytes())

    def write(self, shard: Any, replace: bool) -> None:
        """Writes the lane of the dataset, which is complete now."""
        self._file.flush()
        self._file.seek(0)
        width, first = self._count * self._dtype.itemsize, 0
        with LaneWriter(shard, self.name, self._type, self._count, self._goes_with, replace=replace) as w:
            while chunk := self._file.read(max(1, _CHUNK_BYTES // width) * width):
                rows = np.frombuffer(chunk, self._dtype).reshape(-1, self._count)
                w.put(first, rows if self._count > 1 else rows[:, 0])
                first += len(rows)

    def close(self) -> None:
        self._file.close()


def add_lane(dataset: Any, name: str, values: Any, type_name: Optional[str], **options: Any) -> None:
    array, type_name = _as_numbers(values, type_name)
    if array.ndim not in (1, 2) or len(array) != dataset.n_tokens or array.size == 0 and array.ndim == 2:
        raise ValueError(f"values has the shape {array.shape}: must be [{dataset.n_tokens}] or [{dataset.n_tokens}, count], "
                         "for each token")
    count = array.shape[1] if array.ndim == 2 else 1
    width = max(1, count * dtype_of(type_name).itemsize)
    n_chunk = max(1, _CHUNK_BYTES // width)
    period = 2**20 // (width & -width) or 1  # tokens after which a MiB begins with a token
    n_chunk = n_chunk // period * period or n_chunk  # so the writer hashes whole blocks
    first = 0
    for shard in dataset._shards():
        end = first + int(shard.info.n_tokens)
        with LaneWriter(shard, name, type_name, count, **options) as w:
            for at in range(first, end, n_chunk):
                w.put(at - first, array[at:min(end, at + n_chunk)])
        first = end
