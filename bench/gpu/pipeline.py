#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pipeline.py P SECONDS - training steps with batches from several sources, in turn, in one process: how
long a step takes, and how long the device is idle between two steps because a batch is missing.

A step is a chain of bf16 products. The host queues step n + 1 while step n runs and waits for the
end of step n - 1, as a loop does that reads its loss one step late. The stall of a step is the time
between the end of the step before and its begin, by events in the stream of the steps: it has the wait
for a batch, a copy in that stream, and a host that came too late, and nothing else.

take() of a source returns inputs and labels on the device, in order for the current stream; done()
says that the step that uses them has been queued."""

import json
import math
import sys
import time

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skip: {error}")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skip: PyTorch finds no device")
    sys.exit(77)
import tokmap  # noqa: E402

SHAPES = {"128 KiB": (16, 4096), "1 MiB": (64, 8192), "4 MiB": (256, 8192)}  # of tokens as they are stored
STEPS_MS = (5, 20)
STEPS_OF_A_TURN = 25
WARM_UP = 3
AIM_P99_US = 50


class Nothing:
    """The same batch each time: what a step costs at least."""

    def __init__(self, data, device, rows, length):
        self.batch = [torch.randint(0, 65536, (rows, length), device=device) for _ in range(2)]

    def take(self):
        return self.batch

    def done(self):
        pass


class Stage:
    def __init__(self, data, device, rows, length):
        loader = tokmap.Loader(data, sequence_length=length, batch_rows=rows, seed=1)
        self.stage, self.batch = tokmap.Stage(loader, device, log=print), None

    def take(self):
        self.batch = self.stage.next()
        return self.batch.torch()

    def done(self):
        self.batch.release()


class Pinned:
    """One pinned uint16 buffer, used again and again, a copy that the host does not wait for, and
    casts on the device: as few bytes over the bus as ours, and what is easily written by hand."""

    def __init__(self, data, device, rows, length):
        self.tokens = numpy.memmap(data + ".bin", numpy.uint16, "r")
        self.device, self.length = device, length
        self.buffer = torch.empty(rows, length + 1, dtype=torch.uint16, pin_memory=True)
        self.array, self.copied = self.buffer.numpy(), torch.cuda.Event()

    def take(self):
        self.copied.synchronize()
        places = numpy.random.randint(0, len(self.tokens) - self.length, len(self.array))
        for row, place in zip(self.array, places):
            row[:] = self.tokens[place:place + self.length + 1]
        batch = self.buffer.to(self.device, non_blocking=True)
        self.copied.record()
        return batch[:, :-1].to(torch.int32), batch[:, 1:].to(torch.int64)

    def done(self):
        pass


class Windows(torch.utils.data.Dataset):
    def __init__(self, path, length):
        self.tokens, self.length = numpy.memmap(path, dtype=numpy.uint16, mode="r"), length

    def __len__(self):
        return (len(self.tokens) - 1) // self.length

    def __getitem__(self, window):
        row = self.tokens[window * self.length:(window + 1) * self.length + 1]
        row = torch.from_numpy(row.astype(numpy.int64))
        return row[:-1], row[1:]


class DataLoader:
    """PyTorch's, with workers, pinned memory and copies that the host does not wait for."""

    def __init__(self, data, device, rows, length):
        self.loader = torch.utils.data.DataLoader(
            Windows(data + ".bin", length), batch_size=rows, shuffle=True, drop_last=True,
            pin_memory=True, num_workers=4, persistent_workers=True, prefetch_factor=4)
        self.device, self.batches = device, iter(self.loader)

    def take(self):
        batch = next(self.batches, None)
        if batch is None:
            self.batches = iter(self.loader)
            batch = next(self.batches)
        return [part.to(self.device, non_blocking=True) for part in batch]

    def done(self):
        pass


SOURCES = {"none": Nothing, "tokmap": Stage, "pinned uint16": Pinned,
           "DataLoader, 4 workers": DataLoader}


