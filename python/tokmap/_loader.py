"""tokmap.Loader - batches of sequences from datasets: shuffled, mixed, resumable."""

import ctypes
import sys
import weakref
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
    """One or more datasets that form one corpus, and its weight in a mixture."""

    def __init__(self, datasets, weight=1.0, max_epochs=0, masked=False):
        self.datasets = list(datasets) if isinstance(datasets, (list, tuple)) else [datasets]
        for d in self.datasets:
            if not hasattr(d, "_pointer"):
                raise TypeError(f"{d!r} is not a Dataset: use tokmap.Dataset(path)")
        self.weight, self.max_epochs, self.masked = weight, max_epochs, masked


class Sample(NamedTuple):
    source: int
    dataset: int
    epoch: int
    window: int
    first_token: int
    n_tokens: int


def _choose(words, word, name):
    if word not in words:
        raise ValueError(f"{name} is {word!r}: must be one of {', '.join(map(repr, words))}")
    return words[word]


def _number(name, value, limit):
    if not 0 <= value < limit:
        raise ValueError(f"{name} is {value}: must be 0 to {limit - 1}")
    return value


def _close(pointer, datasets):
    if pointer:
        lib.tokmap_loader_close(pointer)


class _Handle:
    """The C loader and its datasets. Closes it when nothing refers to it any longer; not in __del__,
    because of objects that are collected together a dataset could go first."""

    def __init__(self, datasets, wholes):
        self.pointer = ctypes.c_void_p()
        self.wholes = wholes
        weakref.finalize(self, _close, self.pointer, datasets).atexit = False  # views may still exist


def _whole(dataset):
    """(address, view of all tokens): most rows are slices of that view."""
    address = ctypes.c_void_p()
    lib.tokmap_dataset_tokens(dataset._pointer(), 0, 0, ctypes.byref(address))
    return address.value, dataset.tokens()


def _view(handle, pointer, n_bytes, letter):
    data = (ctypes.c_char * n_bytes).from_address(pointer)
    data.handle = handle  # the memory must live as long as the view
    return memoryview(data).cast("B").cast(letter).toreadonly()


def _tokens(handle, source, dataset, pointer, n_tokens, token_bytes):
    address, tokens = handle.wholes[source][dataset]
    first = (pointer - address) // token_bytes
    if 0 <= first <= len(tokens) - n_tokens:
        return tokens[first:first + n_tokens]
    return _view(handle, pointer, n_tokens * token_bytes, "H" if token_bytes == 2 else "I")


class Row:
    """A row of a batch. `tokens` and the arrays are memoryviews into the map and the loader. Their content
    is valid until the next batch is taken."""

    def __init__(self, handle, fields, length):
        (pointer, n_tokens, token_bytes, self.source, self.dataset, self.epoch, self.window,
         self.first_token, cu_seqlens, self.n_documents, self.longest_document, position_ids,
         document_ids, loss_mask) = fields
        self.tokens = _tokens(handle, self.source, self.dataset, pointer, n_tokens, token_bytes)
        self.cu_seqlens = self.position_ids = self.document_ids = self.loss_mask = None
        if cu_seqlens:
            self.cu_seqlens = _view(handle, cu_seqlens, 4 * (self.n_documents + 1), "i")
        if position_ids:
            self.position_ids = _view(handle, position_ids, 4 * length, "i")
        if document_ids:
            self.document_ids = _view(handle, document_ids, 4 * length, "i")
        if loss_mask:
            self.loss_mask = _view(handle, loss_mask, length, "B")


