# SPDX-License-Identifier: Apache-2.0
"""HTML for notebooks, made by _tools/notebook.py, which is imported when an object is shown."""

from typing import Any, Callable, Optional

load: Optional[Callable[[], Any]] = None


def shown(maker: str, value: Any) -> str:
    """HTML by a function of that module."""
    assert load is not None
    found: str = getattr(load(), maker)(value)
    return found
