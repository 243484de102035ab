# SPDX-License-Identifier: Apache-2.0
"""tokmap.Stage - copies the batches of a Loader to the memory of a GPU before the step needs them."""

import ctypes
import re
import sys
import weakref
from collections import namedtuple
from ctypes import c_uint8
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from .._c import structs as _lib
from .._c.arguments import dtype_name, flag, integer, need_torch, number, state_bytes
from .._c.errors import DeviceError, call
from .._c.structs import lib
from . import dlpack as _dlpack
from .core import Core, Edit, Lender, Log

_OUTPUTS = {"inputs": 1, "labels": 2, "position_ids": 4, "document_ids": 8, "cu_seqlens": 16}
_ROW_POSITIONS = 32
_POSITIONS = {"document": 0, "row": _ROW_POSITIONS}
_WIDTHS = {"int32": 4, "int64": 8}
_HOST = -1
_END = 1
_LEGACY, _PER_THREAD = 1, 2  # the two default streams, as numbered by DLPack and the driver


def _handle_of(stream: int) -> int:
    if stream == _PER_THREAD:
        raise ValueError("stream is 2, each thread's own default stream: a batch may be released in another thread, so "
                         "use a stream that all threads share")
    return 0 if stream == _LEGACY else stream


def count_devices() -> int:
    """The number of GPUs; 0 also without a driver. The error of opening a Stage says what is missing."""
    n = ctypes.c_uint32()
    try:
        call(lib.tokmap_stage_count_devices, ctypes.byref(n))
    except DeviceError:
        return 0
    return int(n.value)


class DeviceArray:
    """An output of a batch: torch.from_dlpack(), jax.dlpack.from_dlpack(), cupy.from_dlpack() and, on
    the host, numpy.from_dlpack() use it without a copy, and keep its memory as long as they need it.

    shape, dtype. address: where its first number is in device memory, valid until the batch is released."""

    def __init__(self, batch: "DeviceBatch", name: str, address: int) -> None:
        self._batch, self._name, self.address = batch, name, address
        self.dtype: str = batch._stage._dtypes.get(name, "int32")
        self.shape: Tuple[int, ...] = ((batch._stage._n_boundaries,)
                      if name == "cu_seqlens" else (batch.n_rows, batch.sequence_length))

    def __repr__(self) -> str:
        return f"<tokmap.DeviceArray {self._name}: {self.dtype} {self.shape}>"

    def __dlpack_device__(self) -> Tuple[int, int]:
        """Kind and number of the device, as DLPack counts them."""
        device = self._batch._stage._device
        return (_dlpack.HOST, 0) if device == _HOST else (_dlpack.CUDA, device)

    def __dlpack__(self, *, stream: Optional[int] = None, max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None, copy: Optional[bool] = None) -> Any:
        """`stream` waits for the batch, and the slot is reused only after the work that was queued in the
        stream before the tensor was deleted. None and 1 are the default stream, -1 is the stream of
        next. The capsule is of DLPack 0.8 for any max_version, as the protocol allows."""
        if copy:
            raise BufferError(f"{self._name}: copy=True is not supported: take a view and copy that")
        if dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__():
            raise BufferError(f"{self._name} is on device {self.__dlpack_device__()}, not "
                              f"on {tuple(dl_device)}")
        return self._batch._export(self._name, self._check_stream(stream))

    def _check_stream(self, stream: Any) -> Optional[int]:
        on_host = self._batch._stage._device == _HOST
        if stream is None:
            return None if on_host else 0
        if isinstance(stream, bool) or not isinstance(stream, int) or stream < -1:
            raise ValueError(f"stream is {stream!r}: must be None or a number of at least -1")
        if stream == -1:
            return None
        if on_host:
            raise ValueError(f"stream is {stream}: the host has no streams, it must be None")
        if stream == 0:
            raise ValueError("stream is 0, which DLPack forbids: None or 1 is the default stream")
        return _handle_of(stream)


