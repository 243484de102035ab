# SPDX-License-Identifier: Apache-2.0
"""trained_on.py FABLES PROVERBS - a run that is killed, goes on on other ranks, goes back and is amended: the run of
docs/trained-on.md. Afterwards run.ledger says what it was trained on."""

import os
import signal
import sys
from typing import Any, Optional

import tokmap

FABLES, PROVERBS = sys.argv[1:]
checkpoints: dict[int, bytes] = {}              # step: the state after it


def train(n_ranks: int, first_step: int, last_step: int, restore: Optional[bytes] = None, killed: bool = False,
          weights: tuple[float, float] = (0.8, 0.2), **change: Any) -> None:
    """Steps first_step to last_step. One process stands for all ranks: each has a Loader, with its share of a step."""
    loaders = [tokmap.Loader(list(zip((FABLES, PROVERBS), weights)), sequence_length=16, batch_rows=8 // n_ranks, seed=1,
                             ledger="run.ledger", ranks=tokmap.Ranks(rank=rank, n_ranks=n_ranks), **change)
               for rank in range(n_ranks)]
    for loader in loaders:
        if restore:
            loader.restore(restore)
    for step in range(first_step, last_step + 1):
        batches = [next(loader) for loader in loaders]
        if step % 10 == 9:
            checkpoints[step] = batches[0].state
            with open(f"checkpoint-{step}", "wb") as file:
                file.write(batches[0].state)
    if killed:
        os.kill(os.getpid(), signal.SIGKILL)


if not os.fork():                               # attempt 1: 4 ranks, in a process that is killed after step 46
    train(4, 0, 46, killed=True)
os.wait()
with open("checkpoint-39", "rb") as file:
    state = file.read()
train(2, 40, 55, restore=state)                 # attempt 2: 2 ranks go on; the loss rises in step 52
run = tokmap.Run("run.ledger")
bad = run.step(52)[0].sample, run.step(55)[-1].sample + 1
train(2, 50, 69, weights=(0.6, 0.4), order=tokmap.Order(skip=[bad]), resume=tokmap.Resume(amend=checkpoints[49]))
print(f"left out: samples {bad[0]} to {bad[1] - 1}")
