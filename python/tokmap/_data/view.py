# SPDX-License-Identifier: Apache-2.0
"""tokmap.View - a set of the documents of a dataset."""

import ctypes
import itertools
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from .._c import arguments, html
from .._c import structs as _lib
from .._c.arguments import integer
from .._c.errors import Handle, MismatchError, call
from .._c.structs import lib
from .values import Array, as_array, prefix_of


def as_mask(keep: Any, sizes: Sequence[int]) -> Array:
    """A mask for all documents as bytes, 0 or 1. It may be a list of masks, one for datasets of each of these sizes. A
    missing value is 0."""
    if isinstance(keep, (list, tuple)) and keep and all(hasattr(one, "__len__") for one in keep):
        if len(keep) != len(sizes):
            raise ValueError(f"keep has {len(keep)} masks for {len(sizes)} datasets: must be one for each")
        return np.concatenate([as_mask(one, [n]) for one, n in zip(keep, sizes)])
    mask = as_array(np.frombuffer(keep, np.uint8) if isinstance(keep, (bytes, bytearray)) else keep)
    if mask.shape != (sum(sizes),):
        raise ValueError(f"keep has the shape {mask.shape}: must be one truth value for each of the {sum(sizes)} documents")
    if mask.dtype.kind == "O":
        mask = np.array([False if one is None else one for one in mask.tolist()])
    mask = np.ma.filled(mask, 0)
    if mask.size and (mask.dtype.kind not in "biu" or not 0 <= mask.min() <= mask.max() <= 1):
        raise TypeError(f"keep has {mask.dtype} values other than 0 and 1: must be one truth value for each document, such as "
                        'ds.meta("quality") >= 3')
    return np.ascontiguousarray(mask, bool).view(np.uint8)


def _options(sizes: Sequence[int], where: Optional[str], mask: Optional[Array], paths: Sequence[Optional[str]]) -> List[Any]:
    """What the library is told of datasets of these sizes."""
    found = []
    for n, end, path in zip(sizes, itertools.accumulate(sizes), paths):
        one = _lib.ViewOptions(where=None if where is None else arguments.text("where", where, "an expression, such as 'quality >= 3'"),
                               path=None if path is None else os.fsencode(path))
        if mask is not None:
            one.mask = mask[end - n:end]  # lives as long
            one.keep, one.n_keep = one.mask.ctypes.data, n
        found.append(one)
    return found


def _full(path: str, shard: Any) -> str:
    """A path that stays right if the process changes its folder."""
    return os.path.abspath(path) if shard.source is None else path


