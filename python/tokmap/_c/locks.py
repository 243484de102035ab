# SPDX-License-Identifier: Apache-2.0
"""Locks of objects that several threads may use."""

import os
import threading
import weakref
from typing import Any, List

_owners: "weakref.WeakKeyDictionary[Any, List[str]]" = weakref.WeakKeyDictionary()


def new_lock(owner: Any, name: str = "_lock") -> Any:
    """For this attribute of the owner. Reentrant, because a signal handler may ask for the state in the middle of a
    call."""
    _owners.setdefault(owner, []).append(name)
    return threading.RLock()


def _renew() -> None:
    """A thread that held a lock does not exist in a child of fork."""
    for owner, names in list(_owners.items()):
        for name in names:
            setattr(owner, name, threading.RLock())


os.register_at_fork(after_in_child=_renew)
