"""tokmap - token datasets for language model training, read in place.

    import tokmap

    ds = tokmap.Dataset("data/train")
    ds.tokens(0, 1024)          # a read-only memoryview into the mapped file: no copy
    ds.document(7)              # Document(index=7, first_token=..., n_tokens=...)
    ds.find_document(123456)    # the document that contains this token

    loader = tokmap.Loader(ds, sequence_length=4096, batch_rows=8, seed=1)
    for batch in loader:        # shuffled; batch[0].tokens is also a view
        batch.gather("i64", inputs, labels)
    for inputs, labels in loader.arrays("i64"):     # new NumPy arrays each time
        ...
    loader.state()              # 128 bytes: loader.restore() continues here, on any number of ranks

    with tokmap.Stage(loader, device=0) as stage:
        for batch in stage:     # in GPU memory, before the step needs it
            inputs, labels = batch.torch()

numpy.asarray() of a view does not copy either. A view keeps the file mapped, also after close().
"""

import array
import ctypes
import json
import os
from typing import NamedTuple, Optional

from . import _lib
from ._lib import Damaged, DeviceError, Error, NewerFormat, NotADataset, lib
from ._lib import check as _check

__version__ = lib.tokmap_version().decode()


def _path(path):
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError("a path cannot contain a zero byte")
    return encoded


class Document(NamedTuple):
    index: int
    first_token: int
    n_tokens: int


class Source(NamedTuple):
    name: bytes
    first_document: int
    n_documents: int
    first_token: int
    n_tokens: int
    input_bytes: int
    input_checksum: int


class _Handle:
    """Closes the C dataset when nothing refers to it any longer."""

    def __init__(self, path):
        self.pointer = ctypes.c_void_p()
        detail = _lib.ErrorDetail()
        status = lib.tokmap_dataset_open(ctypes.byref(self.pointer), _path(path),
                                         ctypes.byref(detail))
        _check(status, detail)

    def __del__(self):
        if self.pointer:
            lib.tokmap_dataset_close(self.pointer)


class Dataset:
    def __init__(self, path):
        self._handle = None
        self._handle = _Handle(path)
        info = _lib.Info(struct_size=ctypes.sizeof(_lib.Info))
        lib.tokmap_dataset_get_info(self._handle.pointer, ctypes.byref(info))
        self.n_tokens, self.n_documents = info.n_tokens, info.n_documents
        self.n_sources, self.token_bytes = info.n_sources, info.token_bytes
        self.largest_id = info.largest_id
        self.vocab_size: Optional[int] = info.vocab_size or None
        self.eod_id: Optional[int] = None if info.eod_id == _lib.NO_ID else info.eod_id
        self.dataset_id = bytes(info.dataset_id).hex()
        self.index_path = os.fsdecode(info.index_path)
        self.token_path = os.fsdecode(info.token_path)

    def close(self):
        self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __len__(self):
        return self.n_tokens

    def __repr__(self):
        return f"<tokmap.Dataset {self.index_path!r}: {self.n_tokens} tokens, id {self.dataset_id}>"

    def __reduce__(self):
        """Pickles the path, so that another process opens the same files."""
        return Dataset, (os.path.abspath(self.index_path),)

    def _pointer(self):
        if self._handle is None:
            raise ValueError("the dataset is closed")
        return self._handle.pointer

    def tokens(self, first=0, n_tokens=None):
        """n_tokens tokens from `first`, by default to the end: a read-only memoryview of format H or I."""
        pointer = self._pointer()
        n_tokens = self.n_tokens - first if n_tokens is None else n_tokens
        address = ctypes.c_void_p()
        if first < 0 or n_tokens < 0 or first + n_tokens > self.n_tokens:
            raise IndexError(f"tokens {first}:{first + n_tokens}: the dataset has only {self.n_tokens}")
        lib.tokmap_dataset_tokens(pointer, first, n_tokens, ctypes.byref(address))
        view = (ctypes.c_uint8 * (n_tokens * self.token_bytes)).from_address(address.value)
        view._keeps = self._handle  # the map lives as long as the view
        return memoryview(view).cast("B").cast("H" if self.token_bytes == 2 else "I").toreadonly()

    def _lookup(self, function, number, out):
        status = function(self._pointer(), number, ctypes.byref(out))
        if status:
            raise Damaged(_lib.ErrorDetail(status=status, text=b"%s: an entry is damaged"
                                           % os.fsencode(self.index_path)[:400]))
        return out

    def document(self, index):
        """Document number `index`."""
        if not 0 <= index < self.n_documents:
            raise IndexError(f"document {index}: the dataset has only {self.n_documents}, counted from 0")
        out = self._lookup(lib.tokmap_dataset_document, index, _lib.Document())
        return Document(out.index, out.first_token, out.n_tokens)

    def find_document(self, token):
        """The document that contains token number `token`."""
        if not 0 <= token < self.n_tokens:
            raise IndexError(f"token {token}: the dataset has only {self.n_tokens}, counted from 0")
        if self.n_documents == 0:
            raise LookupError("the document boundaries of this dataset are not known")
        out = self._lookup(lib.tokmap_dataset_find_document, token, _lib.Document())
        return Document(out.index, out.first_token, out.n_tokens)

    def source(self, index):
        """Source number `index`: an input, and the documents and tokens from it."""
        if not 0 <= index < self.n_sources:
            raise IndexError(f"source {index}: the dataset has only {self.n_sources}, counted from 0")
        out = self._lookup(lib.tokmap_dataset_get_source, index,
                           _lib.Source(struct_size=ctypes.sizeof(_lib.Source)))
        return Source(ctypes.string_at(out.name, out.name_bytes), out.first_document,
                      out.n_documents, out.first_token, out.n_tokens, out.input_bytes,
                      out.input_checksum)

    @property
    def metadata(self):
        n_bytes = ctypes.c_size_t()
        text = lib.tokmap_dataset_metadata(self._pointer(), ctypes.byref(n_bytes))
        return json.loads(ctypes.string_at(text, n_bytes.value))

    def verify(self, n_threads=0, sample=1.0):
        """Reads and checks every byte. Raises Damaged, or Error if the system could not read."""
        options = _lib.VerifyOptions(struct_size=ctypes.sizeof(_lib.VerifyOptions),
                                     n_threads=n_threads, sample=sample)
        detail = _lib.ErrorDetail()
        _check(lib.tokmap_dataset_verify(self._pointer(), ctypes.byref(options), None,
                                         ctypes.byref(detail)), detail)