# ---- Batches ----


def _number(name: str, text: str) -> Any:
    return property(lambda batch: int(getattr(batch._c, name)), doc=text)


def _array(name: str, text: str) -> Any:
    def get(batch: "DeviceBatch") -> Optional[DeviceArray]:
        address = getattr(batch._c, name)
        return DeviceArray(batch, name, address) if address else None

    return property(get, doc=text)


class DeviceBatch:
    """One step. It occupies a slot of the stage until it is released, or nothing refers to it any longer,
    and until all tensors made from it are deleted.

    inputs, labels, position_ids, document_ids, cu_seqlens: DeviceArrays, or None if they are not among
    the stage's outputs.

    A tensor is safe to use in the stream for which it was made: PyTorch's current stream when
    batch.torch() or from_dlpack() is called. Tensors of a batch may be made for several streams. A
    tensor that is used in any other stream must not be deleted before that stream has been joined to the
    stream for which the tensor was made (in PyTorch: first.wait_stream(other)). JAX does not tell in which stream it
    computes: let it copy the array, and wait for the copy before the array is deleted."""

    _c: Any = _lib.StageBatch()  # as long as there is no other one

    def __init__(self, stage: "Stage", stream: int) -> None:
        self._stage, self._stream = stage, stream
        self._capsules: List[Any] = []
        self._c = _lib.StageBatch()
        self._state = (c_uint8 * 128)()

    @property
    def state(self) -> bytes:
        """128 bytes, with which restore() continues after this batch."""
        return bytes(self._state)

    n_rows: int = _number("n_rows", "Rows of the batch.")
    sequence_length: int = _number("sequence_length", "Inputs of a row.")
    n_documents: int = _number("n_documents", "Documents in cu_seqlens; the padding of a row counts as one.")
    max_seqlen: int = _number("max_seqlen", "Inputs of the longest document.")
    first_sample: int = _number("first_sample", "The number of the first row's sample.")
    step_sample: int = _number("step_sample", "The first sample of the step, which belongs to rank 0.")
    inputs: Optional[DeviceArray] = _array("inputs", "Ids, n_rows x sequence_length.")
    labels: Optional[DeviceArray] = _array("labels", "The token after each input.")
    position_ids: Optional[DeviceArray] = _array("position_ids", "The position of each input in its document, or in its row.")
    document_ids: Optional[DeviceArray] = _array("document_ids", "The number of each input's document, from 0 in each row.")
    cu_seqlens: Optional[DeviceArray] = _array(
        "cu_seqlens", """The first input of each document of the batch. It has the same length in every batch: from n_documents on,
        it holds the number of all inputs.""")

    def __len__(self) -> int:
        return self.n_rows

    def torch(self) -> Any:
        """All outputs of the stage as PyTorch tensors without a copy, in a named tuple: for example
        `inputs, labels = batch.torch()`. PyTorch's current stream waits for the batch."""
        torch = need_torch()
        return self._stage._torch_batch(*(torch.utils.dlpack.from_dlpack(getattr(self, name))
                                          for name in self._stage.outputs))

    def _export(self, name: str, stream: Optional[int]) -> Any:
        tensor = _lib.StageTensor(output=_OUTPUTS[name], stream=self._stream if stream is None else stream)
        with self._stage._core as core:
            if not self._c.id:
                raise BufferError("the batch has been released")
            core.call(lib.tokmap_stage_export, ctypes.byref(self._c), ctypes.byref(tensor))
        capsule = _dlpack.new_capsule(tensor.managed, _dlpack.NAME, None)
        self._capsules = _dlpack.sweep(self._capsules)
        self._capsules.append(capsule)
        return capsule

    def release(self, stream: Any = None) -> None:
        """Declares that later work in the stream (None: the stream of next) does not use the batch. Tensors made
        from it stay valid."""
        stream = self._stream if stream is None else self._stage._find_stream(stream)
        with self._stage._core as core:
            if self._c.id:
                core.call(lib.tokmap_stage_release, ctypes.byref(self._c), stream)
                self._let_go()

    def __reduce__(self) -> Any:
        raise TypeError("a DeviceBatch cannot be copied or pickled: its memory is a slot of the stage")

    def _let_go(self) -> None:
        self._c.id = 0
        _dlpack.orphans.extend(_dlpack.sweep(self._capsules))
        self._capsules = []

    def __enter__(self) -> "DeviceBatch":
        return self

    def __exit__(self, *exc: object) -> None:
        if self._stage._core.pointer:
            self.release()

    def __del__(self) -> None:
        if self._c.id and self._stage._core.pointer:
            core = self._stage._core
            core.unreleased.append((self._c, self._stream))
            core.release_all()
            self._c = _lib.StageBatch()
            self._let_go()


