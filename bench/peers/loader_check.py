# SPDX-License-Identifier: Apache-2.0
"""loader_check.py - checks that the rows of a system are windows of the flat file. Without numpy: a
row is any object that gives its numbers as a buffer."""

import array

from loader_adapter import I64

KEY_BYTES = 8  # the first four tokens tell windows of random tokens apart


class Wrong(Exception):
    """A row is wrong; the text says where."""


def as_u16(numbers, what):
    """Token ids of a row as 16-bit numbers."""
    view = memoryview(numbers)
    if view.format in ("H", "<H", "=H"):
        return view.tobytes()
    try:
        return array.array("H", view.tolist()).tobytes()
    except (OverflowError, TypeError) as e:
        raise Wrong("%s is not of token ids: %s" % (what, e)) from None


def some(data, at):
    """A few tokens around a byte."""
    first = max(0, at // 2 - 2)
    return list(memoryview(data)[2 * first : 2 * first + 10].cast("H"))


def first_difference(got, wanted, what):
    if got == wanted:
        return
    shorter = min(len(got), len(wanted))
    at = next((i for i in range(0, shorter, 2) if got[i : i + 2] != wanted[i : i + 2]), shorter)
    raise Wrong(
        "%s: token %d on is %s, in the file %s; %d tokens, should be %d"
        % (what, at // 2, some(got, at), some(wanted, at), len(got) // 2, len(wanted) // 2)
    )


class Windows:
    """The windows of a stream of tokens, and which of them were seen."""

    def __init__(self, stream, length, stride):
        self.stream, self.length, self.stride = memoryview(stream).cast("B"), length, stride
        self.n_windows = (len(self.stream) // 2 - 1 - length) // stride + 1
        self.by_key = {}
        self.seen = {}

    def index(self):
        for i in range(self.n_windows):
            self.by_key.setdefault(bytes(self.at(i * self.stride)[:KEY_BYTES]), []).append(i)

    def at(self, start):
        return self.stream[2 * start : 2 * (start + self.length + 1)]

    def check_row(self, row, start, what):
        """`start`: the claimed start of the row; None: searches for it."""
        inputs, labels = row
        got = as_u16(inputs, what + ", inputs")
        if labels is not None:
            last = as_u16(labels, what + ", labels")
            first_difference(last[:-2], got[2:], what + ", labels against its inputs")
            got += last[-2:]
        if start is None:
            start = self.find(got, what)
        elif not 0 <= start <= len(self.stream) // 2 - self.length - 1:
            raise Wrong("%s says that it begins at token %d, which is outside" % (what, start))
        first_difference(got, bytes(self.at(start)), what + ", from token %d on" % start)

    def find(self, got, what):
        if not self.by_key:
            self.index()
        candidates = self.by_key.get(got[:KEY_BYTES])
        if not candidates:
            raise Wrong("%s: no window begins with %s" % (what, some(got, 0)))
        same = [i for i in candidates if self.at(i * self.stride) == got] or candidates
        window = min(same, key=lambda i: self.seen.get(i, 0))
        self.seen[window] = self.seen.get(window, 0) + 1
        return window * self.stride

    def check_epoch(self, n_may_miss):
        """Each window once, except the windows of a last batch that was too short."""
        twice = [i for i, n in self.seen.items() if n > 1]
        if twice:
            raise Wrong("window %d came %d times in an epoch" % (twice[0], self.seen[twice[0]]))
        n_missing = self.n_windows - len(self.seen)
        if n_missing > n_may_miss:
            missing = next(i for i in range(self.n_windows) if i not in self.seen)
            raise Wrong(
                "%d of %d windows did not come in an epoch, the first is %d"
                % (n_missing, self.n_windows, missing)
            )
        return n_missing


def check_width(adapter, row, what):
    """Numbers have the stated width: speeds are compared among systems that write as much."""
    width = 8 if adapter.work == I64 else 2
    for part in row:
        if part is not None and memoryview(part).itemsize != width:
            found = memoryview(part).itemsize
            raise Wrong("%s has numbers of %d bytes, not %d" % (what, found, width))


def check_batch(adapter, windows, batch, number):
    rows = adapter.tokens_of(batch)
    if len(rows) != adapter.rows and adapter.whole_batches():
        raise Wrong("batch %d has %d rows, not %d" % (number, len(rows), adapter.rows))
    starts = adapter.starts(batch) if adapter.order == "random" else [None] * len(rows)
    for i, (row, start) in enumerate(zip(rows, starts)):
        what = "batch %d, row %d" % (number, i)
        check_width(adapter, row, what)
        windows.check_row(row, start, what)


def check_adapter(adapter, flat, n_batches=None):
    """The first batches, or with None a whole epoch. Returns what is worth telling, or None."""
    windows = Windows(adapter.stream(flat), adapter.length, adapter.stride())
    if n_batches is None and adapter.order == "epoch":
        for number, batch in enumerate(adapter.epoch()):
            check_batch(adapter, windows, batch, number)
        n_missing = windows.check_epoch(adapter.rows * max(1, adapter.workers) - 1)
        return {"windows": windows.n_windows, "left_out_at_the_end": n_missing}
    for number, batch in zip(range(n_batches or 50), adapter.batches()):
        check_batch(adapter, windows, batch, number)
    return None
