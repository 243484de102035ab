# SPDX-License-Identifier: Apache-2.0
"""stage_on_host.py DATASET N_STEPS - the stage that feeds a GPU, in ordinary memory: the same calls with device="cuda:0"."""

import sys

import numpy as np
import tokmap

dataset, n_steps = sys.argv[1], int(sys.argv[2])
loader = tokmap.Loader(dataset, sequence_length=64, batch_rows=8, seed=1, outputs=["inputs", "labels", "cu_seqlens"])
with tokmap.Stage(loader, device="host", outputs=["inputs", "labels", "position_ids"], positions="document",
                  n_slots=4, log=print) as stage:
    for step, batch in zip(range(n_steps), stage):
        assert batch.inputs and batch.labels and batch.position_ids
        inputs, labels = np.from_dlpack(batch.inputs), np.from_dlpack(batch.labels)
        assert (labels[:, :-1] == inputs[:, 1:])[np.from_dlpack(batch.position_ids)[:, 1:] > 0].all()
        print(f"step {step}: samples {batch.first_sample} to {batch.first_sample + len(batch) - 1}")
    print(f"{stage.stats['n_waits']} waits")
print(f"the loader goes on at sample {loader.sample}")
