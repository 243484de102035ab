# SPDX-License-Identifier: Apache-2.0
"""The arrays of a batch, and the memory in which they are. The library fills them."""

import ctypes
import os
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Callable, DefaultDict, Dict, List, NamedTuple, Tuple

import numpy as np

from .._c import structs as _lib
from .._c.arguments import dtype_name, integer, need_torch
from .._c.errors import Handle, check
from .._c.references import count_alone, count_references
from .._c.structs import lib
from .._data.lanes import TYPES, dtype_of
from .open import lanes_of
from .options import LANE

if TYPE_CHECKING:
    from .batch import Batch
    from .options import Options

_TOKENS, _I32, _I64, _ROWS_I32, _ROWS_I64 = range(1, 6)  # tokmap_gather_format
_FORMATS = {("int32", True): _I32, ("int64", True): _I64, ("int32", False): _ROWS_I32, ("int64", False): _ROWS_I64,
            ("uint16", False): _TOKENS, ("uint32", False): _TOKENS}
_batch_gather, _cu_seqlens, _set_parts = lib.tokmap_batch_gather, lib.tokmap_batch_cu_seqlens, lib.tokmap_loader_set_parts
_gather_lane = lib.tokmap_loader_gather_lane
_TORCH_TYPES = {"float8_e4m3": "float8_e4m3fn"}
_address, _from_buffer = ctypes.addressof, ctypes.c_char.from_buffer
_DTYPES = {name: np.dtype(name) for name in ("int32", "int64", "uint16", "uint32", "uint8")}
_COLUMNS = {"inputs": np.s_[:, :-1], "labels": np.s_[:, 1:]}  # of whole rows
_PART_DTYPES = {"position_ids": "int32", "document_ids": "int32", "loss_mask": "uint8"}

Memory = Tuple[Any, int, Tuple[int, ...]]  # an array (pinned: a tensor), its address and its shape
_MOST_KEPT = 2  # batches: the next one is taken while a variable still has the last one; of parts a third is written next


_FIRST_PROCESS = os.getpid()


def _can_pin(torch: Any) -> bool:
    """Whether batches are made in pinned memory: if there is a GPU, except in a forked process and in a worker of a
    DataLoader. PyTorch keeps free pinned memory for the next tensor, and after a fork the parent and all its children
    would write into the same pages. The batches of a worker are copied to another process in any case."""
    was_forked = os.getpid() != _FIRST_PROCESS or getattr(torch.cuda, "_is_in_bad_fork", bool)()
    if was_forked or torch.utils.data.get_worker_info() is not None:
        return False
    return bool(torch.cuda.is_available())  # last, because it starts the driver


def _same(array: Any) -> Any:
    return array


class _LaneKind(NamedTuple):
    number: int  # in the options of the loader
    type: str
    dtype: Any  # of NumPy or PyTorch
    token_bytes: int
    n_numbers: int  # of a token


