"""tokmap.Loader - sequences from datasets: shuffled, mixed, resumable, from one thread."""

import ctypes
import os
from typing import NamedTuple

from . import _lib
from ._lib import lib

_SHUFFLES = {"full": 0, "none": 1, "block": 2}
_WINDOWS = {"concat": 0, "within-document": 1}
_FORMATS = {"tokens": 0, "i32": 1, "i64": 2}
_IO = {"auto": 0, "map": 1, "direct": 2, "populate": 3, "read": 4}
_PARTS = {"documents": 1, "position_ids": 2, "document_ids": 4, "loss_mask": 8}
_END = 1


class Source:
    """One or more datasets that are one corpus, and how much of it a mixture gets."""

    def __init__(self, datasets, weight=1.0, max_epochs=0, masked=False):
        self.datasets = list(datasets) if isinstance(datasets, (list, tuple)) else [datasets]
        self.weight, self.max_epochs, self.masked = weight, max_epochs, masked


class Sample(NamedTuple):
    source: int
    dataset: int
    epoch: int
    window: int
    first_token: int
    n_tokens: int


def _view(pointer, n_bytes, letter):
    data = (ctypes.c_char * n_bytes).from_address(pointer)
    return memoryview(data).cast("B").cast(letter).toreadonly()


class Row:
    """A row of a batch. `tokens` and the arrays are memoryviews into the map and the loader: they
    hold what they say until the next batch is taken."""

    def __init__(self, row, length):
        self.source, self.dataset = row.source, row.dataset
        self.epoch, self.window, self.first_token = row.epoch, row.window, row.first_token
        self.n_documents, self.longest_document = row.n_documents, row.longest_document
        letter = "H" if row.token_bytes == 2 else "I"
        self.tokens = _view(row.tokens, row.n_tokens * row.token_bytes, letter)
        self.cu_seqlens = self.position_ids = self.document_ids = self.loss_mask = None
        if row.cu_seqlens:
            self.cu_seqlens = _view(row.cu_seqlens, 4 * (row.n_documents + 1), "i")
        if row.position_ids:
            self.position_ids = _view(row.position_ids, 4 * length, "i")
        if row.document_ids:
            self.document_ids = _view(row.document_ids, 4 * length, "i")
        if row.loss_mask:
            self.loss_mask = _view(row.loss_mask, length, "B")


class Batch:
    def __init__(self, loader, batch):
        self._loader, self._batch, self._taken = loader, batch, loader._n_taken
        self.n_rows, self.sequence_length = batch.n_rows, batch.sequence_length
        self.first_sample, self.step_sample = batch.first_sample, batch.step_sample
        self.token_bytes = batch.token_bytes

    def _check(self):
        if self._taken != self._loader._n_taken:
            raise ValueError("this batch is over: the loader has gone on")

    def __len__(self):
        return self.n_rows

    def __getitem__(self, index):
        self._check()
        if not -self.n_rows <= index < self.n_rows:
            raise IndexError(index)
        return Row(self._batch.rows[index % self.n_rows], self.sequence_length)

    def gather(self, format="i64", inputs=None, labels=None, pad_id=0, ignore_index=None):
        """Copies the batch into writable buffers of the right size (numpy.ndarray, torch.Tensor.numpy(),
        bytearray ...). "i32" and "i64": `inputs` and `labels`, sequence_length numbers a row;
        "tokens": `inputs` alone, sequence_length + 1 tokens a row. With ignore_index, labels that the
        loss mask leaves out become that number (the loader needs parts=["loss_mask"])."""
        self._check()
        whole = format == "tokens"
        width = self.token_bytes if whole else {"i32": 4, "i64": 8}[format]
        n_bytes = self.n_rows * (self.sequence_length + whole) * width
        held = [_buffer(b, n_bytes, name) if b is not None else None
                for b, name in ((inputs, "inputs"), (labels, "labels"))]
        addresses = [ctypes.addressof(h) if h is not None else None for h in held]
        options = _lib.GatherOptions(
            struct_size=ctypes.sizeof(_lib.GatherOptions), format=_FORMATS[format],
            mask_labels=ignore_index is not None,
            ignore_index=-100 if ignore_index is None else ignore_index, pad_id=pad_id,
            inputs=addresses[0], labels=addresses[1])
        detail = _lib.ErrorDetail()
        status = lib.tokmap_batch_gather(ctypes.byref(self._batch), ctypes.byref(options),
                                         ctypes.byref(detail))
        _lib.check(status, detail)


def _buffer(buffer, n_bytes, name):
    view = memoryview(buffer)
    if view.readonly or not view.c_contiguous:
        raise ValueError(f"{name}: the buffer must be writable and contiguous")
    if view.nbytes != n_bytes:
        raise ValueError(f"{name}: the buffer has {view.nbytes} bytes, this batch needs {n_bytes}")
    return (ctypes.c_char * n_bytes).from_buffer(view.cast("B"))


