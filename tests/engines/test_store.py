#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/recipes/store.sbatch with a folder in place of the bucket: tasks are killed at random places, on this node or on
one that goes on with an empty disk. In the store, a cell is complete or absent at any time."""

import os
import random
import re
import shutil
import signal
import sys
import time

from marked import Marked
from planned import Planned, digest, possible_kinds, run_checks
from ref_protocol import expect, expect_equal

N_KILLS = 50
# An object appears as a whole, as in a store. The time of the copy is now.
COPY = """#!/bin/sh
sleep 0.0$(($$ % 3))
cat "$1" >"$2.$$.coming" && mv "$2.$$.coming" "$2"
"""


class Array:
    """The tasks of the recipe, with `planned.folder` as the disk of a node and `store` as the bucket."""

    def __init__(self, planned):
        self.planned, self.disk, self.store = planned, planned.folder, planned.folder / "store"
        self.store.mkdir()
        (self.store / "cells").mkdir()
        for name in ("corpus", "run.plan", "tokenizer.json"):
            shutil.move(str(self.disk / name), str(self.store / name))
        (self.disk / "copy.sh").write_text(COPY)
        planned.marked.environment.update(STORE=str(self.store), FOLDER=str(self.disk),
                                          COPY="sh %s" % (self.disk / "copy.sh"))
        self.n_cells = len(re.findall(r"^cell ", (self.store / "run.plan").read_text(), re.MULTILINE))

    def start(self, task):
        environment = {**self.planned.marked.environment, "SLURM_ARRAY_TASK_ID": str(task)}
        return self.planned.marked.start("sh", "store.sbatch", cwd=self.disk, env=environment, stderr=open(self.disk / "log", "wb"))

    def run(self, task):
        process = self.start(task)
        expect(process.wait(60) == 0, "task %d: %s" % (task, (self.disk / "log").read_text()))

    def lose_disk(self):
        for name in ("corpus", "cells", "inputs", "run.plan", "tokenizer.json"):
            path = self.disk / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def check_store(self):
        """Each cell that has an index is complete. Returns how many there are."""
        done = sorted((self.store / "cells").glob("*.tmi"))
        for index in done:
            tokens = index.with_suffix(".bin")
            expect_equal(digest(tokens), self.planned.cells[tokens.name], "digest of " + tokens.name)
        return len(done)

    def left(self):
        """What a task has left on the disk of its node, without what its killed copies have left."""
        return [str(path) for folder in ("corpus", "cells") for path in (self.disk / folder).rglob("*")
                if path.is_file() and path.suffix != ".coming"]


def kill_at_random(array, rng, task, seconds):
    """Kills the task within the time that it needs. Returns whether it had ended before."""
    process = array.start(task)
    time.sleep(rng.random() * seconds)
    ended = process.poll() is not None
    if not ended:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return ended


def tasks_are_killed_at_any_place(folder):
    with Marked(folder) as marked:
        array = Array(Planned(folder, marked, 4, n_cells=8, kinds=possible_kinds()))
        begun = time.monotonic()
        array.run(0)
        seconds = time.monotonic() - begun
        expect_equal((array.check_store(), array.left()), (1, []), "after one task")
        rng, n_kills, n_lost = random.Random(76), 0, 0
        while n_kills < N_KILLS:
            array.lose_disk()
            shutil.rmtree(array.store / "cells")
            (array.store / "cells").mkdir()
            for task in rng.sample(range(array.n_cells), array.n_cells):
                while n_kills < N_KILLS and rng.random() < 0.8:
                    n_kills += not kill_at_random(array, rng, task, seconds)
                    array.check_store()
                    if rng.random() < 0.3:
                        array.lose_disk()
                        n_lost += 1
                array.run(task)
                array.run(task)  # one that is done ends at once
                expect_equal(array.left(), [], "left on the disk")
            expect_equal(array.check_store(), array.n_cells, "cells")
        array.lose_disk()
        marked.call("sh", "store.sbatch", "join", cwd=folder)
        expect_equal(array.left(), [], "left by the join")
        # Another machine copies the dataset: token files first, the index last.
        shutil.copytree(array.store / "cells", folder / "cells", dirs_exist_ok=True)
        shutil.copy(array.store / "train.tmi", folder / "train.tmi")
        return "%s; %d kills, %d lost disks" % (array.planned.check(), n_kills, n_lost)


if __name__ == "__main__":
    sys.exit(run_checks("store: "))
