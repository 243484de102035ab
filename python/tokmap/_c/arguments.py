# SPDX-License-Identifier: Apache-2.0
"""Arguments that are numbers, flags, paths, types of numbers or states: the exception names the parameter, and says what it must be."""

import contextlib
import operator
import os
from typing import Any

from .errors import ArgumentError


def need_torch() -> Any:
    """PyTorch, or an exception that says how to install it."""
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(f"{error}. Install it: pip install torch", name="torch") from None
    return torch


def integer(name: str, value: Any) -> int:
    """An int, or what is one, such as np.int64(3). Fractions are not cut off."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}: must be an integer") from None


def _text(n: int) -> str:
    for end, rest in ((n, ""), (n + 1, " - 1")):
        if end >= 2**16 and end & (end - 1) == 0:
            return f"2^{end.bit_length() - 1}{rest}"
    return str(n)


def number(name: str, value: Any, most: int, least: int = 0) -> int:
    """An integer from least to most."""
    found = integer(name, value)
    if not least <= found <= most:
        raise ArgumentError(f"{name} is {found}: must be {_text(least)} to {_text(most)}", -1)
    return found


def real(name: str, value: Any) -> float:
    """A float, or what is one; not its digits as text."""
    if not isinstance(value, (str, bytes)):
        with contextlib.suppress(TypeError, ValueError):
            return float(value)
    raise TypeError(f"{name} is {value!r:.80}: must be a number")


def flag(name: str, value: Any) -> bool:
    """True or False, or what Python takes for it, but no text: "false" would be True."""
    if not isinstance(value, (str, bytes)):
        with contextlib.suppress(TypeError, ValueError):  # as of an array
            return bool(value)
    raise TypeError(f"{name} is {value!r:.80}: must be True or False")


def text(name: str, value: Any, what: str) -> bytes:
    """The bytes of a text that is given to the library. what: what it must be, such as "an expression"."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r:.80}: must be {what}")
    try:
        encoded = value.encode("utf-8", "surrogateescape")  # in every locale
    except UnicodeEncodeError:
        raise ValueError(f"{name} is {value!r:.80}: has a character that cannot be encoded") from None
    if b"\0" in encoded:
        raise ValueError(f"{name} is {value!r:.80}: has a zero byte")
    return encoded


def path(name: str, value: Any) -> str:
    """A path as text. Not a number, which open() takes for the descriptor of an open file."""
    try:
        found = os.fsdecode(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r:.80}: must be a path") from None
    if not text(name, found, "a path"):
        raise ArgumentError(f"{name} is {value!r}: must be a path", -1)
    return found


def dtype_name(dtype: Any, name: str = "dtype") -> str:
    """int64 of "int64", np.int64, np.dtype("int64") and torch.int64."""
    found = dtype.__name__ if isinstance(dtype, type) else str(dtype).rpartition(".")[2]
    if found not in ("int32", "int64", "uint16", "uint32"):
        raise ValueError(f"{name} is {dtype!r}: must be int32 or int64, or with contiguous=False the uint16 or uint32 "
                         "of the data")
    return found


def state_bytes(state: Any, name: str = "state") -> bytes:
    """The 128 bytes of a state."""
    try:
        found = bytes(memoryview(state))
    except TypeError:
        if isinstance(state, dict) and "state" in state:
            raise TypeError(f"{name} is what state_dict() returned, which load_state_dict() takes; or give "
                            "bytes.fromhex(...) of its \"state\"") from None
        raise TypeError(f"{name} is {state!r:.60}: must be the 128 bytes that state() returns") from None
    if len(found) != 128:
        raise ArgumentError(f"{name} has {len(found)} bytes: must be the 128 bytes that state() returns", -1)
    return found
