# SPDX-License-Identifier: Apache-2.0
"""tokmap.torchtitan - a data loader for the Trainer of torchtitan."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Dict, Iterator, Mapping, Tuple

import torch
import tyro
from torchtitan.components.dataloader import BaseDataLoader

from ._loader import Loader
from ._samples import arguments_of


class DataLoader(BaseDataLoader):
    """The batches of a Loader. The Trainer of torchtitan makes it of its Config, gives it the rank, the length and the
    number of rows, and saves its state. A checkpoint may be loaded with another data-parallel degree.

        config.dataloader = tokmap.torchtitan.DataLoader.Config(dataset_path="data/train", seed=1)

    A batch has inputs, labels, and positions, which begin with 0 in each document: torchtitan makes of them the mask of
    FlexAttention, or the lengths for varlen attention. Labels that would cross from one document to the next do not
    count, as in torchtitan's own loaders. Without max_epochs the data have no end."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        """What a Trainer.Config has as `dataloader`, and a Validator.Config too.

        dataset_path    a path or a pattern
        sources         in place of it, what else a Loader takes: a list of paths, of (path, weight), or of Sources
        seed            of the order
        documents       whether a row has separate documents. Else it is as if it were one: positions go on, and all labels
                        count
        infinite        False: the data have one epoch. A Validator that reads all of them sets it
        first_sample    where a run begins that comes from another framework. A checkpoint knows better
        options         other arguments of a Loader, such as {"windows": "best_fit"}"""

        sources: Annotated[Any, tyro.conf.Suppress] = None
        seed: int = 0
        documents: bool = True
        infinite: bool = True
        first_sample: int = 0
        options: Annotated[Dict[str, Any], tyro.conf.Suppress] = field(default_factory=dict)

    def __init__(self, config: Config, *, dp_world_size: int, dp_rank: int, seq_len: int, local_batch_size: int,
                 **_: Any) -> None:
        if config.dataset or (config.sources is None) == (config.dataset_path is None):
            raise ValueError(f"dataset is {config.dataset!r}, dataset_path {config.dataset_path!r} and sources "
                             f"{config.sources!r}: give dataset_path or sources, and no dataset")
        options = {"mask_labels": config.documents, "max_epochs": None if config.infinite else 1, **config.options}
        self._loader = Loader(config.dataset_path if config.sources is None else config.sources, seq_len, local_batch_size,
                              seed=config.seed, outputs=("inputs", "labels", "cu_seqlens")[:2 + config.documents],
                              framework="torch", rank=dp_rank, n_ranks=dp_world_size, **options)
        self._loader.seek(config.first_sample)
        arguments = arguments_of(self._loader)
        if arguments["cp_size"] != 1 or arguments["ignore_index"] != -100:
            raise ValueError("cp_size must be 1, because torchtitan slices the rows itself, and ignore_index -100")

    def __iter__(self) -> Iterator[Tuple[Dict[str, torch.Tensor], torch.Tensor]]:
        """Continues where the last batch ended."""
        for batch in self._loader:
            n_rows, length = batch.inputs.shape
            positions = torch.arange(length).repeat(n_rows, 1)
            if batch.cu_seqlens is not None:
                starts = batch.cu_seqlens[:-1].long()
                positions -= (starts % length).repeat_interleave(batch.cu_seqlens.diff()).view(n_rows, length)
            yield {"input": batch.inputs, "positions": positions}, batch.labels

    def state_dict(self) -> Dict[str, Any]:
        """The state after the last batch, which is the same on all ranks."""
        return self._loader.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues after the batch that had this state, with any number of ranks."""
        self._loader.load_state_dict(state_dict)