class Gatherer:
    """Makes the arrays of batches of one loader. c_batch: where the library describes them. masks: whether labels whose
    loss mask is 0 become ignore_index."""

    def __init__(self, c_batch: Any, given: "Options", masks: bool) -> None:
        outputs, rows = given.outputs, given.rows
        self._dtype, contiguous = dtype_name(given.dtype), rows.contiguous
        if (self._dtype, contiguous) not in _FORMATS:
            raise ValueError(f"dtype is {given.dtype!r}: the dtype of the data needs contiguous=False")
        if not contiguous and masks:
            raise ValueError("mask_labels needs contiguous=True: labels that are a view of the inputs cannot differ "
                             "from them")
        bits = 32 if self._dtype == "int32" else 64
        ignore_index = integer("ignore_index", rows.ignore_index)
        if not -2**(bits - 1) <= ignore_index < 2**(bits - 1):
            raise ValueError(f"ignore_index is {ignore_index}: does not fit {self._dtype}")
        self._contiguous, self._id_bytes = contiguous, _DTYPES[self._dtype].itemsize
        self._ids = tuple(name for name in ("inputs", "labels") if name in outputs)
        self._parts = tuple(name for name in outputs if name in _PART_DTYPES)
        self._gives = given.ranks.cp_size == 1
        # By address, the arrays that the library may write parts into, or that the rows of the last batch refer to. An array
        # is dropped only after the library has another.
        self._given: Dict[int, Memory] = {}
        self._boundaries = "cu_seqlens" in outputs
        self._options = _lib.GatherOptions(
            format=_FORMATS[self._dtype, contiguous],
            mask_labels=masks, ignore_index=ignore_index, has_ignore_index=1, pad_id=rows.pad_id)
        self._detail = _lib.ErrorDetail()
        self._batch = c_batch
        self._references = ctypes.byref(c_batch), ctypes.byref(self._options), ctypes.byref(self._detail)
        self._row_length, self._length = given.sequence_length, given.sequence_length // given.ranks.cp_size
        self._make: Callable[[str, Tuple[int, ...], str], Memory]
        self._as_output: Callable[[Any], Any]
        self._make, self._as_output = self._memory, _same
        if given.framework == "torch":
            self._torch = need_torch()
            if _can_pin(self._torch):
                self._make = self._pinned_memory
            else:
                self._as_output = self._torch.from_numpy
        self._make_tensor: Any = self._torch.from_numpy if given.framework == "torch" else None
        self._lanes, self._weight = lanes_of(given), given.rows.loss_weight
        self._wanted = [(name, self._lanes.index(name[len(LANE):])) for name in outputs if name.startswith(LANE)]
        self._without_weight = [k for k, s in enumerate(given.sources) if s.lanes is not None and self._weight not in s.lanes]
        self._kinds: List[_LaneKind] = []
        self._kept: DefaultDict[str, List[Memory]] = defaultdict(list)

    def set_loader(self, handle: Handle) -> None:
        """Which loader counts how long it takes to bring the rows of a map into memory, and has lanes."""
        self._options.loader = handle.pointer
        self._kinds = [self._lane_kind(handle, i, name) for i, name in enumerate(self._lanes)]

    def _lane_kind(self, handle: Handle, number: int, name: str) -> "_LaneKind":
        info = _lib.LaneInfo()
        check(lib.tokmap_loader_get_lane(handle.pointer, number, ctypes.byref(info)), _lib.ErrorDetail())
        lane_type = TYPES[info.type]
        if name == self._weight and (info.count, info.goes_with) != (1, 0):
            raise ValueError(f"loss_weight is {name!r}: must be a lane with one number for each token as a label")
        dtype: Any = dtype_of(lane_type)
        if name == self._weight and self._make_tensor is None and lane_type.startswith("float8"):
            raise ValueError(f"loss_weight is {name!r}: is {lane_type}, which needs framework='torch'")
        if self._make_tensor is not None:
            dtype = getattr(self._torch, _TORCH_TYPES.get(lane_type, lane_type), None)
            if dtype is None:
                raise ValueError(f"lane {name!r}: this PyTorch has no {lane_type}")
        return _LaneKind(number, lane_type, dtype, int(info.token_bytes), int(info.count))

    def forget(self) -> None:
        """Frees the memory of batches to which nothing refers."""
        self._kept.clear()

    def _memory(self, name: str, shape: Tuple[int, ...], dtype: str) -> Memory:
        """Returns the memory of an earlier batch that nothing refers to any longer, because new pages cost more. Each batch gets
        new views of it, so that weak references to the earlier arrays are dead."""
        kept, alone = self._kept[name], count_alone()
        for memory in kept:
            if count_references(memory[0]) == alone and memory[2] == shape:
                return memory
        if len(kept) == _MOST_KEPT + (name in _PART_DTYPES):
            del kept[0]
        array: Any = np.empty(shape, _DTYPES[dtype])
        kept.append((array, _address(_from_buffer(array)), shape))  # quicker than array.ctypes
        return kept[-1]

    def _pinned_memory(self, name: str, shape: Tuple[int, ...], dtype: str) -> Memory:
        """PyTorch uses it again when copies from it are over. It is of no inference mode, because it may be of a later batch."""
        with self._torch.inference_mode(False):
            tensor = self._torch.empty(shape, dtype=getattr(self._torch, dtype), pin_memory=True)
        return tensor, tensor.data_ptr(), shape

    def fill(self, batch: "Batch[Any]") -> None:
        """Writes the outputs of a batch, and gives them to it."""
        if self._parts:
            self._fill_parts(batch)
        if self._boundaries:
            self._fill_boundaries(batch)
        for name, number in self._wanted:
            setattr(batch, name, self._gather_lane(batch, self._kinds[number], name))
        if self._weight is not None:
            self._fill_weight(batch)
        if not self._ids:
            return
        options, n_rows, length = self._options, batch.n_rows, self._length
        if not self._contiguous:
            token_bytes: int = self._batch.token_bytes
            if options.format == _TOKENS and self._dtype != ("uint16" if token_bytes == 2 else "uint32"):
                raise ValueError(f"dtype is {self._dtype}, but the data have tokens of {token_bytes} bytes")
            whole, options.inputs, _ = self._make("ids", (n_rows, length + 1), self._dtype)
            whole = self._as_output(whole)
            for name in self._ids:
                setattr(batch, name, whole[_COLUMNS[name]])
        elif len(self._ids) == 2:
            both, address, _ = self._make("ids", (2, n_rows, length), self._dtype)
            options.inputs, options.labels = address, address + n_rows * length * self._id_bytes
            both = self._as_output(both)
            batch.inputs, batch.labels = both[0], both[1]  # not = both, which is slower
        else:
            ids, address, _ = self._make("ids", (n_rows, length), self._dtype)
            setattr(options, self._ids[0], address)
            setattr(batch, self._ids[0], self._as_output(ids)[:])
        status = _batch_gather(*self._references)
        if status:
            check(status, self._detail)

    def _fill_parts(self, batch: "Batch[Any]") -> None:
        """Takes the parts from the arrays given in an earlier call, and gives new arrays for the next batch."""
        first_row, shape = self._batch.rows[0], (batch.n_rows, self._length)
        in_use: Dict[int, Memory] = {}
        following: List[Any] = [None] * len(_PART_DTYPES)
        for at, (name, dtype) in enumerate(_PART_DTYPES.items()):
            if name not in self._parts:
                continue
            written = getattr(first_row, name)
            memory = self._given.get(written)
            if memory is None:  # in its own memory: the first batch, one of another size, and slices
                memory = self._make(name, shape, dtype)
                n_bytes = batch.n_rows * self._length * _DTYPES[dtype].itemsize  # tensors have no nbytes before PyTorch 2.1
                ctypes.memmove(memory[1], written, n_bytes)
            else:
                in_use[written] = memory  # the rows of this batch refer to it
            setattr(batch, name, self._as_output(memory[0])[:])
            if self._gives:
                new = self._make(name, shape, dtype)
                following[at] = new[1]
                in_use[new[1]] = self._given[new[1]] = new
        if self._gives:
            check(_set_parts(self._options.loader, *following, self._references[2]), self._detail)
            self._given = in_use

    def _gather_lane(self, batch: "Batch[Any]", kind: "_LaneKind", name: str) -> Any:
        memory, address, _ = self._make(name, (batch.n_rows, self._length, kind.token_bytes), "uint8")
        check(_gather_lane(self._options.loader, kind.number, address, self._references[2]), self._detail)
        found = self._as_output(memory).view(kind.dtype)
        return found[..., 0] if kind.n_numbers == 1 else found

    def _fill_weight(self, batch: "Batch[Any]") -> None:
        """A product with the mask would make NaN of NaN."""
        kind = self._kinds[self._lanes.index(self._weight or "")]
        found = self._gather_lane(batch, kind, "loss_weight")
        n = batch.n_rows * self._length
        mask = np.frombuffer(ctypes.string_at(self._batch.rows[0].loss_mask, n), np.uint8).reshape(batch.n_rows, self._length)
        ones = np.isin(batch.source_ids, self._without_weight) if self._without_weight else None
        if self._make_tensor is None:
            is_bits = kind.type == "bfloat16"  # the upper half of a float32
            weights = (found.astype(np.uint32) << 16).view(np.float32) if is_bits else found.astype(np.float32)
            if ones is not None:
                weights[ones] = 1
            batch.loss_weight = np.where(mask, weights, np.float32(0))
            return
        weights = found.float()
        if ones is not None:
            weights[self._make_tensor(ones)] = 1
        batch.loss_weight = weights.masked_fill_(self._make_tensor(mask == 0), 0)

    def _fill_boundaries(self, batch: "Batch[Any]") -> None:
        longest = ctypes.c_uint32()
        arguments = self._references[0], self._row_length
        n = _cu_seqlens(*arguments, None, None)
        if n == 0:
            raise ValueError(f"a batch of {batch.n_rows} rows of {self._row_length} inputs has more than 2^31 - 1 inputs, which "
                             "cu_seqlens cannot count: use fewer batch_rows")
        array, address, _ = self._make("cu_seqlens", (n,), "int32")
        _cu_seqlens(*arguments, address, ctypes.byref(longest))
        batch.max_seqlen, batch.cu_seqlens = longest.value, self._as_output(array)[:]
