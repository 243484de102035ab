# SPDX-License-Identifier: Apache-2.0
"""tokmap.DocumentList, and the arrays of numbers that are an order: of documents, or of windows."""

import hashlib
import math
import os
from typing import Any, Optional, Tuple

import numpy as np

from .._c.arguments import flag
from .._c.errors import MismatchError
from .._data.values import Array


def as_numbers(name: str, values: Any) -> Array:
    """An array of 4 or 8 bytes a number, without a copy if that is what it is. Negative numbers become too large ones,
    which the library refuses."""
    found = np.asarray(values)
    if found.size == 0 or found.dtype.kind not in "iu":
        raise TypeError(f"{name} is of {found.size} {found.dtype}: must be an array of one integer or more")
    n_bytes = 4 if found.dtype.itemsize == 4 else 8
    return np.ascontiguousarray(found, f"<{found.dtype.kind}{n_bytes}").view(f"<u{n_bytes}")


class Numbers:
    """An array, which is pickled as the path of its file and its hash if it is in the map of one."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __reduce__(self) -> Tuple[Any, ...]:
        root: Any = self.array
        while isinstance(root.base, np.ndarray):
            root = root.base
        if not isinstance(root, np.memmap):
            return Numbers, (np.asarray(self.array),)
        at = self.array.ctypes.data - root.ctypes.data
        return _map_again, (str(root.filename), self.array.dtype.str, root.offset + at, self.array.shape, _hash_of(self.array))


def _hash_of(array: Array) -> bytes:
    return hashlib.blake2b(array.view(np.uint8).data, digest_size=16).digest()


def _map_again(path: str, dtype: str, offset: int, shape: Tuple[int, ...], hashed: bytes) -> Numbers:
    """Raises MismatchError if the file does not have the numbers that were pickled."""
    n_bytes = offset + np.dtype(dtype).itemsize * math.prod(shape)
    mapped = np.memmap(path, np.dtype(dtype), "r", offset, shape) if os.path.getsize(path) >= n_bytes else None
    if mapped is None or _hash_of(mapped) != hashed:
        raise MismatchError(f"{path}: has other numbers than when a list of them was pickled", -7, file=path)
    return Numbers(mapped)


class DocumentList:
    """The order of the documents of a dataset, for `document_list` of a Source. Windows are cut from the tokens of these
    documents, one after another, as from a dataset that was packed in this order.

        ds = tokmap.open("data/train")
        by_length = sorted(range(len(ds)), key=lambda number: ds.document(number).n_tokens)
        loader = tokmap.Loader(tokmap.Source(ds, document_list=tokmap.DocumentList(by_length)), 4096)

    documents   the numbers of documents, in any order and any number of times: an array of integers of 4 or 8 bytes, such
                as Megatron's document_index. An array that numpy.load has mapped is not read into memory; its file must
                stay as it is
    starts      for each window two numbers: the place in `documents` at which it begins, and the token of that document, as
                in Megatron's sample_index without its last pair; None: they are found, which takes a lookup for each
                document and 16 bytes of memory for each window
    keeps_rest  whether the tokens after the last whole window are a shorter one"""

    def __init__(self, documents: Any, starts: Optional[Any] = None, keeps_rest: bool = False) -> None:
        self.documents = Numbers(as_numbers("documents", documents))
        self.starts = None if starts is None else Numbers(as_numbers("starts", starts))
        if self.documents.array.ndim != 1:
            raise ValueError(f"documents has the shape {self.documents.array.shape}: must have one dimension")
        if self.starts is not None and self.starts.array.shape[1:] != (2,):
            raise ValueError(f"starts has the shape {self.starts.array.shape}: must have two numbers for each window")
        self.keeps_rest = flag("keeps_rest", keeps_rest)

    def __len__(self) -> int:
        return len(self.documents.array)

    def __repr__(self) -> str:
        return f"<tokmap.DocumentList of {len(self)} documents>"
