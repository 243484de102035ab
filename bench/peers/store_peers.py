# SPDX-License-Identifier: Apache-2.0
"""store_peers.py - what stores.py compares: tokmap, LanceDB, MosaicML Streaming and litdata, each with its own copy of the
same tokens in a folder that a server shows as a bucket. Token i is i, so a row says where it is from.

A Peer is made in the process that reads. `packages` are what it imports, and `variants` its sets of options: {} are its
defaults."""

import math
import os

LENGTH = 8192
BUCKET = "bucket"
AT_ONCE = 256           # rows that are written together


def rows_of_tokens(first, n, stride):
    """Rows first to first + n - 1, each of LENGTH + 1 tokens, which begin so many tokens apart."""
    import numpy

    starts = numpy.arange(first, first + n, dtype=numpy.uint32)[:, None] * numpy.uint32(stride)
    return starts + numpy.arange(LENGTH + 1, dtype=numpy.uint32)


def spans(n_rows, at_once=AT_ONCE):
    return ((first, min(at_once, n_rows - first)) for first in range(0, n_rows, at_once))


class Peer:
    """A system that reads rows from a bucket."""

    packages = ()
    stride = LENGTH

    @classmethod
    def write(cls, folder, n_rows):
        """Makes its copy, in an empty folder."""
        raise NotImplementedError

    def __init__(self, endpoint, cache, batch_rows, rank, n_ranks, **options):
        """Opens it. `cache`: an empty folder, for who needs one."""
        raise NotImplementedError

    def batches(self):
        raise NotImplementedError

    def rows(self, batch):
        """The rows of a batch as an array."""
        return batch

    def state(self):
        raise NotImplementedError

    def restore(self, state):
        raise NotImplementedError

    def close(self):
        pass


# ---- tokmap ----


class Tokmap(Peer):
    packages = ("tokmap", "obstore")
    variants = {"": {}}

    @classmethod
    def write(cls, folder, n_rows):
        import numpy
        import tokmap

        with tokmap.Writer(folder / "train", vocab_size=2**31) as writer:
            for first, n in spans(n_rows):
                writer.document(numpy.arange(first * LENGTH, (first + n) * LENGTH, dtype=numpy.uint32))
            writer.document([n_rows * LENGTH])

    def __init__(self, endpoint, cache, batch_rows, rank, n_ranks):
        import tokmap

        self.loader = tokmap.Loader("s3://%s/tokmap/train" % BUCKET, LENGTH, batch_rows, seed=1, max_epochs=1,
                                    outputs=("inputs",), ranks=tokmap.Ranks(rank=rank, n_ranks=n_ranks))

    def batches(self):
        return self.loader

    def rows(self, batch):
        return batch.inputs

    def state(self):
        return self.loader.state()

    def restore(self, state):
        self.loader.restore(state)

    def close(self):
        self.loader.close()


# ---- LanceDB ----


def as_arrays(batch):
    """A batch of Arrow as rows of NumPy. What it is in place of makes a list of Python numbers of each row."""
    return batch.column("tokens").flatten().to_numpy().reshape(batch.num_rows, -1)


class Lance(Peer):
    packages = ("lancedb.streaming", "torch", "pyarrow", "numpy")
    # Rows one by one as by default: its first batch needs all of a first read. Then rows in clumps of 64, which its documents
    # advise for stores of objects; that is less of a shuffle.
    variants = {"": {}, "tuned": {"read_batch_size": 16, "io_queue_depth": 32},
                "clumps": {"read_batch_size": 256, "io_queue_depth": 16, "shuffle_clump_size": 64}}

    @classmethod
    def write(cls, folder, n_rows):
        import lancedb
        import pyarrow

        kind = pyarrow.list_(pyarrow.uint32(), LENGTH + 1)
        schema = pyarrow.schema([("tokens", kind)])

        def tables():
            for first, n in spans(n_rows):
                flat = pyarrow.array(rows_of_tokens(first, n, cls.stride).reshape(-1))
                yield pyarrow.RecordBatch.from_arrays([pyarrow.FixedSizeListArray.from_arrays(flat, LENGTH + 1)], schema=schema)

        lancedb.connect(str(folder)).create_table("train", data=tables(), schema=schema)

    def __init__(self, endpoint, cache, batch_rows, rank, n_ranks, **options):
        import lancedb
        from lancedb.streaming import StreamingDataset

        keys = {"endpoint": endpoint, "allow_http": "true", "region": "us-east-1", "virtual_hosted_style_request": "false",
                "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
                "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"]}
        table = lancedb.connect("s3://%s/lance" % BUCKET, storage_options=keys).open_table("train")
        self.batch_rows = batch_rows
        self.dataset = StreamingDataset(table, num_splits=2, shuffle_seed=1, rank=rank, world_size=n_ranks, columns=["tokens"],
                                        transform=as_arrays, **options)

    def batches(self):
        import numpy

        held = []
        for row in self.dataset:
            held.append(row)
            if len(held) == self.batch_rows:
                yield numpy.stack(held)
                held = []

    def state(self):
        return self.dataset.state_dict()

    def restore(self, state):
        self.dataset.load_state_dict(state)


