# SPDX-License-Identifier: Apache-2.0
"""tokmap.Batch, and how the arrays of a batch are made."""

import ctypes
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple, TypeVar, Union

import numpy as np

from .._c import html
from .._c.arguments import need_torch
from .._c.errors import Handle, call
from .._c.structs import lib
from .._data.dataset import Array
from .._data.row import Row
from .steps import Steps

T = TypeVar("T")
if TYPE_CHECKING:
    import torch
    from typing import Generic as Of
else:
    Of = {T: object}  # Generic would be a dozen lines of help()

# What the library has to compute for an output, as TOKMAP_ROW_... of the header.
PARTS = {"inputs": 0, "labels": 0, "position_ids": 2, "document_ids": 4, "loss_mask": 8, "cu_seqlens": 1}


class Origin(NamedTuple):
    """What all batches of a loader have in common."""

    handle: Any  # None in another process
    steps: Steps
    outputs: Tuple[str, ...]


class Batch(Of[T]):
    """One step: its arrays, and what it is. `inputs, labels = batch` unpacks the outputs of the loader in their
    order, and `dict(batch)` has them by name. The arrays are the caller's and stay valid; their memory is used again
    for a later batch when nothing refers to it any longer.

    inputs, labels: n_rows x sequence_length ids; label i is the token after input i. position_ids: the position of
    each input in its document. document_ids: the document of each input, from 0 in each row. loss_mask: 1 where the
    label counts; 0 where it is the first token of another document, in a span or of a masked source, and after the end
    of a short row. loss_weight: the weight of each label, 0 where it does not count. lanes: by name, those that are among the
    outputs as "lane:NAME", with the numbers of each label or input, as the lane says. cu_seqlens: the first input of each document of the batch, counted through all rows, and then the
    number of inputs; the end of a short row is a document, too. max_seqlen: inputs of the longest document, with
    cu_seqlens. Each is None if it is not among the outputs.

    n_rows: rows of this batch. first_sample: the number of the first row's sample; the samples of the other rows
    follow it, without skipped ones. next_sample: where the next step of all ranks begins."""

    # What a batch does not have; in the class, because setting them in each batch takes a microsecond.
    inputs: T = None  # type: ignore[assignment]
    labels: T = None  # type: ignore[assignment]
    position_ids: T = None  # type: ignore[assignment]
    document_ids: T = None  # type: ignore[assignment]
    loss_mask: T = None  # type: ignore[assignment]
    cu_seqlens: T = None  # type: ignore[assignment]
    loss_weight: T = None  # type: ignore[assignment]
    max_seqlen: Optional[int] = None
    _state: Optional[bytes] = None
    _source_ids: Optional[Array] = None
    _rows: Optional[List[Row]] = None

    if not TYPE_CHECKING:
        def __class_getitem__(cls, of):
            return cls

    def __init__(self, origin: Origin, rows_of: Callable[[int], Optional[List[Row]]], generation: int, n_rows: int,
                 first_sample: int, next_sample: int) -> None:
        """rows_of: gives the rows of a generation, or None when they are gone."""
        self._origin, self._rows_of, self._generation = origin, rows_of, generation
        self.n_rows, self.first_sample, self.next_sample = n_rows, first_sample, next_sample

    @property
    def state(self) -> bytes:
        """128 bytes, with which Loader.restore() continues after this batch, whatever was read ahead."""
        if self._state is None:
            self._state = save_at(self._origin.handle, self.next_sample)
        return self._state

    @property
    def lanes(self) -> Dict[str, T]:
        """The numbers of each lane among the outputs: n_rows x sequence_length, or x count too."""
        return {name[5:]: getattr(self, name) for name in self._origin.outputs if name.startswith("lane:")}

    @property
    def sample_ids(self) -> Array:
        """The number of each row's sample."""
        if not self._origin.steps.skips:
            return np.arange(self.first_sample, self.first_sample + self.n_rows, dtype=np.int64)
        first = self._origin.steps.position(self.first_sample)
        return np.array([self._origin.steps.sample(first + i) for i in range(self.n_rows)], dtype=np.int64)

    @property
    def source_ids(self) -> Array:
        """The number of each row's source."""
        if self._source_ids is None:
            samples = self.sample_ids
            runs = np.split(samples, np.flatnonzero(np.diff(samples) != 1) + 1)  # what is skipped may be long
            self._source_ids = np.concatenate([sources_of(self._origin.handle, int(run[0]), int(run[-1]) + 1) for run in runs])
        return self._source_ids

    @property
    def rows(self) -> List[Row]:
        """The rows without conversion: views of the mapped file where that is possible. They stay valid, but must
        be asked for before the loader is used again."""
        if self._rows is None:
            self._rows = self._rows_of(self._generation)
            if self._rows is None:
                raise ValueError("the rows of this batch are gone, because the loader was used since: ask for "
                                 "them before the next batch")
        return self._rows

    def to(self, device: Any, non_blocking: bool = False) -> "Batch[torch.Tensor]":
        """Returns this batch with its outputs as PyTorch tensors on a device. Outputs that are there already are not
        copied."""
        as_tensor = need_torch().as_tensor
        moved: Batch[torch.Tensor] = Batch.__new__(Batch)
        vars(moved).update(vars(self), **{name: as_tensor(self[name]).to(device, non_blocking=non_blocking)
                                          for name in self._origin.outputs})
        return moved

    def __iter__(self) -> Iterator[T]:
        return iter([getattr(self, name) for name in self._origin.outputs])

    def __len__(self) -> int:
        return len(self._origin.outputs)

    def __getitem__(self, key: Union[str, int]) -> T:
        if isinstance(key, int):
            key = self._origin.outputs[key]
        elif key not in self._origin.outputs:
            raise KeyError(f"{key!r} is not among the outputs: {', '.join(self._origin.outputs)}")
        found: T = getattr(self, key)
        return found

    def keys(self) -> Tuple[str, ...]:
        """The names of the outputs."""
        return self._origin.outputs

    def __repr__(self) -> str:
        return (f"<tokmap.Batch: samples {self.first_sample} to {self.sample_ids[-1]}, "
                f"{', '.join(self._origin.outputs) or 'rows only'}>")

    def _repr_html_(self) -> str:
        return html.shown("of_batch", self)

    def __reduce__(self) -> Tuple[Any, ...]:
        """Pickles the arrays and the state, for another process."""
        values = {name: value for name, value in vars(self).items() if name[0] != "_"}
        return _rebuild, (values, self._origin.outputs, self.state, self._origin.steps, self.source_ids)


