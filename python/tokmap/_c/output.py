# SPDX-License-Identifier: Apache-2.0
"""Files that appear complete under their names or not at all, as those of the commands in C."""

import contextlib
import errno
import fcntl
import os
import warnings
from typing import Iterator, Tuple

from .errors import ExistsError, LockedError


def check_own(path: str, begins: bytes, what: str) -> None:
    """ExistsError if there is a file of this name that is not empty and does not begin as what is to be written there. The
    beginning may be cut off."""
    if os.path.isfile(path):  # not a pipe, which would wait
        with open(path, "rb") as file:
            if not begins.startswith(file.read(len(begins))):
                raise ExistsError(f"{path}: already exists, and is not {what}, which begins with {begins.decode()!r}: give another name", -9)


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


@contextlib.contextmanager
def complete_file(path: str) -> Iterator[Tuple[str, int]]:
    """The path of a hidden file beside this one, to be written, and its descriptor, which holds a lock. The file gets its
    name at the end. What a killed process left is taken over."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.partial")
    file = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        if not _lock(file, temporary):
            raise LockedError(f"{path}: another process is writing it", -10)
        try:
            os.truncate(file, 0)
            yield temporary, file
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    finally:
        os.close(file)
