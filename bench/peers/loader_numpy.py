# SPDX-License-Identifier: Apache-2.0
"""loader_numpy.py - the flat file by numpy.memmap, and by PyTorch over it."""

import mmap

from loader_adapter import I64, U16, VIEWS, Adapter, InDataLoader, NotSupported, variant


class Memmap(Adapter):
    """A loop over rows of the map, windows in a random order."""

    packages = ("numpy",)

    def __init__(self, data, length, rows, seed=1):
        super().__init__(data, length, rows, seed)
        import numpy

        self.numpy = numpy
        self.tokens = numpy.memmap(data["flat"], dtype=numpy.uint16, mode="r")
        self.n_windows = (len(self.tokens) - 1) // length
        self.random = numpy.random.default_rng(seed)

    def shuffled(self):
        """The windows of each batch."""
        order = self.random.permutation(self.n_windows)
        for first in range(0, self.n_windows - self.rows + 1, self.rows):
            yield order[first : first + self.rows]

    def epoch(self):
        return map(self.take, self.shuffled())

    def take(self, windows):
        tokens, n = self.tokens, self.length
        if self.work == VIEWS:
            return [tokens[w * n : w * n + n + 1] for w in windows]
        if self.work == U16:
            rows = self.numpy.empty((self.rows, n + 1), self.numpy.uint16)
            for i, w in enumerate(windows):
                rows[i] = tokens[w * n : w * n + n + 1]
            return rows
        inputs, labels = (self.numpy.empty((self.rows, n), self.numpy.int64) for _ in range(2))
        for i, w in enumerate(windows):
            inputs[i] = tokens[w * n : w * n + n]
            labels[i] = tokens[w * n + 1 : w * n + n + 1]
        return inputs, labels


class MemmapTuned(Memmap):
    """All rows of a batch by one indexing of overlapping windows, which is a loop in C."""

    note = "one fancy index a batch"

    def __init__(self, data, length, rows, seed=1):
        super().__init__(data, length, rows, seed)
        tokens = self.numpy.asarray(self.tokens)
        self.windows = self.numpy.lib.stride_tricks.as_strided(
            tokens, (self.n_windows, length + 1), (2 * length, 2), writeable=False
        )

    def take(self, windows):
        rows = self.windows[windows]
        if self.work == U16:
            return rows
        return rows[:, :-1].astype(self.numpy.int64), rows[:, 1:].astype(self.numpy.int64)


class MemmapTwoViews(MemmapTuned):
    """One array of length + 1 columns, and two views of it."""

    note = "one fancy index a batch; inputs and labels are views of one array"
    equal_new = "tokmap-i64-two-views"

    def take(self, windows):
        rows = self.windows[windows].astype(self.numpy.int64)
        return rows[:, :-1], rows[:, 1:]


# ---- Hints that a careful user gives for a file that does not fit into memory ----


class MemmapRandom(Memmap):
    """With madvise, so that the kernel reads only the touched pages."""

    work = U16
    pages = ("cold",)
    note = "madvise(MADV_RANDOM)"

    def __init__(self, data, length, rows, seed=1):
        super().__init__(data, length, rows, seed)
        self.map = self.tokens._mmap  # numpy itself has no call for advice
        self.map.madvise(mmap.MADV_RANDOM)


class MemmapWillNeed(MemmapRandom):
    """Also reads all rows of the next batch at once while the rows of this one are copied."""

    note = "madvise(MADV_RANDOM), and MADV_WILLNEED for the rows of the next batch"

    def will_need(self, windows):
        for w in windows.tolist():
            first, end = 2 * w * self.length, 2 * (w * self.length + self.length + 1)
            page = first - first % mmap.PAGESIZE
            self.map.madvise(mmap.MADV_WILLNEED, page, end - page)

    def epoch(self):
        this = None
        for following in self.shuffled():
            self.will_need(following)
            if this is not None:
                yield self.take(this)
            this = following
        if this is not None:
            yield self.take(this)


# ---- PyTorch ----


def torch_rows():
    """The data set classes, in a function so that only their users import torch."""
    import numpy
    import torch

    class Rows(torch.utils.data.Dataset):
        def __init__(self, path, length, wide):
            self.tokens = numpy.memmap(path, dtype=numpy.uint16, mode="r")
            self.length, self.wide = length, wide
            self.n_windows = (len(self.tokens) - 1) // length

        def __len__(self):
            return self.n_windows

        def __getitem__(self, window):
            n = self.length
            row = self.tokens[window * n : window * n + n + 1]
            if not self.wide:
                return torch.from_numpy(row.copy())
            row = torch.from_numpy(row.astype(numpy.int64))
            return row[:-1], row[1:]

    class RowsAtOnce(Rows):
        """`__getitems__`: one call makes a whole batch."""

        def __init__(self, path, length, wide):
            super().__init__(path, length, wide)
            self.windows = numpy.lib.stride_tricks.as_strided(
                numpy.asarray(self.tokens),
                (self.n_windows, length + 1),
                (2 * length, 2),
                writeable=False,
            )

        def __getitems__(self, windows):
            rows = self.windows[windows]
            if not self.wide:
                return torch.from_numpy(rows)
            rows = torch.from_numpy(rows.astype(numpy.int64))
            return rows[:, :-1], rows[:, 1:]

    return Rows, RowsAtOnce