class Filled(NamedTuple):
    """What Stage.fill() wrote: the numbers of a DeviceBatch."""

    n_rows: int
    sequence_length: int
    n_documents: int
    max_seqlen: int
    first_sample: int
    step_sample: int


# ---- The stage ----


def _device(device: Any) -> int:
    if isinstance(device, int) and not isinstance(device, bool):
        return number("device", device, 2**31 - 1)
    text = str(device)  # also of a torch.device
    if text in ("host", "cpu"):
        return _HOST
    if text == "cuda":
        torch = sys.modules.get("torch")
        return torch.cuda.current_device() if torch is not None and torch.cuda.is_available() else 0
    found = re.fullmatch(r"cuda:(\d+)", text)
    if not found:
        raise ValueError(f"device is {device!r:.80}: must be a number, 'cuda', 'cuda:0' or the like, or 'host'")
    return number("device", int(found[1]), 2**31 - 1)


def _width(name: str, dtype: Any) -> str:
    text = dtype_name(dtype, name)
    if text not in _WIDTHS:
        raise ValueError(f"{name} is {dtype!r}: must be int32 or int64")
    return text


def _buffer(buffer: Any, n_bytes: int, name: str) -> Any:
    """A buffer of bytes or integers that can be written."""
    view = memoryview(buffer)
    if view.readonly or not view.c_contiguous:
        raise ValueError(f"{name}: the buffer must be writable and contiguous")
    if view.nbytes != n_bytes:
        raise ValueError(f"{name}: the buffer has {view.nbytes} bytes, this batch needs {n_bytes}")
    return ctypes.c_char.from_buffer(view)


