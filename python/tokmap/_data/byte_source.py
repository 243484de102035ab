# SPDX-License-Identifier: Apache-2.0
"""What the C library calls to read a dataset in a store: tokmap_byte_source. Its threads wait in these calls for store_loop.py, or,
while a dataset is opened, for short_process.py."""

import contextlib
import ctypes
import errno
import itertools
import os
import sys
import threading
import warnings
import weakref
from typing import Any, Dict, Iterator, List, Optional, Sequence

from .._c import structs as _lib
from .._c.errors import called_by_library
from .._c.forks import is_child_of_used
from .short_process import NoProcess, ShortProcess
from .store import (COUNTERS, ERR_IO, Answer, Failed, Read, Transport, check_obstore, is_url, make_transport, opening, parse_url,
                    without_suffix)

_UNKNOWN_SIZE = 2**64 - 1


# ---- Sources ----


# Transports of open datasets: one for each bucket, because each has its own connections.
_transports: "weakref.WeakValueDictionary[Any, Transport]" = weakref.WeakValueDictionary()


def _transport(key: Any, store: Any, seconds: float) -> Transport:
    found = _transports.get(key)
    if found is None:
        _transports[key] = found = make_transport(store, seconds)
    return found


def _warn_of_retries(store: Any) -> None:
    if hasattr(store, "get_async") and hasattr(store, "retry_config") and (store.retry_config or {}).get("max_retries") != 0:
        warnings.warn("the store repeats failed requests by itself, and tokmap does too, so an error takes longer: make the store with "
                      'retry_config={"max_retries": 0}', stacklevel=7)


def _is_worker() -> bool:
    """Whether this process has no children, such as a worker of a DataLoader, so that it need not be kept from using a store."""
    processes: Any = sys.modules.get("multiprocessing.process")
    return processes is not None and bool(processes.current_process().daemon)


def _has_read() -> bool:
    loop: Any = sys.modules.get(__package__ + ".store_loop")
    return loop is not None and bool(loop.has_begun())


class StoreSource:
    """A dataset in a store, as tokmap_dataset_open_from takes it. path: a URL, or a name in the store that the user gave.

    name: of the dataset in messages, without credentials and suffix; deadline: seconds for a read; counters: of its requests, and
    of those to datasets that were opened together with it. Their rows are read by one call, which the first source answers:
    shuffled rows of many datasets would else be many calls, of which few are made at the same time."""

    def __init__(self, path: str, store: Any, seconds: float) -> None:
        url = parse_url(path) if is_url(path) else None
        if store is None:
            assert url is not None
            check_obstore()
        elif url is not None and (url.user or url.query):
            raise ValueError(f"{url.name}: has user information or a query: the store that is given has its own credentials")
        else:
            make_transport(store, seconds)  # or it says what a store must be
            _warn_of_retries(store)
        self.name = without_suffix(path) if url is None else url.name
        self.store, self._url = store, url
        self._seconds = seconds
        self._process: Optional[ShortProcess] = None
        with opening() as together:
            of_store = id(store) if url is None or store is not None else url._replace(name="")
            self._before: Optional[StoreSource] = together.sources.get((of_store, seconds))
            if self._before is None:
                together.sources[of_store, seconds] = self
                self.counters = dict.fromkeys(COUNTERS, 0)
                self._number = next(_numbers)
                _sources[self._number] = self
            else:
                self.counters, self._number = self._before.counters, self._before._number
        self.struct = _lib.ByteSource(context=self._number, read=_on_read, cancel=_on_cancel)

    @property
    def _first(self) -> "StoreSource":
        return self._before or self

    @property
    def deadline(self) -> float:
        return self._first._seconds

    @deadline.setter
    def deadline(self, seconds: float) -> None:
        self._first._seconds = seconds

    @property
    def transport(self) -> Transport:
        """The transport. A new one is made if the deadline has changed, because a request has the same deadline."""
        if self.store is not None:
            self._transport = _transport(id(self.store), self.store, self.deadline)
        else:
            assert self._url is not None
            key = self._url._replace(name="")
            self._transport = _transport((key, self.deadline), self._url, self.deadline)
        return self._transport

    @contextlib.contextmanager
    def read_elsewhere(self) -> Iterator[None]:
        """While this dataset is opened: a short process reads. Unless this one has read from a store already, cannot hand it over, or may
        be unable to read, which is then said at once."""
        with opening() as together:
            transport, processes = self.transport, together.processes
            if not (_is_worker() or _has_read() or is_child_of_used()):
                with contextlib.suppress(NoProcess):
                    if transport not in processes:
                        processes[transport] = ShortProcess(self._url if self.store is None else self.store, self.deadline)
                    self._first._process = processes[transport]
            try:
                yield
            finally:
                self._first._process = None

    def read(self, reads: Sequence[Read], address: int) -> List[Answer]:
        """address: of the structs, by which a cancel names the call."""
        if self._process is not None:
            try:
                return self._process.read(reads, self.counters)
            except NoProcess as error:
                raise Failed(ERR_IO, errno.EIO, reads[0], f"the process that opens it: {error}") from None
        from . import store_loop  # which a process does not need that only opens datasets

        _calls[address] = future = store_loop.start(self.transport, reads, self.deadline, self.counters)
        try:
            return store_loop.wait(future, reads[0])
        finally:
            del _calls[address]

    @staticmethod
    def take_failure() -> Optional[Failed]:
        """The last read that failed in this thread, if it was not asked for yet: for calls of the library that do not say why."""
        failed: Optional[Failed] = getattr(_last, "failure", None)
        _last.failure = None
        return failed

    @property
    def has_credentials(self) -> bool:
        """Whether its credentials are in its URL, and so not in its name."""
        return self._url is not None and bool(self._url.user or self._url.query)


