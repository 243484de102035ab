# SPDX-License-Identifier: Apache-2.0
"""A machine that runs the PTX of a kernel on the processor, and forgives nothing.

Global memory is regions with nothing between them: an access that is not wholly in one, that is
not aligned to its size, or that the region does not allow is an error. So is a byte that is
written twice. Threads of a block run one after another, in random order, from one barrier to the
next; two that touch the same bytes of shared memory in between, one of them writing, without
atomic instructions, are an error, and so are threads that do not meet at the same barrier, bytes
and registers that are read before they were written, and a loop without end."""

import bisect
import collections
import random
import traceback

from ptx_text import Kernel, PtxError

SHARED_BEGIN = 0x410  # not 0, and aligned to 16 bytes only, as a kernel may be given it
GLOBAL_BEGIN = 0x7F2000000000
GAP = 1 << 16  # between regions


# ---- Memory ----


class Region:
    """Bytes at `begin`. What is read-only may be read, but for bytes that are not `known`, which
    only whole words of 16 bytes may touch; what is not read-only may only be written, once."""

    def __init__(self, name, begin, data, read_only):
        self.name, self.begin, self.data, self.read_only = name, begin, data, read_only
        self.end = begin + len(data)
        self.written = bytearray(len(data))
        self.known = bytearray(b"\1" * len(data))


