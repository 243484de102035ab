# SPDX-License-Identifier: Apache-2.0
"""tokmap.Writer - documents of ids into a dataset."""

import ctypes
import json
import os
import weakref
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from .._c import structs as _lib
from .._c.arguments import flag, number
from .._c.errors import call, check
from .._c.locks import new_lock
from .._c.structs import lib
from . import values as _meta
from .dataset import Dataset, Path, encode_path


def _as_ids(ids: Union[Iterable[int], npt.NDArray[Any]]) -> npt.NDArray[np.uint32]:
    if not hasattr(ids, "__array__"):
        try:
            ids = list(ids)
        except TypeError:
            raise TypeError(f"ids is {ids!r:.80}: must be an array or an iterable of ids") from None
    array = ids if isinstance(ids, np.ndarray) else np.asarray(ids)
    if np.ma.is_masked(array):
        raise ValueError("ids are masked: a document has all of its ids")
    if array.ndim != 1:
        raise ValueError(f"ids: a document has one dimension, this array has {array.ndim}")
    if array.size == 0:
        return np.empty(0, np.uint32)
    if array.dtype.kind == "O" and all(isinstance(one, int) for one in array.tolist()):  # more than 64 bits
        raise OverflowError(f"ids are 0 to 2^32 - 1, these are {min(array)} to {max(array)}")
    if array.dtype.kind not in "iu":
        raise TypeError(f"ids are integers, these are {array.dtype.name}")
    if array.dtype.kind == "i" and int(array.min()) < 0 or array.dtype.itemsize > 4 and int(array.max()) >= 2**32:
        raise OverflowError(f"ids are 0 to 2^32 - 1, these are {array.min()} to {array.max()}")
    return np.ascontiguousarray(array, np.uint32)


def _masked_spans(train: Any, n_ids: int) -> List[Tuple[int, int]]:
    """[(first, number)] of the ids that are not trained on."""
    if np.ma.is_masked(train):
        raise ValueError("train is masked: must say for each id whether it counts")
    try:
        mask = np.asarray(train)
    except ValueError:
        raise ValueError(f"train is {train!r:.80}: must be a list of truth values, or of pairs") from None
    if mask.ndim == 2 and mask.shape[1] == 2 and mask.dtype.kind in "iu":
        if (mask < 0).any() or (mask > n_ids).any() or (np.diff(mask.ravel()) < 0).any():
            raise ValueError(f"train is {train!r:.80}: its pairs must ascend, up to the number of ids, {n_ids}")
        pairs, mask = mask, np.zeros(n_ids, bool)
        for first, end in pairs:
            mask[first:end] = True
    if mask.shape != (n_ids,) or mask.dtype.kind != "b" and not np.isin(mask, (0, 1)).all():
        raise ValueError(f"train has the shape {mask.shape}: must be a bool, or 0 or 1, for each of the {n_ids} ids")
    ends = np.flatnonzero(np.diff(mask.astype(bool), prepend=True, append=True))
    return [(int(first), int(end - first)) for first, end in zip(ends[::2], ends[1::2])]