class Work:
    """A chain of products of bf16 matrices that takes so many milliseconds."""

    def __init__(self, device, n=4096):
        self.device = device
        self.a, self.b = (torch.randn(n, n, device=device, dtype=torch.bfloat16) for _ in range(2))
        self.c = torch.empty(n, n, device=device, dtype=torch.bfloat16)
        self.run(20)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        self.run(100)
        end.record()
        end.synchronize()
        self.ms_each = max(begin.elapsed_time(end) / 100, 1e-3)

    def run(self, n):
        for _ in range(n):
            torch.mm(self.a, self.b, out=self.c)

    def products_for(self, ms):
        return max(round(ms / self.ms_each), 1)


class Turns:
    """The steps of one source, of one shape and length."""

    def __init__(self, source, work, ms):
        self.source, self.work, self.n_products = source, work, work.products_for(ms)
        self.total = torch.zeros((), dtype=torch.int64, device=work.device)
        self.stall_us, self.step_ms = [], []

    def step(self, events):
        begin, end = (torch.cuda.Event(enable_timing=True, blocking=True) for _ in range(2))
        inputs, labels = self.source.take()
        begin.record()
        self.total += inputs.sum() + labels.sum()
        self.work.run(self.n_products)
        end.record()
        del inputs, labels
        self.source.done()
        if events:
            events[-1][1].synchronize()
        events.append((begin, end))

    def turn(self):
        events = []
        for _ in range(WARM_UP):
            self.step(events)
        for _ in range(STEPS_OF_A_TURN):
            self.step(events)
        torch.cuda.synchronize()
        events = events[WARM_UP - 1:]
        self.stall_us += [1e3 * a[1].elapsed_time(b[0]) for a, b in zip(events, events[1:])]
        self.step_ms.append(events[0][1].elapsed_time(events[-1][1]) / (len(events) - 1))

    def print_rows(self, name, ms, shape):
        where = f"{name}, {ms} ms step, {shape}"
        if len(self.stall_us) < 100:
            print_row(name=f"step time, {where}", left_out="too few steps in the time that was left")
            return
        group = f"gpu, waiting for a batch of {shape}, steps of {ms} ms"
        aim = {"at_most": AIM_P99_US} if name == "tokmap" else {}
        print_row(name=f"step time, {where}", unit="ms", values=self.step_ms, group=group + ": time",
                  system=name)
        for part, column, target in ((0.5, "p50", {}), (0.99, "p99", aim)):
            print_row(name=f"stall, {where}, {column}", line=f"stall, {where}", column=column, unit="us",
                      values=[percentile(self.stall_us, part)], group=group, system=name, **target)


def print_row(**row):
    print(json.dumps(row), flush=True)


def percentile(values, share):
    """The smallest value that the share of all does not exceed."""
    return sorted(values)[max(math.ceil(len(values) * share), 1) - 1]


def measure(data, shape, seconds):
    device = torch.device("cuda", 0)
    work, turns = Work(device), {}
    for name, kind in SOURCES.items():
        try:
            source = kind(data, device, *SHAPES[shape])
            for ms in STEPS_MS:
                turns[name, ms] = Turns(source, work, ms)
                turns[name, ms].turn()
                turns[name, ms].stall_us.clear()
                turns[name, ms].step_ms.clear()
        except Exception as error:  # one that does not work here is left out
            turns = {key: value for key, value in turns.items() if key[0] != name}
            print_row(name=f"step time, {name}, {shape}", left_out=f"{type(error).__name__}: {error}"[:300])
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for turn in turns.values():
            turn.turn()
    for (name, ms), turn in turns.items():
        turn.print_rows(name, ms, shape)


def main():
    data, seconds = sys.argv[1], float(sys.argv[2])
    torch.cuda.set_device(0)
    with open(data + ".bin", "rb", buffering=0) as file:  # so that nobody waits for a disk
        while file.read(1 << 24):
            pass
    for shape in SHAPES:
        measure(data, shape, 0.8 * seconds / len(SHAPES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