class GlobalMemory:
    def __init__(self):
        self.regions, self.begins = [], []
        self.next = GLOBAL_BEGIN
        self.wide_loads = []  # addresses of loads of 16 bytes
        self.narrow_loads = collections.Counter()  # how often from each address, of the others

    def add(self, name, data, alignment=256, offset=0, read_only=True):
        """A new region, at an address that is `offset` above a multiple of `alignment`."""
        begin = -(-self.next // alignment) * alignment + offset
        self.next = begin + len(data) + GAP
        self.begins.append(begin)
        self.regions.append(Region(name, begin, bytearray(data), read_only))
        return self.regions[-1]

    def find(self, address, n_bytes, what):
        if address % n_bytes:
            raise PtxError("%s of %d bytes at 0x%x: not aligned" % (what, n_bytes, address))
        i = bisect.bisect(self.begins, address) - 1
        if i < 0 or address + n_bytes > self.regions[i].end:
            near = "" if i < 0 else ", %d behind the begin of %s, which has %d bytes" % (
                address - self.begins[i], self.regions[i].name, len(self.regions[i].data))
            raise PtxError("%s of %d bytes at 0x%x%s" % (what, n_bytes, address, near))
        return self.regions[i], address - self.begins[i]

    def load(self, address, n_bytes):
        region, at = self.find(address, n_bytes, "load")
        if not region.read_only:
            raise PtxError("load from %s" % region.name)
        if n_bytes == 16:
            self.wide_loads.append(address)
        else:
            self.narrow_loads[address] += 1
        if n_bytes < 16 and not all(region.known[at:at + n_bytes]):
            raise PtxError("load of %d bytes at %d of %s, where nothing is" %
                           (n_bytes, at, region.name))
        return int.from_bytes(region.data[at:at + n_bytes], "little")

    def store(self, address, n_bytes, value):
        region, at = self.find(address, n_bytes, "store")
        if region.read_only:
            raise PtxError("store into %s" % region.name)
        if any(region.written[at:at + n_bytes]):
            raise PtxError("byte %d of %s is written twice" % (at, region.name))
        region.written[at:at + n_bytes] = b"\1" * n_bytes
        region.data[at:at + n_bytes] = value.to_bytes(n_bytes, "little")


NOBODY, MANY, ATOMIC = -1, -2, -3


class SharedMemory:
    """Of one block. Who touched each byte since the last barrier: a thread, several of them (MANY),
    or any number by atomic instructions (ATOMIC)."""

    def __init__(self, n_bytes):
        self.n_bytes = n_bytes
        self.data, self.known = bytearray(n_bytes), bytearray(n_bytes)
        self.barrier()

    def barrier(self):
        self.writers = [NOBODY] * self.n_bytes
        self.readers = [NOBODY] * self.n_bytes

    def place(self, address, n_bytes, what):
        at = address - SHARED_BEGIN
        if at < 0 or at + n_bytes > self.n_bytes:
            raise PtxError("%s of shared memory at %d of %d" % (what, at, self.n_bytes))
        if address % n_bytes:
            raise PtxError("%s of %d bytes of shared memory at %d: not aligned" %
                           (what, n_bytes, at))
        return at

    def check(self, users, at, n_bytes, tid, allowed=NOBODY):
        for i in range(at, at + n_bytes):
            if users[i] not in (NOBODY, tid, allowed):
                raise PtxError("thread %d races for byte %d of shared memory" % (tid, i))

    def load(self, tid, address, n_bytes):
        at = self.place(address, n_bytes, "load")
        end = at + n_bytes
        self.check(self.writers, at, n_bytes, tid)
        for i in range(at, end):
            reader = self.readers[i]
            if reader != tid:
                self.readers[i] = tid if reader == NOBODY else MANY
        if not all(self.known[at:end]):
            raise PtxError("load of shared memory at %d, where nothing was stored" % at)
        return int.from_bytes(self.data[at:end], "little")

    def store(self, tid, address, n_bytes, value):
        at = self.place(address, n_bytes, "store")
        self.check(self.writers, at, n_bytes, tid)
        self.check(self.readers, at, n_bytes, tid)
        self.writers[at:at + n_bytes] = [tid] * n_bytes
        self.put(at, n_bytes, value)

    def put(self, at, n_bytes, value):
        self.data[at:at + n_bytes] = value.to_bytes(n_bytes, "little")
        self.known[at:at + n_bytes] = b"\1" * n_bytes

    def atomic_or(self, tid, address, value):
        at = self.place(address, 4, "atomic access")
        self.check(self.writers, at, 4, tid, ATOMIC)
        self.check(self.readers, at, 4, tid)
        if not all(self.known[at:at + 4]):
            raise PtxError("atomic access to shared memory at %d, where nothing was stored" % at)
        was = int.from_bytes(self.data[at:at + 4], "little")
        self.writers[at:at + 4] = [ATOMIC] * 4
        self.put(at, 4, was | value)
        return was


# ---- Threads ----


def where(kernel, error):
    """The line of PTX at which Python stopped."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == "<ptx>":
            return "line %d of the text" % kernel.ptx_lines[frame.lineno]
    return "nowhere"


class Machine:
    def __init__(self, source):
        self.kernel = Kernel(source, SHARED_BEGIN)
        self.text = self.kernel.text

    def launch(self, n_blocks, params, memory, seed=0, blocks=None):
        """Runs all blocks, or those that are named, of a launch of n_blocks."""
        rng = random.Random(seed)
        if len(params) != self.text.param_bytes:
            raise PtxError("%d bytes of parameters, not %d" % (len(params), self.text.param_bytes))

        def param(at, n_bytes):
            if at % n_bytes or at + n_bytes > len(params):
                raise PtxError("parameter at %d, %d bytes" % (at, n_bytes))
            return int.from_bytes(params[at:at + n_bytes], "little")

        order = list(range(n_blocks)) if blocks is None else list(blocks)
        rng.shuffle(order)
        for block in order:
            try:
                self._run_block(block, n_blocks, param, memory, rng)
            except (PtxError, UnboundLocalError, ZeroDivisionError) as e:
                raise PtxError("block %d, %s: %s" % (block, where(self.kernel, e), e)) from None

    def _run_block(self, block, n_blocks, param, memory, rng):
        n = self.text.n_threads
        shared = SharedMemory(self.kernel.shared_bytes)
        threads = [self.kernel.thread(tid, block, n, n_blocks, param, memory, shared)
                   for tid in range(n)]
        while True:
            rng.shuffle(threads)
            stops = {next(thread, None) for thread in threads}
            if stops == {None}:
                return
            if len(stops) > 1:
                raise PtxError("threads stop at different barriers or none: lines %s" % stops)
            shared.barrier()