class View:
    """Documents of a Dataset, and a source of a Loader, for which there are then no other documents. Dataset.where and
    Dataset.write_view return one.

        view = tokmap.open("data/scored").where("quality >= 3 and not dup")
        print(len(view) / len(view.dataset), view.n_tokens)
        first_three = [view.dataset[i] for i in view.documents(0, 3)]
        loader = tokmap.Loader(view, sequence_length=4096)

    dataset, where, keep    the Dataset; and an expression, or a mask (see Source)
    paths       or a view file for each of its datasets

    n_documents, n_tokens: how many there are; len(view) is n_documents. n_runs: of documents that follow each other; rows
    in one run are not copied. set_hashes: for each dataset a number that depends on the set of documents, and that the
    order of a run depends on. paths: for each dataset the view file, or None if the view is only in memory."""

    def __init__(self, dataset: Any, where: Optional[str] = None, *, keep: Any = None,
                 paths: Optional[Sequence[str]] = None) -> None:
        if not hasattr(dataset, "_shards"):
            raise TypeError(f"dataset is {dataset!r:.80}: must be a Dataset")
        if isinstance(paths, (str, bytes)) or paths is not None and not hasattr(paths, "__len__"):
            raise TypeError(f"paths is {paths!r:.80}: must be a list with a view file for each dataset")
        shards = dataset._shards()
        if paths is not None and len(paths) != len(shards):
            raise ValueError(f"{len(paths)} view files for {len(shards)} datasets: must be one for each")
        self.dataset, self.where = dataset, where
        self._given = None if paths is None else [_full(arguments.path("paths", one), shards[0]) for one in paths]  # how it is opened again
        self._sizes = [int(shard.info.n_documents) for shard in shards]
        self._keep: Any = None  # packed
        self._handles: List[Handle] = []
        self._infos: List[Any] = []
        mask = None if keep is None else as_mask(keep, self._sizes)
        for shard, options in zip(shards, _options(self._sizes, where, mask, paths or [None] * len(shards))):
            handle, info = Handle(lib.tokmap_view_close, shard.handle), _lib.ViewInfo()
            call(lib.tokmap_view_open, ctypes.byref(handle.pointer), shard.handle.pointer, ctypes.byref(options))
            lib.tokmap_view_get_info(handle.pointer, ctypes.byref(info))
            self._handles.append(handle)
            self._infos.append(info)
        if mask is not None:
            self._keep = np.packbits(mask)
        self.n_documents, self.n_tokens, self.n_runs = (
            int(sum(getattr(info, name) for info in self._infos)) for name in ("n_documents", "n_tokens", "n_runs"))
        self.set_hashes: List[int] = [info.set_hash for info in self._infos]
        self.paths: List[Optional[str]] = [info.path and _full(os.fsdecode(info.path), shards[0]) for info in self._infos]

    def _ledger_entries(self) -> List[Optional[Tuple[int, str]]]:
        """For each dataset the set_hash and the expression, as in a ledger; None if all of its documents are used."""
        return [None if info.n_documents == n else (info.set_hash, self.where or "") for info, n in zip(self._infos, self._sizes)]

    def _reopen_arguments(self) -> Dict[int, Dict[str, Any]]:
        """The arguments that open the view of each set_hash again, even if its columns change: its file, or a mask."""
        mask = None if self._keep is None else np.unpackbits(self._keep, count=sum(self._sizes))
        if mask is None and not all(self.paths):
            mask = np.zeros(sum(self._sizes), np.uint8)
            mask[self.documents()] = 1
        return {one: {"paths": [path]} if mask is None else {"keep": mask[end - n:end]} for one, n, end, path in zip(
            self.set_hashes, self._sizes, itertools.accumulate(self._sizes), self.paths)}

    def documents(self, first: int = 0, n_documents: Optional[int] = None) -> Array:
        """The numbers in the dataset of n_documents documents of the view, by default all that follow, from number `first`
        of the view on."""
        first = integer("first", first)
        n = self.n_documents - first if n_documents is None else integer("n_documents", n_documents)
        if not 0 <= first <= first + n <= self.n_documents:
            raise IndexError(f"documents {first} to {first + n} of the view: there are {self.n_documents}")
        found, at, offset = np.empty(n, np.int64), 0, 0
        for handle, info, size in zip(self._handles, self._infos, self._sizes):
            n_here = min(max(info.n_documents - first, 0), n - at)
            if n_here:
                part = found[at:at + n_here]
                call(lib.tokmap_view_documents, handle.pointer, first, n_here, part.ctypes.data)
                part += offset
            at, offset, first = at + n_here, offset + size, max(first - info.n_documents, 0)
        return found

    def __len__(self) -> int:
        return self.n_documents

    def __bool__(self) -> bool:
        return True  # also without documents

    def __repr__(self) -> str:
        what = f"where {self.where!r}, " if self.where else ""
        share = self.n_documents / max(self.dataset.n_documents, 1)
        return f"<tokmap.View {what}{self.n_documents} documents ({share:.2%}), {self.n_tokens} tokens>"

    def _repr_html_(self) -> str:
        return html.shown("of_view", self)

    def __reduce__(self) -> Tuple[Any, ...]:
        """Pickles how it was made, so that another process finds the same documents, or raises MismatchError."""
        return _reopen, (self.dataset, self.where, self._keep, self._given, self.set_hashes)


def _of_files(dataset: Any, where: Optional[str], paths: Sequence[str]) -> View:
    """The view of files that were written for an expression, which is for ledgers and displays."""
    found = View(dataset, paths=paths)
    found.where = where
    return found


def _reopen(dataset: Any, where: Optional[str], keep: Any, paths: Optional[List[str]], set_hashes: List[int]) -> View:
    mask = None if keep is None else np.unpackbits(keep, count=dataset.n_documents)
    found = _of_files(dataset, where, paths) if paths else View(dataset, where, keep=mask)
    if found.set_hashes != set_hashes:
        raise MismatchError(f"{dataset.paths[0]}: {found!r} has other documents than when it was pickled", -7, file=dataset.paths[0])
    return found


def write_view(dataset: Any, where: Optional[str], keep: Any, path: Optional[str]) -> View:
    """The view of files that are written, of an expression or a mask."""
    shards = dataset._shards()
    sizes = [int(shard.info.n_documents) for shard in shards]
    mask = None if keep is None else as_mask(keep, sizes)
    paths: List[Optional[str]] = [path] * len(shards)
    if mask is not None and path is None:  # the library does not know the hash before it has written the file
        hashes = View(dataset, where, keep=mask).set_hashes
        paths = [f"{prefix_of(shard)}.{one:016x}.tmw" for shard, one in zip(shards, hashes)]
    for shard, options in zip(shards, _options(sizes, where, mask, paths)):
        call(lib.tokmap_view_write, shard.handle.pointer, ctypes.byref(options), None)
    if where is not None and path is None:
        return View(dataset, where)
    return _of_files(dataset, where, [one for one in paths if one])
