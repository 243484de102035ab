# SPDX-License-Identifier: Apache-2.0
"""The open stage of the library, for tokmap.Stage: its calls, callbacks and end."""

import ctypes
import gc
import os
import threading
from typing import Any, Callable, Dict, List, Optional, Protocol, Tuple

from .._c import structs as _lib
from .._c.errors import ArgumentError, Error, Handle, NoHandle, call, check
from .._c.locks import new_lock
from .._c.structs import lib
from .._data.row import Row
from . import dlpack as _dlpack

Log = Optional[Callable[[str], None]]
Edit = Optional[Callable[[List[Row], int], None]]


class Lender(Protocol):
    """What a stage needs of a Loader. The stage takes the handle, and leaves another handle that says why the first is
    gone. A stage that the Loader opened for itself may have steps of several sizes."""

    drop_last: bool
    _turns: Any
    _handle: Any

    def _lend(self) -> Handle:
        """The handle, at the place of the Loader."""

    def _take_back(self, handle: Handle) -> None:
        """The handle, at the place of the stage."""

    def _check_rank(self) -> None:
        """Before the first batch."""


class Core:
    """The open C stage, everything it needs, and the number of its running calls.

    A thread that waits in C has released the interpreter, and other threads may then collect batches,
    including the stage's own thread while it calls `edit`. So `lock` is not held during a call of C."""

    def __init__(self, loader: Lender, log: Log, edit: Edit) -> None:
        self.pointer: Any = ctypes.c_void_p()
        self.loader: Any = loader
        self.loader_handle: Any = None
        self.lent = NoHandle("a stage uses this loader: close the stage first")
        self.user_edit: Edit = edit
        self.edit_error: Optional[BaseException] = None
        self.replaced: List[Any] = []
        self.log: Any = _lib.StageLog(self.on_log if log else 0)
        self.edit: Any = _lib.StageEdit(self.on_edit if edit else 0)
        self.user_log: Log = log
        self.streams: Dict[int, Any] = {}
        self.lock = new_lock(self, "lock")  # reentrant: a batch may be collected in a thread that holds it
        self.turn = new_lock(self, "turn")  # of the threads that move the position; never of one that releases a batch
        self.n_users, self.pid = 0, os.getpid()
        self.callback_thread: Optional[int] = None
        self.unreleased: List[Tuple[Any, int]] = []  # batches that nothing refers to any longer, and their streams

    def __enter__(self) -> "Core":
        with self.lock:
            if not self.pointer:
                raise ValueError("the stage is closed")
            self.n_users += 1
        return self

    def __exit__(self, *exc: object) -> None:
        with self.lock:
            self.n_users -= 1

    def call(self, function: Any, *arguments: Any) -> int:
        detail = _lib.ErrorDetail()
        status: int = function(self.pointer, *arguments, ctypes.byref(detail))
        if status < 0 and self.edit_error is not None and detail.reason == _lib.EDIT:
            raise self.edit_error
        check(status, detail)
        return status

    def release_all(self) -> None:
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

    def take(self, function: Any, batch: Any, stream: int) -> int:
        """Calls next or fill. If all slots are held, collects garbage and tries again."""
        self.loader._check_rank()
        _dlpack.sweep_orphans()
        self.release_all()
        try:
            return self.call(function, ctypes.byref(batch), stream)
        except ArgumentError:  # as when all slots are held
            pass
        gc.collect()
        self.release_all()
        return self.call(function, ctypes.byref(batch), stream)

    def open(self, options: Any) -> None:
        pointer = ctypes.c_void_p()
        self.loader_handle = self.loader._lend()
        options.loader = self.loader_handle.pointer
        options.log, options.edit = self.log, self.edit
        try:
            call(lib.tokmap_stage_open, ctypes.byref(pointer), ctypes.byref(options))
        except Error:
            self.forget()
            raise
        self.loader._handle, self.pointer = self.lent, pointer

    def close(self) -> bool:
        """False: another thread is in a call."""
        if self.callback_thread == threading.get_ident():  # a thread cannot wait for its own end
            threading.Thread(target=self.close).start()
            return True
        with self.lock:
            if self.n_users > 0 and os.getpid() == self.pid:
                return False
            pointer, self.pointer = self.pointer, None
        if not pointer:
            return True
        if os.getpid() == self.pid:  # a forked child has nothing to close
            lib.tokmap_stage_close(pointer)
        if self.loader._handle is self.lent:
            self.loader._take_back(self.loader_handle)
        self.forget()
        return True

    def forget(self) -> None:
        self.loader = self.loader_handle = self.log = self.edit = None
        self.user_log = self.user_edit = None
        self.replaced = []

    def on_log(self, context: Any, text: bytes) -> None:
        self.callback_thread = threading.get_ident()
        try:
            assert self.user_log
            self.user_log(text.decode(errors="replace"))
        finally:
            self.callback_thread = None

    def on_edit(self, context: Any, c_rows: Any, batch: Any) -> None:
        self.callback_thread = threading.get_ident()
        self.edit_error = None
        replaced: List[Any] = []
        try:
            rows = [Row(self.loader_handle, row, batch.contents.sequence_length, 0)
                    for row in _lib.unpack_rows(c_rows, batch.contents.n_rows)]
            before = [(row.tokens, row.loss_mask) for row in rows]
            assert self.user_edit
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


def _copy(buffer: Any, n_bytes: int, item_bytes: int, name: str) -> Any:
    view = memoryview(buffer)
    if view.nbytes != n_bytes or view.itemsize != item_bytes:
        raise ValueError(f"edit: {name} has {view.nbytes} bytes, {view.itemsize} per item; it must "
                         f"have {n_bytes}, {item_bytes} per item")
    return (ctypes.c_char * n_bytes).from_buffer_copy(view.tobytes())
