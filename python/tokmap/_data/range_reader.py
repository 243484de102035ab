# SPDX-License-Identifier: Apache-2.0
"""Reads ranges of objects until they are there: merges near ranges, repeats failed requests, and sends a second request where
the first one takes long. Only the standard library is imported here, because a short process (short_process.py) loads this
file without the package."""

import asyncio
import collections
import contextlib
import errno
from typing import Any, Deque, Dict, List, Optional, Sequence, Set, Tuple

from .store import COUNTERS, ERR_IO, ERR_MISMATCH, Answer, Failed, Read, Replaced, Transport, WrongAnswer, describe

MAX_IN_FLIGHT = 256  # requests of one store
MERGED_GAP, MERGED_BYTES = 16 << 10, 8 << 20
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
# A request that took longer is sent again. More time if it has many bytes.
REQUEST_SECONDS, SLOWEST_RATE = 10.0, 1 << 20
N_TIMES = 1000  # the times of so many requests say what is slow
FIRST_HEDGE_SECONDS = 1.0  # before so many were seen
HEDGE_SHARE, FREE_HEDGES = 0.02, 4
HEDGED_BYTES = 4 << 20  # of larger requests the time says more of the bytes than of the store
CALM_SECONDS = 10.0  # without a failed request, before there is a hedge again
N_PROOFS = 3  # answers, one after another, that an object was replaced or has another size, or that credentials are not valid


def merge(reads: Sequence[Read]) -> List[Tuple[Read, List[int]]]:
    """The requests for these reads, each with the numbers of the reads that it answers."""
    merged: List[Tuple[Read, List[int]]] = []
    for i in sorted(range(len(reads)), key=lambda i: reads[i]):
        one = reads[i]
        if merged and one.n_bytes and merged[-1][0].n_bytes and merged[-1][0][:2] == one[:2]:
            last, numbers = merged[-1]
            end = max(last.offset + last.n_bytes, one.offset + one.n_bytes)
            if one.offset - last.offset - last.n_bytes <= MERGED_GAP and end - last.offset <= MERGED_BYTES:
                merged[-1] = last._replace(n_bytes=end - last.offset), numbers + [i]
                continue
        merged.append((one, [i]))
    return merged


# What to do after an error.
MISSING, REPLACED, REFUSED, FINAL, AGAIN = range(5)
_NAMES = {"PreconditionError": REPLACED, "PermissionDeniedError": REFUSED, "UnauthenticatedError": REFUSED,
          "InvalidPathError": FINAL, "NotSupportedError": FINAL, "UnknownConfigurationKeyError": FINAL}
_KINDS: Tuple[Tuple[Any, int], ...] = (
    (FileNotFoundError, MISSING), (Replaced, REPLACED), (PermissionError, REFUSED), (OSError, AGAIN),
    ((TypeError, AttributeError, NameError, ImportError, RuntimeError, ValueError, AssertionError, MemoryError), FINAL))


def kind_of(error: Exception) -> int:
    """Errors of obstore are known by the names of their classes, so it need not be imported."""
    named = _NAMES.get(type(error).__name__)
    return named if named is not None else next((kind for classes, kind in _KINDS if isinstance(error, classes)), AGAIN)


class _Work:
    """A range that is being read."""

    def __init__(self, transport: Transport, read: Read, seconds: float, counters: Dict[str, int]) -> None:
        self.transport, self.read, self.seconds, self.counters = transport, read, seconds, counters
        self.n_tries = 0
        self.error: Optional[Exception] = None

    def text(self) -> str:
        return "" if self.error is None else describe(self.error, self.transport.secrets)


