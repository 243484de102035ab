# SPDX-License-Identifier: Apache-2.0
"""tokmap.huggingface.IterableDataset and Callback: a stream of rows for the Trainer of transformers, TRL and accelerate."""

import copy
import warnings
from dataclasses import replace
from functools import partialmethod
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Tuple

import datasets.iterable_dataset  # type: ignore[import-untyped,unused-ignore]
import torch.utils.data
import transformers

from .._c.arguments import number
from .._loader.batch import save_at
from .._loader.loader import Loader, reopened
from .._loader.options import Options, Order, Ranks, Record, given_ones, group
from .rows import check_options, row_of
from .samples import alone, loader_of, options_of

if TYPE_CHECKING:
    from typing_extensions import Unpack
    from .._loader.options import SampleOptions

    class _Stream(datasets.IterableDataset, torch.utils.data.IterableDataset[Dict[str, Any]]):  # type: ignore[misc,unused-ignore]
        """The type that a datasets.IterableDataset gets where PyTorch is installed."""
else:
    _Stream = datasets.IterableDataset

_LOGGED = ("position", "samples_skipped", "bytes_read", "n_waits", "waited_ns", "wait_p99_ns")


class _Rows(datasets.iterable_dataset._BaseExamplesIterable):  # type: ignore[misc,unused-ignore]
    """The rows of one rank, as the library datasets wants them. Rank r of n gives the samples r, n + r, 2 * n + r, ...
    after the start. When all ranks have given equally many, as after each step, they have the same state."""

    num_shards = 2**24  # ranks that there may be
    _sleep_on_threads_shutdown = False

    def __init__(self, options: Options, start: Mapping[str, Any]) -> None:
        super().__init__()
        self.options = options
        self.loader = self.last = reopened(options)  # last: the one that was iterated last
        self.start_at(start)

    def start_at(self, start: Mapping[str, Any]) -> None:
        self.loader.load_state_dict(start)
        self.start = {"state": start["state"], "sample": self.loader.sample}

    def _init_state_dict(self) -> Dict[str, Any]:
        self._state_dict = dict(self.start)
        return self._state_dict

    def __iter__(self) -> Iterator[Tuple[int, Dict[str, Any]]]:
        self.last = loader = reopened(self.options)
        loader.load_state_dict(self._state_dict)
        state = self._state_dict  # which the caller keeps
        for batch in loader:
            row = row_of(batch, loader)
            state.update(state=batch.state.hex(), sample=batch.next_sample)
            yield batch.first_sample, row

    def shuffle_data_sources(self, generator: Any) -> "_Rows":
        return self

    def shard_data_sources(self, num_shards: int, index: int, contiguous: bool = True) -> "_Rows":
        if num_shards > 1 and torch.utils.data.get_worker_info() is not None:
            raise ValueError(f"{num_shards} workers would give their batches in another order than that of the samples: set "
                             "num_workers (dataloader_num_workers) to 0 or 1; the loader reads ahead by itself")
        ranks, found = self.options.ranks, copy.copy(self)
        n_ranks, rank = ranks.n_ranks or 1, ranks.rank or 0
        found.options = self.options._with(ranks=replace(ranks, n_ranks=n_ranks * num_shards, rank=index * n_ranks + rank))
        return found

    def split_shard_indices_by_worker(self, num_shards: int, index: int, contiguous: bool = True) -> List[int]:
        return [index]


