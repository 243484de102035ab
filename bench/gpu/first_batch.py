#!/usr/bin/env python3
"""first_batch.py P - how long a program waits for its first batch on a device, from opening the
dataset on: with the kernel compiled before (the driver keeps what it has compiled) and not. Each
trial is a process of its own, whose context is made before the time begins."""

import argparse
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


def trial(data):
    import tokmap

    cuda, begun = enter_context(), time.perf_counter()
    loader = tokmap.Loader(tokmap.Dataset(data), sequence_length=4096, batch_rows=16, seed=1)
    stage = tokmap.Stage(loader)
    opened = time.perf_counter()
    batch = stage.next()
    if cuda.cuCtxSynchronize():
        raise SystemExit("waiting for the device failed")
    done = time.perf_counter()
    print(json.dumps({"open": 1e3 * (opened - begun), "first batch": 1e3 * (done - begun)}))
    batch.release()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--trial", action="store_true")
    parser.add_argument("data")
    options = parser.parse_args()
    if options.trial:
        return trial(options.data)
    from figures import Rows

    found, until = {}, time.monotonic() + options.seconds
    for _ in range(TRIALS):
        with tempfile.TemporaryDirectory() as folder:
            for compiled in ("compiled anew", "compiled before"):
                if time.monotonic() > until:
                    break
                done = subprocess.run([sys.executable, __file__, "--trial", options.data],
                                      env={**os.environ, "CUDA_CACHE_PATH": folder}, check=True,
                                      stdout=subprocess.PIPE, timeout=options.seconds)
                for name, ms in json.loads(done.stdout).items():
                    found.setdefault(f"time to {name}, kernel {compiled}", []).append(ms)
    for name, values in found.items():
        Rows(options.rows).add(name, "ms", values)
    return 0


if __name__ == "__main__":
    sys.exit(main())
