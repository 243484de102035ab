# SPDX-License-Identifier: Apache-2.0
"""tokmap.Source - what a Loader mixes."""

import copy
import itertools
import os
import re
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

from .._c import structs as _lib
from .._c.arguments import flag, number, path, real
from .._c.errors import ArgumentError
from .._c.structs import lib
from .._data.dataset import Dataset, Path, choose_paths, encode_path
from .._data.store import is_url, opening, parse_url
from .._data.view import View, as_mask
from .lists import DocumentList, Numbers, as_numbers
from .roles import USUAL, as_names

Data = Union[Path, Dataset, View, Sequence[Union[Path, Dataset, View]]]
Range = Tuple[int, int]


class Source:
    """One corpus of a mixture.

    data        a path, a pattern, a Dataset, a View, or a list of these: its datasets, in their order. The path of a view
                file P.HHHHHHHHHHHHHHHH.tmw stands for the dataset P through this view. If paths in a list lead
                to one index, only the first is used, unless an argument below has a list with one item for each dataset
    weight      share of the samples, relative to the weights of the other sources
    max_epochs  the loader ends before this source begins more epochs than this; 0: no limit; None: as for the Loader
    masked      whether loss_mask is 0 for all labels of this source. It needs the output loss_mask, or mask_labels
    rows_files  with windows="best_fit": the path of a rows file of `tokmap rows`, or a list with one for each dataset;
                None: the rows file beside the dataset, if there is one
    order_of    for a dataset that was redacted: an id that it had before, or a list with one id for each dataset (None:
                its own). Samples and states are then the same as of the dataset that had this id
    documents   (first, end): only the documents from first up to, not including, end are served; or a list with one
                pair for each dataset (None: all). No document may be in two sources. With windows="best_fit" the rows
                of such a dataset are always packed in memory
    where, keep, view   at most one of them: only some documents of its datasets are used, as if there were no others.
                where: the documents for which this expression holds, as for Dataset.where. keep: a mask, which has one
                truth value for each document: an array, a column of pandas, polars or Arrow, or bytes of 0 and 1; or a list
                with a mask for each dataset. view: the path of a view file, or a list with one for each dataset. Views,
                unlike `documents`, may have documents in common
    document_list   a DocumentList, or a list with one for each dataset (None: its own order): the order of the documents from
                which windows are cut. Only with windows="concat", and not with random_offset, weights="tokens", or
                documents or a view of the same dataset
    window_list  the windows of the source in the order of its samples, in each epoch and whatever `shuffle` is: an array of
                their numbers, which go through all of its datasets, in any order and any number of times. An epoch then has as
                many samples as there are numbers.
                Not with shuffle="block" or weights="tokens", and its array is used as that of a DocumentList
    train_roles     for this source in place of train_roles of tokmap.Rows
    store       where the paths in data are names, or URLs: see Dataset. None: only URLs are in a store
    lanes       names of the lanes that its datasets have, of those that the outputs of the Loader name; (): none. Rows of this
                source have zeros in place of the others, and the weight 1 in place of loss_weight. None: all"""

    _made_for: Optional[int] = None  # the only sequence_length for which its lists mean what they were made for
    _roles = USUAL  # for each role whether its labels count; a Loader sets it from train_roles

    def __init__(self, data: Data, weight: float = 1.0, *, max_epochs: Optional[int] = None,
                 masked: bool = False, rows_files: Union[None, Path, Sequence[Optional[Path]]] = None,
                 order_of: Union[None, str, Sequence[Optional[str]]] = None,
                 documents: Union[None, Range, Sequence[Optional[Range]]] = None, where: Optional[str] = None, keep: Any = None,
                 view: Union[None, Path, Sequence[Path]] = None,
                 document_list: Union[None, DocumentList, Sequence[Optional[DocumentList]]] = None, window_list: Any = None,
                 train_roles: Optional[Sequence[str]] = None, lanes: Optional[Sequence[str]] = None, store: Any = None) -> None:
        items: List[Any] = list(data) if isinstance(data, (list, tuple)) else [data]
        check_count("datasets of a source", len(items))
        for item in items:
            if not isinstance(item, (str, os.PathLike, Dataset, View)):
                raise TypeError(f"{item!r} is neither a path nor a Dataset; a mixture is {{path: weight, ...}}, a list of "
                                "(path, weight), or a list of Sources")
        if store is not None and not any(isinstance(item, (str, os.PathLike)) for item in items):
            raise ValueError("store is for names of datasets: data has none")
        # A tuple of documents is one range, which is not a list with one for each dataset.
        keeps_all = isinstance(documents, list) or any(
            isinstance(one, (list, tuple)) for one in (rows_files, order_of, view, keep, document_list))
        items = _open_data(items, store, keeps_all)
        self.datasets: List[Dataset] = [item.dataset if isinstance(item, View) else item for item in items]
        self.views: List[Optional[View]] = [item if isinstance(item, View) else None for item in items]
        if (where is not None) + (keep is not None) + (view is not None) + any(map(is_view, items)) > 1:
            raise ValueError("where, keep, view and a view as data exclude each other")
        if where is not None:
            self.views = [View(dataset, where) for dataset in self.datasets]
        elif keep is not None or view is not None:
            self.views = self._views_of(keep, view)
        self.weight, self.masked = real("weight", weight), flag("masked", masked)
        self.train_roles = None if train_roles is None else as_names("train_roles", train_roles)
        self.lanes = None if lanes is None else _as_lanes(lanes)
        self.max_epochs = None if max_epochs is None else number("max_epochs", max_epochs, 2**64 - 1)
        files: List[Any] = list(rows_files) if isinstance(rows_files, (list, tuple)) else [rows_files]
        for file in files:
            if file is not None and (not isinstance(file, (str, os.PathLike)) or not encode_path(file, "rows_files")):
                raise TypeError(f"{file!r} in rows_files is not a path")
        self.rows_files = [None if file is None else os.path.abspath(file) for file in files]  # the process may change its folder
        self.order_of: List[Any] = list(order_of) if isinstance(order_of, (list, tuple)) else [order_of]
        if any(one is not None and not isinstance(one, str) for one in self.order_of):
            raise TypeError(f"order_of is {order_of!r}: must be the dataset_id of a dataset, or a list of them")
        self.documents: List[Any] = list(documents) if isinstance(documents, list) else [documents]
        for i, one in enumerate(self.documents):
            if one is not None and not (isinstance(one, (tuple, list)) and len(one) == 2):
                raise TypeError(f"documents is {documents!r}: must be (first, end), or a list of them")
            if one is not None:
                self.documents[i] = number("documents", one[0], 2**63), number("documents", one[1], 2**64 - 1)
        self.document_lists: List[Any] = list(document_list) if isinstance(document_list, (list, tuple)) else [document_list]
        if any(one is not None and not isinstance(one, DocumentList) for one in self.document_lists):
            raise TypeError(f"document_list is {document_list!r:.80}: must be a tokmap.DocumentList, or a list of them")
        if isinstance(window_list, (list, tuple)) and any(hasattr(one, "__len__") or one is None for one in window_list):
            raise TypeError("window_list is a list of lists: a source has one list of windows, which are numbered through all of its "
                            "datasets; datasets with a list each are sources")
        self.window_list = None if window_list is None else Numbers(as_numbers("window_list", window_list))
        if self.window_list is not None and self.window_list.array.ndim != 1:
            raise ValueError(f"window_list has the shape {self.window_list.array.shape}: must have one dimension")
        n_datasets = len(self._paths())
        for name, given in (("rows_files", self.rows_files), ("order_of", self.order_of), ("documents", self.documents),
                            ("document_list", self.document_lists)):
            if given != [None] and len(given) != n_datasets:
                raise ValueError(f"{len(given)} {name} for {n_datasets} datasets: must be a list with one for each")

    def _views_of(self, keep: Any, view: Any) -> List[Optional[View]]:
        """The views of masks, or of files."""
        shards = [shard for dataset in self.datasets for shard in dataset.shards]
        if view is not None:
            files = [path("view", one) for one in (view if isinstance(view, (list, tuple)) else [view])]
            if len(files) != len(shards):
                raise ValueError(f"{len(files)} view for {len(shards)} datasets: must be a list with one for each")
            return [View(dataset, paths=[files.pop(0) for _ in dataset.paths]) for dataset in self.datasets]
        mask, ends = as_mask(keep, [len(shard) for shard in shards]), itertools.accumulate(map(len, self.datasets))
        return [View(dataset, keep=mask[end - len(dataset):end]) for dataset, end in zip(self.datasets, ends)]

    def _paths(self) -> List[str]:
        """The paths of the indexes of its datasets."""
        return [path for dataset in self.datasets for path in dataset.paths]

    def _used_views(self) -> List[Optional[Tuple[int, str]]]:
        """For each dataset the set_hash of its view and the expression; None if all documents are used."""
        return [one for dataset, view in zip(self.datasets, self.views)
                for one in (view._ledger_entries() if view else [None] * len(dataset.paths))]

    def __repr__(self) -> str:
        part = "" if self.documents == [None] else f", documents={self.documents!r}"
        part += f", document_list={self.document_lists!r}" if any(self.document_lists) else ""
        part += f", window_list of {len(self.window_list.array)}" if self.window_list is not None else ""
        data = [view or dataset for dataset, view in zip(self.datasets, self.views)]
        return f"tokmap.Source({data!r}, {self.weight!r}{part})"


