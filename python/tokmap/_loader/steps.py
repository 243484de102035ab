# SPDX-License-Identifier: Apache-2.0
"""Where the steps of all ranks begin, when samples are skipped (docs/ORDER.md, section 10) and the rows of a step change."""

from bisect import bisect_right
from typing import Any, List, Tuple

from .._c.arguments import number
from .._c.errors import ArgumentError

Pairs = List[Tuple[int, int]]


def _as_pairs(name: str, given: Any, example: str, second: str, most: int) -> Pairs:
    if not isinstance(given, (list, tuple)) or not all(isinstance(p, (list, tuple)) and len(p) == 2 for p in given):
        raise TypeError(f"{name} is {given!r:.80}: must be a list of pairs, such as {example}")
    return sorted((number(f"{name}: a sample", a, 2**62), number(f"{name}: {second}", b, most, 1)) for a, b in given)


def as_skip(given: Any) -> Pairs:
    """Sorted intervals. The library checks that they do not overlap."""
    return _as_pairs("skip", given, "[(1000, 1200)]", "the first sample after those that are skipped", 2**62)


def as_schedule(given: Any, n_rows: int, n_ranks: int) -> Pairs:
    """Sorted, with the n_rows of each rank that come first."""
    schedule = [(0, n_rows * n_ranks)] + _as_pairs("batch_schedule", given, "[(100000, 512)]", "a number of rows",
                                                   n_ranks * 2**24)
    for (before, _), (sample, n) in zip(schedule, schedule[1:]):
        if n % n_ranks:
            raise ArgumentError(f"batch_schedule: {n} rows from sample {sample} on are not a multiple of the {n_ranks} "
                                "ranks", -1)
        if sample == before > 0:
            raise ArgumentError(f"batch_schedule: sample {sample} is there twice", -1)
    return schedule


class Steps:
    """skip: sorted intervals. schedule: (sample, rows of a step that begins there or later), sorted, from sample 0 on.
    The position of a sample is the number of samples before it that are not skipped."""

    def __init__(self, skip: Pairs, schedule: Pairs) -> None:
        self.skips, self.changes = bool(skip), len(schedule) > 1
        self._begins, self._ends = [a for a, _ in skip], [b for _, b in skip]
        self._positions: List[int] = []  # where each interval begins
        self._passed = [0]  # how many samples are skipped before interval k
        for a, b in skip:
            self._positions.append(a - self._passed[-1])
            self._passed.append(self._passed[-1] + b - a)
        self._schedule = schedule
        self._changes = [self.position(sample) for sample, _ in schedule]

    def position(self, sample: int) -> int:
        k = bisect_right(self._begins, sample)
        return self._positions[k - 1] + max(0, sample - self._ends[k - 1]) if k else sample

    def sample(self, position: int) -> int:
        return position + self._passed[bisect_right(self._positions, position)]

    def rows(self, position: int) -> int:
        """The rows of all ranks in a step that begins at this position."""
        return self._schedule[bisect_right(self._changes, position) - 1][1]

    def changes_between(self, first: int, last: int) -> bool:
        """Whether the rows change, perhaps there and back, after the first position and up to the last one."""
        return bisect_right(self._changes, first) != bisect_right(self._changes, last)

    def most_rows(self) -> int:
        return max(n_rows for _, n_rows in self._schedule)

    def count(self, n_samples: int) -> Tuple[int, int]:
        """How many complete steps there are up to the end, and the position after them."""
        at, n_steps, end = 0, 0, self.position(n_samples)
        for change in [*self._changes[1:], end]:
            n_rows = self.rows(at)
            n = max(min(-((at - change) // n_rows), (end - at) // n_rows), 0)
            at, n_steps = at + n * n_rows, n_steps + n
        return n_steps, at
