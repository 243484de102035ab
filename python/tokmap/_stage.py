"""tokmap.Stage - copies the batches of a Loader to the memory of a GPU before the step needs them."""

import ctypes
import gc
import os
import re
import sys
import threading
import weakref
from collections import namedtuple
from ctypes import c_uint8, c_void_p

from . import _dlpack, _lib
from ._errors import ArgumentError, DeviceError, check
from ._gather import dtype_name
from ._lib import lib
from ._rows import Row

_OUTPUTS = {"inputs": 1, "labels": 2, "position_ids": 4, "document_ids": 8, "cu_seqlens": 16}
_ROW_POSITIONS = 32
_POSITIONS = {"document": 0, "row": _ROW_POSITIONS}
_WIDTHS = {"int32": 4, "int64": 8}
_HOST = -1
_END = 1
_LEGACY, _PER_THREAD = 1, 2  # the two default streams, as numbered by DLPack and the driver
_NOT_PER_THREAD = ("stream is 2, each thread's own default stream: a batch may be released in another "
                   "thread, so use a stream that all threads share")


def count_devices():
    """The number of GPUs; 0 also without a driver. The error of opening a Stage says what is missing."""
    n, detail = ctypes.c_uint32(), _lib.ErrorDetail()
    try:
        check(lib.tokmap_stage_count_devices(ctypes.byref(n), ctypes.byref(detail)), detail)
    except DeviceError:
        return 0
    return n.value


class DeviceArray:
    """An output of a batch: torch.from_dlpack(), jax.dlpack.from_dlpack(), cupy.from_dlpack() and, on
    the host, numpy.from_dlpack() use it without a copy, and keep its memory as long as they need it.

    shape, dtype; address: of the first number in device memory, valid until the batch is released."""

    def __init__(self, batch, name, address):
        self._batch, self._name, self.address = batch, name, address
        self.dtype = batch._stage._dtypes.get(name, "int32")
        self.shape = ((batch._stage._n_boundaries,)
                      if name == "cu_seqlens" else (batch.n_rows, batch.sequence_length))

    def __repr__(self):
        return f"<tokmap.DeviceArray {self._name}: {self.dtype} {self.shape}>"

    def __dlpack_device__(self):
        device = self._batch._stage._device
        return (_dlpack.HOST, 0) if device == _HOST else (_dlpack.CUDA, device)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """`stream` waits for the batch, and the slot is reused only after the work that was queued in the
        stream before the tensor was deleted. None and 1 are the default stream, -1 is the stream of
        next. The capsule is of DLPack 0.8 for any max_version, as the protocol allows."""
        if copy:
            raise BufferError(f"{self._name}: copy=True is not supported: take a view and copy that")
        if dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__():
            raise BufferError(f"{self._name} is on device {self.__dlpack_device__()}, not "
                              f"on {tuple(dl_device)}")
        return self._batch._export(self._name, self._check_stream(stream))

    def _check_stream(self, stream):
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
        if stream == _PER_THREAD:
            raise ValueError(_NOT_PER_THREAD)
        return 0 if stream == _LEGACY else stream


# ---- Batches ----