class Batch:
    """A batch of rows. state: 128 bytes, with which restore() continues after this batch."""

    def __init__(self, loader, batch):
        self._loader, self._batch, self._taken = loader, batch, loader._n_taken
        self._state = (ctypes.c_uint8 * 128)()
        try:
            loader._call(lib.tokmap_loader_save, loader._handle.pointer, self._state)
        except BaseException:
            loader.seek(batch.step_sample)  # the caller did not get the batch: return it again
            raise
        self._handle = loader._handle
        self.n_rows, self.sequence_length = batch.n_rows, batch.sequence_length
        self.first_sample, self.step_sample = batch.first_sample, batch.step_sample
        self.token_bytes = batch.token_bytes

    state = property(lambda self: bytes(self._state))

    def _check(self):
        if self._taken != self._loader._n_taken:
            raise ValueError("this batch is no longer valid, because the loader was used since")

    def __len__(self):
        return self.n_rows

    def __getitem__(self, index):
        self._check()
        if not -self.n_rows <= index < self.n_rows:
            raise IndexError(index)
        fields = _lib.ROW.unpack(self._batch.rows[index % self.n_rows])
        return Row(self._handle, fields, self.sequence_length)

    def gather(self, format="i64", inputs=None, labels=None, pad_id=0, ignore_index=None):
        """Copies the batch into writable buffers of the right size (numpy.ndarray, torch.Tensor.numpy(),
        bytearray ...). "i32" and "i64": `inputs` and `labels`, sequence_length numbers a row;
        "tokens": only `inputs`, sequence_length + 1 tokens a row. With ignore_index, labels that the
        loss mask excludes become that number (the loader needs parts=["loss_mask"])."""
        self._check()
        prepared = self._loader._prepared
        shape = format, pad_id, ignore_index, self.n_rows, self.token_bytes
        if shape not in prepared:
            prepared[shape] = _prepare(self._batch, format, pad_id, ignore_index)
        template, n_bytes, width = prepared[shape]
        options = _lib.GatherOptions.from_buffer_copy(template)
        _held = _aim(options, n_bytes, width, inputs, labels)
        detail = _lib.ErrorDetail()
        status = lib.tokmap_batch_gather(ctypes.byref(self._batch), ctypes.byref(options),
                                         ctypes.byref(detail))
        _lib.check(status, detail)


def _buffer(buffer, n_bytes, name, width=0):
    """Checks a buffer. width: of its integers, unless it is one of bytes; 0: any type."""
    view = memoryview(buffer)
    letter = view.format.lstrip("@=<" if sys.byteorder == "little" else "@=>")
    if width and letter not in ("b", "B", "c") and not (letter in tuple("hHiIlLqQ") and view.itemsize == width):
        raise ValueError(f"{name}: the buffer has elements of type {view.format!r}, this format needs "
                         f"integers of {width} bytes")
    if view.readonly or not view.c_contiguous:
        raise ValueError(f"{name}: the buffer must be writable and contiguous")
    if view.nbytes != n_bytes:
        raise ValueError(f"{name}: the buffer has {view.nbytes} bytes, this batch needs {n_bytes}")
    return ctypes.c_char.from_buffer(view)


def _prepare(batch, format, pad_id, ignore_index):
    """(options for tokmap_batch_gather without buffers, bytes of a buffer, width of a number). They are the
    same for all batches of one shape."""
    whole = format == "tokens"
    _choose(_FORMATS, format, "format")
    width = batch.token_bytes if whole else {"i32": 4, "i64": 8}[format]
    if ignore_index is not None and not -2**(8 * width - 1) <= ignore_index < 2**(8 * width - 1):
        raise ValueError(f"ignore_index is {ignore_index}: does not fit {format}")
    options = _lib.GatherOptions(
        struct_size=ctypes.sizeof(_lib.GatherOptions), format=_FORMATS[format],
        mask_labels=ignore_index is not None,
        ignore_index=ignore_index or 0, has_ignore_index=ignore_index is not None,
        pad_id=_number("pad_id", pad_id, 2**32))
    return options, batch.n_rows * (batch.sequence_length + whole) * width, width


def _aim(options, n_bytes, width, inputs, labels):
    """Sets the buffers of the options; returns objects that must live as long as the buffers are used."""
    held = []
    if inputs is not None:
        held.append(_buffer(inputs, n_bytes, "inputs", width))
        options.inputs = ctypes.addressof(held[-1])
    if labels is not None:
        held.append(_buffer(labels, n_bytes, "labels", width))
        options.labels = ctypes.addressof(held[-1])
    return held


