# SPDX-License-Identifier: Apache-2.0
"""Proof that nothing else refers to an object, whose memory may then be used again."""

import sys
from typing import Any, List, Tuple

count_references = sys.getrefcount
_has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()  # without it counts are not exact


def count_alone() -> int:
    """What count_references(holder[i]) is if nothing but this tuple or list refers to the item; -1 if counts prove nothing.
    Measured anew for each use, of objects that nothing can have kept, such as a tool that keeps frames: only `known` refers
    to one of them, which must count exactly one more than the other one, to which nothing refers."""
    known: Tuple[List[Any], ...] = ([],)
    n = count_references(known[0])
    return n if _has_gil and n == count_references([]) + 1 else -1
