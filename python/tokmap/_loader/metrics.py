# SPDX-License-Identifier: Apache-2.0
"""What a Loader has done so far, as a dict and in the text format of OpenMetrics."""

import os
import time
import warnings
from typing import Any, Callable, Dict, List, Optional, Tuple

from .._c.errors import LockedError
from .._c.output import check_own, complete_file

STATS = ("bytes_read", "n_waits", "ns_waited")
WAITS = {"wait_p50_ns": "0.5", "wait_p99_ns": "0.99", "wait_p999_ns": "0.999", "wait_max_ns": "1"}
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def as_text(found: Dict[str, Any]) -> str:
    """In the text format of OpenMetrics, which Prometheus reads."""
    rank = (("rank", found["rank"]),)
    of_sources = [(one, (*rank, ("source", k), ("path", one["path"]))) for k, one in enumerate(found["sources"])]
    lines: List[str] = []

    def add(name: str, kind: str, says: str, samples: List[Tuple[str, Any, Any]], unit: str = "") -> None:
        lines.extend([f"# TYPE tokmap_{name} {kind}", f"# HELP tokmap_{name} {says}"])
        lines.extend([f"# UNIT tokmap_{name} {unit}"] if unit else [])
        for suffix, labels, value in samples:
            text = ",".join(f'{key}="{str(one).translate(_ESCAPES)}"' for key, one in labels)
            lines.append(f"tokmap_{name}{suffix}{{{text}}} {value}")

    add("position", "gauge", "The first sample of the next step.", [("", rank, found["position"])])
    add("batch_rows", "gauge", "Rows of a batch of this rank.", [("", rank, found["batch_rows"])])
    add("samples_skipped", "counter", "Samples of all ranks that were left out.",
        [("_total", rank, found["samples_skipped"])])
    add("samples", "counter", "Samples of all ranks that were used.",
        [("_total", labels, one["samples"]) for one, labels in of_sources])
    tokens = ("Inputs that this process has given out since metrics were first asked for."
              if found["tokens_of_process"] else "Inputs of all ranks that were used.")
    add("tokens", "counter", tokens, [("_total", labels, one["tokens"]) for one, labels in of_sources])
    add("epochs", "gauge", "Epochs of the source.", [("", labels, one["epochs"]) for one, labels in of_sources])
    if "bytes_read" in found:
        add("read_bytes", "counter", "Bytes that were requested from the system.", [("_total", rank, found["bytes_read"])],
            "bytes")
    waits = [("", (*rank, ("quantile", quantile)), found[name] / 1e9) for name, quantile in WAITS.items() if name in found]
    add("wait_seconds", "summary", "How long steps had to wait for their data.",
        [*waits, ("_count", rank, found["n_waits"]), ("_sum", rank, found["ns_waited"] / 1e9)], "seconds")
    return "\n".join([*lines, "# EOF", ""])


class MetricsFile:
    """A file that is written again at most every so many seconds. A reader sees all of it, or the one before."""

    def __init__(self, path: str, seconds: float) -> None:
        check_own(path, b"# TYPE tokmap_", "a metrics file of tokmap")
        self._path, self._seconds, self._due = path, seconds, 0.0
        self._process: Optional[int] = os.getpid()

    def update(self, text: Callable[[], str]) -> None:
        now = time.monotonic()
        if now < self._due or self._process != os.getpid():
            return
        self._due = now + self._seconds
        try:
            with complete_file(self._path) as (temporary, _), open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text())
        except OSError as error:  # the run goes on
            why = "another process is writing it" if isinstance(error, LockedError) else error.strerror
            warnings.warn(f"{self._path}: metrics cannot be written: {why}")
