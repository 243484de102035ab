# SPDX-License-Identifier: Apache-2.0
"""loader_adapter.py - what loaders.py asks of a system, and the systems that need nothing but
Python.

An adapter is a class. Its attributes say what it hands out; its methods are the loop of a user who
trains with it. One instance serves rows of one length in batches of one size, in one process. More
of them can be given with `loaders.py --adapters FILE`: a Python file with

    from loader_adapter import Adapter
    class Mine(Adapter): ...
    ADAPTERS = {"mine": Mine}
"""

import array
import itertools
import mmap
import os
import random

VIEWS, U16, I64 = "views", "u16", "i64"
COPY_IS_COMPLETE = ".complete"


class NotSupported(Exception):
    """The system cannot do this on this machine; reported, but not a failure."""


class Adapter:
    packages = ()  # distributions that it needs; the first one is the peer
    imports = ()  # modules, when they are not called like the distributions
    # What a batch is. VIEWS: rows of length + 1 tokens where they lie; U16: the same, copied into
    # one array; I64: inputs and labels as 64-bit integers. Speeds are compared among equals.
    work = I64
    order = "epoch"  # each window once an epoch; or "random": any places, each told by `starts`
    pages = ("hot",)  # hot, cold, startup, resume
    copy = None  # name of the form that it needs the tokens in; None: the flat file itself
    workers = 0  # processes that it starts
    equal_new = None  # another system of tokmap that does the same, or None
    usual = True  # False: measured only when it is named, or all are asked for
    grows = False  # starting up takes time and memory in proportion to the tokens
    reuses = False  # hands out the same arrays again and again
    note = None

    def __init__(self, data, length, rows, seed=1):
        self.data, self.length, self.rows, self.seed = data, length, rows, seed

    @classmethod
    def check(cls):
        """Raises NotSupported with the reason."""

    @classmethod
    def write_copy(cls, data, path, length):
        """Writes the tokens in the form that it needs to the folder `path`."""

    @classmethod
    def copy_path(cls, data, length):
        return os.path.join(data["folder"], "%s-%d" % (cls.copy, length))

    def path(self):
        return self.copy_path(self.data, self.length)

    def epoch(self):
        """Batches until each window has been handed out once."""
        raise NotImplementedError

    def batches(self):
        while True:
            yield from self.epoch()

    def tokens_of(self, batch):
        """(inputs, labels) of each row: objects that give their numbers as a buffer. If labels is
        None, inputs also has the label of the last one. Here: of two arrays or tensors, or of
        rows."""
        if self.work == I64:
            return list(zip(*map(as_array, batch)))
        return [(row, None) for row in as_array(batch)]

    def starts(self, batch):
        """For order "random": the start of each row in the stream."""
        raise NotImplementedError

    def stream(self, flat):
        """The tokens that windows are cut from, as a buffer of bytes."""
        return flat

    def stride(self):
        """The distance of windows in tokens."""
        return self.length

    def whole_batches(self):
        """False: the last batch of an epoch may be shorter."""
        return True

    def save(self):
        """After some batches: what `restore` of a new instance goes on with; can be pickled."""
        raise NotSupported("keeps no state")

    def restore(self, state):
        raise NotSupported("keeps no state")

    def close(self):
        pass


def as_array(part):
    """The values of a tensor; any other value as it is."""
    return part.numpy() if hasattr(part, "numpy") else part


class InDataLoader(Adapter):
    """A data set in PyTorch's DataLoader."""

    def loader_class(self):
        import torch

        return torch.utils.data.DataLoader

    def data_loader(self, dataset, **options):
        import torch

        torch.manual_seed(self.seed)
        if self.workers:
            options.update(persistent_workers=True, prefetch_factor=4)
        return self.loader_class()(
            dataset, batch_size=self.rows, num_workers=self.workers, drop_last=True, **options
        )

    def epoch(self):
        return iter(self.loader)


def variant(base, **attributes):
    return type(base.__name__, (base,), attributes)


def open_flat(path):
    """The bytes of a token file, mapped."""
    with open(path, "rb") as f:
        return memoryview(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ))


# ---- tokmap ----