def _as_lanes(given: Any) -> Tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given):
        raise TypeError(f"lanes is {given!r:.80}: must be a tuple of names of lanes")
    return tuple(given)


def short_name(path: str) -> str:
    """The name of a dataset, without its folder."""
    name = os.path.basename(path).removesuffix(".tmi")
    return name if name.isprintable() and name else repr(name)


def is_view(data: Any) -> bool:
    """Whether it is a View, or the path of a view file."""
    return isinstance(data, View) or isinstance(data, (str, os.PathLike)) and os.fsdecode(data).endswith(".tmw")


def _open_data(items: List[Any], store: Any, keeps_all: bool) -> List[Any]:
    """Datasets and Views in place of paths. keeps_all: also paths that lead to one index."""
    with opening():
        items = [open_view(item, store) if is_view(item) else item for item in items]
        return [item if isinstance(item, (Dataset, View)) else Dataset(item, store=store, mixed_tokenizers=True)
                for item in (items if keeps_all else choose_paths(items, store))]


def open_view(data: Any, store: Any = None) -> View:
    """The View of a path, by which its dataset is known."""
    if isinstance(data, View):
        return data
    if not is_url(data) and os.fsdecode(data).startswith("hf://"):
        from .._data import hub_cache
        data = hub_cache.find_file(os.fsdecode(data))
    name = parse_url(data).name if is_url(data) else os.fsdecode(data)
    found = re.fullmatch(r"(.+)\.[0-9a-f]{16}\.tmw", name, re.DOTALL)
    if not found:
        raise ValueError(f"{name}: only a path P.HHHHHHHHHHHHHHHH.tmw (16 hex digits) says of which dataset P the "
                         "view is: set view=... of tokmap.Source")
    dataset = data[:-len(".0123456789abcdef.tmw")] if is_url(data) else found[1]  # with its credentials
    return View(Dataset(dataset, store=store, mixed_tokenizers=True), paths=[found[0]])