class DeviceBatch:
    """One step. It occupies a slot of the stage until it is released, or nothing refers to it any longer,
    and until all tensors made from it are deleted.

    inputs, labels, position_ids, document_ids, cu_seqlens: DeviceArrays, or None if they are not among
    the stage's outputs. cu_seqlens has the same length in every batch: from n_documents on it holds the
    number of all inputs. max_seqlen is the longest document of the batch. state: 128 bytes, with which
    restore() continues after this batch.

    A tensor is safe to use in the stream for which it was made: PyTorch's current stream when
    batch.torch() or from_dlpack() is called. A batch may be used in up to four streams in this way. A
    tensor that is used in any other stream must not be deleted before that stream has been joined to the
    first one (in PyTorch: first.wait_stream(other)). JAX does not tell in which stream it computes: let
    it copy the array, and wait for the copy before the array is deleted."""

    def __init__(self, stage, stream):
        self._stage, self._stream, self._capsules = stage, stream, []
        self._c = _lib.StageBatch(struct_size=ctypes.sizeof(_lib.StageBatch))
        self._state = (c_uint8 * 128)()

    state = property(lambda self: bytes(self._state))
    n_rows = property(lambda self: self._c.n_rows)
    sequence_length = property(lambda self: self._c.sequence_length)
    n_documents = property(lambda self: self._c.n_documents)
    max_seqlen = property(lambda self: self._c.max_seqlen)
    first_sample = property(lambda self: self._c.first_sample)
    step_sample = property(lambda self: self._c.step_sample)

    def _array(self, name):
        address = getattr(self._c, name)
        return DeviceArray(self, name, address) if address else None

    inputs = property(lambda self: self._array("inputs"))
    labels = property(lambda self: self._array("labels"))
    position_ids = property(lambda self: self._array("position_ids"))
    document_ids = property(lambda self: self._array("document_ids"))
    cu_seqlens = property(lambda self: self._array("cu_seqlens"))

    def __len__(self):
        return self.n_rows

    def torch(self):
        """All outputs of the stage as PyTorch tensors without a copy, in a named tuple: for example
        `inputs, labels = batch.torch()`. PyTorch's current stream waits for the batch."""
        from torch import from_dlpack

        return self._stage._torch_batch(*(from_dlpack(self._array(name))
                                          for name in self._stage.outputs))

    def _export(self, name, stream):
        tensor = _lib.StageTensor(struct_size=ctypes.sizeof(_lib.StageTensor),
                                  output=_OUTPUTS[name],
                                  stream=self._stream if stream is None else stream)
        with self._stage._core as core:
            if not self._c.id:
                raise BufferError("the batch has been released")
            core.call(lib.tokmap_stage_export, ctypes.byref(self._c), ctypes.byref(tensor))
        capsule = _dlpack.capsule(c_void_p(tensor.managed))
        self._capsules = _dlpack.sweep(self._capsules)
        self._capsules.append(capsule)
        return capsule

    def release(self, stream=None):
        """Declares that later work in the stream (None: that of next) does not use the batch. Tensors made
        from it stay valid."""
        stream = self._stream if stream is None else self._stage._find_stream(stream)
        with self._stage._core as core:
            if self._c.id:
                core.call(lib.tokmap_stage_release, ctypes.byref(self._c), stream)
                self._let_go()

    def _let_go(self):
        self._c.id = 0
        _dlpack.orphans.extend(_dlpack.sweep(self._capsules))
        self._capsules = []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self._stage._core.pointer:
            self.release()

    def __del__(self):
        core = self._stage._core
        if self._c.id and core.pointer:
            core.unreleased.append((self._c, self._stream))
            core.release_all()
            self._c = _lib.StageBatch()
            self._let_go()


Filled = namedtuple("Filled", "n_rows sequence_length n_documents max_seqlen first_sample step_sample")


# ---- The stage ----


class _Lent:
    """Replaces the handle of a Loader while a stage uses it."""

    @property
    def pointer(self):
        raise ValueError("a stage uses this loader: close the stage first")


