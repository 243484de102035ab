# SPDX-License-Identifier: Apache-2.0
"""fsdp.py DATASET N_STEPS - FSDP with context parallelism: torchrun --nproc-per-node 4 fsdp.py data/train 10

A mesh of dp x cp ranks: those that differ in dp get different rows, those that differ in cp alone get slices of the same
rows."""

import sys

import tokmap
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional

dataset, n_steps = sys.argv[1], int(sys.argv[2])
kind = "cuda" if torch.cuda.is_available() else "cpu"
torch.distributed.init_process_group("nccl" if kind == "cuda" else "gloo")
mesh = init_device_mesh(kind, (torch.distributed.get_world_size() // 2, 2), mesh_dim_names=("dp", "cp"))

loader = tokmap.Loader(
    dataset, sequence_length=64, batch_rows=8, seed=1, framework="torch",
    windows="best_fit", outputs=["inputs", "labels", "position_ids"],
    rows=tokmap.Rows(mask_labels=True),
    ranks=tokmap.Ranks(mesh=mesh, dims=["dp"], cp_rank=mesh.get_local_rank("cp"), cp_size=2, cp_mode="zigzag"))

n_ids = tokmap.open(dataset).vocab_size or 2**16
model = torch.nn.Sequential(torch.nn.Embedding(n_ids, 32), torch.nn.Linear(32, n_ids)).to(kind)
fully_shard(model, mesh=mesh["dp"])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for step, batch in zip(range(n_steps), loader):
    there = batch.to(kind)
    loss = functional.cross_entropy(model(there.inputs).flatten(0, 1), there.labels.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"rank {torch.distributed.get_rank()}: {loader!r}, step {step}: {tuple(there.inputs.shape)}, "
          f"loss {loss.item():.4f}", flush=True)
torch.distributed.destroy_process_group()