def _rebuild(values: Dict[str, Any], outputs: Tuple[str, ...], state: bytes, steps: Steps, source_ids: Array) -> Batch[Any]:
    batch: Batch[Any] = Batch.__new__(Batch)
    vars(batch).update(values, _origin=Origin(None, steps, outputs), _state=state, _source_ids=source_ids, _rows_of=_no_rows,
                       _generation=0)
    return batch


def _no_rows(generation: int) -> None:
    """A batch that came from another process has no rows."""


def sources_of(handle: Handle, first: int, end: int) -> Array:
    """The source of each of the samples [first, end)."""
    sources = np.empty(end - first, np.uint32)
    call(lib.tokmap_loader_sources_of, handle.pointer, first, len(sources), sources.ctypes.data)
    return sources


def counts_before(handle: Handle, sample: int) -> Array:
    """How many samples of each source come before a sample, skipped or not."""
    pointer, counts = handle.pointer, np.empty(len(handle.kept), np.int64)
    call(lib.tokmap_loader_count_samples, pointer, sample, counts.ctypes.data)
    return counts


def save_at(handle: Handle, sample: int) -> bytes:
    state = (ctypes.c_uint8 * 128)()
    call(lib.tokmap_loader_save_at, handle.pointer, sample, state)
    return bytes(state)
