# SPDX-License-Identifier: Apache-2.0
"""Files that appear complete under their names or not at all, as those of the commands in C."""

import contextlib
import errno
import fcntl
import os
import warnings
from io import FileIO
from typing import Iterator, Tuple

from .errors import ExistsError, LockedError


def check_own(path: str, begins: bytes, what: str) -> None:
    """ExistsError if there is a file of this name that is not empty and does not begin as what is to be written there. The
    beginning may be cut off."""
    if os.path.isfile(path):  # not a pipe, which would wait
        with open(path, "rb") as file:
            if not begins.startswith(file.read(len(begins))):
                raise ExistsError(f"{path}: already exists, and is not {what}, which begins with {begins.decode()!r}: give another name", -9, file=path)


def _lock(file: int, path: str) -> bool:
    """Whether this process alone may write the file, which still has this name."""
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
            warnings.warn(f"{path}: this file system has no locks: only one process may write this file at a time")
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except (BlockingIOError, FileNotFoundError):
        return False


def _open_hidden(path: str) -> FileIO:
    """Creates the file, or opens what a killed process left. It never creates what a link leads to."""
    try:
        return open(path, "xb", buffering=0)
    except FileExistsError:
        return open(path, "r+b", buffering=0)


@contextlib.contextmanager
def complete_file(path: str) -> Iterator[Tuple[str, int]]:
    """The path of a hidden file beside this one, to be written, and its descriptor, which holds a lock. The file gets its
    name at the end. What a killed process left is taken over."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.partial")
    # An object closes itself where a signal keeps it from reaching the variable; a number would stay open and locked.
    with _open_hidden(temporary) as file:
        if not _lock(file.fileno(), temporary):
            raise LockedError(f"{path}: another process is writing it", -10, file=path)
        try:
            file.truncate(0)
            yield temporary, file.fileno()
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
