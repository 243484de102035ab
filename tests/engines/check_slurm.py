#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/recipes/slurm.sbatch on a cluster of four nodes on this machine: an array of eight tasks, of which one is
killed, one is requeued by its user, and one loses its node."""

import re
import signal
import sys

from marked import send, wait_until
from planned import Planned, has_variable, is_program, need_programs, run_checks
from ref_protocol import expect
from slurm import Slurm


def submit(slurm, folder):
    """The commands in the comment of the recipe. Returns the number of the array."""
    text = (folder / "slurm.sbatch").read_text()
    lines = re.findall(r"^#     (array=.*|sbatch .*)$", text, re.MULTILINE)
    expect(len(lines) == 2, lines)
    return slurm.call("sh", "-ec", "\n".join([*lines, "echo $array"]), cwd=folder)[1].split()[-1]


def packing(slurm, task):
    """The process that packs a task of the array, or None."""
    return next((pid for pid in slurm.pids("tokmap pack") if is_program(pid) and
                 has_variable(pid, "SLURM_ARRAY_TASK_ID=%d" % task)), None)


def wait_for_end(slurm, folder, array):
    wait_until(lambda: (folder / "train.tmi").exists() or "FAILED" in slurm.jobs(array).values(), "joined", 200, 0.3)
    states = slurm.jobs(array)
    expect(sorted(states) == sorted(map(str, range(8))) and set(states.values()) <= {"COMPLETED", "COMPLETING"},
           "%s; %s" % (states, [path.read_text() for path in folder.glob("*.log")]))


def restarts(slurm, array, task):
    said = slurm.call("scontrol", "show", "job", "%s_%d" % (array, task))[1]
    return int(re.search(r"Restarts=(\d+)", said)[1])


def an_array_of_eight_tasks_with_kills(folder):
    need_programs("munged", "slurmctld", "slurmd", "sbatch")
    (folder / "slurm").mkdir()
    with Slurm(folder / "slurm") as slurm:
        planned = Planned(folder, slurm)
        array = submit(slurm, folder)
        send(wait_until(lambda: packing(slurm, 1), "task 1 runs", every=0.01), signal.SIGKILL)
        wait_until(lambda: packing(slurm, 2), "task 2 runs", every=0.01)
        slurm.call("scontrol", "requeue", array + "_2")
        wait_until(lambda: packing(slurm, 5), "task 5 runs", every=0.01)
        node = slurm.call("squeue", "-h", "-j", array + "_5", "-o", "%N")[1].strip()
        slurm.call("scontrol", "update", "NodeName=" + node, "State=DOWN", "Reason=check")
        slurm.call("tokmap", "status", "run.plan", cwd=folder)
        slurm.call("scontrol", "update", "NodeName=" + node, "State=RESUME")
        wait_for_end(slurm, folder, array)
        counts = [restarts(slurm, array, task) for task in range(8)]
        expect(all(counts[task] >= 1 for task in (1, 2, 5)), "restarts of the tasks: %s" % counts)
        return "%s; restarts of the 8 tasks: %s" % (planned.check(), counts)


def steps_of_srun(folder):
    need_programs("munged", "slurmctld", "slurmd", "srun")
    (folder / "slurm").mkdir()
    with Slurm(folder / "slurm") as slurm:
        planned = Planned(folder, slurm)
        slurm.call("srun", "-N", "4", "-n", "4", "tokmap", "pack", "--plan", "run.plan", "--task", "auto", cwd=folder)
        planned.tokmap("join", "run.plan", "-o", "train")
        return planned.check()


if __name__ == "__main__":
    sys.exit(run_checks("slurm: "))