class Stage:
    """Iterate to get batches in the memory of a device, ready for the current stream:

        with tokmap.Stage(loader, device=0) as stage:
            for batch in stage:
                inputs, labels = batch.torch()      # label i is the token after input i
                loss = cross_entropy(model(inputs).flatten(0, 1), labels.flatten())

    Experimental: no long training has used it yet. Its names, options and batches may change in any release. Its states
    are the states of a Loader, and do not change. The option `device` of a Loader opens a Stage.

    loader      a Loader. It belongs to the stage until the stage is closed, and then has the position of the stage.
                The outputs "position_ids", "document_ids" and "cu_seqlens" need a loader with the output "cu_seqlens".
                If the loader has the output "loss_mask", labels become ignore_index where the mask is 0
    device      a number, "cuda:1", "cuda" for PyTorch's current GPU, a torch.device, or "host": ordinary memory, for any machine
    outputs     some of "inputs", "labels", "position_ids", "document_ids", "cu_seqlens"
    positions   "document" or "row": where position_ids begin at 0
    input_dtype, label_dtype    "int32" or "int64"
    ignore_index    the label where the loss mask is 0. pad_id: the input after the end of a short row
    max_boundaries   entries of cu_seqlens in a batch, each of 4 bytes in every slot; 0: enough for any batch
    n_slots     batches in device memory. One fewer may be held at a time; a `for` loop holds one while
                it gets the next
    n_host_slots    batches in pinned memory, 1 to 64; 0: as many as fit into 64 MiB, at least 2, at most 8
    thread      False: no thread; next does all the work
    log         called with a line of text when memory cannot be pinned or the device fails, in any thread
    edit        called with the rows of a step (as in Batch.rows) and the sample number of the first row,
                ahead of time and in another thread. It may set row.tokens to other tokens, of the same
                number and width, and row.loss_mask to sequence_length bytes of 0 and 1. If it raises an
                exception, next raises it.

    Neither log nor edit may use the stage.

    Threads may share a stage: each batch goes to one of them. Batches and tensors may be deleted in any thread.
    It is closed when nothing refers to it or its batches any longer, and when the interpreter ends."""

    def __init__(self, loader: Lender, device: Any = 0, outputs: Union[str, Sequence[str]] = ("inputs", "labels"),
                 *, positions: str = "document", input_dtype: Any = "int32", label_dtype: Any = "int64",
                 ignore_index: int = -100, pad_id: int = 0, max_boundaries: int = 0, n_slots: int = 0,
                 n_host_slots: int = 0, thread: bool = True, log: Log = None, edit: Edit = None) -> None:
        wanted = {outputs} if isinstance(outputs, str) else set(outputs)
        if not wanted or wanted - _OUTPUTS.keys():
            raise ValueError(f"outputs are {outputs!r}: must be some of {', '.join(_OUTPUTS)}")
        if not loader.drop_last:
            raise ValueError("a Stage needs a loader with drop_last=True: it has no batch for a last step that is not "
                             "complete")
        if loader._turns.steps.changes and not hasattr(loader, "_make_stage"):
            raise ValueError("a Stage has steps of one size: give the device to the Loader, which follows batch_schedule")
        self._device = _device(device)
        self.device: Union[str, int] = "host" if self._device == _HOST else self._device
        self.outputs = tuple(name for name in _OUTPUTS if name in wanted)
        self._torch_batch: Any = namedtuple("TorchBatch", self.outputs)  # type: ignore[misc]
        self._dtypes = {"inputs": _width("input_dtype", input_dtype),
                        "labels": _width("label_dtype", label_dtype)}
        self._max_boundaries = number("max_boundaries", max_boundaries, 2**31 - 2)
        ignore_index = integer("ignore_index", ignore_index)
        label_bits = 8 * _WIDTHS[self._dtypes["labels"]]
        if not -2**(label_bits - 1) <= ignore_index < 2**(label_bits - 1):
            raise ValueError(f"ignore_index is {ignore_index}: must fit {self._dtypes['labels']}")
        if positions not in _POSITIONS:
            raise ValueError(f"positions is {positions!r}: must be one of {', '.join(_POSITIONS)}")
        if positions == "row" and "position_ids" not in wanted:
            raise ValueError("positions='row' needs the output position_ids")
        options = _lib.StageOptions(
            device=self._device,
            n_slots=number("n_slots", n_slots, 2**32 - 1),
            n_host_slots=number("n_host_slots", n_host_slots, 2**32 - 1),
            outputs=sum(_OUTPUTS[name] for name in wanted) | _POSITIONS[positions],
            input_bytes=_WIDTHS[self._dtypes["inputs"]],
            label_bytes=_WIDTHS[self._dtypes["labels"]], ignore_index=ignore_index,
            has_ignore_index=1,
            pad_id=number("pad_id", pad_id, 2**32 - 1), max_boundaries=self._max_boundaries,
            no_thread=not flag("thread", thread))
        self._n_taken = 0
        self._core = Core(loader, log, edit)
        self._core.open(options)
        info = self.stats
        self._n_inputs = info["n_rows"] * info["sequence_length"]
        self._n_boundaries = info["max_boundaries"] + 1
        # Not in __del__: of objects that are collected together, the loader could go first.
        weakref.finalize(self, self._core.close)

    def __iter__(self) -> "Stage":
        return self

    def __next__(self) -> DeviceBatch:
        batch = self.next()
        if batch is None:
            raise StopIteration
        return batch

    def next(self, stream: Any = None) -> Optional[DeviceBatch]:
        """The next step, or None at the end. `stream` waits for it, not the host: a number (cudaStream_t), a
        torch.cuda.Stream, an object with __cuda_stream__, or None for PyTorch's current stream, which is
        the default stream if PyTorch is not in use."""
        batch = DeviceBatch(self, self._find_stream(stream))
        found = self._take(lib.tokmap_stage_next, batch._c, batch._stream,
                           lambda core: core.call(lib.tokmap_stage_save, batch._state))
        return batch if found else None

    def _take(self, function: Any, batch: Any, stream: int, finish: Callable[[Core], Any]) -> bool:
        """Calls next or fill, and then finish. False at the end. After an exception the next call takes the same step."""
        taken = 0
        try:
            with self._core.turn, self._core as core:
                try:
                    if core.take(function, batch, stream) == _END:
                        return False
                    finish(core)
                except BaseException:
                    self._put_back(core, batch, stream)
                    raise
                self._n_taken = taken = self._n_taken + 1
            return True
        except BaseException:
            if taken:
                with self._core.turn, self._core as core:
                    if self._n_taken == taken:
                        self._put_back(core, batch, stream)
            raise

    def _put_back(self, core: Core, batch: Any, stream: int) -> None:
        if batch.n_rows:  # the caller did not get it
            if batch.id:
                core.call(lib.tokmap_stage_release, ctypes.byref(batch), stream)
                batch.id = 0
            core.call(lib.tokmap_stage_seek, batch.step_sample)

    def fill(self, *, stream: Any = None, **targets: Any) -> Optional[Filled]:
        """Writes the next step into the caller's memory, so that a CUDA graph finds it at the same addresses
        each time: stage.fill(inputs=x, labels=y). Targets are contiguous tensors on the stage's device
        of the output's type and size (anything with __dlpack__; on the host, any buffer), or addresses
        as numbers, which are not checked. Returns a Filled, or None at the end."""
        unknown = targets.keys() - set(self.outputs)
        if unknown:
            raise ValueError(f"{', '.join(sorted(unknown))}: not among the outputs of this stage")
        handle = self._find_stream(stream)
        batch = _lib.StageBatch()
        held = {name: self._target(name, target) for name, target in targets.items()}
        for name, (address, _) in held.items():
            setattr(batch, name, address)
        filled: List[Filled] = []
        self._take(lib.tokmap_stage_fill, batch, handle,
                   lambda core: filled.append(Filled(*(getattr(batch, name) for name in Filled._fields))))
        return filled[0] if filled else None

    def _target(self, name: str, target: Any) -> Tuple[int, Any]:
        """(address, an object that must live meanwhile)."""
        if isinstance(target, int) and not isinstance(target, bool):
            return target, None
        width = _WIDTHS[self._dtypes.get(name, "int32")]
        n = self._n_boundaries if name == "cu_seqlens" else self._n_inputs
        if not hasattr(target, "__dlpack__"):
            if self._device != _HOST:
                raise TypeError(f"{name}: a {type(target).__name__} has no __dlpack__")
            held = _buffer(target, n * width, name)
            return ctypes.addressof(held), held
        tensor = _dlpack.take(target.__dlpack__() if self._device == _HOST else target.__dlpack__(stream=-1))
        try:
            return self._check_tensor(name, tensor, n, width), target
        finally:
            _dlpack.delete(tensor)

    def _check_tensor(self, name: str, tensor: Any, n: int, width: int) -> int:
        device = ((_dlpack.HOST, tensor.device_id) if self._device == _HOST
                  else (_dlpack.CUDA, self._device))
        shape = [tensor.shape[i] for i in range(tensor.n_dimensions)]
        expected, contiguous = 1, True
        for i in reversed(range(len(shape))):
            if tensor.strides and shape[i] != 1 and tensor.strides[i] != expected:
                contiguous = False
            expected *= shape[i]
        if (tensor.device_type, tensor.device_id) != device:
            raise ValueError(f"{name}: the tensor is on another device than the stage")
        if (tensor.type_code, tensor.type_bits, tensor.type_lanes) != (_dlpack.SIGNED, 8 * width, 1):
            raise ValueError(f"{name}: the type of the tensor must be int{8 * width}")
        if expected != n or not contiguous:
            raise ValueError(f"{name}: the tensor has shape {tuple(shape)}; it must be contiguous and "
                             f"have {n} numbers")
        return int(tensor.data + tensor.byte_offset)

    def _find_stream(self, stream: Any) -> int:
        if stream is None:
            return self._current_stream()
        given = stream
        if hasattr(stream, "__cuda_stream__"):
            version_and_handle = stream.__cuda_stream__
            if callable(version_and_handle):
                version_and_handle = version_and_handle()
            stream = version_and_handle[1]
        elif hasattr(stream, "cuda_stream"):
            stream = stream.cuda_stream
        if isinstance(stream, bool) or not isinstance(stream, int):
            raise TypeError(f"stream is {stream!r}: must be a number, or have __cuda_stream__ or "
                            "cuda_stream")
        stream = number("stream", stream, 2**64 - 1)
        handle = _handle_of(stream)
        self._core.streams[stream] = given  # kept as long as the stage, because tensors may be deleted late
        return handle

    def _current_stream(self) -> int:
        torch = sys.modules.get("torch")
        if self._device == _HOST or torch is None or not torch.cuda.is_initialized():
            return 0
        current = torch.cuda.current_stream(self._device)
        self._core.streams[current.cuda_stream] = current
        return int(current.cuda_stream)

    @property
    def _is_open(self) -> bool:
        return bool(self._core.pointer)

    @property
    def sample(self) -> int:
        """The first sample of the next step."""
        with self._core.turn, self._core as core:
            return int(lib.tokmap_stage_position(core.pointer))

    def state(self) -> bytes:
        """128 bytes, like Loader.state(). Batches that were returned count; those that the stage has prepared
        do not. If something takes batches ahead of the training step, save the `state` of the last batch
        that was trained on instead."""
        state = (c_uint8 * 128)()
        with self._core.turn, self._core as core:
            core.call(lib.tokmap_stage_save, state)
        return bytes(state)

    def restore(self, state: bytes) -> None:
        """Continues where the state of a stage or a loader was saved. Held batches stay valid."""
        state = state_bytes(state)
        with self._core.turn, self._core as core:
            core.call(lib.tokmap_stage_restore, (c_uint8 * 128)(*state))

    def seek(self, sample: int) -> None:
        """The next step starts at this sample."""
        sample = number("sample", sample, 2**64 - 1)
        with self._core.turn, self._core as core:
            core.call(lib.tokmap_stage_seek, sample)

    @property
    def stats(self) -> Dict[str, Any]:
        """Memory ("device_bytes", "host_bytes", "pinned"), and how often and how long next waited
        ("n_waits", "waited_ns", "wait_p99_ns", ...)."""
        info = _lib.StageInfo()
        with self._core as core:
            lib.tokmap_stage_get_info(core.pointer, ctypes.byref(info))
        found = {name: getattr(info, name) for name, *_ in info._fields_ if name != "struct_size"}
        found["device"], found["pinned"] = self.device, bool(info.pinned)
        return found

    def close(self) -> None:
        """Waits for the device and returns the loader. Tensors stay valid, batches do not. ValueError: another
        thread is in a call, and the stage stays open."""
        _dlpack.sweep_orphans()
        if not self._core.close():
            raise ValueError("the stage is in use by another thread")

    def __reduce__(self) -> Any:
        raise TypeError("a Stage cannot be copied or pickled: open another one, and restore() its state")

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
