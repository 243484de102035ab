# SPDX-License-Identifier: Apache-2.0
"""What the commands in Python share, to behave as those in C: options, help, messages, exit statuses, progress."""

import argparse
import contextlib
import errno
import inspect
import itertools
import json
import os
import re
import sys
import textwrap
import time
import warnings
from typing import Any, Iterable, Iterator, List, NoReturn, Optional, TypeVar

from .._c.errors import (DamagedError, Error, ExistsError, LockedError, MismatchError, NotADatasetError,
                         UnsupportedError, VersionError)

_LAST_COLUMN, _MAX_TEXT_COLUMN = 79, 28  # as in tokenize_tools/cli/manual.c
_AGAIN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EIO,
          errno.ESTALE, errno.ETIMEDOUT, errno.EINTR)  # as in cli_errno_exit_code

_Item = TypeVar("_Item")

# Messages of argparse, and those of the program.
_OPTION = r"arguments? (?:-\w/)?(--[\w-]+)"
_MESSAGES = ((f"{_OPTION}: expected .*", r"option \1 needs a value"),
             (f"{_OPTION}: ignored explicit argument .*", r"option \1 takes no value"),
             (f"{_OPTION}: not allowed with argument (?:-\\w/)?(--[\\w-]+)", r"use only one of \2 and \1"),
             (f"{_OPTION}: invalid int value: '(.*)'", r"\1 \2: must be a whole number"),
             (f"{_OPTION}: ", r"\1 "), (r"argument ([A-Z]+): ", r"\1 "),
             (r"unrecognized arguments: (-[^-]).*", r"unknown option \1"),
             (r"unrecognized arguments: (.*)", r"too many arguments: \1"),
             (r"ambiguous option: ([^ =]+).*", r"unknown or ambiguous option \1"),
             (r"the following arguments are required: .*?(--[\w-]+).*", r"option \1 is required"),
             (r"the following arguments are required: ([A-Z]+).*", r"no \1 given"),
             (r"one of the arguments (.*) is required", r"one of these options is required: \1"))


class Refused(Exception):
    """Something that a command cannot do, with the reason."""


def plain(text: str) -> str:
    """Escapes what a terminal would interpret, and bytes that are not UTF-8."""
    return "".join(c if c.isprintable() else f"\\x{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else
                   c.encode("unicode_escape").decode() for c in text)


def print_json(**fields: Any) -> None:
    print(json.dumps({"schema_version": 1, **fields}))


# ---- Options ----


def _wrap(text: str, column: int) -> List[str]:
    return textwrap.wrap(text, _LAST_COLUMN - column, break_on_hyphens=False, break_long_words=False)


def _list_words(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _name_option(action: argparse.Action) -> str:
    names = action.option_strings
    return f"  {f'{names[0]}, ' if len(names) > 1 else '    '}{names[-1]} {action.metavar or ''}".rstrip()


def _describe_option(action: argparse.Action, column: int) -> List[str]:
    name, lines = _name_option(action), _wrap(action.help or "", column)
    if action.choices:
        lines += ["  " + line for line in _wrap(_list_words(action.choices), column + 2)]
    first = [name] if len(name) + 2 > column else [name.ljust(column) + lines.pop(0)]
    return first + [" " * column + line for line in lines]


class Parser(argparse.ArgumentParser):
    """Reads the arguments of a command. Writes help and errors as the program does. manual: the docstring of the
    command, which is the usage, paragraphs and examples."""

    def __init__(self, command: str, manual: Optional[str]) -> None:
        usage, _, text = inspect.cleandoc(manual or f"tokmap {command}").partition("\n\n")
        about, _, examples = text.partition("\n\nExamples:\n")
        super().__init__(prog=f"tokmap {command}", usage=usage, description=about, epilog=examples, add_help=False)
        self.add_argument("-h", "--help", action="help", help="print this help and exit")

    def format_help(self) -> str:
        groups = [group for group in self._action_groups if group is not self._positionals]
        last, *options = [action for group in groups for action in group._group_actions]
        widths = [len(_name_option(action)) + 2 for action in (last, *options)]
        column = max(width for width in widths if width <= _MAX_TEXT_COLUMN)
        paragraphs = (self.description or "").split("\n\n")
        lines = [f"Usage: {self.usage}", *(line for one in paragraphs for line in ("", *_wrap(one, 0)))]
        for group in groups:
            actions = [action for action in group._group_actions if action is not last]
            lines += ["", "Options:" if group is self._optionals else f"{group.title}:"] if actions else []
            lines += [line for action in actions for line in _describe_option(action, column)]
        return "\n".join([*lines, *_describe_option(last, column), "", "Examples:", self.epilog or ""]) + "\n"

    def print_help(self, file: Any = None) -> None:
        print(self.format_help(), end="", flush=True)  # raises what argparse ignores

    def find_unknown(self, arguments: List[str]) -> Optional[str]:
        """The first option that the command does not have, which argparse names only if nothing is missing."""
        names = [word.partition("=")[0] for word in itertools.takewhile(lambda word: word != "--", arguments)]
        return next((name for name in names if name.startswith("--") and
                     not any(known.startswith(name) for known in self._option_string_actions)), None)

    def read(self, arguments: List[str]) -> argparse.Namespace:
        if unknown := self.find_unknown(arguments):
            self.error(f"unknown or ambiguous option {unknown}")
        return self.parse_intermixed_args(arguments)

    def error(self, message: str) -> NoReturn:
        for pattern, text in _MESSAGES:
            message = re.sub(f"^{pattern}", text, message, flags=re.DOTALL)
        print(f"{self.prog}: {plain(message)}\nTry '{self.prog} --help'.", file=sys.stderr)
        sys.exit(2)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"{value}: must be {_list_words(action.choices)}")


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
    print(f"tokmap {command}: {plain(str(text))}", file=sys.stderr)


def _exit_status(error: Exception, other: int) -> int:
    if isinstance(error, (ExistsError, LockedError)):
        return 5
    if isinstance(error, MemoryError) or isinstance(error, OSError) and error.errno in _AGAIN:
        return 75
    if isinstance(error, (NotADatasetError, VersionError, DamagedError, MismatchError)):
        return 4
    return 3 if isinstance(error, (Refused, OSError, UnsupportedError)) else other


def describe(error: Exception) -> str:
    """What an error says, in the form of the program."""
    if isinstance(error, OSError) and error.filename is not None and not isinstance(error, Error):
        return f"{error.filename}: {error.strerror}"
    text = str(error.args[0] if isinstance(error, LookupError) and error.args else error) or "out of memory"
    return text.replace(": set replace=True to replace it", "")


@contextlib.contextmanager
def ends_as_program(command: str, other: int = 3) -> Iterator[None]:
    """Prints warnings and errors as the program does, and ends with its exit statuses. other: the status for an error
    in a value. It is not an error if the reader of the output ends first."""
    warnings.showwarning = lambda message, *_: warn(command, message)
    try:
        yield
        sys.stdout.flush()
    except (Refused, Error, OSError, LookupError, ValueError, MemoryError) as error:
        status, text = _exit_status(error, other), describe(error)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python writes it again at its end
            status, text = 1 if status == 3 else status, f"cannot write the output: {error.strerror}"
        if isinstance(error, BrokenPipeError):
            sys.exit(0)
        warn(command, text)
        if isinstance(error, ExistsError):
            print("Use --force to replace it, or choose another name.", file=sys.stderr)
        sys.exit(status)
