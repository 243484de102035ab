# SPDX-License-Identifier: Apache-2.0
"""loader_streams.py - libraries with their own data set and loader: Grain on the flat file; litdata
and MosaicML Streaming on copies in their formats."""

import os

from loader_adapter import Adapter, InDataLoader, open_flat, variant
from loader_stores import pair, windows_of

CHUNK_BYTES = 64 << 20  # what both take when nobody says otherwise


# ---- Grain ----


class Rows:
    """A source with random access, for Grain. Opens the map in the process that reads."""

    def __init__(self, path, length):
        self.path, self.length, self.map = path, length, None

    def __getstate__(self):
        return {"path": self.path, "length": self.length, "map": None}

    def tokens(self):
        import numpy

        if self.map is None:
            self.map = numpy.memmap(self.path, dtype=numpy.uint16, mode="r")
        return self.map

    def __len__(self):
        return (os.path.getsize(self.path) // 2 - 1) // self.length

    def __getitem__(self, window):
        import numpy

        n = self.length
        row = self.tokens()[window * n : window * n + n + 1].astype(numpy.int64)
        return {"inputs": row[:-1], "labels": row[1:]}


class Grain(Adapter):
    """MapDataset: source, shuffle, batch; as iterator with its usual read threads."""

    packages = ("grain", "numpy")
    pages = ("hot", "startup", "resume")
    threads = None  # its own choice

    def __init__(self, data, length, rows, seed=1):
        super().__init__(data, length, rows, seed)
        self.restored = None

    def dataset(self, n_epochs):
        import grain

        rows = grain.MapDataset.source(Rows(self.data["flat"], self.length))
        batches = rows.shuffle(seed=self.seed).repeat(n_epochs)
        batches = batches.batch(self.rows, drop_remainder=True)
        options = grain.ReadOptions()
        if self.threads is not None:
            options = grain.ReadOptions(num_threads=self.threads, prefetch_buffer_size=1)
        batches = batches.to_iter_dataset(options)
        if self.workers:
            batches = batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=self.workers))
        return batches

    def epoch(self):
        return iter(self.dataset(1))

    def batches(self):
        self.iterator = iter(self.dataset(None))
        if self.restored is not None:
            self.iterator.set_state(self.restored)
        return self.iterator

    def save(self):
        return self.iterator.get_state()

    def restore(self, state):
        self.restored = state

    def tokens_of(self, batch):
        return list(zip(batch["inputs"], batch["labels"]))

    def close(self):
        self.iterator = None


# ---- litdata ----


def stretch_of(job):
    """One of litdata's inputs: whole blocks of the flat file."""
    import torch

    path, first, n = job
    flat = open_flat(path)
    return torch.frombuffer(bytearray(flat[2 * first : 2 * (first + n)]), dtype=torch.uint16)


class LitData(Adapter):
    """TokensLoader. Its blocks share no tokens, so its windows begin every length + 1 tokens."""

    packages = ("litdata", "torch", "numpy")
    copy = "litdata"
    note = "labels are a view of the inputs' array"

    @classmethod
    def write_copy(cls, data, path, length):
        import litdata

        block = length + 1
        n_blocks = data["n_tokens"] // block
        at_once = max(1, min(CHUNK_BYTES // 2 // block, n_blocks // 4))
        jobs = [
            (data["flat"], first * block, min(at_once, n_blocks - first) * block)
            for first in range(0, n_blocks, at_once)
        ]
        litdata.optimize(
            stretch_of,
            jobs,
            os.path.join(path, "chunks"),
            chunk_size=at_once * block,
            item_loader=litdata.TokensLoader(),
            num_workers=1,
            keep_data_ordered=True,
            reorder_files=False,
            verbose=False,
        )

    def __init__(self, data, length, rows, seed=1):
        super().__init__(data, length, rows, seed)
        import litdata

        stored = litdata.StreamingDataset(
            os.path.join(self.path(), "chunks"),
            item_loader=litdata.TokensLoader(block_size=length + 1),
            shuffle=True,
            drop_last=False,
            seed=seed,
        )
        self.loader = litdata.StreamingDataLoader(
            stored, batch_size=rows, num_workers=self.workers, drop_last=True
        )

    def stride(self):
        return self.length + 1

    def epoch(self):
        import torch

        for batch in self.loader:
            rows = batch.to(torch.int64)
            yield rows[:, :-1], rows[:, 1:]


# ---- MosaicML Streaming ----


class Mds(InDataLoader):
    """Rows as arrays in MDS shards, by StreamingDataset and PyTorch's DataLoader."""

    packages = ("mosaicml-streaming", "torch", "numpy")
    imports = ("streaming", "torch", "numpy")
    copy = "mds"
    note = "labels are a view of the inputs' array"

    @classmethod
    def write_copy(cls, data, path, length):
        import numpy
        from streaming import MDSWriter

        columns = {"tokens": "ndarray:uint16:%d" % (length + 1)}
        n_bytes = min(CHUNK_BYTES, data["n_tokens"] // 4)
        with MDSWriter(out=os.path.join(path, "rows"), columns=columns, size_limit=n_bytes) as out:
            for _, row in windows_of(data, length):
                out.write({"tokens": numpy.frombuffer(row, numpy.uint16)})

    def __init__(self, data, length, rows, seed=1):
        super().__init__(data, length, rows, seed)
        import streaming

        streaming.base.util.clean_stale_shared_memory()
        stored = streaming.StreamingDataset(
            local=os.path.join(self.path(), "rows"),
            shuffle=True,
            shuffle_seed=seed,
            batch_size=rows,
        )
        self.loader = self.data_loader(stored, collate_fn=mds_batch)


def mds_batch(samples):
    import numpy
    import torch

    inputs, labels = pair(numpy, numpy.stack([sample["tokens"] for sample in samples]))
    return torch.from_numpy(inputs), torch.from_numpy(labels)


ADAPTERS = {
    "grain": Grain,
    "grain-one-thread": variant(Grain, threads=1, pages=("hot",), usual=False),
    "grain-w2": variant(Grain, workers=2, pages=("hot",)),
    "litdata-w0": LitData,
    "litdata-w2": variant(LitData, workers=2),
    "mds-w0": Mds,
    "mds-w2": variant(Mds, workers=2),
}
