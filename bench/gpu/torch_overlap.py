#!/usr/bin/env python3
"""torch_overlap.py - E7: batches reach the device while a step runs there; E8: and while large
copies of others use the bus. bench/gpu.sh runs it.

The stage has two slots. The slot of batch j + 1 is free when step j - 1 ends, and not before: the
stage's stream waits for that. So when batch j + 1 is ready before the end of step j, all of its
copy and its kernel ran between the two ends, which is beside step j. Ready is what an event says
in a stream that does nothing but wait for the batch."""

import argparse
import collections
import gzip
import json
import pathlib
import sys
import tempfile

import torch
import tokmap
from figures import Rows, Work, now, percentile

LENGTH = 8192
STEP_MS = 5
WARM_UP = 5
MOST_STEPS = 2000
OFFLOAD_BYTES = 512 << 20


class Traffic:
    """Copies of 512 MiB, two of them queued at any time in each direction."""

    def __init__(self, kinds, n_bytes):
        self.kinds = kinds
        if kinds:
            self.host = torch.empty(n_bytes, dtype=torch.uint8, pin_memory=True)
            self.device = torch.empty(n_bytes, dtype=torch.uint8, device=torch.device("cuda", 0))
            self.streams = {kind: torch.cuda.Stream() for kind in kinds}
            self.queued = {kind: collections.deque() for kind in kinds}

    def keep_up(self):
        for kind in self.kinds:
            queued = self.queued[kind]
            while queued and queued[0].query():
                queued.popleft()
            while len(queued) < 2:
                with torch.cuda.stream(self.streams[kind]):
                    if kind == "h2d":
                        self.device.copy_(self.host, non_blocking=True)
                    else:
                        self.host.copy_(self.device, non_blocking=True)
                    queued.append(torch.cuda.Event())
                    queued[-1].record()


class Overlap:
    def __init__(self, options, work, rows, delivery):
        dataset = tokmap.Dataset(options.data + "-large")
        self.loader = tokmap.Loader(dataset, sequence_length=LENGTH, batch_rows=rows, seed=2,
                                    io="map")
        self.stage = tokmap.Stage(self.loader, torch.device("cuda", 0), n_slots=2,
                                  delivery=delivery, log=print)
        self.compute, self.watch = torch.cuda.Stream(), torch.cuda.Stream()
        self.work, self.n_products = work, work.products_for(STEP_MS)
        self.steps = []  # (begin, end, when its batch was ready)

    def ask(self):
        batch = self.stage.next(stream=self.watch)
        ready = torch.cuda.Event(enable_timing=True)
        ready.record(self.watch)
        return batch, ready

    def run(self, seconds, traffic, most=MOST_STEPS):
        batch, ready = self.ask()
        begun = now()
        while len(self.steps) < WARM_UP + 3 or now() - begun < seconds:
            if len(self.steps) >= most:
                break
            traffic.keep_up()
            begin, end = (torch.cuda.Event(enable_timing=True, blocking=True) for _ in range(2))
            self.compute.wait_event(ready)
            with torch.cuda.stream(self.compute):
                begin.record()
                self.work.run(self.n_products)
                end.record()
            batch.release(stream=self.compute)
            self.steps.append((begin, end, ready))
            batch, ready = self.ask()
            if len(self.steps) > 1:
                self.steps[-2][1].synchronize()
        batch.release(stream=self.compute)
        torch.cuda.synchronize()

    def figures(self):
        """Share of batches that were ready before the step beside them ended; microseconds from
        the free slot to the ready batch."""
        inside, took = [], []
        steps = self.steps[WARM_UP:]
        for before, during, after in zip(steps, steps[1:], steps[2:]):
            free, end, ready = before[1], during[1], after[2]
            took.append(1e3 * free.elapsed_time(ready))
            inside.append(ready.elapsed_time(end) >= 0)
        return 100 * sum(inside) / len(inside), took

    def way(self):
        return self.stage.info()["delivery"]

    def close(self):
        self.stage.close()