class Tokmap(Adapter):
    """tokmap.Loader, used as documented."""

    packages = ("numpy",)
    imports = ("tokmap", "numpy")
    work = U16
    options = {}
    contiguous, io = True, "auto"

    def __init__(self, data, length, rows, seed=1):
        super().__init__(data, length, rows, seed)
        self.open()

    def open(self):
        import tokmap

        options = {**{VIEWS: {"outputs": ()}, U16: {"dtype": "uint16"}, I64: {}}[self.work], **self.options}
        self.loader = tokmap.Loader(
            self.data["prefix"], self.length, self.rows, seed=self.seed,
            rows=tokmap.Rows(contiguous=self.contiguous and self.work != U16),
            reading=tokmap.Reading(io=self.io), **options,
        )

    def batches(self):
        if self.work == VIEWS:
            return ([row.tokens for row in batch.rows] for batch in self.loader)
        return self.loader

    def epoch(self):
        n_windows = (self.data["n_tokens"] - 1) // self.length
        return itertools.islice(self.batches(), n_windows // self.rows)

    def tokens_of(self, batch):
        if self.work == VIEWS:
            return [(row, None) for row in batch]
        if self.work == U16:
            return [(row, None) for row in batch.inputs.base]
        return [(batch.inputs[i].copy(), batch.labels[i].copy()) for i in range(self.rows)]

    def save(self):
        return self.loader.state()

    def restore(self, state):
        self.loader.restore(state)

    def close(self):
        self.loader.close()


# ---- Reading blocks ----


class ReadBlocks(Adapter):
    """llm.c's way, in Python: a batch is one stretch of the file, and the stretches are shuffled.
    One call reads a batch, but its rows are neighbours."""

    work = U16
    pages = ("hot", "cold", "startup")
    grows = True  # the list of blocks
    reuses = True
    note = "rows of a batch are neighbours in the file (llm.c's shuffle)"

    def __init__(self, data, length, rows, seed=1):
        super().__init__(data, length, rows, seed)
        self.fd = os.open(data["flat"], os.O_RDONLY)
        self.random = random.Random(seed)
        self.buffer = bytearray(2 * (rows * length + 1))

    def epoch(self):
        stretch = self.rows * self.length
        blocks = array.array("q", range((self.data["n_tokens"] - 1) // stretch))
        self.random.shuffle(blocks)
        for block in blocks:
            if os.preadv(self.fd, [self.buffer], 2 * block * stretch) != len(self.buffer):
                raise OSError("%s: too short" % self.data["flat"])
            yield self.finish(self.buffer)

    def finish(self, buffer):
        return buffer

    def tokens_of(self, batch):
        tokens = memoryview(batch).cast("H")
        n = self.length
        return [(tokens[i * n : i * n + n + 1], None) for i in range(self.rows)]

    def close(self):
        os.close(self.fd)


class ReadBlocksI64(ReadBlocks):
    packages = ("numpy",)
    work = I64
    pages = ("hot",)
    reuses = False

    def finish(self, buffer):
        import numpy

        tokens = numpy.frombuffer(buffer, numpy.uint16)
        shape = (self.rows, self.length)
        return (
            tokens[:-1].astype(numpy.int64).reshape(shape),
            tokens[1:].astype(numpy.int64).reshape(shape),
        )

    tokens_of = Adapter.tokens_of


ADAPTERS = {
    "tokmap-views": variant(Tokmap, work=VIEWS, note="nothing is copied"),
    "tokmap-u16": variant(Tokmap, work=U16, pages=("hot", "startup")),
    "tokmap-i64": variant(Tokmap, work=I64, pages=("hot", "startup", "resume")),
    "tokmap-i64-two-views": variant(
        Tokmap,
        work=I64,
        contiguous=False,
        note="inputs and labels are views of one",
    ),
    "tokmap-i64-parts": variant(
        Tokmap,
        work=I64,
        options={"outputs": ("inputs", "labels", "position_ids", "loss_mask")},
        note="and position ids and a loss mask by documents",
    ),
    "tokmap-direct": variant(Tokmap, pages=("cold",), io="direct"),
    "tokmap-populate": variant(Tokmap, pages=("cold",), io="populate"),
    "tokmap-block-shuffle": variant(
        Tokmap, pages=("cold",), io="populate", options={"shuffle": "block"}
    ),
    "read-blocks-u16": ReadBlocks,
    "read-blocks-i64": ReadBlocksI64,
}
