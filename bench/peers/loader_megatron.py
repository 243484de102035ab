# SPDX-License-Identifier: Apache-2.0
"""loader_megatron.py - megatron-core on the flat file, with the index that `tokmap export` wrote.
"""

import tempfile

from loader_adapter import Adapter, variant
from loader_data import EOD

VOCABULARY = EOD + 1


class Tokenizer:
    """The tokenizer that GPTDataset needs. It has no padding token, so none is replaced."""

    vocab_size, eod = VOCABULARY, EOD
    unique_identifiers = {"class": "none"}


class Megatron(Adapter):
    """GPTDataset, one epoch, through PyTorch's DataLoader. It saves the indexes that it makes; they
    are made again each time, because each instance saves them in its own folder."""

    packages = ("megatron-core", "torch", "numpy")
    imports = ("megatron.core.datasets.gpt_dataset", "torch", "numpy")
    pages = ("hot", "cold", "startup")
    grows = True
    note = "documents in its own random order; a loss mask and positions come with each row"

    def __init__(self, data, length, rows, seed=1):
        super().__init__(data, length, rows, seed)
        import torch

        self.torch = torch
        # With 10^12 tokens it holds gigabytes: removed by close(), or when the process fails.
        self.cache = tempfile.TemporaryDirectory(prefix="megatron-", dir=data["folder"])
        self.dataset = self.make_dataset()

    def config(self, seed, cache):
        from megatron.core.datasets.gpt_dataset import GPTDatasetConfig

        return GPTDatasetConfig(
            random_seed=seed,
            sequence_length=self.length,
            blend=([self.data["prefix"]], None),
            split="1",
            path_to_cache=cache,
            tokenizer=Tokenizer(),
            reset_position_ids=False,
            reset_attention_mask=False,
            eod_mask_loss=False,
            create_attention_mask=False,
        )

    def gpt_dataset(self, seed):
        import numpy
        from megatron.core.datasets.gpt_dataset import GPTDataset
        from megatron.core.datasets.utils import Split

        config = self.config(seed, self.cache.name)
        documents = GPTDataset.build_low_level_dataset(self.data["prefix"], config)
        numbers = numpy.arange(GPTDataset.numel_low_level_dataset(documents), dtype=numpy.int32)
        return GPTDataset(documents, self.data["prefix"], numbers, None, Split.train, config)

    def make_dataset(self):
        return self.gpt_dataset(self.seed)

    def epoch(self):
        options = {"persistent_workers": True, "prefetch_factor": 4} if self.workers else {}
        return iter(
            self.torch.utils.data.DataLoader(
                self.dataset,
                batch_size=self.rows,
                num_workers=self.workers,
                drop_last=True,
                **options,
            )
        )

    def stream(self, flat):
        return documents_in_order(flat, self.dataset)

    def tokens_of(self, batch):
        return list(zip(batch["tokens"].numpy(), batch["labels"].numpy()))

    def close(self):
        self.cache.cleanup()


def documents_in_order(flat, dataset):
    """The documents of the flat file in the order of the data set; each must occur once."""
    order = dataset.document_index.tolist()
    lengths = dataset.dataset.sequence_lengths.tolist()
    if sorted(order) != list(range(len(lengths))):
        raise ValueError("its document index is not a permutation of the documents")
    starts, at = [], 0
    for n in lengths:
        starts.append(at)
        at += n
    if 2 * at != len(flat):
        raise ValueError("its documents hold %d tokens, not %d" % (at, len(flat) // 2))
    return b"".join(flat[2 * starts[i] : 2 * (starts[i] + lengths[i])] for i in order)


class MegatronBlend(Megatron):
    """BlendedDataset of two GPTDatasets, seven samples of one to three of the other."""

    pages = ("hot", "startup")
    order = "random"
    note = "two data sets over the same file, 7 : 3"

    def make_dataset(self):
        from megatron.core.datasets.blended_dataset import BlendedDataset

        parts = [self.gpt_dataset(self.seed), self.gpt_dataset(self.seed + 1)]
        config = self.config(self.seed, None)  # it saves its own only within torch.distributed
        return BlendedDataset(parts, [0.7, 0.3], len(parts[0]), config)

    def batches(self):
        self.n_handed_out = 0
        for batch in super().batches():
            self.n_handed_out += 1
            yield batch

    def stream(self, flat):
        return b"".join(documents_in_order(flat, part) for part in self.dataset.datasets)

    def starts(self, batch):
        """The samples of this batch by its own indexes, as places in both streams."""
        first = (self.n_handed_out - 1) * self.rows % (len(self.dataset) // self.rows * self.rows)
        found = []
        for i in range(first, first + self.rows):
            part = int(self.dataset.dataset_index[i])
            sample = int(self.dataset.dataset_sample_index[i])
            window = int(self.dataset.datasets[part].shuffle_index[sample])
            found.append(part * self.data["n_tokens"] + window * self.length)
        return found


ADAPTERS = {
    "megatron-w0": Megatron,
    "megatron-w2": variant(Megatron, workers=2, pages=("hot",), usual=False),
    "megatron-blend-w0": MegatronBlend,
}
