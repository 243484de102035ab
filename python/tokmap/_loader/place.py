# SPDX-License-Identifier: Apache-2.0
"""Where a Loader stands, and how the loader of the library follows it there."""

from typing import Any, Optional, Tuple

from .._c.errors import call
from .._c.structs import lib
from .turns import Turns

# The first sample of the next step; the rows of this rank in the last step; if tokens are counted, those of each source.
Now = Tuple[int, int, Optional[Tuple[int, ...]]]

_UNKNOWN = -1


class Place:
    """`now` is true whatever happens: it is replaced as a whole when all of a batch is ready, so an exception at any point
    before leaves it as it was. The library may then be elsewhere, and follows before the next step."""

    def __init__(self, turns: Turns, batch_rows: int) -> None:
        self.now: Now = (0, batch_rows, None)
        self._turns = turns
        self.at = self.rows = _UNKNOWN  # what the library has: its next sample, and its rows of a step

    def forget_position(self) -> None:
        """Before the library is moved."""
        self.at = _UNKNOWN

    def forget(self) -> None:
        """Before the library is told other steps than those of this Loader, or where the handle is another one."""
        self.at = self.rows = _UNKNOWN

    def set_rows(self, handle: Any, rows: int) -> None:
        if self.rows != rows:
            self.rows, turns = _UNKNOWN, self._turns
            call(lib.tokmap_loader_set_batch, handle.pointer, turns.rank + turns.worker * turns.n_ranks,
                 turns.n_ranks * turns.n_workers, rows)
            self.rows = rows

    def follow(self, handle: Any, now: Now) -> None:
        """Brings the library to this place."""
        self.set_rows(handle, now[1])
        if self.at != now[0]:
            self.at = _UNKNOWN
            call(lib.tokmap_loader_seek, handle.pointer, now[0])
            self.at = now[0]

    def stand(self, sample: int) -> None:
        """The library was moved to this sample, and so is the Loader."""
        self.at = sample
        self.now = (sample, *self.now[1:])
