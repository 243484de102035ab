# SPDX-License-Identifier: Apache-2.0
"""A lock for each object that several threads may use."""

import os
import threading
import weakref
from typing import Any

_owners: "weakref.WeakSet[Any]" = weakref.WeakSet()


def new_lock(owner: Any) -> Any:
    """For owner._lock. Reentrant, because a signal handler may ask for the state in the middle of a call."""
    _owners.add(owner)
    return threading.RLock()


def _renew() -> None:
    """A thread that held a lock does not exist in a child of fork."""
    for owner in list(_owners):
        owner._lock = threading.RLock()


os.register_at_fork(after_in_child=_renew)
