# SPDX-License-Identifier: Apache-2.0
"""tokmap.lightning - a DataModule whose checkpoints are exact although Lightning reads batches ahead."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional

import lightning
from torch.utils.data import DataLoader

from ._frameworks.tried import warn_of_untried
from ._loader.options import Order, Ranks, group
from .torch import IterableDataset, data_loader

if TYPE_CHECKING:
    from typing_extensions import Unpack
    from ._loader.options import LoaderOptions

warn_of_untried("lightning")


class DataModule(lightning.LightningDataModule):
    """The batches of a Loader for a Lightning Trainer.

        data = tokmap.lightning.DataModule("data/train", sequence_length=1024, batch_rows=8, seed=1)
        trainer.fit(model, data)
        trainer.fit(model, data, ckpt_path="last.ckpt")     # continues after the last batch trained on

    sources, sequence_length, batch_rows, options     as for a Loader. Its ranks are the ranks of the Trainer
    validation   sources of the validation set, or None. It is read once, in the order of the data. The last rows that
                 do not fill a step of all ranks are left out here too, unless order=tokmap.Order(drop_last=False)
    num_workers  processes that read. The loader reads ahead by itself, so 0 is usually enough

    training_step gets a dict with a tensor for each output of the loader. Without max_epochs the data have no end:
    limit_train_batches of the Trainer decides how long its epochs are, and each continues where the last one
    stopped. With max_epochs=N, all N are one epoch of the Trainer: a later one has no batches, and there is a warning.
    With overfit_batches, each epoch of the Trainer has the same batches."""

    def __init__(self, sources: Any, sequence_length: int, batch_rows: int = 1, *, validation: Any = None,
                 num_workers: int = 0, **options: "Unpack[LoaderOptions]") -> None:
        super().__init__()
        self._sources, self._validation, self._num_workers = sources, validation, num_workers
        self._sizes, self._options = (sequence_length, batch_rows), options
        self._dataset: Optional[IterableDataset] = None
        if validation is None:  # else the Trainer says that there is a val_dataloader without a validation_step
            setattr(self, "val_dataloader", super().val_dataloader)
        self._before: Dict[str, Any] = {}  # the states before and after the batch that is trained on
        self._after: Dict[str, Any] = {}

    def _make_dataset(self, sources: Any, options: "LoaderOptions") -> IterableDataset:
        found, ranks = self.trainer.distributed_sampler_kwargs if self.trainer is not None else None, group(Ranks, options.get("ranks"))
        if found and (ranks.rank, ranks.mesh) == (None, None):
            options = {**options, "ranks": replace(ranks, rank=found["rank"], n_ranks=found["num_replicas"])}
        return IterableDataset(sources, *self._sizes, **options)

    def train_dataloader(self) -> "DataLoader[Dict[str, Any]]":
        """The training batches, after those that were trained on."""
        self._dataset = self._make_dataset(self._sources, self._options)
        if self._after:
            self._dataset.load_state_dict(self._after)
        loader = data_loader(self._dataset, num_workers=self._num_workers)
        setattr(loader, "_when_empty", "this epoch of the Trainer has no batches, because the data have ended: all epochs of the data "
                "are one epoch of the Trainer. For more, give the DataModule a larger max_epochs, or none and limit_train_batches")
        return loader

    def val_dataloader(self) -> Any:
        """The validation batches."""
        order = Order(drop_last=group(Order, self._options.get("order")).drop_last)  # the rest is of the training
        dataset = self._make_dataset(self._validation, {**self._options, "max_epochs": 1, "shuffle": "none", "ledger": None,
                                                        "order": order, "resume": None, "record": None})
        return data_loader(dataset, num_workers=self._num_workers)

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """Called by the Trainer for the batch that it trains on next."""
        state = batch.pop("state")
        if self._dataset is not None and self.trainer is not None and self.trainer.training:
            self._before, self._after = self._dataset.state_dict(), state
            if not getattr(self.trainer, "overfit_batches", 0):
                self._dataset.load_state_dict(state)  # the next epoch of the Trainer begins there
        return batch

    def state_dict(self) -> Dict[str, Any]:
        """The state after the last batch that was trained on. If the step of a batch failed, the state before it."""
        progress: Any = self.trainer.fit_loop.epoch_loop.batch_progress.current if self.trainer is not None else None
        failed = progress is not None and progress.ready > progress.processed
        return self._before if failed else self._after

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Training continues after the batch that had this state."""
        self._after = dict(state_dict)
