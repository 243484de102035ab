# SPDX-License-Identifier: Apache-2.0
"""tokmap - token datasets for language model training, read in place.

    import tokmap

    ds = tokmap.open("data/train")          # a path, a pattern or a list
    len(ds), ds.n_tokens                    # documents, tokens
    ds[7]                                   # a document: a view of the mapped file

    loader = tokmap.Loader("data/train", sequence_length=4096, batch_rows=8, seed=1)
    for batch in loader:                    # shuffled, the same order on any number of ranks
        loss = step(batch.inputs, batch.labels)
        batch.state                         # 128 bytes: loader.restore() continues after this batch

    tokmap.Loader([("data/web", 0.8), ("data/code", 0.2)], 4096)            # a mixture

    ids, offsets = tokmap.Tokenizer("tokenizer.json").encode_batch(texts)   # with all processors
"""

import importlib
from typing import TYPE_CHECKING, Any, List

from ._batch import Batch
from ._dataset import Dataset, Document, Input, Segment, Span, open
from ._errors import (ArgumentError, DamagedError, DeviceError, Error, ExistsError, FileError, ForkedError,
                      LockedError, MismatchError, NoMemoryError, NotADatasetError, UnsupportedError, VersionError)
from ._lib import lib as _library
from ._loader import Loader, Sample
from ._rows import Row
from ._sources import Source

__version__: str = _library.tokmap_version().decode()

__all__ = ["ArgumentError", "Batch", "DamagedError", "Dataset", "DeviceArray", "DeviceBatch", "DeviceError",
           "Document", "Error", "ExistsError", "FileError", "Filled", "ForkedError", "Input", "Loader",
           "LockedError", "MismatchError", "NoMemoryError", "NotADatasetError", "Row", "Run", "Sample", "Samples", "Segment",
           "Source", "Span", "Stage", "Tokenizer", "TracedDocument", "TracedRow", "UnsupportedError", "VersionError", "Writer", "count_devices", "open"]

# What few programs use is imported when it is asked for, because that takes as long as all the rest.
_LATER = {"_samples": "Samples", "_stage": "DeviceArray DeviceBatch Filled Stage count_devices", "_tokenizer": "Tokenizer",
          "_trace": "Run TracedDocument TracedRow", "_writer": "Writer"}

if TYPE_CHECKING:
    from ._samples import Samples
    from ._stage import DeviceArray, DeviceBatch, Filled, Stage, count_devices
    from ._tokenizer import Tokenizer
    from ._trace import Run, TracedDocument, TracedRow
    from ._writer import Writer
else:
    def __getattr__(name: str) -> Any:
        for module, names in _LATER.items():
            if name in names.split():
                globals()[name] = found = getattr(importlib.import_module("." + module, __name__), name)
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