class Loader:
    """Iterate to get batches; state() with each checkpoint, restore() after a restart.

    sources     a Dataset, a list of Datasets (the shards of one corpus), or a list of Sources
    stages      {first_sample: [weight of each source, ...]}: other weights from a sample on
    shuffle     "full", "none" or "block"; windows: "concat" or "within-document"
    io          "auto", "map", "direct", "populate", "read": how bytes arrive (tokmap_loader.h)
    parts       of "documents", "position_ids", "document_ids", "loss_mask": what rows tell
    The order of samples depends on none of rank, n_ranks and batch_rows."""

    def __init__(self, sources, sequence_length, batch_rows=1, *, rank=0, n_ranks=1, seed=0,
                 shuffle="full", windows="concat", random_phase=False, parts=(), stages=None,
                 block_windows=0, group_blocks=0, io="auto", look_ahead=0, drop_behind=False):
        self._pointer, self._n_taken = ctypes.c_void_p(), 0
        sources = list(sources) if isinstance(sources, (list, tuple)) else [sources]
        if not all(isinstance(s, Source) for s in sources):
            sources = [Source(sources)]
        self._sources = sources  # the maps must stay
        self._handles = [[d._pointer() for d in s.datasets] for s in sources]
        c_sources = (_lib.LoaderSource * len(sources))()
        for c, s, handles in zip(c_sources, sources, self._handles):
            c.datasets = (ctypes.c_void_p * len(handles))(*[h.value for h in handles])
            c.n_datasets, c.weight = len(handles), s.weight
            c.max_epochs, c.masked = s.max_epochs, s.masked
        stages = sorted((stages or {}).items())
        c_stages = (_lib.LoaderStage * len(stages))()
        for c, (first_sample, weights) in zip(c_stages, stages):
            if len(weights) != len(sources):
                raise ValueError(f"the stage from sample {first_sample} on has {len(weights)} weights for "
                                 f"{len(sources)} sources")
            c.first_sample, c.weights = first_sample, (ctypes.c_double * len(weights))(*weights)
        options = _lib.LoaderOptions(
            struct_size=ctypes.sizeof(_lib.LoaderOptions), sources=c_sources,
            n_sources=len(sources), stages=c_stages, n_stages=len(stages),
            sequence_length=sequence_length, batch_rows=batch_rows, rank=rank, n_ranks=n_ranks,
            seed=seed, shuffle=_SHUFFLES[shuffle], windows=_WINDOWS[windows],
            random_phase=random_phase, row_parts=sum(_PARTS[p] for p in set(parts)),
            block_windows=block_windows, group_blocks=group_blocks, io=_IO[io],
            look_ahead=look_ahead, drop_behind=drop_behind)
        self._process = os.getpid()
        self._call(lib.tokmap_loader_open, ctypes.byref(self._pointer), ctypes.byref(options))
        n_samples = self.info()["n_samples"]
        self.n_samples = None if n_samples == 2**64 - 1 else n_samples

    @staticmethod
    def _call(function, *arguments):
        detail = _lib.ErrorDetail()
        status = function(*arguments, ctypes.byref(detail))
        _lib.check(status, detail)
        return status

    def _opened(self):
        if not self._pointer:
            raise ValueError("the loader is closed")
        return self._pointer

    def __iter__(self):
        return self

    def __next__(self):
        batch = _lib.Batch(struct_size=ctypes.sizeof(_lib.Batch))
        if self._call(lib.tokmap_loader_next, self._opened(), ctypes.byref(batch)) == _END:
            raise StopIteration
        self._n_taken += 1
        return Batch(self, batch)

    @property
    def position(self):
        """The first sample of the next step."""
        return lib.tokmap_loader_position(self._opened())

    def info(self):
        """How it reads ("io", "look_ahead"), what it has ("n_samples", "resident_bytes"), and how often
        and how long a step was waited for ("n_waits", "ns_waited")."""
        info = _lib.LoaderInfo(struct_size=ctypes.sizeof(_lib.LoaderInfo))
        lib.tokmap_loader_get_info(self._opened(), ctypes.byref(info))
        found = {name: getattr(info, name) for name, _ in info._fields_ if name != "struct_size"}
        found["io"] = {number: name for name, number in _IO.items()}[info.io]
        return found

    def seek(self, sample):
        self._n_taken += 1
        self._call(lib.tokmap_loader_seek, self._opened(), sample)

    def set_batch(self, batch_rows, rank=0, n_ranks=1):
        self._n_taken += 1
        self._call(lib.tokmap_loader_set_batch, self._opened(), rank, n_ranks, batch_rows)

    def locate(self, sample):
        out = _lib.LoaderSample()
        self._call(lib.tokmap_loader_locate, self._opened(), sample, ctypes.byref(out))
        return Sample(*(getattr(out, name) for name in Sample._fields))

    def state(self):
        """128 bytes, the same on every rank."""
        state = (ctypes.c_uint8 * 128)()
        self._call(lib.tokmap_loader_save, self._opened(), state)
        return bytes(state)

    def restore(self, state):
        if len(state) != 128:
            raise ValueError(f"a state has 128 bytes, this one {len(state)}")
        self._n_taken += 1
        self._call(lib.tokmap_loader_restore, self._opened(), (ctypes.c_uint8 * 128)(*state))

    def close(self):
        if self._pointer:
            lib.tokmap_loader_close(self._pointer)
        self._pointer = ctypes.c_void_p()
        self._n_taken += 1

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __del__(self):
        if getattr(self, "_pointer", None):
            self.close()
