# SPDX-License-Identifier: Apache-2.0
"""What notebooks show of an object: made by a module above all others, which tokmap/__init__.py says how to load."""

from typing import Any, Callable, Optional

load: Optional[Callable[[], Any]] = None


def shown(maker: str, value: Any) -> str:
    """HTML by a function of that module."""
    assert load is not None
    found: str = getattr(load(), maker)(value)
    return found
