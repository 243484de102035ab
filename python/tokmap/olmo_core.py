# SPDX-License-Identifier: Apache-2.0
"""tokmap.olmo_core - a data loader for the Trainer of OLMo-core."""

from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, Optional

import olmo_core.data
import torch
from olmo_core.distributed.parallel import get_dp_process_group
from olmo_core.distributed.utils import get_rank, get_world_size
from olmo_core.exceptions import OLMoConfigurationError

from ._loader.loader import reopened
from ._loader.options import Ranks, Rows, group
from ._frameworks.samples import Resumable
from ._frameworks.tried import warn_of_untried

warn_of_untried("ai2-olmo-core")


class DataLoader(Resumable, olmo_core.data.TextDataLoaderBase):
    """The batches of a Loader. The Trainer of OLMo-core saves its state. A checkpoint may be loaded with another
    data-parallel degree and another global batch size. A BatchSizeSchedulerCallback may also change the global batch
    size during a run.

        data = tokmap.olmo_core.DataLoaderConfig("data/train", sequence_length=1024, global_batch_size=2**20, seed=1)
        loader = data.build(dp_process_group=train_module.dp_process_group)
        trainer = trainer_config.build(train_module, loader)

    A batch has input_ids, labels and, with generate_doc_lengths, the doc_lens and max_doc_lens that keep attention within
    documents. All epochs of the Loader are one epoch of the Trainer. Without max_epochs this epoch has no end: then
    give the duration of the run in steps or tokens, because its default is one epoch."""

    def __init__(self, config: "DataLoaderConfig", *, dp_world_size: int = 1, dp_rank: int = 0,
                 collator: Optional[olmo_core.data.DataCollator] = None) -> None:
        self._length = config.sequence_length
        n_tokens = config.global_batch_size
        if self._length < 1 or n_tokens < 1 or n_tokens % (self._length * dp_world_size):
            raise OLMoConfigurationError(f"global_batch_size is {n_tokens}: must be a number of tokens that is rows of "
                                         f"{self._length} for each of {dp_world_size} ranks")
        super().__init__(
            collator=collator or olmo_core.data.DataCollator(pad_token_id=group(Rows, config.options.get("rows")).pad_id), work_dir=".",
            global_batch_size=n_tokens, dp_world_size=dp_world_size, dp_rank=dp_rank)
        self._open(config.sources, (self._length, self._n_rows()), config, config.options,
                   ranks=Ranks(rank=dp_rank, n_ranks=dp_world_size), documents=config.generate_doc_lengths,
                   trainer="OLMo-core", error=OLMoConfigurationError)

    def _n_rows(self) -> int:
        return int(self.rank_batch_size) // self._length

    @property
    def total_batches(self) -> Optional[int]:
        """None without max_epochs."""
        return None if self._loader.n_samples is None else len(self._loader)

    def reshuffle(self, epoch: Optional[int] = None, **_: Any) -> None:
        """Does nothing for epoch 1, because the Loader shuffles each of its epochs."""
        self._epoch: Optional[int] = (self._epoch or 0) + 1 if epoch is None else epoch
        if self._epoch != 1:
            raise OLMoConfigurationError(f"the data have no epoch {self._epoch} of the Trainer: they are all its epoch 1, "
                                         f"of {self.total_batches} batches. Set max_epochs higher, or to None")

    def _iter_batches(self) -> Iterator[Dict[str, Any]]:
        while True:
            if self._n_rows() != self._loader.batch_rows:  # global_batch_size was set
                before, state = self._loader, self._loader.state()
                before.close()
                self._loader = reopened(before._own_options(), batch_rows=self._n_rows())
                self._loader.restore(state)
            batch = next(self._loader, None)
            if batch is None:
                return
            found = {"input_ids": batch.inputs, "labels": batch.labels}
            if batch.cu_seqlens is not None:
                n_documents = (batch.cu_seqlens[:-1] // self._length).bincount().tolist()  # of each row
                rows = batch.cu_seqlens.diff().split(n_documents)
                found["doc_lens"] = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
                found["max_doc_lens"] = [int(row.max()) for row in rows]
            yield found

    def get_mock_batch(self) -> Dict[str, Any]:
        """Random ids, which the Trainer uses to see whether a batch fits in memory."""
        sizes = [dataset.vocab_size or 1 for source in self._loader._sources for dataset in source.datasets]
        ids = torch.randint(min(sizes), (self._n_rows(), self._length))
        found: Dict[str, Any] = {"input_ids": ids, "labels": ids}
        if "cu_seqlens" in self._loader.outputs:
            found["doc_lens"] = torch.full((len(ids), 1), self._length, dtype=torch.int32)
            found["max_doc_lens"] = [self._length] * len(ids)
        return found

    def _count(self) -> None:
        """Counts as if all steps so far had this size."""
        self.tokens_processed = self._loader._turns.steps.position(self._loader.sample) * self._length
        self.batches_processed = self.tokens_processed // self.global_batch_size


@dataclass
class DataLoaderConfig(olmo_core.data.DataLoaderConfig[DataLoader]):  # type: ignore[no-untyped-call, unused-ignore]
    """The configuration of a DataLoader.

    sources, sequence_length, seed      as for a Loader
    global_batch_size       tokens of a step of all ranks
    generate_doc_lengths    whether attention stays within documents
    first_sample            where a run that comes from another framework begins. A checkpoint overrides it
    options                 other arguments of a Loader, such as {"windows": "best_fit"}"""

    sources: Any
    sequence_length: int
    global_batch_size: int
    seed: int = 0
    generate_doc_lengths: bool = False
    first_sample: int = 0
    options: Dict[str, Any] = field(default_factory=dict)

    def build(self, *, collator: Optional[olmo_core.data.DataCollator] = None,
              mesh: Optional[torch.distributed.device_mesh.DeviceMesh] = None,
              dp_process_group: Optional[torch.distributed.ProcessGroup] = None) -> DataLoader:
        """The data loader of this rank. mesh, dp_process_group: as in the configurations of OLMo-core's own loaders."""
        if dp_process_group is None and mesh is not None:
            dp_process_group = get_dp_process_group(mesh)
        return DataLoader(self, dp_world_size=get_world_size(dp_process_group), dp_rank=get_rank(dp_process_group),
                          collator=collator)
