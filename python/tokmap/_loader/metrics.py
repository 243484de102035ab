# SPDX-License-Identifier: Apache-2.0
"""What a Loader has done so far, in the text format of Prometheus, and the file for its collector."""

import contextlib
import os
import time
import warnings
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

from .._c.errors import Error, LockedError
from .._c.output import check_own, complete_file

STATS = ("bytes_read", "n_waits", "waited_ns")
WAITS = {"wait_p50_ns": "0.5", "wait_p99_ns": "0.99", "wait_p999_ns": "0.999", "wait_max_ns": "1"}
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def as_text(found: Dict[str, Any], of_run: bool, up: int = 1) -> str:
    """In the text format of Prometheus. of_run: also with the totals of the run, which one of its processes writes. They are
    gauges, because they fall where a run resumes from a checkpoint: rate() would take a counter that falls for one that began
    again at 0, and add all of it."""
    rank = ("rank", found["rank"])
    lines: List[str] = []

    def add(name: str, kind: str, says: str, samples: List[Tuple[str, Any, Any]]) -> None:
        lines.extend([f"# TYPE tokmap_{name} {kind}", f"# HELP tokmap_{name} {says}"])
        for suffix, labels, value in samples:
            text = ",".join(f'{key}="{str(one).translate(_ESCAPES)}"' for key, one in labels)
            lines.append(f"tokmap_{name}{suffix}{f'{{{text}}}' if text else ''} {value}")

    def of_sources(key: str, *labels: Any) -> List[Tuple[str, Any, Any]]:
        return [("", (*labels, ("source", k), ("path", one["path"])), one[key]) for k, one in enumerate(found["sources"])]

    add("up", "gauge", "1, or 0 after the loader was closed.", [("", [rank], up)])
    if of_run:
        add("run_position", "gauge", "The first sample of the next step.", [("", (), found["position"])])
        add("run_samples_skipped", "gauge", "Samples of all ranks that were left out.", [("", (), found["samples_skipped"])])
        add("run_samples", "gauge", "Samples of all ranks that were used.", of_sources("samples"))
        add("run_tokens", "gauge", "Inputs of all ranks that were used, padding included.", of_sources("tokens"))
        add("run_epochs", "gauge", "Epochs of the source.", of_sources("epochs"))
    add("process_batch_rows", "gauge", "Rows of a batch of this rank.", [("", [rank], found["batch_rows"])])
    add("process_tokens_total", "counter", "Inputs of this rank since its loader was opened, without padding.",
        of_sources("process_tokens", rank))
    if "bytes_read" in found:
        add("process_read_bytes_total", "counter", "Bytes that were requested from the system.", [("", [rank], found["bytes_read"])])
    waits = [("", (rank, ("quantile", quantile)), found[name] / 1e9) for name, quantile in WAITS.items() if name in found]
    add("process_wait_seconds", "summary", "How long steps had to wait for their data.",
        [*waits, ("_sum", [rank], found["waited_ns"] / 1e9), ("_count", [rank], found["n_waits"])])
    return "\n".join([*lines, ""])


# By the path, its folder without links: which one wrote the file last in this process. An older one, which may end much later,
# leaves it alone.
_last_writers: "weakref.WeakValueDictionary[str, MetricsFile]" = weakref.WeakValueDictionary()


class MetricsFile:
    """A file that is written again at most every so many seconds. A reader sees all of it, or the one before. It belongs to the
    process that made it. collect: returns what as_text takes."""

    def __init__(self, path: str, seconds: float, of_run: bool) -> None:
        check_own(path, b"# TYPE tokmap_", "a metrics file of tokmap")
        self._path, self._seconds, self._due, self._of_run = path, seconds, 0.0, of_run
        self._place = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        self._process = os.getpid()
        self._last: Optional[Dict[str, Any]] = None  # what the file has, if its loader is open

    def update(self, collect: Callable[[], Dict[str, Any]], at_once: bool = False) -> None:
        now = time.monotonic()
        if self._process != os.getpid() or (now < self._due and not at_once):
            return
        self._due, self._last = now + self._seconds, collect()
        _last_writers[self._place] = self
        self._write(as_text(self._last, self._of_run))

    def end(self, collect: Optional[Callable[[], Dict[str, Any]]]) -> None:
        """Writes a last time, if no other one has written the file since. collect: None if the loader is gone."""
        last, self._last = self._last, None
        if last is None or self._process != os.getpid() or _last_writers.get(self._place) is not self:
            return
        if collect is not None:
            with contextlib.suppress(Error, ValueError):  # of a stage that failed
                last = collect()
        self._write(as_text(last, self._of_run, 0))

    def _write(self, text: str) -> None:
        try:
            with complete_file(self._path) as (temporary, _), open(temporary, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
        except OSError as error:  # the run goes on
            why = "another process is writing it" if isinstance(error, LockedError) else error.strerror
            warnings.warn(f"{self._path}: metrics cannot be written: {why}")
