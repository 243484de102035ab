# SPDX-License-Identifier: Apache-2.0
"""loader_stores.py - tokens in the files of row stores: HDF5, LMDB, TFRecord, WebDataset, Arrow.
Each has its own copy; if it stores rows, these are the windows of the flat file."""

import os
import struct

from loader_adapter import Adapter, InDataLoader, open_flat, variant

AT_ONCE = 1 << 22  # tokens
SHARD_ROWS = 4096


def windows_of(data, length):
    """(number, bytes) of each window of the flat file."""
    flat = open_flat(data["flat"])
    for i in range((data["n_tokens"] - 1) // length):
        yield i, flat[2 * i * length : 2 * (i * length + length + 1)]


def pair(numpy, rows):
    """Inputs and labels from rows of 16-bit numbers: widened once, the labels are a view."""
    wide = rows.astype(numpy.int64)
    return wide[:, :-1], wide[:, 1:]


class RowStore(Adapter):
    """Rows by number, in random order."""

    note = "labels are a view of the inputs' array"

    def __init__(self, data, length, rows, seed=1):
        super().__init__(data, length, rows, seed)
        import numpy

        self.numpy = numpy
        self.random = numpy.random.default_rng(seed)
        self.n_windows = (data["n_tokens"] - 1) // length
        self.open()

    def epoch(self):
        order = self.random.permutation(self.n_windows).tolist()
        for first in range(0, self.n_windows - self.rows + 1, self.rows):
            rows = self.numpy.empty((self.rows, self.length + 1), self.numpy.int64)
            for i, window in enumerate(order[first : first + self.rows]):
                rows[i] = self.row(window)
            yield rows[:, :-1], rows[:, 1:]


class Hdf5(RowStore):
    """One contiguous data set with one dimension; a row is a slice."""

    packages = ("h5py", "numpy")
    copy = "hdf5"

    @classmethod
    def copy_path(cls, data, length):
        return os.path.join(data["folder"], cls.copy)  # the same for rows of any length

    @classmethod
    def write_copy(cls, data, path, length):
        import h5py
        import numpy

        tokens = numpy.memmap(data["flat"], dtype=numpy.uint16, mode="r")
        with h5py.File(os.path.join(path, "tokens.h5"), "w", libver="latest") as f:
            out = f.create_dataset("tokens", shape=tokens.shape, dtype="u2")
            for first in range(0, len(tokens), AT_ONCE):
                out[first : first + AT_ONCE] = tokens[first : first + AT_ONCE]

    def open(self):
        import h5py

        self.file = h5py.File(os.path.join(self.path(), "tokens.h5"), "r")
        self.tokens = self.file["tokens"]

    def row(self, window):
        first = window * self.length
        return self.tokens[first : first + self.length + 1]

    def close(self):
        self.file.close()


class Lmdb(RowStore):
    packages = ("lmdb", "numpy")
    copy = "lmdb"

    @classmethod
    def write_copy(cls, data, path, length):
        import lmdb

        environment = lmdb.open(path, map_size=8 * data["n_tokens"] + (64 << 20), sync=False)
        transaction = environment.begin(write=True)
        for i, row in windows_of(data, length):
            transaction.put(struct.pack(">Q", i), bytes(row), append=True)
        transaction.commit()
        environment.sync(True)
        environment.close()

    def open(self):
        import lmdb

        self.environment = lmdb.open(self.path(), readonly=True, lock=False, readahead=False)
        self.transaction = self.environment.begin(buffers=True)

    def row(self, window):
        found = self.transaction.get(struct.pack(">Q", window))
        return self.numpy.frombuffer(found, self.numpy.uint16)

    def close(self):
        self.transaction.abort()
        self.environment.close()


# ---- Streams with a buffer that shuffles ----


def row_batch(samples):
    """Converts each row to 64 bits once."""
    import numpy
    import torch

    rows = torch.from_numpy(numpy.stack(samples).astype(numpy.int64))
    return rows[:, :-1], rows[:, 1:]


class Stream(InDataLoader):
    shuffle_rows = 1000

    def __init__(self, data, length, rows, seed=1):
        super().__init__(data, length, rows, seed)
        self.loader = self.data_loader(self.dataset(), collate_fn=row_batch)


def tfrecord_row(record):
    import numpy

    return numpy.frombuffer(record["tokens"], numpy.uint16)


class TfRecord(Stream):
    """The package tfrecord, a reader without TensorFlow."""

    packages = ("tfrecord", "torch", "numpy")
    imports = ("tfrecord.torch.dataset", "torch", "numpy")
    copy = "tfrecord"
    note = "rows are shuffled among 1000; labels are a view of the inputs' array"

    @classmethod
    def write_copy(cls, data, path, length):
        import tfrecord
        from tfrecord.tools import tfrecord2idx

        file = os.path.join(path, "rows.tfrecord")
        writer = tfrecord.TFRecordWriter(file)
        for _, row in windows_of(data, length):
            writer.write({"tokens": (bytes(row), "byte")})
        writer.close()
        tfrecord2idx.create_index(file, file + ".idx")

    def dataset(self):
        from tfrecord.torch.dataset import TFRecordDataset

        file = os.path.join(self.path(), "rows.tfrecord")
        return TFRecordDataset(
            file,
            file + ".idx",
            {"tokens": "byte"},
            shuffle_queue_size=self.shuffle_rows,
            transform=tfrecord_row,
        )


def webdataset_row(sample):
    import numpy

    return numpy.frombuffer(sample["bin"], numpy.uint16)


class WebDataset(Stream):
    packages = ("webdataset", "torch", "numpy")
    copy = "webdataset"
    note = "shards and rows among 1000 are shuffled; labels are a view of the inputs' array"

    @classmethod
    def write_copy(cls, data, path, length):
        import webdataset

        n_windows = (data["n_tokens"] - 1) // length
        n_rows = max(1, min(SHARD_ROWS, n_windows // 8))  # some shards for each worker
        pattern = os.path.join(path, "rows-%06d.tar")
        with webdataset.ShardWriter(pattern, maxcount=n_rows, verbose=0) as out:
            for i, row in windows_of(data, length):
                out.write({"__key__": "%012d" % i, "bin": bytes(row)})

    def dataset(self):
        import webdataset

        shards = sorted(
            os.path.join(self.path(), name)
            for name in os.listdir(self.path())
            if name.endswith(".tar")
        )
        rows = webdataset.WebDataset(shards, shardshuffle=len(shards), seed=self.seed)
        return rows.shuffle(self.shuffle_rows).map(webdataset_row)


# ---- Arrow ----


class Datasets(InDataLoader):
    """HuggingFace datasets: a column of fixed-size rows, as torch tensors, by DataLoader."""

    packages = ("datasets", "torch", "numpy")
    copy = "datasets"
    note = "labels are a view of the inputs' array"

    @classmethod
    def write_copy(cls, data, path, length):
        import datasets
        import numpy

        def rows():
            for _, row in windows_of(data, length):
                yield {"input_ids": numpy.frombuffer(row, numpy.uint16)}

        column = datasets.Sequence(datasets.Value("uint16"), length=length + 1)
        made = datasets.Dataset.from_generator(
            rows,
            features=datasets.Features({"input_ids": column}),
            cache_dir=os.path.join(path, "cache"),
        )
        made.save_to_disk(os.path.join(path, "rows"))

    def __init__(self, data, length, rows, seed=1):
        super().__init__(data, length, rows, seed)
        import datasets

        stored = datasets.load_from_disk(os.path.join(self.path(), "rows"))
        self.loader = self.data_loader(stored.with_format("torch"), shuffle=True)

    def epoch(self):
        for batch in self.loader:
            rows = batch["input_ids"]
            yield rows[:, :-1], rows[:, 1:]


ADAPTERS = {
    "hdf5": Hdf5,
    "lmdb": Lmdb,
    "tfrecord-w0": TfRecord,
    "webdataset-w0": WebDataset,
    "webdataset-w2": variant(WebDataset, workers=2),
    "hf-datasets-w0": Datasets,
    "hf-datasets-w2": variant(Datasets, workers=2),
}