class Writer:
    """Writes a dataset, which becomes visible only when it is complete:

        with tokmap.Writer("data/train", vocab_size=50257, eod_id=50256) as w:
            for ids in documents:
                w.document(ids)

    Leaving the block finishes the dataset. After an exception nothing is left on the disk."""

    def __init__(self, prefix, vocab_size, eod_id=None, replace=False):
        self._pointer = ctypes.c_void_p()
        if not 0 <= vocab_size < 2**64 or (eod_id is not None and not 0 <= eod_id < _lib.NO_ID):
            raise ValueError(f"vocab_size {vocab_size}, eod_id {eod_id}: out of range")
        options = _lib.WriterOptions(struct_size=ctypes.sizeof(_lib.WriterOptions),
                                     vocab_size=vocab_size,
                                     has_eod=eod_id is not None, eod_id=eod_id or 0,
                                     replace=int(replace))
        self._call(lib.tokmap_writer_open, ctypes.byref(self._pointer), _path(prefix),
                   ctypes.byref(options))

    @staticmethod
    def _call(function, *arguments):
        detail = _lib.ErrorDetail()
        _check(function(*arguments, ctypes.byref(detail)), detail)

    def _open(self):
        if not self._pointer:
            raise ValueError("the writer is closed")
        return self._pointer

    def document(self, ids):
        """Appends a document: any iterable of ids. An array of unsigned 32-bit integers is not converted."""
        if not (isinstance(ids, array.array) and ids.typecode == "I"):
            ids = array.array("I", list(ids))  # item by item, also for bytes and arrays
        address, n_tokens = ids.buffer_info()
        self._call(lib.tokmap_writer_append, self._open(), address, n_tokens)
        self._call(lib.tokmap_writer_end_document, self._open())

    def source(self, name, input_bytes=0, input_checksum=0):
        """Names the input of all documents since the last call."""
        for number in (input_bytes, input_checksum):
            if not 0 <= number < 2**64:
                raise ValueError(f"{number}: must be 0 to 2^64 - 1")
        self._call(lib.tokmap_writer_end_source, self._open(), os.fsencode(name), input_bytes,
                   input_checksum)

    def metadata(self, value):
        text = json.dumps(value).encode()
        self._call(lib.tokmap_writer_set_metadata, self._open(), text, len(text))

    def finish(self):
        try:
            self._call(lib.tokmap_writer_finish, self._open())
        finally:
            self.close()

    def close(self):
        lib.tokmap_writer_close(self._pointer)
        self._pointer = ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, kind, *exc):
        if kind is None and self._pointer:
            self.finish()
        self.close()

    def __del__(self):
        if getattr(self, "_pointer", None):
            self.close()


from ._stage import DeviceArray, DeviceBatch, Filled, Stage, count_devices  # noqa: E402
from ._loader import Batch, Loader, Row, Sample  # noqa: E402 (it uses the names above)
from ._loader import Source as LoaderSource  # noqa: E402
