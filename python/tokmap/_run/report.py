# SPDX-License-Identifier: Apache-2.0
"""How many tokens a run was trained on, by source, input, or a value of documents."""

import ctypes
import math
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Tuple

import numpy as np

from .._c import html
from .._c import structs as _lib
from .._c.errors import MismatchError
from .._c.structs import lib
from .._data import values as _meta
from .._data.dataset import Array, Dataset
from .._loader.loader import Loader

CHUNK = 1 << 18  # documents at a time; a multiple of 8

# For documents from `first` on, how many labels each had: the group of each, and the names of the groups.
_Groups = Callable[[int, Array], Tuple[Array, List[Any]]]


class Share(NamedTuple):
    """What a run had of a source, an input, a value or a host, which has this name. n_labels: how often a token was a label.
    n_documents: how many documents had a label."""

    name: Any
    n_labels: int
    n_documents: int


class Report(List[Share]):
    """The shares of a run, which a notebook shows as a table. what: what their names are. shown: by the name of a share what is
    shown in its place. not_counted: the sources that are not in the shares, by their numbers."""

    def __init__(self, found: List[Share], what: str, shown: Dict[Any, str], not_counted: Dict[int, str]) -> None:
        super().__init__(found)
        self.what, self.shown, self.not_counted = what, shown, not_counted

    def _repr_html_(self) -> str:
        return html.shown("of_report", self)


def value_for_json(value: Any) -> Any:
    """JSON has no NaN and no infinities."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def name_of(share: Share) -> str:
    return "" if share.name is None else str(value_for_json(share.name))


class _Use(NamedTuple):
    """The samples from `begin` up to `end` of a loader, in a dataset of a source."""

    loader: Loader[Any]
    source: int
    dataset: int
    begin: int
    end: int
    is_added: bool  # else its labels are taken away


def check_boundaries(dataset: Dataset) -> None:
    if dataset.n_documents == 0 and dataset.n_tokens:
        raise MismatchError(f"{dataset.paths[0]}: its document boundaries are not known", -7, file=dataset.paths[0])


def host_of(url: Any) -> Any:
    """The host of a URL, in lower case; None if it has none."""
    if not isinstance(url, str):
        return None
    _, separator, rest = url.partition("://")
    if not separator:
        return None
    for end in "/?#\\":
        rest = rest.partition(end)[0]
    rest = rest.rpartition("@")[2]
    rest = rest.partition("]")[0] + "]" if rest.startswith("[") else rest.partition(":")[0]
    return rest.lower().rstrip(".") or None


def _inputs_of(dataset: Dataset) -> _Groups:
    ends = np.array([one.first_document + one.n_documents for one in dataset.inputs], np.int64)
    names: List[Any] = [one.name for one in dataset.inputs] + [None]

    def groups(first: int, labels: Array) -> Tuple[Array, List[Any]]:
        return np.searchsorted(ends, np.arange(first, first + len(labels)), "right"), names

    return groups


def _none(first: int, labels: Array) -> Tuple[Array, List[Any]]:
    return np.zeros(len(labels), np.int64), [None]


def _values_of(dataset: Dataset, name: str, by: str) -> _Groups:
    columns = _meta.columns_of(dataset._shards()[0])
    if name not in columns:
        return _none
    if by == "host" and columns[name].type not in (_meta.STRING, _meta.NULL):
        raise LookupError(f"{dataset.paths[0]}: the values {name!r} are no text")
    column = columns[name].verify()
    return lambda first, labels: column.groups(first, len(labels))


def shares(spans: List[Tuple[Loader[Any], List[int], int, int, bool]], by: str, column: str = "",
           go_through: Callable[[Iterable[int]], Iterable[int]] = iter) -> List[Share]:
    """Counts in the samples [begin, end) of each loader, without some of its sources, and adds the labels or takes them away.
    by: "source", "input", "value" or "host" of the column; another word: all are one share, without a name. The largest share
    comes first. go_through: gives the chunks of documents, each when it is begun."""
    found: Dict[Any, List[int]] = {}
    uses: Dict[Tuple[int, str], List[_Use]] = {}  # of a dataset; by source: in that source
    for loader, without, begin, end, is_added in spans:
        for k, source in enumerate(loader._sources):
            for d, dataset in enumerate(source.datasets if k not in without else ()):
                uses.setdefault((k if by == "source" else 0, dataset.paths[0]), []).append(_Use(loader, k, d, begin, end, is_added))
    datasets = [some[0].loader._sources[some[0].source].datasets[some[0].dataset] for some in uses.values()]
    every = [dataset for loader, *_ in spans for source in loader._sources for dataset in source.datasets]
    there = {name: None for dataset in every for name in _meta.columns_of(dataset._shards()[0])} if column else {}
    if column and column not in there:
        raise LookupError(f"the documents of the run have no values {column!r}: there are {', '.join(map(repr, there)) or 'none'}")
    for dataset, ((k, _), some) in zip(datasets, uses.items()):
        check_boundaries(dataset)
        groups = _inputs_of(dataset) if by == "input" else _values_of(dataset, column, by) if column else _none
        chunks = go_through(range(0, dataset.n_documents, CHUNK))
        for name, n_labels, n_documents in _count(some, chunks, dataset.n_documents, groups):
            name = k if by == "source" else host_of(name) if by == "host" else math.nan if name != name else name
            total = found.setdefault(name, [0, 0])
            total[0] += n_labels
            total[1] += n_documents
    return sorted((Share(name, *total) for name, total in found.items()), key=lambda share: (-share.n_labels, str(share.name)))


def count_labels(loader: Loader[Any], source: int, dataset: int, first_document: int, n_documents: int,
                 end_sample: int) -> Array:
    """For each of these documents how many labels the samples before end_sample have had in it."""
    labels = np.zeros(n_documents, np.uint64)
    options = _lib.LoaderLabels(source=source, dataset=dataset, first_document=first_document, n_documents=n_documents,
                                end_sample=end_sample, labels=labels.ctypes.data)
    loader._call(lib.tokmap_loader_count_labels, ctypes.byref(options))
    return labels


def _count(uses: List[_Use], chunks: Iterable[int], n_documents: int,
           groups: _Groups) -> Iterator[Tuple[Any, int, int]]:
    for first in chunks:
        labels = np.zeros(min(CHUNK, n_documents - first), np.int64)
        for loader, source, dataset, begin, end, is_added in uses:
            labels += (1 if is_added else -1) * count_labels(loader, source, dataset, first, len(labels), end).astype(np.int64)
            if begin > 0:
                labels -= (1 if is_added else -1) * count_labels(loader, source, dataset, first, len(labels), begin).astype(np.int64)
        numbers, names = groups(first, labels)
        tokens = np.bincount(numbers, labels, len(names))  # of doubles, which are exact up to 2^53
        documents = np.bincount(numbers[labels > 0], minlength=len(names))
        for i in np.flatnonzero(documents).tolist():
            yield names[i], int(tokens[i]), int(documents[i])