class IterableDataset(_Stream):
    """A stream of the rows that a CausalLMDataset has, for the Trainer, the SFTTrainer of TRL, and accelerate. Without
    max_epochs it has no end: the Loader counts the epochs, and shuffles each in another order.

        data = tokmap.huggingface.IterableDataset("data/train", sequence_length=1024, seed=1)
        arguments = transformers.TrainingArguments("run", max_steps=1000, accelerator_config={"dispatch_batches": False})
        transformers.Trainer(model, arguments, train_dataset=data, callbacks=[tokmap.huggingface.Callback(data)]).train()

    sources, sequence_length, options   as for a CausalLMDataset. The Trainer decides on ranks and the rows of a batch

    The frameworks give each process its shard: rank r of n gets the samples r, n + r, 2 * n + r, ..., so that a step of
    all ranks has the same samples for any number of ranks. They must not read in rank 0 for all, nor read all in each
    rank: without dispatch_batches=False and split_batches=False, several processes get a RuntimeError. Several workers
    get one too: num_workers is 0 or 1. map, filter, shuffle and select_columns are a TypeError, so TRL needs
    dataset_kwargs={"skip_prepare_dataset": True}."""

    def __init__(self, sources: Any, sequence_length: int, **options: "Unpack[SampleOptions]") -> None:
        given, order, record = given_ones(options), group(Order, options.get("order")), group(Record, options.get("record"))
        wrong: List[str] = [name for name in ("ranks", "batch_rows", "ledger") if name in given]
        wrong += [name for name in ("batch_schedule", "micro_batches") if vars(order).get(name) or vars(record).get(name)]
        if wrong:
            raise TypeError(f"{', '.join(wrong)}: not for this dataset, because the Trainer or accelerate decides about "
                            "ranks and batches")
        if not isinstance(sources, Loader):
            given["ranks"] = Ranks(rank=0, n_ranks=1)
        loader = loader_of(sources, given, ("sequence_length", number("sequence_length", sequence_length, 2**24 + 1, 2) - 1, 0))
        check_options(loader)
        super().__init__(_Rows(alone(options_of(loader)), loader.state_dict()))

    def shard(self, num_shards: int, index: int, contiguous: bool = False) -> "IterableDataset":
        """The samples index, num_shards + index, 2 * num_shards + index, ... of this dataset; never contiguous ones."""
        found = IterableDataset.__new__(IterableDataset)  # type: ignore[type-abstract,unused-ignore]
        datasets.IterableDataset.__init__(found, self._ex_iterable.shard_data_sources(num_shards, index))
        found._is_shard = True
        return found

    _is_shard = False

    def set_epoch(self, epoch: int) -> None:
        """Leaves the order alone: each iteration begins at the same place, and the Loader counts the epochs."""
        group = torch.distributed
        if not self._is_shard and group.is_available() and group.is_initialized() and group.get_world_size() > 1:
            raise RuntimeError("one process would read for all, or each would read all: set dispatch_batches=False and "
                               "split_batches=False (accelerator_config of TrainingArguments, DataLoaderConfiguration of "
                               "accelerate). If all are to get the same rows, give them dataset.shard(1, 0)")
        if epoch > 0:
            warnings.warn(f"epoch {epoch} has the same rows in the same order as epoch 0, because set_epoch leaves the "
                          "order alone, and a resume in it may begin at its first row: without max_epochs the data have no end, and "
                          "each of their epochs is shuffled")

    def state_dict(self) -> Dict[str, Any]:
        """Where the last iteration is, or where the next one begins. As with a Loader, it is the same for any number of
        ranks."""
        return dict(self._state_dict["examples_iterable"])

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """The next iteration begins there."""
        self._ex_iterable.start_at(state_dict)
        self._prepare_ex_iterable_for_iteration()

    def _refuse(self, name: str, *_: Any, **__: Any) -> Any:
        raise TypeError(f"{name}: rows of this dataset are ready and shuffled, and stay as they are. TRL needs "
                        "dataset_kwargs={'skip_prepare_dataset': True}, and neither packing nor shuffle_dataset. What you do "
                        "to a row belongs into the data_collator")

    map = partialmethod(_refuse, "map")
    filter = partialmethod(_refuse, "filter")
    shuffle = partialmethod(_refuse, "shuffle")
    select_columns = partialmethod(_refuse, "select_columns")


