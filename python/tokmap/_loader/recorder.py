# SPDX-License-Identifier: Apache-2.0
"""What a Loader writes of its run: the ledger and the metrics file."""

import os
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional

from .._c.errors import Handle
from .metrics import MetricsFile
from .options import Options
from .place import Now, Place

if TYPE_CHECKING:
    from .ledger import Ledger


class Recorder:
    """ledger and metrics_file are None where the options have none, or where another process writes them. collect: a method of
    the loader, which returns what the metrics file says."""

    def __init__(self, given: Options, handle: Handle, place: Place, collect: Callable[[], Dict[str, Any]]) -> None:
        record, self._place = given.record, place
        self.metrics_file: Optional[MetricsFile] = None
        if record.metrics_file is not None:
            self.metrics_file = MetricsFile(os.fspath(record.metrics_file).replace("{rank}", str(given.ranks.rank or 0)),
                                            record.metrics_seconds, bool(record.writes_ledger))
            weakref.finalize(self, _end_without_close, self.metrics_file, weakref.WeakMethod(collect))
        self.ledger: "Optional[Ledger]" = None
        if given.ledger is not None and record.writes_ledger:
            from .ledger import Ledger

            self.ledger = Ledger(given.ledger, record.micro_batches, handle, place)
            weakref.finalize(self, self.ledger.close)

    def begin(self, now: Now) -> None:
        """Writes a line into the ledger if a batch that begins here needs one."""
        if self.ledger is not None:
            self.ledger.begin(now)

    def move(self, sample: int) -> None:
        """Makes a line due if the next batch, which begins at this sample, does not follow the last one."""
        ledger = self.ledger
        if ledger is not None and not (ledger.is_open and sample == self._place.now[0]):
            ledger.close()
            ledger.due = sample

    def set_loader(self, handle: Handle) -> None:
        """Changes the loader that the next lines describe."""
        if self.ledger is not None:
            self.ledger.handle = handle

    def close(self) -> None:
        """Writes into the ledger where the run ends, or where it changes."""
        if self.ledger is not None:
            self.ledger.close()

    def end(self, collect: Callable[[], Dict[str, Any]]) -> None:
        """Writes a last time, before the loader is closed."""
        if self.metrics_file is not None:
            self.metrics_file.end(collect)
        self.close()


def _end_without_close(file: MetricsFile, collect: Any) -> None:
    """At the end of the process, or where nothing refers to the loader any longer."""
    file.end(collect())
