# SPDX-License-Identifier: Apache-2.0
"""A process that reads from a store in place of this one, and ends when a dataset is open. So this process may still fork: a
child of a process that has used obstore cannot use it. It is started by a new interpreter, never by fork, and does not run the
user's main module. Only the standard library is imported here, because the process loads this file without the package."""

import os
import pickle
import select
import subprocess
import sys
from typing import Any, Dict, List, Sequence

from .store import COUNTERS, Answer, Failed, Read, Url, make_transport

# A package of another name has only this folder, so that the process need not import NumPy; `import tokmap` still works in it.
_MAIN = """import pickle, sys, types
sys.path[:], folder = pickle.load(sys.stdin.buffer)
package = types.ModuleType("_tokmap_data")
package.__path__ = [folder]
sys.modules["_tokmap_data"] = package
from _tokmap_data.short_process import serve
serve()
"""


class NoProcess(Exception):
    """There is no short process: the interpreter was not started, or the store cannot be pickled."""


class ShortProcess:
    """The process for one store, as its parent sees it."""

    def __init__(self, store: Any, seconds: float) -> None:
        """store: what make_transport takes; seconds: the deadline of a read."""
        self._wait_ms = int(1000 * seconds) + 30000
        if not sys.executable or getattr(sys, "frozen", False):  # which is then the user's program
            raise NoProcess("there is no interpreter")
        try:
            # A Url is a class of this package, which the process should not import.
            pickled = pickle.dumps(("url", tuple(store)) if isinstance(store, Url) else ("object", store))
            # A session of its own, which Ctrl-C does not reach.
            self._process = subprocess.Popen([sys.executable, "-c", _MAIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             start_new_session=True)
        except Exception as error:  # whatever pickling a store may raise
            raise NoProcess(str(error)) from None
        try:
            self._send((sys.path, os.path.dirname(os.path.abspath(__file__))), (pickled, seconds))
            self._receive()
        except BaseException:
            self.close()
            raise

    def _send(self, *messages: Any) -> None:
        assert self._process.stdin is not None
        try:
            for message in messages:
                pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()
        except OSError:  # _receive says why it has ended
            pass

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        ready = select.poll()
        ready.register(self._process.stdout, select.POLLIN)
        try:
            if not ready.poll(self._wait_ms):
                raise NoProcess("it did not answer")
            found = pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError, OSError):
            raise NoProcess(f"it ended with status {self._process.wait()}") from None
        if found[0] == "no store":
            raise NoProcess(found[1])
        return found

    def read(self, reads: Sequence[Read], counters: Dict[str, int]) -> List[Answer]:
        """Reads ranges, as RangeReader.read does."""
        self._send([tuple(one) for one in reads])
        kind, counted, *found = self._receive()
        for name, n in counted.items():
            counters[name] += n
        if kind == "failed":
            status, sys_errno, one, why = found
            raise Failed(status, sys_errno, Read(*one), why)
        return [Answer(*one) for one in found]

    def close(self) -> None:
        """Ends the process at once. Nothing that it has read is needed."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:  # what could not be sent
                pass


# ---- In the process ----


def serve() -> None:
    """Reads what standard input asks for, until it ends."""
    import asyncio

    from .range_reader import RangeReader

    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # modules of the user may print

    def send(*message: Any) -> None:
        pickle.dump(message, output)
        output.flush()

    pickled, seconds = pickle.load(sys.stdin.buffer)
    try:
        kind, store = pickle.loads(pickled)
        transport = make_transport(Url(*store) if kind == "url" else store, seconds)
    except BaseException as error:
        send("no store", f"{type(error).__name__}: {error}")
        return
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # it would print what a request says that nobody waits for
    reader = RangeReader(loop)
    send("ready")
    while True:
        try:
            reads = [Read(*one) for one in pickle.load(sys.stdin.buffer)]
        except EOFError:
            os._exit(0)  # without waiting for the threads of a store
        counters = dict.fromkeys(COUNTERS, 0)
        try:
            answers = loop.run_until_complete(reader.read(transport, reads, seconds, counters))
            send("answers", counters, *((bytes(one.data), one.version, one.size) for one in answers))
        except Failed as error:
            send("failed", counters, error.status, error.sys_errno, tuple(error.read), error.why)

