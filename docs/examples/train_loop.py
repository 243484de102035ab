# SPDX-License-Identifier: Apache-2.0
"""train_loop.py DATASET CHECKPOINT N_STEPS - a training loop that can be interrupted and continued, with NumPy alone.

Trains a bigram model on N_STEPS more batches than CHECKPOINT (a .npz file) has seen; without that file, from the
beginning."""

import os
import sys

import numpy as np
import tokmap

dataset, checkpoint, n_steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
loader = tokmap.Loader(dataset, sequence_length=64, batch_rows=8, seed=1)
n_ids = tokmap.open(dataset).vocab_size or 2**16
logits, first_step = np.zeros((n_ids, n_ids)), 0  # of the next id, for each id
if os.path.exists(checkpoint):
    saved = np.load(checkpoint)
    logits, first_step = saved["logits"], int(saved["step"])
    loader.restore(saved["loader"].tobytes())

for step, batch in zip(range(first_step, first_step + n_steps), loader):
    inputs, labels = batch.inputs.ravel(), batch.labels.ravel()
    p = np.exp(logits[inputs] - logits[inputs].max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    right = np.arange(len(labels)), labels
    print("step", step, "loss", -np.log(p[right]).mean())
    p[right] -= 1
    np.subtract.at(logits, inputs, 0.1 * p)

np.savez(checkpoint, logits=logits, step=first_step + n_steps, loader=np.frombuffer(loader.state(), np.uint8))
