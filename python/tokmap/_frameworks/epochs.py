# SPDX-License-Identifier: Apache-2.0
"""The DataLoader of tokmap.torch.data_loader: what happens where an iteration begins and ends."""

import warnings
from typing import Any, Dict, Iterator

import torch.utils.data

from .._loader.loader import note_start


class _Iteration(Iterator[Dict[str, Any]]):
    """An iteration of an EpochLoader. At its end the dataset begins anew, unless it has loaded a state in the meantime."""

    def __init__(self, batches: Any, dataset: Any, when_empty: str) -> None:
        self._batches, self._dataset, self._n_loads, self._when_empty = batches, dataset, dataset._n_loads, when_empty

    def __len__(self) -> int:
        return len(self._batches)

    def __next__(self) -> Dict[str, Any]:
        try:
            batch: Dict[str, Any] = next(self._batches)
        except StopIteration:
            if self._when_empty:
                warnings.warn(self._when_empty, stacklevel=2)
            elif self._n_loads == self._dataset._n_loads:
                self._dataset._begin_anew()
                self._n_loads = self._dataset._n_loads
            raise
        self._when_empty = ""
        return batch


class EpochLoader(torch.utils.data.DataLoader[Dict[str, Any]]):
    """A DataLoader whose persistent workers end when the dataset has loaded a state."""

    _is_accelerate_prepared = True  # else accelerate would distribute it a second time
    _n_loads = 0
    _when_empty = ""  # a warning for an iteration without a batch

    def __iter__(self) -> Any:
        dataset: Any = self.dataset
        if self._n_loads != dataset._n_loads:
            self._iterator = None
            self._n_loads = dataset._n_loads
        if self.num_workers > 0:
            note_start(dataset._options, dataset._state)
        return _Iteration(super().__iter__(), dataset, self._when_empty)
