# SPDX-License-Identifier: Apache-2.0
"""Which rows of the steps one Loader takes: as one of several ranks, and as one of several workers of a rank."""

from typing import NamedTuple, Optional, Tuple

from .steps import Steps


class Share(NamedTuple):
    """What one Loader takes from a step, perhaps no rows. next_step and next_round: the samples where these begin."""

    first: int
    n_rows: int
    next_step: int
    next_round: int


class Turns:
    """Ranks share each step. Workers of a rank (tokmap.torch) take turns with whole steps. A round is one step of each
    worker, and all workers know where it begins."""

    def __init__(self, steps: Steps, rank: int, n_ranks: int, drop_last: bool) -> None:
        self.steps, self.rank, self.n_ranks, self.drop_last = steps, rank, n_ranks, drop_last
        self.n_ranks_left = n_ranks - rank  # from this one on
        self.worker, self.n_workers = 0, 1

    def rows(self, sample: int) -> Tuple[int, bool]:
        """Returns the rows of this rank in the first step of a round, and whether all steps of the round have as many."""
        first = self.steps.position(sample)
        n_rows = self.steps.rows(first)
        return n_rows // self.n_ranks, not self.steps.changes_between(first, first + (self.n_workers - 1) * n_rows)

    def next_step(self, first: int, rows: int) -> int:
        """Returns where the next step begins, from the first sample of this rank in a step."""
        return self.steps.sample(self.steps.position(first) + self.n_ranks_left * rows)

    def next_round(self, sample: int, rows: int) -> int:
        """Returns where the next round begins, from the first sample of a round."""
        return self.steps.sample(self.steps.position(sample) + self.n_ranks * self.n_workers * rows)

    def uneven(self, sample: int, n_samples: Optional[int]) -> Optional[Share]:
        """Returns the share in a round whose steps differ: at a change of batch_schedule, and at the end, where the last
        step may not be complete. None: the Loader is at its end."""
        steps = self.steps
        end = 2**64 - 1 if n_samples is None else steps.position(n_samples)
        own = after = steps.position(sample)
        n_step = 0
        for worker in range(self.n_workers):
            if worker == self.worker:
                own, n_step = after, steps.rows(after)
            after = min(after + steps.rows(after), end)
        left, most = max(end - own, 0), n_step // self.n_ranks
        if self.drop_last and left < n_step:
            return None
        first = own + self.rank * most
        n_rows = min(max(own + left - first, 0), most)
        return Share(steps.sample(first), n_rows, steps.sample(min(own + n_step, end)), steps.sample(after))

    def count(self, n_samples: int) -> int:
        """Counts the batches of this rank up to the end."""
        n_steps, at = self.steps.count(n_samples)
        rest = self.steps.position(n_samples) - at
        return n_steps + (not self.drop_last and rest > self.rank * (self.steps.rows(at) // self.n_ranks))
