# SPDX-License-Identifier: Apache-2.0
"""tokmap.torch - datasets for torch.utils.data.DataLoader and torchdata's StatefulDataLoader."""

from typing import Any, Dict, Iterable, Iterator, Mapping, TypeVar

import torch.profiler
import torch.utils.data

from ._loader import Loader
from ._samples import Samples, arguments_of, loader_of

T = TypeVar("T")


class IterableDataset(torch.utils.data.IterableDataset[Dict[str, Any]]):
    """The batches of a Loader for a DataLoader, in the same order for any number of workers.

        dataset = tokmap.torch.IterableDataset("data/train", sequence_length=1024, batch_rows=8, seed=1)
        for batch in tokmap.torch.data_loader(dataset, num_workers=2):
            loss = step(batch["inputs"], batch["labels"])
            checkpoint = batch["state"]          # dataset.load_state_dict() of it continues after this batch

    sources     a Loader, or what a Loader takes; only then there are other arguments, those of a Loader

    A batch is a dict: a tensor for each of the loader's outputs, max_seqlen with cu_seqlens, and "state", a dict
    of plain types, which is the state after this batch, whatever workers have read ahead. Batches are complete,
    so a DataLoader needs batch_size=None, which data_loader() gives it: without, it makes batches of batches.

    Each iteration begins at the same place: that of a Loader that is given, or else sample 0, or that of
    load_state_dict(). Without max_epochs it has no
    end: the loader counts the epochs, and shuffles each in another order. Ranks are found in the process that
    makes the dataset, not in workers."""

    def __init__(self, sources: Any, sequence_length: int = 0, batch_rows: int = 1, **options: Any) -> None:
        sources = loader_of(sources, options, ("sequence_length", sequence_length, 0), ("batch_rows", batch_rows, 1))
        self._arguments = {**arguments_of(sources), "framework": "torch"}  # a worker opens its own loader
        self._n_batches = None if sources.n_samples is None else len(sources)
        self._state: Dict[str, Any] = sources.state_dict()

    def __iter__(self) -> "Batches":
        loader = Loader(**self._arguments)
        loader.load_state_dict(self._state)
        worker = torch.utils.data.get_worker_info()
        if worker is not None:
            loader._take_turns(worker.id, worker.num_workers)
        return Batches(loader)

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


class Batches(Iterator[Dict[str, Any]]):
    """An iteration of an IterableDataset, with the state that StatefulDataLoader keeps for a worker."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __next__(self) -> Dict[str, Any]:
        batch = next(self._loader)
        found = dict(batch)
        if batch.max_seqlen is not None:
            found["max_seqlen"] = batch.max_seqlen
        found["state"] = {"state": batch.state.hex(), "sample": batch.next_sample}
        return found

    def state_dict(self) -> Dict[str, Any]:
        """The position of this iteration. With workers, that of this worker."""
        return self._loader.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues at the position of state_dict()."""
        self._loader.load_state_dict(state_dict)


def data_loader(dataset: IterableDataset, **options: Any) -> "torch.utils.data.DataLoader[Dict[str, Any]]":
    """The DataLoader for an IterableDataset, which returns its batches as they are: with batch_size=None. The other
    options are those of DataLoader, such as num_workers and pin_memory."""
    if "batch_size" in options or not isinstance(dataset, IterableDataset):
        raise TypeError("data_loader takes an IterableDataset of tokmap.torch, and no batch_size: batch_rows of the "
                        "dataset is the number of rows of a batch")
    return torch.utils.data.DataLoader(dataset, batch_size=None, **options)


class MapDataset(Samples, torch.utils.data.Dataset[Dict[str, Any]]):
    """tokmap.Samples as a map-style dataset: the samplers of DataLoader choose the samples."""


def profiled(batches: Iterable[T], name: str = "tokmap.next") -> Iterator[T]:
    """The same batches. Reading each is a range of this name in a trace of torch.profiler."""
    iterator = iter(batches)
    while True:
        with torch.profiler.record_function(name):
            try:
                batch = next(iterator)
            except StopIteration:
                return
        yield batch
