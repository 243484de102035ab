# SPDX-License-Identifier: Apache-2.0
"""The event loop in which this process reads from stores, in a thread of its own. A process that only opens datasets has none."""

import asyncio
import atexit
import concurrent.futures
import contextlib
import errno
import os
import sys
import threading
import weakref
from typing import Any, Dict, List, Optional, Sequence

from .._c.forks import is_child_of_used
from .range_reader import RangeReader
from .store import ERR_FORKED, ERR_IO, Answer, Failed, Read, Transport

_FORKED = ("obstore was used in the process from which this one was forked, and does not work here. For a DataLoader of PyTorch set "
           'multiprocessing_context="forkserver" (or "spawn"); else fork before the first batch')
_EXIT_SECONDS = 2.0


class _Forked(Exception):
    pass


async def _probe() -> None:
    """Finds out whether obstore works in this process. Memory answers at once, unless a fork has left the threads behind."""
    if "obstore" in sys.modules:
        from obstore.store import MemoryStore

        try:
            await asyncio.wait_for(MemoryStore().put_async("probe", b"1"), 0.5 if is_child_of_used() else 5)
        except asyncio.TimeoutError:
            raise _Forked from None


class _Loop:
    """A loop and its thread, which ends with the process. A transport has one reader here, which knows how fast it is."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda *_: None)  # it would print what a request says that nobody waits for
        self._readers: "weakref.WeakKeyDictionary[Transport, RangeReader]" = weakref.WeakKeyDictionary()
        self._is_probed = False
        self.thread = threading.Thread(target=self.loop.run_forever, name="tokmap-store-loop", daemon=True)
        self.thread.start()

    async def read(self, transport: Transport, reads: Sequence[Read], seconds: float, counters: Dict[str, int]) -> List[Answer]:
        if transport.uses_tokio and not self._is_probed:
            await _probe()
            self._is_probed = True
        if transport not in self._readers:
            self._readers[transport] = RangeReader(transport, self.loop)
        return await self._readers[transport].read(reads, seconds, counters)

    def end(self) -> None:
        """Cancels all reads, and waits a moment: threads of a store must not come back into an interpreter that has ended."""
        async def cancel() -> None:
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            if others:
                await asyncio.wait(others, timeout=_EXIT_SECONDS / 2)
                await asyncio.sleep(0.05)

        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(cancel(), self.loop).result(_EXIT_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_EXIT_SECONDS)


_own: Optional[_Loop] = None
_lock = threading.Lock()
_has_ended = False


def has_begun() -> bool:
    """Whether this process has read from a store."""
    return _own is not None


def start(transport: Transport, reads: Sequence[Read], seconds: float, counters: Dict[str, int]) -> Any:
    """Begins to read, and returns a future for `wait`, which another thread may cancel."""
    global _own
    if _has_ended:
        raise Failed(ERR_IO, errno.ECANCELED, reads[0], "Python ends")
    with _lock:
        _own = _own or _Loop()
    return asyncio.run_coroutine_threadsafe(_own.read(transport, reads, seconds, counters), _own.loop)


def wait(future: Any, first: Read) -> List[Answer]:
    """What was read, or Failed. first: names the object."""
    try:
        found: List[Answer] = future.result()
        return found
    except _Forked:
        raise Failed(ERR_FORKED, 0, first._replace(n_bytes=0), _FORKED) from None
    except (asyncio.CancelledError, concurrent.futures.CancelledError):
        raise Failed(ERR_IO, errno.ECANCELED, first, "cancelled") from None
    finally:
        future.cancel()  # if a signal came


def _begin_child() -> None:
    """Forgets what belongs to threads that do not exist in a child of fork."""
    global _own, _lock
    _own, _lock = None, threading.Lock()


def _end() -> None:
    global _has_ended
    _has_ended = True
    if _own is not None:
        _own.end()


os.register_at_fork(after_in_child=_begin_child)
atexit.register(_end)
