# SPDX-License-Identifier: Apache-2.0
"""What the commands in Python share, to behave as those in C: values of options, progress, messages, exit statuses."""

import contextlib
import errno
import json
import os
import sys
import time
import warnings
from typing import Any, Dict, Iterable, Iterator, List, Optional, TypeVar

from .._c.errors import (DamagedError, Error, ExistsError, LockedError, MismatchError, NotADatasetError,
                         UnsupportedError, VersionError)

_AGAIN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EIO,
          errno.ESTALE, errno.ETIMEDOUT, errno.EINTR)  # as in cli_errno_exit_code

_Item = TypeVar("_Item")


_program = "tokmap"


def speak_for(program: str) -> None:
    """In the name of this program, from now on."""
    global _program
    _program = program


class Refused(Exception):
    """Something that a command cannot do, with the reason."""


class WrongUse(ValueError):
    """A wrong command line, which the option table of the command cannot refuse."""


def plain(text: str) -> str:
    """Escapes what a terminal would interpret, and bytes that are not UTF-8."""
    return "".join(c if c.isprintable() else f"\\x{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else
                   c.encode("unicode_escape").decode() for c in text)


def print_json(**fields: Any) -> None:
    print(json.dumps({"schema_version": 1, **fields}))


class Given:
    """The values of the options that were given, and the operands, as the program hands them over. An option that was
    not given is None."""

    def __init__(self, arguments: List[str]) -> None:
        options, *self.operands = arguments
        for name, value in json.loads(options).items():
            setattr(self, name, _decode(value))

    def __getattr__(self, name: str) -> Any:
        return None


def _decode(value: Any) -> Any:
    """The program hands over bytes that are not ASCII as surrogates."""
    if isinstance(value, list):
        return [_decode(one) for one in value]
    return os.fsdecode(os.fsencode(value)) if isinstance(value, str) else value


# ---- Progress ----


_is_drawn = False


def clear_line() -> None:
    """Removes the line of progress, before anything else is printed."""
    global _is_drawn
    if _is_drawn:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    _is_drawn = False


def show_count(items: Iterable[_Item], command: str, noun: str, quiet: bool = False, step: int = 1) -> Iterator[_Item]:
    """Gives the items, and draws on a terminal how many there were, each for `step` things, as cli_progress of the
    program draws its line."""
    global _is_drawn
    on_terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    due = time.monotonic() + 0.2 if on_terminal and not quiet else float("inf")
    for n, item in enumerate(items):
        if time.monotonic() >= due:
            print(f"\r\033[?7l{command}: {n * step:,} {noun}\033[?7h\033[K", end="", file=sys.stderr, flush=True)
            due, _is_drawn = time.monotonic() + 0.2, True
        yield item
    clear_line()


# ---- Ends ----


def warn(command: str, text: object) -> None:
    clear_line()
    print(f"{_program} {command}: {plain(str(text))}", file=sys.stderr)


def _exit_status(error: Exception, other: int) -> int:
    if isinstance(error, (ExistsError, LockedError)):
        return 5
    if isinstance(error, MemoryError) or isinstance(error, OSError) and error.errno in _AGAIN:
        return 75
    if isinstance(error, NotADatasetError) and error._errno:
        return 3  # there is no index
    if isinstance(error, (NotADatasetError, VersionError, DamagedError, MismatchError)):
        return 4
    if isinstance(error, WrongUse):
        return 2
    return 3 if isinstance(error, (Refused, OSError, UnsupportedError)) else other


def describe(error: Exception) -> str:
    """What an error says, in the form of the program."""
    if isinstance(error, OSError) and error.filename is not None and not isinstance(error, Error):
        return f"{error.filename}: {error.strerror}"
    text = str(error.args[0] if isinstance(error, LookupError) and error.args else error) or "out of memory"
    return text.replace(": set replace=True to replace it", "")


def _as_json(error: Exception, text: str) -> Dict[str, Any]:
    """As the program prints it."""
    own = error if isinstance(error, Error) else Error(text, -3 if isinstance(error, OSError) else -1)
    return {"status": own.status, "errno": own._errno or getattr(error, "errno", None) or 0, "text": text, "file": own.file,
            "offset": own.offset, "reason": own.reason}


@contextlib.contextmanager
def ends_as_program(command: str, as_json: bool, other: int = 3, out: Optional[int] = None) -> Iterator[None]:
    """Prints warnings and errors as the program does, and ends with its exit statuses. other: the status for an error
    in a value; as_json: whether to print it also as JSON, on the descriptor `out` if the standard output is another one
    now. It is not an error if the reader of the output ends first."""
    warnings.showwarning = lambda message, *_: warn(command, message)
    try:
        yield
        sys.stdout.flush()
    except (Refused, Error, OSError, LookupError, ValueError, MemoryError) as error:
        status, text = _exit_status(error, other), describe(error)
        if isinstance(error, OSError) and not isinstance(error, Error) and error.errno is not None and error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python writes it again at its end
            status, text = 1 if status == 3 else status, f"cannot write the output: {error.strerror}"
        if isinstance(error, BrokenPipeError):
            sys.exit(0)
        warn(command, text)
        for note in getattr(error, "__notes__", ()):  # what a command that was called has said besides
            print(note, file=sys.stderr)
        if isinstance(error, WrongUse):
            print(f"Try '{_program} {command} --help'.", file=sys.stderr)
        if isinstance(error, ExistsError):
            print("Use --force to replace it, or choose another name.", file=sys.stderr)
        if as_json:
            if out is not None:
                sys.stdout.flush()
                os.dup2(out, sys.stdout.fileno())
            print(json.dumps({"schema_version": 1, "error": _as_json(error, text)}))
        sys.exit(status)