class _Core:
    """The open C stage, everything it needs, and the number of its running calls.

    A thread that waits in C has released the interpreter, and other threads may then collect batches,
    including the stage's own thread while it calls `edit`. So no lock is held during a call of C."""

    def __init__(self, loader, log, edit):
        self.pointer = c_void_p()
        self.loader, self.loader_handle, self.lent = loader, None, _Lent()
        self.user_edit, self.edit_error, self.replaced = edit, None, []
        self.log = _lib.StageLog(self.on_log if log else 0)
        self.edit = _lib.StageEdit(self.on_edit if edit else 0)
        self.user_log, self.streams = log, {}
        self.lock = threading.RLock()  # reentrant: a batch may be collected in a thread that holds it
        self.n_users, self.pid = 0, os.getpid()
        self.callback_thread = None
        self.unreleased = []  # batches that nothing refers to any longer, and their streams

    def __enter__(self):
        with self.lock:
            if not self.pointer:
                raise ValueError("the stage is closed")
            self.n_users += 1
        return self

    def __exit__(self, *exc):
        with self.lock:
            self.n_users -= 1

    def call(self, function, *arguments):
        detail = _lib.ErrorDetail()
        status = function(self.pointer, *arguments, ctypes.byref(detail))
        if status < 0 and self.edit_error is not None and detail.text.startswith(b"edit:"):
            raise self.edit_error
        check(status, detail)
        return status

    def release_all(self):
        """A batch that cannot be released now, because its stream is being captured, is tried again with the
        next step."""
        try:
            with self:
                for _ in range(len(self.unreleased)):
                    batch, stream = self.unreleased.pop(0)
                    if lib.tokmap_stage_release(self.pointer, ctypes.byref(batch), stream, None):
                        self.unreleased.append((batch, stream))
        except (ValueError, IndexError):
            pass  # closed meanwhile, or another thread does the same

    def take(self, function, batch, stream):
        """Calls next or fill. If all slots are held, collects garbage and tries again."""
        _dlpack.sweep_orphans()
        self.release_all()
        try:
            return self.call(function, ctypes.byref(batch), stream)
        except ArgumentError:  # as when all slots are held
            pass
        gc.collect()
        self.release_all()
        return self.call(function, ctypes.byref(batch), stream)

    def open(self, options):
        detail = _lib.ErrorDetail()
        pointer = c_void_p()
        options.loader = self.loader._opened()
        options.log, options.edit = self.log, self.edit
        self.loader_handle = self.loader._handle
        status = lib.tokmap_stage_open(ctypes.byref(pointer), ctypes.byref(options),
                                      ctypes.byref(detail))
        if status < 0:
            self.forget()
            check(status, detail)
        self.loader._handle, self.pointer = self.lent, pointer
        self.loader._turn += 1  # the rows of its batches are no longer valid

    def close(self):
        """False: another thread is in a call."""
        if self.callback_thread == threading.get_ident():  # a thread cannot wait for its own end
            threading.Thread(target=self.close).start()
            return True
        with self.lock:
            if self.n_users > 0:
                return False
            pointer, self.pointer = self.pointer, None
        if not pointer:
            return True
        if os.getpid() == self.pid:  # a forked child has nothing to close
            lib.tokmap_stage_close(pointer)
        if self.loader._handle is self.lent:
            self.loader._handle = self.loader_handle
        self.forget()
        return True

    def forget(self):
        self.loader = self.loader_handle = self.log = self.edit = None
        self.user_log = self.user_edit = None
        self.replaced = []

    def on_log(self, context, text):
        self.callback_thread = threading.get_ident()
        try:
            self.user_log(text.decode(errors="replace"))
        finally:
            self.callback_thread = None

    def on_edit(self, context, c_rows, batch):
        self.callback_thread = threading.get_ident()
        self.edit_error, replaced = None, []
        try:
            rows = [Row(self.loader_handle, c_rows[i], batch.contents.sequence_length)
                    for i in range(batch.contents.n_rows)]
            before = [(row.tokens, row.loss_mask) for row in rows]
            self.user_edit(rows, batch.contents.first_sample)
            for i, (row, (tokens, mask)) in enumerate(zip(rows, before)):
                if row.tokens is not tokens:
                    replaced.append(_copy(row.tokens, tokens.nbytes, tokens.itemsize, "tokens"))
                    c_rows[i].tokens = ctypes.addressof(replaced[-1])
                if row.loss_mask is not mask:
                    replaced.append(_copy(row.loss_mask, batch.contents.sequence_length, 1,
                                          "loss_mask"))
                    c_rows[i].loss_mask = ctypes.addressof(replaced[-1])
        except BaseException as error:
            self.edit_error = error
            c_rows[0].tokens = None  # C refuses this, and the error is raised with the step
        finally:
            self.replaced, self.callback_thread = replaced, None


def _copy(buffer, n_bytes, item_bytes, name):
    view = memoryview(buffer)
    if view.nbytes != n_bytes or view.itemsize != item_bytes:
        raise ValueError(f"edit: {name} has {view.nbytes} bytes, {view.itemsize} per item; it must "
                         f"have {n_bytes}, {item_bytes} per item")
    return (ctypes.c_char * n_bytes).from_buffer_copy(view.tobytes())


def _device(device):
    if isinstance(device, int) and not isinstance(device, bool):
        return _number("device", device, 2**31)
    if device in ("host", "cpu"):
        return _HOST
    found = re.fullmatch(r"(cpu)|cuda:(\d+)", str(device))  # also the text of a torch.device
    if not found:
        raise ValueError(f"device is {device!r}: must be a number, 'cuda:0' or the like, or 'host'")
    return _HOST if found[1] else _number("device", int(found[2]), 2**31)


def _width(name, dtype):
    text = dtype_name(dtype, name)
    if text not in _WIDTHS:
        raise ValueError(f"{name} is {dtype!r}: must be int32 or int64")
    return text


