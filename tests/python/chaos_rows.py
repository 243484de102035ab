#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chaos_rows.py [N [SEED]]: kills N processes of `tokmap rows` (default 1,000) at any time. Afterwards the rows file is the
old one, absent, or whole, and a loader has the same rows. `make chaos` runs it; test_python_rows kills a few."""

import itertools
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import package  # noqa: F401: finds tokmap
from ref_protocol import program

import numpy as np
import tokmap


def kill_rows(folder, n_runs, seed):
    rng = random.Random(seed)
    with tokmap.Writer(folder / "d", vocab_size=65536) as w:
        for _ in range(200000):
            w.document(np.zeros(rng.randint(0, 60), np.uint16))
    command = [program("tokmap"), "rows", "-q", "-l", "512", folder / "d"]
    begun = time.monotonic()
    subprocess.run(command, check=True)
    took = time.monotonic() - begun
    path, partial = folder / "d.512.tmr", folder / "d.512.tmr.partial"
    good, n_killed, n_seen = path.read_bytes(), 0, set()
    for i in itertools.count():
        if i >= n_runs and n_killed > 0:
            break
        if i % 2:
            path.unlink(missing_ok=True)
        running = subprocess.Popen(command)
        time.sleep(rng.random() * took * 1.2)
        running.kill()
        n_killed += running.wait() != 0
        took *= 0.7 if n_killed == 0 else 1  # the first run may have been a slow one
        n_seen.add((path.exists(), partial.exists()))
        assert not path.exists() or path.read_bytes() == good
        if i % 8 == 0:
            tokmap.Loader(folder / "d", 512, windows="best_fit").pieces(0)
    subprocess.run(command, check=True)
    assert path.read_bytes() == good and not partial.exists()
    return "%d of %d killed, %d states of the files" % (n_killed, i, len(n_seen))


if __name__ == "__main__":
    n, first = (int(value) for value in [*sys.argv[1:], *("1000", "1")[len(sys.argv) - 1:]])
    with tempfile.TemporaryDirectory(prefix="tokmap_rows_") as scratch:
        print(kill_rows(pathlib.Path(scratch), n, first))