def check_count(name: str, n: int) -> None:
    """Before files are opened."""
    if n > 65535:
        raise ArgumentError(f"there are {n} {name}: must be 1 to 65,535", -1)


Sources = Union[Data, Sequence[Tuple[Data, float]], Sequence[Source], Source, Mapping[Any, float]]


def as_sources(given: Any, max_epochs: Optional[int], store: Any = None) -> List[Source]:
    """Copies, because a loader that is pickled is opened again with the same sources."""
    if hasattr(given, "items"):
        given = list(given.items())
    items = list(given) if isinstance(given, (list, tuple)) else [given]
    if not items:
        raise ValueError("there is no source")
    if all(isinstance(item, Source) for item in items):
        if store is not None:
            raise ValueError("store is for names of datasets: give it to each Source")
        sources = list(map(copy.copy, items))
    elif all(isinstance(item, tuple) and len(item) == 2 for item in items):
        check_count("sources", len(items))
        sources = [Source(data, weight, store=store) for data, weight in items]
    else:
        sources = [Source(items, store=store)]
    if len(sources) == 1 and sources[0].weight == 0:
        raise ArgumentError("weight is 0: must be above 0, since there is only one source", -1)
    for s in sources:
        if s.max_epochs is None and max_epochs is not None:
            s.max_epochs = number("max_epochs", max_epochs, 2**64 - 1)
    return sources


def stores_of(sources: Sequence[Source]) -> List[Any]:
    """How the datasets of these sources that are in a store are read, each once."""
    found = {id(shard.source): shard.source for one in sources for dataset in one.datasets for shard in dataset._shards()}
    return [source for source in found.values() if source is not None]
