# SPDX-License-Identifier: Apache-2.0
"""tokmap.torchtitan - a data loader for the Trainer of torchtitan."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Dict, Iterator, Optional, Tuple

import torch
import tyro

try:
    from torchtitan.components.dataloader import BaseDataLoader
except ModuleNotFoundError:  # torchtitan after 0.3.0
    from torchtitan.components.data.loader import BaseDataLoader

from ._frameworks.samples import Resumable
from ._frameworks.tried import warn_of_untried
from ._loader.options import Ranks, Rows, group

warn_of_untried("torchtitan")


class DataLoader(Resumable, BaseDataLoader):
    """The batches of a Loader. The Trainer of torchtitan makes the DataLoader from its Config, gives it the rank, the
    length and the number of rows, and saves its state. A checkpoint may be loaded with another data-parallel degree.

        config.dataloader = tokmap.torchtitan.DataLoader.Config(dataset_path="data/train", seed=1)

    A batch has inputs, labels, and positions. Positions begin with 0 in each document; from them torchtitan makes the
    mask of FlexAttention, or the lengths for varlen attention. Labels that would cross from one document to the next do
    not count, as in torchtitan's own loaders. Without max_epochs the data have no end. torchtitan after 0.3.0 asks for
    num_tokens_per_batch: all tensors have one dimension then, with row after row."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        """The `dataloader` of a Trainer.Config, and of a Validator.Config.

        dataset_path    a path or a pattern
        sources         in place of dataset_path: a list of paths, of (path, weight), or of Sources, as for a Loader
        seed            the seed of the order
        documents       whether a row has separate documents. False: a row is treated as one document: positions go on,
                        and all labels count
        infinite        False: the data have one epoch. A Validator makes it False if it reads all data
        repeat          the same as infinite; torchtitan after 0.3.0 calls it so
        first_sample    where a run that comes from another framework begins. A checkpoint overrides it
        options         other arguments of a Loader, such as {"windows": "best_fit"}; `documents` decides about mask_labels"""

        dataset_path: Optional[str] = None
        sources: Annotated[Any, tyro.conf.Suppress] = None
        seed: int = 0
        documents: bool = True
        infinite: bool = True
        repeat: bool = True
        first_sample: int = 0
        options: Annotated[Dict[str, Any], tyro.conf.Suppress] = field(default_factory=dict)

    def __init__(self, config: Config, *, dp_world_size: int, dp_rank: int, seq_len: int = 0, local_batch_size: int = 0,
                 max_context_length: int = 0, num_tokens_per_batch: int = 0, **_: Any) -> None:
        dataset = getattr(config, "dataset", "")
        if dataset or (config.sources is None) == (config.dataset_path is None):
            raise ValueError(f"dataset is {dataset!r}, dataset_path {config.dataset_path!r} and sources "
                             f"{config.sources!r}: give dataset_path or sources, and no dataset")
        self._is_flat = max_context_length > 0
        if self._is_flat:
            seq_len, local_batch_size = max_context_length, num_tokens_per_batch // max_context_length
            if num_tokens_per_batch < seq_len or num_tokens_per_batch % seq_len:
                raise ValueError(f"num_tokens_per_batch is {num_tokens_per_batch}: must be a multiple of max_context_length, "
                                 f"{seq_len}, because a batch is whole rows. Change training.num_tokens_per_microbatch_per_dp_rank")
        rows = group(Rows, config.options.get("rows"))
        options = {"max_epochs": None if config.infinite and config.repeat else 1, **config.options,
                   "rows": rows._with(mask_labels=config.documents or rows.mask_labels)}
        self._open(config.dataset_path if config.sources is None else config.sources, (seq_len, local_batch_size), config,
                   options, ranks=Ranks(rank=dp_rank, n_ranks=dp_world_size), documents=config.documents, trainer="torchtitan")

    def __iter__(self) -> Iterator[Tuple[Dict[str, torch.Tensor], torch.Tensor]]:
        """Continues where the last batch ended."""
        for batch in self._loader:
            n_rows, length = batch.inputs.shape
            positions = torch.arange(length).repeat(n_rows, 1)
            if batch.cu_seqlens is not None:
                starts = batch.cu_seqlens[:-1].long()
                positions -= (starts % length).repeat_interleave(batch.cu_seqlens.diff()).view(n_rows, length)
            found = [array.flatten() if self._is_flat else array for array in (batch.inputs, positions, batch.labels)]
            yield {"input": found[0], "positions": found[1]}, found[2]

    def close(self) -> None:
        """Closes the Loader. The Trainer does so at its end, and a Validator after each validation."""
        self._loader.close()