# ---- Calls of the library ----


_last = threading.local()
_calls: Dict[int, Any] = {}  # the futures of calls, by the address of their reads
_numbers = itertools.count(1)
_sources: "weakref.WeakValueDictionary[int, StoreSource]" = weakref.WeakValueDictionary()


def _write(one: Any, answer: Answer) -> None:
    n_bytes = len(answer.data)
    ctypes.memmove(one.dst, answer.data if isinstance(answer.data, bytes) else bytes(answer.data), n_bytes)
    version = answer.version.encode()
    ctypes.memmove(one.version, version, len(version) + 1)
    one.n_read = n_bytes
    one.object_bytes = _UNKNOWN_SIZE if answer.size is None else answer.size


def _report(detail: Any, status: int, text: str, sys_errno: int = 0, file_bytes: int = 0, offset: int = 0) -> int:
    if detail:
        found = _lib.ErrorDetail.from_address(detail)
        found.status, found.sys_errno, found.reason, found.file_offset = status, sys_errno, 0, offset
        found.text = text.encode(errors="replace")[:511].decode(errors="ignore").encode()
        found.file_bytes = min(file_bytes, len(found.text))
    return status


def _read(number: int, address: int, n_reads: int, detail: Any) -> int:
    with called_by_library():
        try:
            structs = (_lib.ByteRead * n_reads).from_address(address)
            reads = [Read(os.fsdecode(one.name), ctypes.string_at(one.version).decode(), one.offset, one.n_bytes) for one in structs]
            for one, answer in zip(structs, _sources[number].read(reads, address)):
                _write(one, answer)
            return 0
        except Failed as error:
            read = error.read
            _last.failure = error
            return _report(detail, error.status, str(error), error.sys_errno, len(os.fsencode(read.name)), read.offset)
    # KeyboardInterrupt, or a fault of this package
    return _report(detail, ERR_IO, "reading from the store was interrupted", errno.EINTR)


def _cancel(number: int, address: int) -> None:
    """Cancels a call of the library. If the call has not begun to read, the library cancels again."""
    with called_by_library():
        call = _calls.get(address)
        if call is not None:
            call.cancel()


_on_read, _on_cancel = _lib.ByteSourceRead(_read), _lib.ByteSourceCancel(_cancel)
for _callback in (_on_read, _on_cancel):  # threads of the library may call them until the process has ended
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_callback))
