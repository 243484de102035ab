# SPDX-License-Identifier: Apache-2.0
"""from_megatron.py PREFIX [N_STEPS] - the same losses from Megatron's loader and from tokmap's, on a CPU.

PREFIX is Megatron's (PREFIX.bin, PREFIX.idx), indexed once with `tokmap index PREFIX.bin`. Needs megatron-core. Two models that
begin alike train on batches of 12 rows, one from Megatron's data set, one from a Loader."""

import sys
from typing import Any, List

import tokmap
import torch
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig

prefix, n_steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
LENGTH, BATCH, SEED = 64, 12, 1234


class Tokenizer:  # what GPTDataset asks for
    vocab_size, eod, unique_identifiers = tokmap.open(prefix).largest_id + 1, 0, {"class": "any"}


tokenizer: Any = Tokenizer()


class Trained:
    """A tiny model, and the losses that it has had."""

    def __init__(self) -> None:
        torch.manual_seed(SEED)
        self.model = torch.nn.Sequential(torch.nn.Embedding(Tokenizer.vocab_size, 32), torch.nn.Linear(32, 64), torch.nn.GELU(),
                                         torch.nn.Linear(64, Tokenizer.vocab_size))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2)
        self.losses: List[float] = []

    def step(self, inputs: torch.Tensor, labels: torch.Tensor) -> None:
        loss = torch.nn.functional.cross_entropy(self.model(inputs).flatten(0, 1), labels.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())


# Megatron: its data set, and its order of samples over ranks, which for one rank is 0, 1, 2, ...
config = GPTDatasetConfig(random_seed=SEED, sequence_length=LENGTH, blend=([prefix], None), split="98,1,1", tokenizer=tokenizer,
                          reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False, create_attention_mask=False,
                          path_to_cache=prefix + "-cache")
train: Any = BlendedMegatronDatasetBuilder(GPTDataset, [n_steps * BATCH, 0, 0], lambda: True, config).build()[0]
megatron = Trained()
for step in range(n_steps):
    rows = [train[step * BATCH + i] for i in range(BATCH)]
    megatron.step(torch.stack([row["tokens"] for row in rows]), torch.stack([row["labels"] for row in rows]))

# tokmap: the same numbers in megatron_source. Only the first half here.
source = tokmap.megatron_source(prefix, "98,1,1", "train", sequence_length=LENGTH, seed=SEED, n_samples=n_steps * BATCH)
ours, loader = Trained(), tokmap.Loader(source, LENGTH, BATCH, framework="torch")
for step, batch in zip(range(n_steps // 2), loader):
    ours.step(batch.inputs, batch.labels)
state = loader.state()

# The other half with four ranks, each of which takes its rows: a checkpoint does not know how many there were.
ranks = [tokmap.Loader(source, LENGTH, BATCH // 4, framework="torch", ranks=tokmap.Ranks(rank=rank, n_ranks=4)) for rank in range(4)]
for rank in ranks:
    rank.restore(state)
for _ in range(n_steps // 2, n_steps):
    batches = [next(rank) for rank in ranks]
    ours.step(torch.cat([batch.inputs for batch in batches]), torch.cat([batch.labels for batch in batches]))

for step in range(0, n_steps, max(n_steps // 4, 1)):
    print(f"step {step:4}: {megatron.losses[step]:.6f} from Megatron, {ours.losses[step]:.6f} from tokmap")
print("largest difference:", max(abs(a - b) for a, b in zip(megatron.losses, ours.losses)))
