# SPDX-License-Identifier: Apache-2.0
"""tokmap.torch - datasets for torch.utils.data.DataLoader and torchdata's StatefulDataLoader."""

from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, Mapping, TypeVar

import torch.profiler
import torch.utils.data

from ._loader.loader import Loader, of_worker, reopened
from ._loader.ranks import check_found
from ._frameworks.epochs import EpochLoader
from ._frameworks.samples import Resumable, Samples, loader_of, options_of
from ._frameworks.tried import warn_of_untried

if TYPE_CHECKING:
    from typing_extensions import Unpack
    from ._loader.options import LoaderOptions

T = TypeVar("T")
warn_of_untried("torch", "torchdata")


class IterableDataset(torch.utils.data.IterableDataset[Dict[str, Any]]):
    """The batches of a Loader for a DataLoader, in the same order for any number of workers.

        dataset = tokmap.torch.IterableDataset("data/train", sequence_length=1024, batch_rows=8, seed=1)
        for batch in tokmap.torch.data_loader(dataset, num_workers=2):
            loss = step(batch["inputs"], batch["labels"])
            checkpoint = batch["state"]          # dataset.load_state_dict(checkpoint) continues after this batch

    sources     a Loader; or the sources of a Loader, and then also the other arguments of a Loader

    A batch is a dict: a tensor for each of the loader's outputs, max_seqlen with cu_seqlens, and "state", a dict
    of plain types. It is the state after this batch, whatever workers have read ahead. Batches are complete, so a
    DataLoader needs batch_size=None; without it, it makes batches of batches. data_loader() sets batch_size=None.

    Each iteration begins at the same place: where the given Loader stands, or at sample 0, or where
    load_state_dict() says. With max_epochs, a DataLoader of data_loader() begins at sample 0 after an iteration that has
    reached the end: each iteration has all epochs then, in the same order. For epochs in different orders, set
    max_epochs to their number, and iterate once. Persistent workers know only a state that was loaded before they began. After a
    load_state_dict(), data_loader() starts new workers; with another DataLoader the next iteration is a
    RuntimeError. Without max_epochs the dataset has no end: the loader counts the epochs, and shuffles each in
    another order. Ranks are found in the process that makes the dataset, not in workers."""

    _is_resumed = False  # whether this copy, in a worker, was iterated before

    def __init__(self, sources: Any, sequence_length: int = 0, batch_rows: int = 1,
                 **options: "Unpack[LoaderOptions]") -> None:
        sources = loader_of(sources, options, ("sequence_length", sequence_length, 0), ("batch_rows", batch_rows, 1))
        self._options = options_of(sources)._with(framework="torch")  # a worker opens its own loader
        self._n_batches = None if sources.n_samples is None else len(sources)
        self._state: Dict[str, Any] = sources.state_dict()
        self._rank_is_found = sources._rank_is_found
        self._n_loads = 0
        # Workers see it change.
        self._n_loads_of_parent = torch.zeros(1, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call, unused-ignore]

    def __getstate__(self) -> Dict[str, Any]:
        self._check_rank()  # a worker that is spawned could not
        return self.__dict__

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._n_loads_of_parent.share_memory_()

    def _check_rank(self) -> None:
        if self._rank_is_found:
            check_found(self._options.ranks)

    def __iter__(self) -> "Batches":
        self._check_rank()
        worker = torch.utils.data.get_worker_info()
        loader = reopened(self._options if worker is None else of_worker(self._options))
        loader.load_state_dict(self._state)
        if worker is None:
            return Batches(loader)
        loader._take_turns(worker.id, worker.num_workers)
        is_late = self._is_resumed and self._n_loads != int(self._n_loads_of_parent)
        self._is_resumed = True
        return Batches(loader, is_late)

    def __len__(self) -> int:
        if self._n_batches is None:
            raise TypeError("this dataset has no end, so it has no len(): set max_epochs")
        return self._n_batches

    def state_dict(self) -> Dict[str, Any]:
        """Where the next iteration begins."""
        return self._state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """The next iteration continues after the batch that had this state."""
        self._state = dict(state_dict)
        if torch.utils.data.get_worker_info() is None:
            self._n_loads += 1
            self._n_loads_of_parent.fill_(self._n_loads)

    def _begin_anew(self) -> None:
        """The next iteration begins where a new dataset would, if it does not already."""
        with reopened(self._options) as loader:
            begin = loader.state_dict()
        if self._state["state"] != begin["state"]:
            self.load_state_dict(begin)


class Batches(Resumable, Iterator[Dict[str, Any]]):
    """An iteration of an IterableDataset, with the state that StatefulDataLoader keeps for a worker."""

    def __init__(self, loader: Loader[Any], is_late: bool = False) -> None:
        self._loader, self._is_late = loader, is_late

    def __next__(self) -> Dict[str, Any]:
        if self._is_late:
            raise RuntimeError("load_state_dict was called after these persistent workers began, which do not know the "
                               "state: make the DataLoader with tokmap.torch.data_loader, or without persistent_workers")
        batch = next(self._loader)
        found = dict(batch)
        if batch.max_seqlen is not None:
            found["max_seqlen"] = batch.max_seqlen
        found["state"] = {"state": batch.state.hex(), "sample": batch.next_sample}
        return found


def data_loader(dataset: IterableDataset, **options: Any) -> "torch.utils.data.DataLoader[Dict[str, Any]]":
    """A DataLoader for an IterableDataset. It returns the batches as they are (batch_size=None). options are the other
    options of DataLoader, such as num_workers and pin_memory. in_order=False is refused, because the state of a batch
    says that all batches before it were taken. Workers write nothing into a ledger, so this process notes there where
    each iteration begins; a batch_schedule is then refused."""
    if "batch_size" in options or not isinstance(dataset, IterableDataset):
        raise TypeError("data_loader takes an IterableDataset of tokmap.torch, and no batch_size: batch_rows of the "
                        "dataset is the number of rows of a batch")
    if not options.get("in_order", True):
        raise ValueError("in_order=False loses and repeats samples on resume: the state of a batch says that all "
                         "before it were taken")
    return EpochLoader(dataset, batch_size=None, **options)


class MapDataset(Samples, torch.utils.data.Dataset[Dict[str, Any]]):
    """tokmap.Samples as a map-style dataset: the samplers of DataLoader choose the samples."""


def profiled(batches: Iterable[T], name: str = "tokmap.next") -> Iterator[T]:
    """Returns the same batches. In a trace of torch.profiler, reading a batch is a range with this name."""
    iterator = iter(batches)
    while True:
        with torch.profiler.record_function(name):
            try:
                batch = next(iterator)
            except StopIteration:
                return
        yield batch