class Loader:
    """Iterate to get batches. Save state() with each checkpoint, and restore() it after a restart. If
    something takes batches ahead of the training step (a prefetching framework, a queue, a thread),
    state() includes those batches, and a restart would skip them: save the `state` of the last batch
    that was trained on instead.

    sources     a Dataset, a list of Datasets (the shards of one corpus), or a list of LoaderSources
    phases      {first_sample: [weight of each source, ...]}: new weights from that sample
    shuffle     "full", "none" or "block"; windows: "concat" or "within-document"
    io          "auto", "map", "direct", "populate", "read": how to read (tokmap_loader.h)
    parts       some of "documents", "position_ids", "document_ids", "loss_mask": what rows have
    The order of samples does not depend on rank, n_ranks or batch_rows."""

    def __init__(self, sources, sequence_length, batch_rows=1, *, rank=0, n_ranks=1, seed=0,
                 shuffle="full", windows="concat", random_offset=False, parts=(), phases=None,
                 block_windows=0, group_blocks=0, io="auto", look_ahead=0, drop_behind=False):
        self._handle, self._n_taken = None, 0
        self._prepared = {}  # options of gather, by shape of batch
        sources = list(sources) if isinstance(sources, (list, tuple)) else [sources]
        if not all(isinstance(s, Source) for s in sources):
            sources = [Source(sources)]
        # Copies, because set_batch opens the loader again with the same options.
        sources = [Source(s.datasets, s.weight, s.max_epochs, s.masked) for s in sources]
        if phases is not None and not hasattr(phases, "items"):
            raise TypeError(f"phases is {phases!r}: must be a dict, such as {{1000: [1.0, 2.0]}}")
        phases = [(first_sample, list(weights)) for first_sample, weights in sorted((phases or {}).items())]
        for first_sample, weights in phases:
            if len(weights) != len(sources):
                raise ValueError(f"the phase from sample {first_sample} has {len(weights)} weights for "
                                 f"{len(sources)} sources")
        if isinstance(parts, str):
            raise TypeError(f"parts is {parts!r}: must be a list, such as [{parts!r}]")
        self._sources, self._phases = sources, phases
        for d in (d for s in sources for d in s.datasets):
            d._pointer()  # raises if it is closed
        self._maps = [[d._handle for d in s.datasets] for s in sources]
        self._wholes = [[_whole(d) for d in s.datasets] for s in sources]
        self._options = {
            "sequence_length": _number("sequence_length", sequence_length, 2**32),
            "seed": _number("seed", seed, 2**64), "shuffle": _choose(_SHUFFLES, shuffle, "shuffle"),
            "windows": _choose(_WINDOWS, windows, "windows"), "random_offset": bool(random_offset),
            "row_parts": sum(_choose(_PARTS, p, "a part") for p in set(parts)),
            "block_windows": _number("block_windows", block_windows, 2**64),
            "group_blocks": _number("group_blocks", group_blocks, 2**64), "io": _choose(_IO, io, "io"),
            "look_ahead": _number("look_ahead", look_ahead, 2**32),
            "drop_behind": bool(drop_behind)}
        self._handle = self._open(batch_rows, rank, n_ranks)
        n_samples = self.info()["n_samples"]
        self.n_samples = None if n_samples == 2**64 - 1 else n_samples

    def _open(self, batch_rows, rank, n_ranks):
        sources, phases = self._sources, self._phases
        c_sources = (_lib.LoaderSource * len(sources))()
        handle = _Handle(self._maps, self._wholes)
        for c, s, maps in zip(c_sources, sources, self._maps):
            pointers = [m.pointer.value for m in maps]
            c.datasets, c.n_datasets = (ctypes.c_void_p * len(pointers))(*pointers), len(pointers)
            c.weight, c.masked = s.weight, bool(s.masked)
            c.max_epochs = _number("max_epochs", s.max_epochs, 2**64)
        c_phases = (_lib.LoaderPhase * len(phases))()
        for c, (first_sample, weights) in zip(c_phases, phases):
            c.first_sample = _number("first_sample", first_sample, 2**64)
            c.weights = (ctypes.c_double * len(weights))(*weights)
        options = _lib.LoaderOptions(
            struct_size=ctypes.sizeof(_lib.LoaderOptions), sources=c_sources,
            n_sources=len(sources), source_stride=ctypes.sizeof(_lib.LoaderSource),
            phases=c_phases, n_phases=len(phases), phase_stride=ctypes.sizeof(_lib.LoaderPhase),
            row_stride=ctypes.sizeof(_lib.Row),
            batch_rows=_number("batch_rows", batch_rows, 2**32), rank=_number("rank", rank, 2**32),
            n_ranks=_number("n_ranks", n_ranks, 2**32), **self._options)
        self._call(lib.tokmap_loader_open, ctypes.byref(handle.pointer), ctypes.byref(options))
        return handle

    @staticmethod
    def _call(function, *arguments):
        detail = _lib.ErrorDetail()
        status = function(*arguments, ctypes.byref(detail))
        _lib.check(status, detail)
        return status

    def _opened(self):
        if self._handle is None:
            raise ValueError("the loader is closed")
        return self._handle.pointer

    def __iter__(self):
        return self

    def __next__(self):
        batch = _lib.Batch(struct_size=ctypes.sizeof(_lib.Batch))
        self._n_taken += 1
        if self._call(lib.tokmap_loader_next, self._opened(), ctypes.byref(batch)) == _END:
            raise StopIteration
        return Batch(self, batch)

    def fill(self, format="i64", inputs=None, labels=None, pad_id=0, ignore_index=None):
        """Gathers each batch into the same buffers, as Batch.gather() does, and yields its first sample.
        Each step costs two calls from Python."""
        for batch, _ in self._gathered(format, lambda _: (inputs, labels), pad_id, ignore_index, False):
            yield batch.first_sample

    def arrays(self, format="i64", pad_id=0, ignore_index=None):
        """Yields each batch as new NumPy arrays of n_rows rows: (inputs, labels), or with "tokens" one array
        whose rows are a token longer. torch.from_numpy() does not copy them."""
        import numpy
        kind = {"i32": numpy.int32, "i64": numpy.int64}.get(format)

        def make(batch):
            if kind is None:
                shape = batch.n_rows, batch.sequence_length + 1
                return numpy.empty(shape, numpy.uint16 if batch.token_bytes == 2 else numpy.uint32), None
            shape = batch.n_rows, batch.sequence_length
            return numpy.empty(shape, kind), numpy.empty(shape, kind)

        for _, (inputs, labels) in self._gathered(format, make, pad_id, ignore_index, True):
            yield inputs if labels is None else (inputs, labels)

    def _gathered(self, format, make, pad_id, ignore_index, new):
        """Yields (batch, buffers). make(batch) returns the buffers, for each batch if `new`, else only when the
        shape of batches changes."""
        batch = _lib.Batch(struct_size=ctypes.sizeof(_lib.Batch))
        detail = _lib.ErrorDetail()
        batch_, detail_ = ctypes.byref(batch), ctypes.byref(detail)
        step, gather = lib.tokmap_loader_next, lib.tokmap_batch_gather
        shape = options_ = None
        while True:
            self._n_taken += 1
            status = step(self._opened(), batch_, detail_)
            if status == _END:
                return
            _lib.check(status, detail)
            try:
                if shape != (batch.n_rows, batch.token_bytes):
                    shape = batch.n_rows, batch.token_bytes
                    options, n_bytes, width = _prepare(batch, format, pad_id, ignore_index)
                    options_ = ctypes.byref(options)
                    buffers = None
                if new or buffers is None:
                    buffers = make(batch)
                    _held = _aim(options, n_bytes, width, *buffers)
                _lib.check(gather(batch_, options_, detail_), detail)
            except BaseException:
                self.seek(batch.step_sample)  # the caller did not get the batch: return it again
                raise
            yield batch, buffers

    @property
    def position(self):
        """The first sample of the next step."""
        return lib.tokmap_loader_position(self._opened())

    def info(self):
        """How it reads ("io", "look_ahead"), sizes ("n_samples", "resident_bytes"), and how many steps had to
        wait and how long ("n_waits", "ns_waited")."""
        info = _lib.LoaderInfo(struct_size=ctypes.sizeof(_lib.LoaderInfo))
        lib.tokmap_loader_get_info(self._opened(), ctypes.byref(info))
        found = {name: getattr(info, name) for name, _ in info._fields_ if name != "struct_size"}
        found["io"] = {number: name for name, number in _IO.items()}[info.io]
        return found

    def seek(self, sample):
        sample = _number("sample", sample, 2**64)
        self._n_taken += 1
        self._call(lib.tokmap_loader_seek, self._opened(), sample)

    def set_batch(self, batch_rows, rank=0, n_ranks=1):
        """Changes rows and ranks from the next step. Views of old rows stay valid."""
        handle = self._open(batch_rows, rank, n_ranks)
        self._call(lib.tokmap_loader_seek, handle.pointer, self.position)
        self._n_taken += 1
        self._handle = handle

    def locate(self, sample):
        out = _lib.LoaderSample(struct_size=ctypes.sizeof(_lib.LoaderSample))
        self._call(lib.tokmap_loader_locate, self._opened(),
                   _number("sample", sample, 2**64), ctypes.byref(out))
        return Sample(*(getattr(out, name) for name in Sample._fields))

    def state(self):
        """128 bytes, the same on every rank. restore() continues after the last batch that was taken, which
        may be later than the last one that was used. Batch.state is the state after that batch."""
        state = (ctypes.c_uint8 * 128)()
        self._call(lib.tokmap_loader_save, self._opened(), state)
        return bytes(state)

    def restore(self, state):
        if len(state) != 128:
            raise ValueError(f"a state has 128 bytes, this one has {len(state)}")
        self._n_taken += 1
        self._call(lib.tokmap_loader_restore, self._opened(), (ctypes.c_uint8 * 128)(*state))

    def close(self):
        self._handle = None
        self._n_taken += 1

    def __reduce__(self):
        raise TypeError("a Loader cannot be copied or pickled: open another one, and restore() its state")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