def _number(name, value, limit):
    if not 0 <= value < limit:
        raise ValueError(f"{name} is {value}: must be 0 to {limit - 1}")
    return value


def _buffer(buffer, n_bytes, name):
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

    loader      a Loader. It belongs to the stage until the stage is closed, and then has the position
                of the stage. The last three outputs need a loader with the
                output "cu_seqlens"; a loader with the output "loss_mask" makes labels ignore_index where it is 0
    device      a number, "cuda:1", a torch.device, or "host": ordinary memory, for any machine
    outputs     some of "inputs", "labels", "position_ids", "document_ids", "cu_seqlens"
    positions   "document" or "row": where position_ids begin at 0
    input_dtype, label_dtype    "int32" or "int64"
    ignore_index    the label where the loss mask is 0; pad_id: the inputs after a short row
    max_documents   of a batch: entries of cu_seqlens, of 4 bytes in every slot; 0: enough for any batch
    n_slots     batches in device memory. One fewer may be held at a time; a `for` loop holds one while
                it gets the next
    n_host_slots, thread, n_copiers     see tokmap_stage.h
    log         called with a line of text when memory cannot be pinned or the device fails, in any thread
    edit        called with the rows of a step (like those of a Batch) and the sample number of the first,
                ahead of time and in another thread. May set row.tokens to other tokens, of the same
                number and width, and row.loss_mask to sequence_length bytes of 0 and 1. next raises its
                exceptions.
    Neither log nor edit may use the stage.

    A stage belongs to one thread at a time; batches and tensors may be deleted in any thread. It is closed
    when nothing refers to it or its batches any longer, and when the interpreter ends."""

    def __init__(self, loader, device=0, outputs=("inputs", "labels"), *, positions="document",
                 input_dtype="int32", label_dtype="int64", ignore_index=-100, pad_id=0,
                 max_documents=0, n_slots=0, n_host_slots=0, thread=True, n_copiers=0, log=None,
                 edit=None):
        wanted = {outputs} if isinstance(outputs, str) else set(outputs)
        if not wanted or wanted - _OUTPUTS.keys():
            raise ValueError(f"outputs are {outputs!r}: must be some of {', '.join(_OUTPUTS)}")
        self._device = _device(device)
        self.device = "host" if self._device == _HOST else self._device
        self.outputs = tuple(name for name in _OUTPUTS if name in wanted)
        self._torch_batch = namedtuple("TorchBatch", self.outputs)
        self._dtypes = {"inputs": _width("input_dtype", input_dtype),
                        "labels": _width("label_dtype", label_dtype)}
        self._max_documents = _number("max_documents", max_documents, 2**32)
        label_bits = 8 * _WIDTHS[self._dtypes["labels"]]
        if not -2**(label_bits - 1) <= ignore_index < 2**(label_bits - 1):
            raise ValueError(f"ignore_index is {ignore_index}: must fit {self._dtypes['labels']}")
        if positions not in _POSITIONS:
            raise ValueError(f"positions is {positions!r}: must be one of {', '.join(_POSITIONS)}")
        options = _lib.StageOptions(
            struct_size=ctypes.sizeof(_lib.StageOptions), device=self._device,
            n_slots=_number("n_slots", n_slots, 2**32),
            n_host_slots=_number("n_host_slots", n_host_slots, 2**32),
            outputs=sum(_OUTPUTS[name] for name in wanted) | _POSITIONS[positions],
            input_bytes=_WIDTHS[self._dtypes["inputs"]],
            label_bytes=_WIDTHS[self._dtypes["labels"]], ignore_index=ignore_index,
            has_ignore_index=1,
            pad_id=_number("pad_id", pad_id, 2**32), max_documents=self._max_documents,
            no_thread=not thread, n_copiers=_number("n_copiers", n_copiers, 2**32))
        self._core = _Core(loader, log, edit)
        self._core.open(options)
        info = self.stats
        self._n_inputs = info["n_rows"] * info["sequence_length"]
        self._n_boundaries = info["max_documents"] + 1
        # Not in __del__: of objects that are collected together, the loader could go first.
        weakref.finalize(self, self._core.close)

    def __iter__(self):
        return self

    def __next__(self):
        batch = self.next()
        if batch is None:
            raise StopIteration
        return batch

    def next(self, stream=None):
        """The next step, or None at the end. `stream` waits for it, not the host: a number (cudaStream_t), a
        torch.cuda.Stream, an object with __cuda_stream__, or None for PyTorch's current stream, which is
        the default stream if PyTorch is not in use."""
        batch = DeviceBatch(self, self._find_stream(stream))
        with self._core as core:
            if core.take(lib.tokmap_stage_next, batch._c, batch._stream) == _END:
                return None
            core.call(lib.tokmap_stage_save, batch._state)
        return batch

    def fill(self, *, stream=None, **targets):
        """Writes the next step into the caller's memory, so that a CUDA graph finds it at the same addresses
        each time: stage.fill(inputs=x, labels=y). Targets are contiguous tensors on the stage's device
        of the output's type and size (anything with __dlpack__; on the host, any buffer), or addresses
        as numbers, which are not checked. Returns a Filled, or None at the end."""
        unknown = targets.keys() - set(self.outputs)
        if unknown:
            raise ValueError(f"{', '.join(sorted(unknown))}: not among the outputs of this stage")
        handle = self._find_stream(stream)
        batch = _lib.StageBatch(struct_size=ctypes.sizeof(_lib.StageBatch))
        held = {name: self._target(name, target) for name, target in targets.items()}
        for name, (address, _) in held.items():
            setattr(batch, name, address)
        with self._core as core:
            if core.take(lib.tokmap_stage_fill, batch, handle) == _END:
                return None
        return Filled(*(getattr(batch, name) for name in Filled._fields))

    def _target(self, name, target):
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
        if self._device == _HOST:
            capsule = target.__dlpack__()
        else:
            capsule = target.__dlpack__(stream=-1)
        tensor = _dlpack.take(capsule)
        try:
            return self._check_tensor(name, tensor, n, width), target
        finally:
            _dlpack.delete(tensor)

    def _check_tensor(self, name, tensor, n, width):
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
        return tensor.data + tensor.byte_offset

    def _find_stream(self, stream):
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
        stream = _number("stream", stream, 2**64)
        if stream == _PER_THREAD:
            raise ValueError(_NOT_PER_THREAD)
        self._core.streams[stream] = given  # kept as long as the stage, because tensors may be deleted late
        return 0 if stream == _LEGACY else stream

    def _current_stream(self):
        torch = sys.modules.get("torch")
        if self._device == _HOST or torch is None or not torch.cuda.is_initialized():
            return 0
        current = torch.cuda.current_stream(self._device)
        self._core.streams[current.cuda_stream] = current
        return current.cuda_stream

    @property
    def sample(self):
        """The first sample of the next step."""
        with self._core as core:
            return lib.tokmap_stage_position(core.pointer)

    def state(self):
        """128 bytes, like Loader.state(). Batches that were returned count; those that the stage has prepared
        do not. If something takes batches ahead of the training step, save the `state` of the last batch
        that was trained on instead."""
        state = (c_uint8 * 128)()
        with self._core as core:
            core.call(lib.tokmap_stage_save, state)
        return bytes(state)

    def restore(self, state):
        """Continues where the state of a stage or a loader was saved. Held batches stay valid."""
        if len(state) != 128:
            raise ValueError(f"a state has 128 bytes, this one has {len(state)}")
        with self._core as core:
            core.call(lib.tokmap_stage_restore, (c_uint8 * 128)(*state))

    def seek(self, sample):
        sample = _number("sample", sample, 2**64)
        with self._core as core:
            core.call(lib.tokmap_stage_seek, sample)

    @property
    def stats(self):
        """Memory ("device_bytes", "host_bytes", "pinned"), and how often and how long next waited
        ("n_waits", "ns_waited", "wait_p99_ns", ...)."""
        info = _lib.StageInfo(struct_size=ctypes.sizeof(_lib.StageInfo))
        with self._core as core:
            lib.tokmap_stage_get_info(core.pointer, ctypes.byref(info))
        found = {name: getattr(info, name) for name, _ in info._fields_ if name != "struct_size"}
        found["device"], found["pinned"] = self.device, bool(info.pinned)
        return found

    def close(self):
        """Waits for the device and returns the loader. Tensors stay valid, batches do not."""
        _dlpack.sweep_orphans()
        if not self._core.close():
            raise ValueError("the stage is in use by another thread")

    def __reduce__(self):
        raise TypeError("a Stage cannot be copied or pickled: open another one, and restore() its state")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
