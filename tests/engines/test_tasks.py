#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packing by hand, as `tokmap plan --help` shows: 1, 2, 7 or 64 tasks at once, some of them killed."""

import shutil
import sys

from marked import Marked
from planned import Killer, Planned, possible_kinds, run_checks
from ref_protocol import expect

TASKS = """
for i in $(seq 0 $((N - 1))); do
    tokmap pack -q --plan run.plan --task $i/$N -j 1 || echo failed >>failed &
done
wait
"""


def any_number_of_tasks_with_kills(folder):
    said = []
    with Marked(folder) as marked:
        planned = Planned(folder, marked, 4, kinds=possible_kinds())
        for n in (1, 2, 7, 64):
            shutil.rmtree(folder / "cells", ignore_errors=True)
            n_runs, failed = 0, folder / "failed"
            with Killer(marked, n, 3) as killer:
                while n_runs == 0 or failed.exists():
                    failed.unlink(missing_ok=True)
                    n_runs += 1
                    expect(n_runs < 10, "it does not end")
                    marked.call("sh", "-c", TASKS, cwd=folder, seconds=200,
                                env={**marked.environment, "N": str(n)})
            planned.tokmap("join", "-q", "-f", "run.plan", "-o", "train")
            result = planned.check()
            for path in folder.glob("flat.*"):
                path.unlink()
            said.append("%d tasks: %d kills, %d runs" % (n, killer.n_kills, n_runs))
        return "%s; %s" % (result, ", ".join(said))


if __name__ == "__main__":
    sys.exit(run_checks("by hand: "))