def measure_overlap(rows, options, work):
    for delivery, n_rows in (("push", 256), ("pull", 64)):
        name = f"{delivery}, {n_rows * LENGTH * 2 >> 20} MiB"
        overlap = Overlap(options, work, n_rows, delivery)
        overlap.run(options.seconds / 4, Traffic((), 0))
        if overlap.way() != delivery:
            rows.leave_out(f"overlap, {name}", f"the stage took {overlap.way()}")
            overlap.close()
            continue
        share, took = overlap.figures()
        overlap.close()
        rows.add(f"batches that were ready before the step beside them ended, {name}", "%", share,
                 target=("at_least", 99))
        for part, at in (("p50", 0.5), ("p99", 0.99)):
            rows.add(f"from a free slot to a batch {part}, {name}", "us", percentile(took, at),
                     group="gpu, a batch beside a step of 5 ms", system=name)


# ---- What a profiler saw ----


def intervals(trace):
    """Of the products, and of what the stage does: its kernel, and copies out of its memory."""
    text = pathlib.Path(trace).read_bytes()
    if text[:2] == b"\x1f\x8b":
        text = gzip.decompress(text)
    work, stage = [], []
    for event in json.loads(text)["traceEvents"]:
        category, name = event.get("cat", ""), event.get("name", "")
        if category not in ("kernel", "gpu_memcpy"):
            continue
        interval = (event["ts"], event["ts"] + event["dur"])
        if name.startswith("tokmap_expand") or "HtoD" in name:
            stage.append(interval)
        elif category == "kernel":
            work.append(interval)
    return sorted(work), stage


def inside_work(work, interval):
    """The share of it during which a product ran, too."""
    covered = sum(max(0, min(interval[1], end) - max(interval[0], begin)) for begin, end in work)
    return min(covered / max(interval[1] - interval[0], 1e-3), 1)


def measure_trace(rows, options, work):
    name = "copies and kernels of the stage that a profiler saw beside a step"
    overlap = Overlap(options, work, 256, "push")
    try:
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profiler:
            overlap.run(1, Traffic((), 0), most=60)
        with tempfile.TemporaryDirectory() as folder:
            trace = folder + "/trace.json"
            profiler.export_chrome_trace(trace)
            products, stage = intervals(trace)
    except Exception as error:  # without a profiler the events above still tell
        rows.leave_out(name, f"{type(error).__name__}: {error}")
        return
    finally:
        overlap.close()
    # The first ones fill the slots before there is a step.
    shares = [inside_work(products, one) for one in stage[6:]]
    if not shares:
        rows.leave_out(name, "the profiler saw none of them")
        return
    rows.add(name, "%", 100 * sum(share > 0.5 for share in shares) / len(shares),
             target=("at_least", 90))
    rows.add("copies and kernels of the stage that a profiler saw", "events", len(shares))


# ---- Beside copies of others ----


def measure_traffic(rows, options, work):
    cases = [(kinds, delivery) for kinds in ((), ("h2d",), ("h2d", "d2h"))
             for delivery in ("push", "pull")]
    names = {(): "nothing else", ("h2d",): "copies to the device",
             ("h2d", "d2h"): "copies both ways"}
    for kinds, delivery in cases:
        traffic = Traffic(kinds, options.offload_mib << 20)
        overlap = Overlap(options, work, 64, delivery)
        overlap.run(options.seconds / len(cases) * 0.6, traffic)
        torch.cuda.synchronize()
        way, (_, took) = overlap.way(), overlap.figures()
        overlap.close()
        beside = names[kinds]
        if way != delivery:
            rows.leave_out(f"1 MiB batch beside {beside}, {delivery}", f"the stage took {way}")
            continue
        for part, at in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
            rows.add(f"1 MiB batch {part}, {delivery}, beside {beside}", "us",
                     percentile(took, at), group=f"gpu, a batch beside {beside}",
                     system=f"tokmap, {delivery}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("overlap", "traffic"))
    parser.add_argument("--rows", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--offload-mib", type=int, default=OFFLOAD_BYTES >> 20)
    options = parser.parse_args()
    torch.cuda.set_device(0)
    rows, work = Rows(options.rows), Work(torch, torch.device("cuda", 0))
    if options.what == "overlap":
        measure_overlap(rows, options, work)
        measure_trace(rows, options, work)
    else:
        measure_traffic(rows, options, work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
