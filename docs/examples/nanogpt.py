# SPDX-License-Identifier: Apache-2.0
"""nanogpt.py DATASET N_STEPS - the training loop of nanoGPT, which goes on where its checkpoint says."""

import os
import sys

import tokmap
import torch
from torch.nn import functional

block_size, batch_size = 64, 8
dataset, n_steps = sys.argv[1], int(sys.argv[2])
device = "cuda" if torch.cuda.is_available() else "cpu"

loader = tokmap.Loader(dataset, block_size, batch_size, seed=1337, framework="torch")
validation = tokmap.Loader(dataset, block_size, batch_size, shuffle="none", framework="torch")
n_ids = tokmap.open(dataset).vocab_size or 2**16
model = torch.nn.Sequential(torch.nn.Embedding(n_ids, 32), torch.nn.Linear(32, n_ids)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def loss_of(batch: tokmap.Batch[torch.Tensor]) -> torch.Tensor:
    there = batch.to(device, non_blocking=True)
    return functional.cross_entropy(model(there.inputs).flatten(0, 1), there.labels.flatten())


if os.path.exists("ckpt.pt"):
    checkpoint = torch.load("ckpt.pt")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    loader.load_state_dict(checkpoint["loader"])

for step, batch in zip(range(n_steps), loader):
    loss = loss_of(batch)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    print(f"step {step}: samples {batch.first_sample} to {batch.next_sample - 1}, loss {loss.item():.4f}")

validation.seek(0)
with torch.no_grad():
    losses = [loss_of(batch) for _, batch in zip(range(4), validation)]
print(f"validation loss {torch.stack(losses).mean().item():.4f}")
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}, "ckpt.pt")