class RangeReader:
    """Reads ranges by one transport, and knows how fast it is. Made and used in one event loop. It does not keep the transport, which
    ends with the last dataset that uses it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._slots: Any = None  # made in the loop, which Python before 3.10 needs
        self._answered = ""  # the name of an object that was read
        self._last_failure = -CALM_SECONDS
        self._times: Deque[float] = collections.deque(maxlen=N_TIMES)
        self._n_times = 0
        self._slow_seconds = FIRST_HEDGE_SECONDS
        self._total = dict.fromkeys(COUNTERS, 0)
        self._sizes: Dict[Tuple[str, str], Tuple[int, int]] = {}  # of a name and a version: the size, and how many answers said another

    async def read(self, transport: Transport, reads: Sequence[Read], seconds: float, counters: Dict[str, int]) -> List[Answer]:
        """Answers in the order of the reads, or Failed. seconds: the deadline of each, from when it is its turn."""
        self._slots = self._slots or asyncio.Semaphore(MAX_IN_FLIGHT)
        merged = merge(reads)
        tasks = [asyncio.ensure_future(self._read_one(_Work(transport, one, seconds, counters))) for one, _ in merged]
        try:
            answers = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        found: List[Answer] = [answers[0]] * len(reads)
        for (whole, numbers), answer in zip(merged, answers):
            data = memoryview(answer.data).cast("B")
            for i in numbers:
                begin = reads[i].offset - whole.offset
                found[i] = answer._replace(data=data[begin:begin + reads[i].n_bytes])
        return found

    def _count(self, work: _Work, name: str, n: int = 1) -> None:
        work.counters[name] += n
        self._total[name] += n

    async def _read_one(self, work: _Work) -> Answer:
        """One range, at most until its deadline. It keeps its place among those in flight between its tries: at the end of a long
        queue it would wait for others that fail, too."""
        task: Any = asyncio.current_task()
        is_late = False

        def end() -> None:
            nonlocal is_late
            is_late = True
            task.cancel()

        async with self._slots:
            timer = self._loop.call_later(work.seconds, end)  # a task of its own for the tries would take longer than a request
            try:
                return await self._try_until_read(work)
            except asyncio.CancelledError:
                if not is_late:
                    raise
                why = f"could not be read within {work.seconds:g} s, in {max(work.n_tries, 1)} tries"
                raise Failed(ERR_IO, errno.ETIMEDOUT, work.read, why + (f": {work.text()}" if work.error else "")) from None
            finally:
                timer.cancel()

    async def _try_until_read(self, work: _Work) -> Answer:
        pause = FIRST_PAUSE
        counts: Dict[int, int] = collections.Counter()
        while True:
            work.n_tries += 1
            try:
                answer = await self._try_once(work)
                self._answered = self._answered or work.read.name
                return answer
            except Exception as error:
                work.error = error
            kind = kind_of(work.error)
            counts[kind] += 1
            if kind == MISSING:
                raise Failed(ERR_IO, errno.ENOENT, work.read, "the object does not exist") from None
            if kind == FINAL:
                raise Failed(ERR_IO, errno.EIO, work.read, work.text()) from None
            if kind == REPLACED and counts[kind] == N_PROOFS:
                raise Failed(ERR_MISMATCH, 0, work.read, "the object was replaced after it was opened") from None
            if kind == REFUSED and counts[kind] >= N_PROOFS:
                if not self._answered:  # else keys may just have expired
                    raise Failed(ERR_IO, errno.EACCES, work.read, work.text()) from None
                if not work.read.version and await self._has_valid_keys(work):
                    raise Failed(ERR_IO, errno.ENOENT, work.read, "the object does not exist, or may not be read: " + work.text()) from None
            if kind == REFUSED:
                work.transport.renew()
            import random  # takes longer to import than most of what a short process needs

            await asyncio.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, LONGEST_PAUSE)
            self._count(work, "retries")

    async def _has_valid_keys(self, work: _Work) -> bool:
        """Whether another object is given to us while this one is refused. S3 answers 403 for an object that does not exist, to who may
        read objects but not list them."""
        if work.read.name == self._answered:
            return False
        self._count(work, "requests")
        with contextlib.suppress(Exception):
            await asyncio.wait_for(work.transport.get(self._answered, 0, 1, ""), REQUEST_SECONDS)
            return True
        return False

    async def _try_once(self, work: _Work) -> Answer:
        """A request, and another one if the first is slow. The first right answer counts."""
        began = self._loop.time()
        limit = min(REQUEST_SECONDS, work.seconds / 3) + work.read.n_bytes / SLOWEST_RATE
        tasks: Set["asyncio.Future[Answer]"] = {asyncio.ensure_future(self._request(work))}
        running, may_hedge = set(tasks), work.read.n_bytes <= HEDGED_BYTES
        error: Optional[BaseException] = None
        try:
            while running:
                waits = self._slow_seconds if may_hedge else began + limit - self._loop.time()
                done, running = await asyncio.wait(running, timeout=max(min(waits, limit), 0), return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    error = task.exception()
                    if error is None:
                        self._note_time(work, self._loop.time() - began)
                        return task.result()
                if not done and may_hedge and waits < limit:
                    may_hedge = False
                    if self._takes_hedge():
                        self._count(work, "hedges")
                        tasks.add(asyncio.ensure_future(self._request(work)))
                        running = set(tasks)
                elif not done:
                    self._note_failure(work)
                    raise WrongAnswer(f"no answer within {limit:.1f} s")
            assert error is not None
            raise error
        finally:
            for task in tasks:
                task.cancel()

    async def _request(self, work: _Work) -> Answer:
        read = work.read
        self._count(work, "requests")
        try:
            answer = await work.transport.get(read.name, read.offset, read.offset + read.n_bytes, read.version)
            self._check(read, answer)
        except Exception:
            self._note_failure(work)
            raise
        self._count(work, "bytes", memoryview(answer.data).nbytes)
        return answer

    def _check(self, read: Read, answer: Answer) -> None:
        """Compares an answer with what was asked for, and with earlier answers about the same version."""
        if read.version and answer.version != read.version:
            raise Replaced
        n_bytes, expected = memoryview(answer.data).nbytes, read.n_bytes
        if answer.size is not None:
            expected = min(expected, max(answer.size - read.offset, 0))
            self._check_size((read.name, answer.version), answer.size)
        if n_bytes > expected or n_bytes < expected and answer.size is not None:
            raise WrongAnswer(f"the answer has {n_bytes} bytes and not {expected}")

    def _check_size(self, of: Tuple[str, str], size: int) -> None:
        """The size of a version cannot change. An earlier answer may be the wrong one, but not if others agree with it."""
        known, n_against = self._sizes.get(of, (size, 0))
        if not of[1]:
            return  # which any size may have
        if known == size or n_against + 1 == N_PROOFS:
            self._sizes[of] = size, 0
            return
        self._sizes[of] = known, n_against + 1
        raise WrongAnswer(f"the answer says that the object has {size} bytes, and earlier ones said {known}")

    def _note_failure(self, work: _Work) -> None:
        self._count(work, "failures")
        self._last_failure = self._loop.time()

    def _note_time(self, work: _Work, seconds: float) -> None:
        if work.read.n_bytes > HEDGED_BYTES:
            return
        self._times.append(seconds)
        self._n_times += 1
        if self._n_times >= N_TIMES and self._n_times % 100 == 0:
            self._slow_seconds = sorted(self._times)[N_TIMES * 99 // 100]

    def _takes_hedge(self) -> bool:
        """Whether a second request may be sent: not if many requests fail, or all are slow, because more requests would make it worse."""
        allowed = max(HEDGE_SHARE * self._total["requests"], FREE_HEDGES)
        return self._loop.time() - self._last_failure >= CALM_SECONDS and self._total["hedges"] < allowed and not self._slots.locked()
