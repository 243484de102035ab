#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/recipes/pack_with_ray.py on a Ray of this machine: eight tasks, some processes killed, and a worker of Ray."""

import signal
import sys
import tempfile
import threading

from marked import Marked, send, wait_until
from planned import Killer, Planned, run_checks
from ref_protocol import expect, need


def kill_worker(marked, killed):
    """One that has started to pack: its process goes on without it."""
    def packing():
        return marked.pids("ray::pack") if marked.pids("tokmap pack") else []

    send(wait_until(packing, "a worker packs", 120, 0.02)[0], signal.SIGKILL)
    killed.append(True)


def eight_tasks_with_kills(folder):
    need("ray")
    with tempfile.TemporaryDirectory(dir="/tmp") as short, Marked(folder) as marked:  # paths of sockets are short
        planned = Planned(folder, marked)
        marked.environment.update(HOME=str(folder), RAY_TMPDIR=short, RAY_USAGE_STATS_ENABLED="0",
                                  RAY_DEDUP_LOGS="0", NO_COLOR="1")
        killed = []
        worker = threading.Thread(target=kill_worker, args=(marked, killed), daemon=True)
        worker.start()
        with Killer(marked, 4, 2) as killer:
            said = marked.call(sys.executable, "pack_with_ray.py", "run.plan", "8", "train", cwd=folder, seconds=300)[1]
        worker.join()
        expect(killed and "A worker died" in said, "no worker was killed: " + said)
        return "%s; %d kills and a worker" % (planned.check(), killer.n_kills)


if __name__ == "__main__":
    sys.exit(run_checks("ray: "))