def as_it_is(batch):
    return batch


class DataLoader(InDataLoader):
    """Map-style over the memory map, shuffle=True."""

    packages = ("torch", "numpy")
    pages = ("hot",)
    grows = True  # the list of numbers that RandomSampler makes
    at_once = False
    pin_memory = False

    @classmethod
    def check(cls):
        import torch

        if cls.pin_memory and not torch.cuda.is_available():
            raise NotSupported("pin_memory needs CUDA, and there is no device here")

    def __init__(self, data, length, rows, seed=1):
        super().__init__(data, length, rows, seed)
        dataset = torch_rows()[self.at_once](data["flat"], length, self.work == I64)
        options = {"collate_fn": as_it_is} if self.at_once else {}
        self.loader = self.data_loader(
            dataset, shuffle=True, pin_memory=self.pin_memory, **options
        )

    def close(self):
        del self.loader


class StatefulDataLoader(DataLoader):
    packages = ("torchdata", "torch", "numpy")
    imports = ("torchdata.stateful_dataloader", "torch", "numpy")
    pages = ("hot", "resume")

    def loader_class(self):
        from torchdata.stateful_dataloader import StatefulDataLoader

        return StatefulDataLoader

    def save(self):
        return self.loader.state_dict()

    def restore(self, state):
        self.loader.load_state_dict(state)


class NanoGpt(Adapter):
    """nanoGPT's get_batch, on the CPU: random places, two tensors built row by row."""

    packages = ("torch", "numpy")
    pages = ("hot", "cold", "startup")
    order = "random"
    keep_open = False

    def __init__(self, data, length, rows, seed=1):
        super().__init__(data, length, rows, seed)
        import numpy
        import torch

        torch.manual_seed(seed)
        self.numpy, self.torch, self.kept = numpy, torch, None

    def tokens(self):
        if self.kept is not None:
            return self.kept
        tokens = self.numpy.memmap(self.data["flat"], dtype=self.numpy.uint16, mode="r")
        if self.keep_open:
            self.kept = tokens
        return tokens

    def get_batch(self):
        tokens, n = self.tokens(), self.length
        places = self.torch.randint(len(tokens) - n, (self.rows,))
        x, y = (
            self.torch.stack(
                [
                    self.torch.from_numpy(tokens[i + k : i + k + n].astype(self.numpy.int64))
                    for i in places
                ]
            )
            for k in (0, 1)
        )
        self.places = places
        return x, y

    def batches(self):
        while True:
            yield self.get_batch()

    def starts(self, batch):
        return self.places.tolist()


def data_loaders():
    found = {}
    for work in (U16, I64):
        for workers in (0, 1, 2, 4):
            found["dataloader-%s-w%d" % (work, workers)] = variant(
                DataLoader, work=work, workers=workers
            )
        for workers in (0, 2):
            note = "__getitems__ with one fancy index a batch"
            if work == I64:
                note += "; labels are a view of the inputs' array"
            found["dataloader-%s-getitems-w%d" % (work, workers)] = variant(
                DataLoader, work=work, workers=workers, at_once=True, note=note
            )
    for name in ("u16-getitems-w2", "i64-getitems-w2", "i64-w1", "i64-w4"):
        found["dataloader-" + name].usual = False
    found["dataloader-i64-w0"].pages = ("hot", "cold", "startup")
    found["dataloader-i64-w2"].pages = ("hot", "cold")
    found["dataloader-i64-w2-pinned"] = variant(
        DataLoader, workers=2, pin_memory=True, note="pin_memory"
    )
    for workers in (0, 2):
        found["stateful-dataloader-i64-w%d" % workers] = variant(
            StatefulDataLoader, workers=workers
        )
    found["stateful-dataloader-i64-w2"].pages = ("resume",)
    return found


ADAPTERS = {
    "numpy-views": variant(Memmap, work=VIEWS, note="nothing is copied"),
    "numpy-u16": variant(Memmap, work=U16),
    "numpy-u16-tuned": variant(MemmapTuned, work=U16),
    "numpy-u16-random": MemmapRandom,
    "numpy-u16-willneed": MemmapWillNeed,
    "numpy-i64": Memmap,
    "numpy-i64-tuned": MemmapTuned,
    "numpy-i64-two-views": MemmapTwoViews,
    **data_loaders(),
    "nanogpt": variant(NanoGpt, note="opens the map in each batch, as published"),
    "nanogpt-kept-open": variant(NanoGpt, keep_open=True, pages=("hot",)),
}
