#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""first_batch.py P SECONDS - how long a program waits for its first batch on a device after it opens the
dataset: with the kernel compiled in that run, and with the kernel that the driver keeps from the run
before. Each trial is a process of its own, whose context is made before the time begins."""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time

TRIALS = 5


def enter_context():
    """As any program that computes on the device has done before."""
    cuda, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    for error in (cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0),
                  cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
                  cuda.cuCtxSetCurrent(context)):
        if error:
            raise SystemExit(f"error {error} of the driver")
    return cuda


def run_trial(data):
    import tokmap

    cuda, begun = enter_context(), time.perf_counter()
    loader = tokmap.Loader(data, sequence_length=4096, batch_rows=16, seed=1)
    stage = tokmap.Stage(loader)
    opened = time.perf_counter()
    batch = stage.next()
    if cuda.cuCtxSynchronize():
        raise SystemExit("waiting for the device failed")
    done = time.perf_counter()
    print(json.dumps({"open": 1e3 * (opened - begun), "first batch": 1e3 * (done - begun)}))
    batch.release()


def main():
    data, seconds = sys.argv[1], float(sys.argv[2])
    if seconds == 0:  # as main calls itself
        return run_trial(data)
    found, until = {}, time.monotonic() + seconds
    for _ in range(TRIALS):
        with tempfile.TemporaryDirectory() as folder:
            for kernel in ("compiled", "kept by the driver"):
                if time.monotonic() > until:
                    break
                done = subprocess.run([sys.executable, __file__, data, "0"], check=True,
                                      env={**os.environ, "CUDA_CACHE_PATH": folder},
                                      stdout=subprocess.PIPE, timeout=seconds)
                for name, ms in json.loads(done.stdout).items():
                    found.setdefault(f"time to {name}, kernel {kernel}", []).append(ms)
    for name, values in found.items():
        print(json.dumps({"name": name, "unit": "ms", "values": values}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
