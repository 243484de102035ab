# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package. Each also derives from a built-in one, and says what failed and where."""

import contextlib
import ctypes
import sys
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, Optional, Set, Tuple, Type

from . import structs as _lib


class Error(Exception):
    """What the library reports. The message is one line that says what happened, and where.

    status: the number that the C library has for the kind of error. file: the file that the message begins with, or
    None. offset: the byte of the file where it happened, or 0. reason: a number that a program may decide by, or
    0."""

    def __init__(self, text: str, status: int = 0, errno: int = 0, offset: int = 0, reason: int = 0,
                 file: Optional[str] = None) -> None:
        super().__init__(text)
        self.status, self.offset, self.reason, self.file = status, offset, reason, file
        self._errno = errno
        if isinstance(self, OSError):
            setattr(self, "errno", errno or None)  # plain assignments would declare them in this class
            setattr(self, "filename", self.file)

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> Tuple[Any, ...]:
        return make_error, (str(self), self.status, self._errno, self.offset, self.reason, self.file)


class ArgumentError(Error, ValueError):
    """An argument is wrong, or a call came at the wrong time."""


class NoMemoryError(Error, MemoryError):
    """The library could not get memory."""


class FileError(Error, OSError):
    """The system could not read or write a file. Also derives from the exception of its `errno`, such as
    FileNotFoundError or PermissionError."""


class NotADatasetError(Error, ValueError):
    """The file is something other than a dataset, or it has no index: pack it, or index it."""


class VersionError(Error, ValueError):
    """A dataset, or a state, is of a newer format than this version reads."""


class DamagedError(Error, ValueError):
    """A dataset, or a state, is damaged: sizes, offsets or checksums are wrong."""


class MismatchError(Error, ValueError):
    """Things that do not belong together, such as an index and another token file, or a state and other data."""


class UnsupportedError(Error, NotImplementedError, ValueError):
    """Something that this version does not do, such as a tokenizer file whose ids it would not reproduce."""


class ExistsError(Error, FileExistsError):
    """The output already exists."""


class LockedError(Error, BlockingIOError):
    """Another writer has the same output open."""


class ForkedError(Error, RuntimeError):
    """Opened before a fork, and used in the child process."""


class DeviceError(Error, RuntimeError):
    """There is no GPU or no driver, or it failed."""


_KINDS: Dict[int, Type[Error]] = {
    -1: ArgumentError, -2: NoMemoryError, -3: FileError, -4: NotADatasetError, -5: VersionError,
    -6: DamagedError, -7: MismatchError, -8: UnsupportedError, -9: ExistsError, -10: LockedError,
    -11: ForkedError, -12: DeviceError}
_file_kinds: Dict[type, Type[FileError]] = {}


def _file_error(errno: int) -> Type[FileError]:
    """FileError, and the class that Python has for this errno."""
    kind = type(OSError(errno, ""))
    if errno == 0 or kind is OSError:
        return FileError
    if kind not in _file_kinds:
        _file_kinds[kind] = type(kind.__name__, (FileError, kind), {"__module__": __name__})
    return _file_kinds[kind]


def make_error(text: str, status: int, errno: int, offset: int, reason: int = 0, file: Optional[str] = None) -> Error:
    kind = _file_error(errno) if status == -3 else _KINDS.get(status, Error)
    return kind(text, status, errno, offset, reason, file)


# Where a message of the library has words of C, those of Python.
_WORDS = (("open the loader with row_parts = TOKMAP_ROW_DOCUMENTS for cu_seqlens, TOKMAP_ROW_POSITION_IDS and "
           "TOKMAP_ROW_DOCUMENT_IDS for ids", "open the loader with the same outputs"),
          ("open the loader with row_parts = TOKMAP_ROW_DOCUMENTS", 'open the loader with the output "cu_seqlens"'),
          ("open the loader with row_parts = TOKMAP_ROW_LOSS_MASK", 'open the loader with mask_labels=True'),
          ("TOKMAP_STAGE_ROW_POSITIONS needs", "positions='row' needs"), ("set has_spans", "set spans=True"),
          ("row_parts needs them", "these outputs need them"), ("set input_bytes and label_bytes to 8", "use int64"),
          ("set input_bytes to 8", "use int64"))


class _Thread(threading.local):
    """Of each thread: whether the library has called a function of Python in it, and what such a function has raised."""

    is_called = False
    error: Optional[BaseException] = None


_thread = _Thread()


@contextlib.contextmanager
def called_by_library() -> Iterator[None]:
    """The body of a function that the library calls, which must not raise. What it raises is raised by `check` when the library
    returns to Python."""
    _thread.is_called = True
    try:
        yield
    except BaseException as error:
        _thread.error = error
    finally:
        _thread.is_called = False


def check(status: int, detail: Any, advice: str = "") -> None:
    """Raises what a call of the library reported."""
    if status < 0:
        error, _thread.error = _thread.error, None
        if error is not None:
            raise error
        text = detail.text.decode(errors="replace")
        file = detail.text[:detail.file_bytes].decode(errors="replace") or None
        for of_c, of_python in _WORDS:
            text = text.replace(of_c, of_python)
        raise make_error(text + advice, detail.status, detail.sys_errno, detail.file_offset, detail.reason, file)


def call(function: Any, *arguments: Any, advice: str = "") -> None:
    """Calls a function of the library whose last argument is where it reports what is wrong."""
    detail = _lib.ErrorDetail()
    check(function(*arguments, ctypes.byref(detail)), detail, advice)


class NoHandle:
    """In place of the handle of a loader that cannot be used now."""

    def __init__(self, why: str) -> None:
        self._why = why

    @property
    def pointer(self) -> Any:
        raise ValueError(self._why)


class Handle:
    """What a call of the library opens, closed when nothing refers to it any longer; `kept` lives at least as long. Not in
    __del__: of objects that are collected together, `kept` could go first."""

    def __init__(self, close: Callable[..., None], kept: Any = None) -> None:
        self.pointer = pointer = ctypes.c_void_p()
        self.kept = kept

        def forget(own: Any, kept: Any = kept) -> None:
            _open.remove(own)
            if _is_finalizing():  # arrays may still exist
                return
            if _thread.is_called:  # this may be a thread of what is closed, which waits for its threads
                threading.Thread(target=close, args=(pointer,)).start()
            else:
                close(pointer)

        _open.add(weakref.ref(self, forget))  # weakref.finalize imports a module first


_open: Set[Any] = set()
_is_finalizing = sys.is_finalizing
