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

    tokmap.Loader({"data/web": 0.8, "data/code": 0.2}, 4096)                # a mixture

    ids, offsets = tokmap.Tokenizer("tokenizer.json").encode_batch(texts)   # with all processors
"""

import importlib
from typing import TYPE_CHECKING, Any, List

from ._c.errors import (ArgumentError, DamagedError, DeviceError, Error, ExistsError, FileError, ForkedError,
                        LockedError, MismatchError, NoMemoryError, NotADatasetError, UnsupportedError, VersionError)
from ._c import html as _notebooks
from ._c.structs import lib as _library
from ._data.dataset import Dataset, Document, Input, Segment, Span, open
from ._data.row import Row
from ._data.view import View
from ._loader.batch import Batch
from ._loader.lists import DocumentList
from ._loader.loader import Loader, Sample
from ._loader.options import Order, Ranks, Reading, Record, Resume, Rows, Slots
from ._loader.sources import Source

_notebooks.load = lambda: importlib.import_module("._tools.notebook", __name__)

__version__: str = _library.tokmap_version().decode()

__all__ = ["ArgumentError", "Batch", "DamagedError", "Dataset", "DeviceArray", "DeviceBatch", "DeviceError",
           "Document", "DocumentList", "Error", "ExistsError", "FileError", "Filled", "ForkedError", "Input", "Lane", "LaneWriter", "Loader",
           "LockedError", "Measurement", "MismatchError", "NoMemoryError", "NotADatasetError", "Order", "Ranks", "Reading",
           "PackProgress", "PackReport", "Record", "Resume", "ResumeCheck", "Row", "Rows", "Run", "Sample", "Samples", "Segment", "Share", "Slots", "Source", "Span",
           "Stage", "Tokenizer", "TracedDocument", "TracedRow", "UnsupportedError", "VersionError", "View", "Writer", "WrongStep",
           "check_resume", "count_devices", "measure", "megatron_source", "open", "pack"]

# What few programs use is imported when it is asked for, because that takes as long as all the rest.
_LATER = {"_frameworks.samples": "Samples", "_frameworks.megatron_order": "megatron_source", "_device.stage": "DeviceArray DeviceBatch Filled Stage count_devices",
          "_data.tokenizer": "Tokenizer", "_data.pack": "PackProgress PackReport pack", "_run.measure": "Measurement measure", "_run.resume": "ResumeCheck WrongStep check_resume", "_run.report": "Share", "_run.trace": "Run TracedDocument TracedRow", "_data.writer": "Writer", "_data.lanes": "Lane LaneWriter"}

if TYPE_CHECKING:
    from ._frameworks.megatron_order import megatron_source
    from ._frameworks.samples import Samples
    from ._device.stage import DeviceArray, DeviceBatch, Filled, Stage, count_devices
    from ._data.lanes import Lane, LaneWriter
    from ._data.pack import PackProgress, PackReport, pack
    from ._data.tokenizer import Tokenizer
    from ._run.measure import Measurement, measure
    from ._run.resume import ResumeCheck, WrongStep, check_resume
    from ._run.report import Share
    from ._run.trace import Run, TracedDocument, TracedRow
    from ._data.writer import Writer
else:
    def __getattr__(name: str) -> Any:
        for module, names in _LATER.items():
            if name in names.split():
                globals()[name] = found = getattr(importlib.import_module("." + module, __name__), name)
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
