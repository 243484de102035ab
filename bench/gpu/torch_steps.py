#!/usr/bin/env python3
"""torch_steps.py - E6: simulated training steps, and how long the GPU stands still between two of
them because its batch is not there. bench/gpu.sh runs it.

A step is a chain of bf16 products. The host queues step n + 1 while step n runs and waits for the
end of step n - 1, as a loop does that reads its loss one step late. The stall of a step is the time
between the end of the step before and its begin, by events in the stream of the steps: waiting for
a batch, copying it in that stream, and a host that came too late are all in it, and nothing else.
Each source of batches works in a process of its own, so that nothing of one slows the next."""

import argparse
import ctypes
import os
import signal
import sys
import time
import traceback

import torch
from figures import Rows, Work, family, now, own_mib, percentile, processor_seconds
from torch_sources import SOURCES, make_flat, warm_up

STEPS_MS = (1, 5, 20, 100)
MOST_STEPS = 4000
LEAST_STEPS = 8
WARM_UP = 5
PR_SET_PDEATHSIG = 1
ENOUGH = {"p50": 1, "p99": 100, "p99.9": 1000, "max": 1}  # steps, to say that much
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
# Seconds for each length of step, of 150 for all; ours needs more to tell of one in a thousand.
OURS = {"tokmap": (5, 6, 8, 12), "resident batch": (1, 1, 1.5, 2)}
THEIRS = (1.2, 1.2, 1.5, 2)
WHOLE = 150.0


class Steps:
    """Steps of one length from one source; the figures of each."""

    def __init__(self, source, work, ms):
        self.source, self.work, self.n_products = source, work, work.products_for(ms)
        self.total = torch.zeros((), dtype=torch.int64, device=source.device)
        self.host_us, self.events = [], []

    def take(self):
        begin, end = (torch.cuda.Event(enable_timing=True, blocking=True) for _ in range(2))
        asked = now()
        inputs, labels = self.source.take()
        self.host_us.append(1e6 * (now() - asked))
        begin.record()
        self.total += inputs.sum() + labels.sum()
        self.work.run(self.n_products)
        end.record()
        del inputs, labels
        self.source.done()
        if self.events:
            self.events[-1][1].synchronize()
        self.events.append((begin, end))

    def run(self, seconds):
        for _ in range(WARM_UP):
            self.take()
        torch.cuda.synchronize()
        self.host_us, self.events = [], []
        pids = family()
        processor, begun = processor_seconds(pids), now()
        while len(self.events) < MOST_STEPS:
            if now() - begun > seconds and len(self.events) >= LEAST_STEPS:
                break
            self.take()
        torch.cuda.synchronize()
        n = len(self.events)
        self.cpu_us = 1e6 * (processor_seconds(pids) - processor) / n
        self.step_ms = 1e3 * (now() - begun) / n
        pairs = zip(self.events, self.events[1:])
        self.stall_us = [1e3 * before[1].elapsed_time(after[0]) for before, after in pairs]


def write(rows, name, ms, steps):
    group = f"gpu, waiting for a batch, steps of {ms} ms"
    for figure, share in SHARES.items():
        if len(steps.stall_us) < ENOUGH[figure]:
            continue
        more = {"group": group, "system": name}
        if name == "tokmap" and figure == "p99":
            more["target"] = ("at_most", 50)
        rows.add(f"stall {figure}, {name}, {ms} ms step", "us", percentile(steps.stall_us, share),
                 **more)
    for figure in ("p50", "p99"):
        if len(steps.host_us) >= ENOUGH[figure]:
            rows.add(f"host in the call {figure}, {name}, {ms} ms step", "us",
                     percentile(steps.host_us, SHARES[figure]))
    rows.add(f"CPU of a step, {name}, {ms} ms step", "us", steps.cpu_us)
    rows.add(f"time of a step, {name}, {ms} ms step", "ms", steps.step_ms)
    rows.add(f"steps measured, {name}, {ms} ms step", "steps", len(steps.events))


def measure(rows, options, name, seconds):
    """In the child."""
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    work = Work(torch, device)
    source = SOURCES[name](options.data, device)
    for ms, share in zip(STEPS_MS, seconds):
        if ms not in options.steps:
            continue
        steps = Steps(source, work, ms)
        steps.run(share)
        write(rows, name, ms, steps)
    rows.add(f"memory of its own, {name}", "MiB", own_mib(family()))
    source.close()


def be_a_child(rows, options, name, seconds):
    """Never returns. Ends with its parent, whatever ends that."""
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    status = 1
    try:
        measure(rows, options, name, seconds)
        status = 0
    except BaseException as error:
        traceback.print_exc()
        rows.leave_out(f"stall, {name}", f"{type(error).__name__}: {error}")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def wait_for(pid, limit):
    """Its status; None: it took too long."""
    while now() < limit:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.05)
    return None


def run_child(rows, options, name, seconds):
    """In a process group of its own, so that workers that are left over end with it."""
    limit = min(now() + sum(seconds) * 2 + 25, options.until)
    pid, status = os.fork(), None
    if pid == 0:
        be_a_child(rows, options, name, seconds)
    try:
        status = wait_for(pid, limit)
        if status is None:
            rows.leave_out(f"stall, {name}", "stopped: it took too long")
    finally:
        try:
            os.killpg(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        if status is None:
            os.waitpid(pid, 0)
    return status == 0


def stop(number, frame):
    sys.exit(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--seconds", type=float, default=WHOLE)
    parser.add_argument("--steps", type=lambda s: [int(ms) for ms in s.split(",")],
                        default=list(STEPS_MS))
    parser.add_argument("--flat-mib", type=int, default=1024)
    parser.add_argument("--without", default="", help="skip sources whose name begins so")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    options.until = now() + options.seconds
    rows, scale, failed = Rows(options.rows), options.seconds / WHOLE, 0
    make_flat(options.data, options.flat_mib << 20)
    warm_up(options.data)
    for name in SOURCES:
        if options.without and name.startswith(options.without):
            rows.leave_out(f"stall, {name}", "tokmap could not be built here")
            continue
        seconds = [scale * s for s in OURS.get(name, THEIRS)]
        if now() + sum(seconds) > options.until:
            rows.leave_out(f"stall, {name}", "no time was left")
            continue
        failed += not run_child(rows, options, name, seconds)
    return 1 if failed == len(SOURCES) else 0


if __name__ == "__main__":
    sys.exit(main())
