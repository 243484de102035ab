# SPDX-License-Identifier: Apache-2.0
"""Packs a corpus on a Ray cluster: `python pack_with_ray.py run.plan 64 train` packs it in 64 tasks.

The plan, the inputs and the cells are on a file system that all nodes see, and tokmap has the same path on each. Once
before: `tokmap plan corpus/ --tokenizer tokenizer.json --cells cells -o run.plan`."""

import os
import shutil
import subprocess
import sys
import time

import ray

plan, n_tasks, output = os.path.abspath(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
tokmap = shutil.which("tokmap")


@ray.remote(num_cpus=2, max_retries=5, retry_exceptions=True)
def pack(task):
    command = [tokmap, "pack", "-q", "--plan", plan, "--task", f"{task}/{n_tasks}", "-j", "2"]
    while (status := subprocess.call(command)) == 75:  # another process, such as one whose worker died, has a cell
        time.sleep(5)
    if status != 0:
        raise RuntimeError(f"task {task}: tokmap ended with {status}")


ray.init()
ray.get([pack.remote(task) for task in range(n_tasks)])
subprocess.run([tokmap, "join", plan, "-o", output], check=True)
