"""figures.py - what the measurements share: rows of figures, and work for the GPU."""

import json
import math
import os
import statistics


class Rows:
    """Lines of JSON at the end of a file, each whole, in the form of bench/report_rows.py."""

    def __init__(self, path):
        self.path = path

    def write(self, row):
        line = json.dumps({"page": "gpu", **row}) + "\n"
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)
        print(line, end="", flush=True)

    def add(self, name, unit, values, **more):
        """values: those of the rounds, or one number; None and what is not finite is no figure."""
        values = values if isinstance(values, list) else [values]
        values = [float("%.6g" % v) for v in values if v is not None and math.isfinite(v)]
        if not values:
            self.leave_out(name, "nothing was measured")
            return
        median = float("%.6g" % statistics.median(values))
        target = more.pop("target", None)
        if target:
            kind, limit = target
            reached = median >= limit if kind == "at_least" else median <= limit
            more["target"] = {kind: limit, "reached": reached}
        self.write({"name": name, "unit": unit, "median": median, **more, "values": values})

    def leave_out(self, name, reason):
        self.write({"name": name, "left_out": str(reason)[:400]})


def percentile(values, share):
    """The smallest value that the share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * share), 1) - 1] if ordered else None


# ---- Work for the GPU ----


class Work:
    """A chain of products of bf16 matrices that takes so many milliseconds."""

    def __init__(self, torch, device, n=4096):
        self.torch, self.device = torch, device
        self.a, self.b = (torch.randn(n, n, device=device, dtype=torch.bfloat16) for _ in range(2))
        self.c = torch.empty(n, n, device=device, dtype=torch.bfloat16)
        self.ms_each = None

    def run(self, n):
        for _ in range(n):
            self.torch.mm(self.a, self.b, out=self.c)

    def products_for(self, ms):
        if self.ms_each is None:
            self.run(20)
            begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            n = 100
            begin.record()
            self.run(n)
            end.record()
            end.synchronize()
            self.ms_each = max(begin.elapsed_time(end) / n, 1e-3)
        return max(round(ms / self.ms_each), 1)