class Callback(transformers.TrainerCallback):
    """For the Trainer. It logs what the data have given: position, samples and epochs of each source, bytes read, and
    waits, as Loader.metrics() has them. With an IterableDataset each checkpoint says where the data go on, and training
    resumes there without reading what was trained on, on any number of ranks and with any number of rows.

    data    the train_dataset: an IterableDataset or a CausalLMDataset

    trainer_state.json has the values. The callbacks after this one report them, such as a WandbCallback later in the
    list. A callback that report_to names comes before this one, and has already reported.

    An IterableDataset is a batch ahead of the training, and its values are too. At the start of the training it is a
    ValueError if the collator drops position_ids, as TRL's collator does, or if the data end before max_steps."""

    def __init__(self, data: Any) -> None:
        self._data, self._is_stream = data, isinstance(data, IterableDataset)

    def on_init_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """on_train_begin goes to the place."""
        if self._is_stream:
            args.ignore_data_skip = True

    def on_train_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **_: Any) -> None:
        """Continues after the step of the checkpoint."""
        data = train_dataloader.dataset
        if type(data) is not type(self._data):
            raise TypeError(f"the Trainer reads a {type(data).__name__} and not the dataset of this callback: give it that as "
                            "train_dataset, with split_batches=False")
        self._data = data  # the shard of this rank
        if self._is_stream:
            start = state.stateful_callbacks.get("tokmap")
            if start is not None:
                data.load_state_dict(start)
            elif state.global_step > 0:
                raise ValueError("this checkpoint was saved without tokmap.huggingface.Callback: leave it out, and the "
                                 "Trainer reads and skips what was trained on")
            n_rows = train_dataloader.batch_size * data._ex_iterable.options.ranks.n_ranks
            self._sample = data._ex_iterable.start["sample"]  # not data.state_dict(): TRL has looked at the first row
        else:
            n_rows = train_dataloader.total_batch_size
            self._sample = n_rows * args.gradient_accumulation_steps * state.global_step
        self._n_rows = n_rows * args.gradient_accumulation_steps
        loader, row = self._loader, next(iter(data))
        lost = row.keys() - train_dataloader.collate_fn([row]).keys()
        if lost:
            raise ValueError(f"the collator drops {', '.join(lost)}: set remove_unused_columns=False and "
                             "data_collator=transformers.default_data_collator, or leave it out of outputs")
        end = self._after((state.max_steps - state.global_step) * self._n_rows)
        if self._is_stream and loader.n_samples is not None and end > loader.n_samples:
            raise ValueError(f"{state.max_steps} steps end at sample {end}, but the data have {loader.n_samples}: set fewer "
                             "max_steps, or leave out max_epochs")

    @property
    def _loader(self) -> Loader[Any]:
        loader: Loader[Any] = self._data._ex_iterable.loader if self._is_stream else self._data._loader
        return loader

    def _after(self, n_rows: int) -> int:
        steps = self._loader._turns.steps
        return steps.sample(steps.position(self._sample) + n_rows)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Notes where the data go on."""
        self._sample = self._after(self._n_rows)
        if self._is_stream:
            state.stateful_callbacks["tokmap"] = {"sample": self._sample,
                                                  "state": save_at(self._loader._own_handle, self._sample).hex()}

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Adds the values to what is logged of the training."""
        if not logs or "loss" not in logs:
            return
        if self._is_stream and args.dataloader_num_workers == 0:
            found = self._data._ex_iterable.last.metrics()
        else:  # the one that reads is elsewhere, or everywhere
            self._loader.seek(self._sample)
            found = self._loader.metrics()
        values = {f"tokmap/{name}": found[name] for name in _LOGGED if name in found}
        for k, source in enumerate(found["sources"]):
            values.update((f"tokmap/{name}/{k}", source[name]) for name in ("samples", "epochs"))
        logs.update(values)
        state.log_history[-1].update(values)