class Writer:
    """Writes a dataset, which becomes visible only when it is complete:

        with tokmap.Writer("data/train", vocab_size=50257, eod_id=50256) as w:
            for ids in documents:
                w.document(ids)

    Leaving the block finishes the dataset. After an exception nothing is left on the disk. Several threads may
    write documents; their order is the order of the calls. A forked process may not write: ForkedError.

    prefix      the path without .bin and .tmi
    vocab_size  all ids are below this number; it decides whether a token takes 2 or 4 bytes
    eod_id      the id that ends documents, if there is one: the documents contain it
    replace     whether a dataset of this name may be replaced
    meta        names of values that documents can have, such as ["score", "lang"]
    spans       whether documents may have ids that are not trained on; not needed if the first document has some
    lanes       {name: type, or (type, count), or (type, count, goes_with)} of lanes that documents have numbers for, such as
                {"logprob": "float16", "topk": ("int32", 32, "input")}: see Dataset.add_lane. They become visible right after
                the dataset; until then they are in files without names beside it
    threads     threads that hash and write the tokens, up to 7, so that document() does not wait for the disk; a failed
                write is then the failure of a later call. 0: no threads"""

    def __init__(self, prefix: Path, vocab_size: int, eod_id: Optional[int] = None, *,
                 replace: bool = False, meta: Sequence[str] = (), spans: bool = False,
                 lanes: Optional[Mapping[str, Any]] = None, threads: int = 0) -> None:
        if isinstance(meta, (str, bytes)) or not hasattr(meta, "__iter__") or isinstance(meta, type):
            raise TypeError(f"meta is {meta!r:.80}: must be a list of names")
        self._columns = list(meta)
        names = _meta.name_array(self._columns)
        options = _lib.WriterOptions(
            vocab_size=number("vocab_size", vocab_size, 2**31, 1),
            has_eod=eod_id is not None, replace=flag("replace", replace),
            eod_id=0 if eod_id is None else number("eod_id", eod_id, _lib.NO_ID - 1), has_spans=flag("spans", spans),
            n_threads=number("threads", threads, 7))
        pointer, detail = ctypes.c_void_p(), _lib.ErrorDetail()
        path = os.path.join(os.getcwdb(), encode_path(prefix, "prefix"))  # the process may change its folder
        status = lib.tokmap_writer_open(ctypes.byref(pointer), path, ctypes.byref(options),
                                        ctypes.byref(detail))
        can_replace = not replace and detail.reason == _lib.REPLACEABLE
        check(status, detail, ": set replace=True to replace it" if can_replace else "")
        self._pointer, self._path, self._replaces = pointer, os.fsdecode(path), bool(replace)
        self._lock: Any = new_lock(self)
        # At exit too: an unfinished dataset leaves nothing on the disk.
        self._closer = weakref.finalize(self, lib.tokmap_writer_close, pointer)
        try:
            call(lib.tokmap_writer_set_meta_columns, pointer, names, len(self._columns))
            self._lanes: Dict[str, Any] = self._open_lanes(lanes or {})
        except BaseException:
            self.close()
            raise

    def _open_lanes(self, given: Mapping[str, Any]) -> Dict[str, Any]:
        if not isinstance(given, Mapping):
            raise TypeError(f"lanes is {given!r:.80}: must be a mapping, such as {{'logprob': 'float16'}}")
        if not given:
            return {}
        from .lanes import LaneSpool

        return {name: LaneSpool(os.path.dirname(self._path) or ".", name, kind) for name, kind in given.items()}

    def _open(self) -> ctypes.c_void_p:
        if not self._closer.alive:
            raise ValueError("the writer is closed")
        return self._pointer

    def document(self, ids: Union[Iterable[int], npt.NDArray[Any]], meta: Optional[Mapping[str, Any]] = None,
                 train: Any = None, lanes: Optional[Mapping[str, Any]] = None) -> None:
        """Appends a document: an array or any iterable of ids. An array of uint32 is not converted. meta: the values of
        the document by name: ints, floats or strings; None, or a name that is left out, means no value. A name has
        either numbers or strings; ints become floats if there is a float too. train: for each id whether it counts as a
        label, or (first, end) of each run of ids that count; None: all ids count. lanes: by name, for each id its number or
        numbers; a lane that is left out has zeros here."""
        array = _as_ids(ids)
        spans = [] if train is None else _masked_spans(train, array.size)
        row = _meta.row_of(self._columns, {} if meta is None else meta)
        for name in lanes or ():
            if name not in self._lanes:
                raise ValueError(f"there is no lane {name!r}: the writer has {', '.join(map(repr, self._lanes)) or 'none'}")
        numbers = [(lane, lane.rows((lanes or {}).get(name), array.size)) for name, lane in self._lanes.items()]
        with self._lock:
            call(lib.tokmap_writer_append, self._open(), array.ctypes.data, array.size)
            for first, n in spans:
                call(lib.tokmap_writer_add_span, self._open(), _lib.Span(first, n))
            if meta:
                call(lib.tokmap_writer_add_meta, self._open(), row, len(self._columns))
            call(lib.tokmap_writer_end_document, self._open())
            for lane, rows in numbers:
                lane.add(rows)

    def end_input(self, name: Path, input_bytes: int = 0, input_checksum: int = 0) -> None:
        """Names the input file of all documents since the last call."""
        input_bytes = number("input_bytes", input_bytes, 2**64 - 1)
        input_checksum = number("input_checksum", input_checksum, 2**64 - 1)
        with self._lock:
            call(lib.tokmap_writer_end_input, self._open(), encode_path(name, "name"), input_bytes, input_checksum)

    def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Stores names and values that JSON can hold, for Dataset.metadata."""
        if not isinstance(metadata, Mapping):
            raise TypeError(f"metadata must be a mapping, not {type(metadata).__name__}")
        text = json.dumps(dict(metadata), allow_nan=False).encode()
        with self._lock:
            call(lib.tokmap_writer_set_metadata, self._open(), text, len(text))

    def finish(self) -> None:
        """Makes the dataset visible. Without it, closing the writer removes what was written."""
        with self._lock:
            try:
                call(lib.tokmap_writer_finish, self._open())
                for lane in self._lanes.values():
                    with Dataset(self._path) as ds:
                        lane.write(ds._only("a lane"), self._replaces)
            finally:
                self.close()

    def close(self) -> None:
        """Discards the dataset, unless it is finished."""
        with self._lock:
            self._closer()
            for lane in getattr(self, "_lanes", {}).values():
                lane.close()

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, kind: Any, *exc: object) -> None:
        if kind is None and self._closer.alive:
            self.finish()
        self.close()