# ---- MosaicML Streaming ----


class Mds(Peer):
    packages = ("streaming", "torch", "numpy", "boto3")
    variants = {"": {}, "tuned": {"num_workers": 2, "predownload": 1024}}

    @classmethod
    def write(cls, folder, n_rows):
        from streaming import MDSWriter

        with MDSWriter(out=str(folder / "train"), columns={"tokens": "ndarray:uint32:%d" % (LENGTH + 1)}) as out:
            for first, n in spans(n_rows):
                for row in rows_of_tokens(first, n, cls.stride):
                    out.write({"tokens": row})

    def __init__(self, endpoint, cache, batch_rows, rank, n_ranks, num_workers=0, **options):
        import streaming

        os.environ["S3_ENDPOINT_URL"] = endpoint
        if n_ranks == 1:
            streaming.base.util.clean_stale_shared_memory()
        self.dataset = streaming.StreamingDataset(remote="s3://%s/mds/train" % BUCKET, local=str(cache), shuffle=True,
                                                  shuffle_seed=1, batch_size=batch_rows, **options)
        self.loader = streaming.StreamingDataLoader(self.dataset, batch_size=batch_rows, num_workers=num_workers, drop_last=True)

    def batches(self):
        return iter(self.loader)

    def rows(self, batch):
        return batch["tokens"].numpy()

    def state(self):
        return self.loader.state_dict()

    def restore(self, state):
        self.loader.load_state_dict(state)


# ---- litdata ----


def litdata_piece(job):
    """A piece of the tokens, as many as fill a chunk."""
    import torch

    first, n = job
    return torch.arange(first, first + n, dtype=torch.int32)


class LitData(Peer):
    packages = ("litdata", "torch", "numpy")
    variants = {"": {}, "tuned": {"num_workers": 2, "max_pre_download": 8}}
    stride = LENGTH + 1     # its rows share no tokens

    @classmethod
    def write(cls, folder, n_rows):
        import litdata

        at_once = max(1, min((64 << 20) // 4 // cls.stride, math.ceil(n_rows / 4)))
        litdata.optimize(litdata_piece, [(first * cls.stride, n * cls.stride) for first, n in spans(n_rows, at_once)],
                         str(folder / "train"), chunk_size=at_once * cls.stride, item_loader=litdata.TokensLoader(), num_workers=1,
                         keep_data_ordered=True, reorder_files=False, verbose=False)

    def __init__(self, endpoint, cache, batch_rows, rank, n_ranks, num_workers=0, **options):
        import litdata
        import litdata.streaming.downloader

        # It gives obstore no way to use http, which the server speaks. Without obstore it uses boto3.
        litdata.streaming.downloader._OBSTORE_AVAILABLE = False
        self.dataset = litdata.StreamingDataset(
            "s3://%s/litdata/train" % BUCKET, cache_dir=str(cache), item_loader=litdata.TokensLoader(block_size=self.stride),
            shuffle=True, drop_last=True, seed=1, storage_options={"endpoint_url": endpoint, "region_name": "us-east-1"}, **options)
        self.loader = litdata.StreamingDataLoader(self.dataset, batch_size=batch_rows, num_workers=num_workers, drop_last=True)

    def batches(self):
        return iter(self.loader)

    def rows(self, batch):
        return batch.numpy()

    def state(self):
        return self.loader.state_dict()

    def restore(self, state):
        self.loader.load_state_dict(state)


PEERS = {"tokmap": Tokmap, "lance": Lance, "mds": Mds, "litdata": LitData}
