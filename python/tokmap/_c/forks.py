# SPDX-License-Identifier: Apache-2.0
"""Whether this process is a child of one that has used obstore, which does not work in such a child. Each fork is noted, so that
it does not matter who has used it, and this module must be imported before the fork."""

import contextlib
import os

_is_child_of_used = False
_used_before_fork = False


def has_tokio() -> bool:
    """Whether obstore, or another package with the same runtime, has started its threads in this process."""
    try:
        tasks = os.listdir("/proc/self/task")
    except OSError:
        return False
    for task in tasks if len(tasks) > 1 else []:
        with contextlib.suppress(OSError):  # the thread has ended
            with open(f"/proc/self/task/{task}/comm", "rb") as file:
                if file.read().startswith(b"tokio-r"):  # tokio-rt-worker, or an earlier name, which is cut
                    return True
    return False


def is_child_of_used() -> bool:
    return _is_child_of_used


def _note_use() -> None:
    global _used_before_fork
    _used_before_fork = _is_child_of_used or has_tokio()


def _begin_child() -> None:
    global _is_child_of_used
    _is_child_of_used = _used_before_fork


os.register_at_fork(before=_note_use, after_in_child=_begin_child)
