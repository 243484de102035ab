#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipe for JAX: rows are distributed over devices and processes, and are those of the loader."""

import json
import pathlib
import socket
import subprocess
import sys

from frameworks import need, run_checks

if __name__ == "__main__":
    need("jax", "jax")
import tokmap  # noqa: E402
from documents import blocks, environment  # noqa: E402

START = """
import sys
import jax
jax.distributed.initialize("localhost:{port}", {n}, int(sys.argv[1])) if {n} > 1 else None
import json
import numpy as np
found = []
class Enough(Exception): pass
def train(inputs, labels):
    assert inputs.shape == labels.shape == (8 * {n}, 64) and len(inputs.sharding.device_set) == {n} * {n_devices}
    found.append([[[s.index[0].start or 0, np.asarray(s.data).tolist()] for s in x.addressable_shards]
                  for x in (inputs, labels)])
    if len(found) == 4:
        raise Enough
try:
    exec(open("recipe.py").read())
except Enough:
    print(json.dumps(found))
"""


def global_batches(folder, n, n_devices):
    """The batches of n processes, put together from the rows of all devices."""
    with socket.socket() as s:
        s.bind(("localhost", 0))
        port = s.getsockname()[1]
    (folder / "recipe.py").write_text(next(text for title, _, text in blocks("frameworks.md") if title == "JAX"))
    start = START.format(port=port, n=n, n_devices=n_devices)
    env = {**environment(), "XLA_FLAGS": f"--xla_force_host_platform_device_count={n_devices}"}
    processes = [subprocess.Popen([sys.executable, "-c", start, str(rank)], cwd=folder, env=env, text=True,
                                  stdout=subprocess.PIPE) for rank in range(n)]
    found = [json.loads(process.communicate(timeout=200)[0].splitlines()[-1]) for process in processes]
    for batches in zip(*found):
        yield tuple([row for _, rows in sorted(shard for own in batches for shard in own[part]) for row in rows]
                    for part in range(2))


def rows_are_distributed_over_devices_and_processes(folder):
    (folder / "data").mkdir()
    for path in pathlib.Path(folder).glob("train.*"):
        path.rename(folder / "data" / path.name)
    for n, n_devices in ((1, 1), (1, 4), (2, 2)):
        loader = tokmap.Loader(folder / "data/train", 64, 8 * n, seed=1)
        for (inputs, labels), batch in zip(global_batches(folder, n, n_devices), loader):
            assert inputs == batch.inputs.tolist() and labels == batch.labels.tolist()
    return "also 2 processes with 2 devices each"


if __name__ == "__main__":
    sys.exit(run_checks("jax_"))
