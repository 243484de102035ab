"""torch_sources.py - where a training step gets its batch from: nanoGPT's function, PyTorch's
DataLoader, tokmap, and a batch that is there already.

take() returns inputs and labels on the device, in order for the current stream; done() says that
the step that uses them has been queued."""

import pathlib

import numpy
import torch

ROWS, LENGTH = 16, 4096


class Source:
    def __init__(self, data, device):
        self.data, self.device = data, device

    def flat(self):
        return self.data + "-large.bin"

    def done(self):
        pass

    def close(self):
        pass


class Resident(Source):
    """Nothing is loaded: what a step costs at least."""

    def __init__(self, data, device):
        super().__init__(data, device)
        self.batch = [torch.randint(0, 65536, (ROWS, LENGTH), device=device) for _ in range(2)]

    def take(self):
        return self.batch


class Tokmap(Source):
    delivery = "auto"

    def __init__(self, data, device):
        import tokmap

        super().__init__(data, device)
        self.loader = tokmap.Loader(tokmap.Dataset(data + "-large"), sequence_length=LENGTH,
                                    batch_rows=ROWS, seed=1)
        self.stage = tokmap.Stage(self.loader, device, delivery=self.delivery, log=print)
        self.batch = None

    def take(self):
        self.batch = self.stage.next()
        return self.batch.torch()

    def done(self):
        self.batch.release()
        self.batch = None

    def close(self):
        self.stage.close()


class TokmapPush(Tokmap):
    delivery = "push"


class NanoGpt(Source):
    """get_batch of nanoGPT's train.py, which opens the map anew each time."""

    def take(self):
        data = numpy.memmap(self.flat(), dtype=numpy.uint16, mode="r")
        places = torch.randint(len(data) - LENGTH, (ROWS,))
        parts = []
        for shift in (0, 1):
            rows = [torch.from_numpy(data[i + shift : i + shift + LENGTH].astype(numpy.int64))
                    for i in places]
            parts.append(torch.stack(rows).pin_memory().to(self.device, non_blocking=True))
        return parts


class Windows(torch.utils.data.Dataset):
    def __init__(self, path):
        self.tokens = numpy.memmap(path, dtype=numpy.uint16, mode="r")

    def __len__(self):
        return (len(self.tokens) - 1) // LENGTH

    def __getitem__(self, window):
        row = self.tokens[window * LENGTH : window * LENGTH + LENGTH + 1]
        row = torch.from_numpy(row.astype(numpy.int64))
        return row[:-1], row[1:]


class Loader(Source):
    """DataLoader with pin_memory, and copies that the host does not wait for."""

    workers = 0

    def __init__(self, data, device):
        super().__init__(data, device)
        more = {"persistent_workers": True, "prefetch_factor": 4} if self.workers else {}
        self.loader = torch.utils.data.DataLoader(
            Windows(self.flat()), batch_size=ROWS, shuffle=True, drop_last=True, pin_memory=True,
            num_workers=self.workers, **more)
        self.batches = iter(self.loader)

    def batch(self):
        try:
            return next(self.batches)
        except StopIteration:
            self.batches = iter(self.loader)
            return next(self.batches)

    def take(self):
        return [part.to(self.device, non_blocking=True) for part in self.batch()]


class Prefetched(Loader):
    """The same, one batch ahead in a stream of its own."""

    def __init__(self, data, device):
        super().__init__(data, device)
        self.side = torch.cuda.Stream()
        self.load()

    def load(self):
        with torch.cuda.stream(self.side):
            self.ahead = super().take()

    def take(self):
        current = torch.cuda.current_stream()
        current.wait_stream(self.side)
        batch = self.ahead
        for part in batch:
            part.record_stream(current)
        return batch

    def done(self):
        self.load()


def with_workers(kind, n):
    return type(f"{kind.__name__}{n}", (kind,), {"workers": n})


# In the order in which they are worth their time.
SOURCES = {
    "tokmap": Tokmap,
    "resident batch": Resident,
    "nanoGPT get_batch": NanoGpt,
    "DataLoader, 4 workers": with_workers(Loader, 4),
    "DataLoader, 4 workers, prefetcher": with_workers(Prefetched, 4),
    "DataLoader, 8 workers": with_workers(Loader, 8),
    "DataLoader, no workers": with_workers(Loader, 0),
    "tokmap, push": TokmapPush,
    "DataLoader, 8 workers, prefetcher": with_workers(Prefetched, 8),
    "DataLoader, 2 workers": with_workers(Loader, 2),
    "DataLoader, 2 workers, prefetcher": with_workers(Prefetched, 2),
    "DataLoader, 1 worker": with_workers(Loader, 1),
    "DataLoader, 1 worker, prefetcher": with_workers(Prefetched, 1),
    "DataLoader, no workers, prefetcher": with_workers(Prefetched, 0),
}


def make_flat(data, n_bytes):
    """For when there is no gpubench that makes data: the flat file alone, not for tokmap."""
    path = pathlib.Path(data + "-large.bin")
    if path.exists():
        return
    block = numpy.random.default_rng(1).integers(0, 65536, 1 << 24, dtype=numpy.uint16)
    with open(path, "wb") as out:
        for _ in range(max(n_bytes // block.nbytes, 1)):
            block.tofile(out)


def warm_up(data):
    """Reads the file once, so that nobody waits for a disk."""
    with open(data + "-large.bin", "rb", buffering=0) as file:
        while file.read(1 << 24):
            pass
