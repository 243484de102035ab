# SPDX-License-Identifier: Apache-2.0
"""Commands of the program that the package executes, and what they report."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from typing import Any, Callable, Dict, Iterator, List, Sequence

from .errors import Error, make_error
from .find import find_program

Translate = Callable[[str], str]  # a message of the program into the words of Python

_PROGRESS = '{"progress"'


def _error_of(name: str, code: int, output: bytes, translate: Translate) -> Error:
    """What a command of the program that failed printed with --json, in words of Python."""
    try:
        found = json.loads(output.splitlines()[-1])["error"]
    except (IndexError, KeyError, TypeError, ValueError):  # it was killed
        return Error(f"{name} ended with {code}")
    return make_error(translate(found["text"]), found["status"], found["errno"], found["offset"],
                      found["reason"], found["file"])


def _say(lines: List[str]) -> None:
    """Prints what the command said, which goes on."""
    if lines:
        print("\n".join(lines), file=sys.stderr, flush=True)
    lines.clear()


def _follow(child: Any, on_progress: Callable[[Dict[str, Any]], None], said: List[str], translate: Translate) -> None:
    """Reads its messages until its end. What came after the last progress stays in `said`: it may belong to an error."""
    for line in child.stderr:
        text = line.decode(errors="replace").rstrip("\n")
        if text.startswith(_PROGRESS):
            _say(said)
            on_progress(json.loads(text)["progress"])
        else:
            said.append(text if text.startswith(" ") else translate(text))  # a line with a blank is a command


def _interrupt(child: Any, translate: Translate) -> None:
    """Asks it to end, and waits until it has kept what it has done. A second interrupt ends it at once."""
    said: List[str] = []
    child.send_signal(signal.SIGINT)
    try:
        _follow(child, lambda _: None, said, translate)
        child.wait()
    except BaseException:
        child.kill()
        child.wait()
        raise
    _say(said)


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Handles an interrupt that comes meanwhile at the end."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield  # Python handles none here
        return
    came: List[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def run(command: str, options: Sequence[str], operands: Sequence[str], translate: Translate,
        on_progress: Callable[[Dict[str, Any]], None] = lambda _: None, keeps_result: bool = False) -> Any:
    """What `tokmap COMMAND --json` prints; None if it prints nothing. Raises the exception of what it reports as an error,
    unless keeps_result is set and it prints a result before the error, which then has it as "error"; and hands an exception of on_progress, or
    an interrupt, on after it has ended.

    The program has a session of its own: an interrupt of the terminal reaches it once, through this process. Its messages
    and its progress come by a pipe, so it does not outlive this process."""
    program = [find_program("tokmap"), command, "--json", *options, "--", *operands]
    said: List[str] = []
    child = None
    with tempfile.TemporaryFile() as output:
        try:
            with _interrupts_wait():  # else one could leave a program behind that nobody knows
                child = subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE,
                                         start_new_session=True, env={**os.environ, "TOKMAP_PROGRESS": "json"})
            _follow(child, on_progress, said, translate)
            code = child.wait()
        except BaseException:
            if child:
                _interrupt(child, translate)
            raise
        finally:
            if child and child.stderr:
                child.stderr.close()
        output.seek(0)
        printed = output.read()
    found = json.loads(printed.splitlines()[-1]) if code == 0 and printed else None
    if code == 0 and not (found and "error" in found):  # with SIGCHLD ignored the exit status is not known
        _say(said)
        return found
    error = _error_of(f"tokmap {command}", code, printed, translate)
    if keeps_result and printed.count(b"\n") > 1:
        _say(said)
        return {**json.loads(printed.splitlines()[0]), "error": str(error)}
    _attach(error, [line for line in said if not line.endswith(f": {error}")])
    raise error


def _attach(error: Error, said: List[str]) -> None:
    """What else the program said belongs to the error: what to do, or files that have errors too."""
    if said and hasattr(error, "add_note"):  # Python 3.11
        error.add_note("\n".join(said))
    else:
        _say(said)

