#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes for nanoGPT: the files are those that train.py reads, and one get_batch draws the batches that it
draws."""

import sys

from frameworks import need, run_checks

if __name__ == "__main__":
    need("nanogpt", "torch")
import numpy as np  # noqa: E402
import torch  # noqa: E402

import tokmap  # noqa: E402
from documents import blocks  # noqa: E402

BLOCK, ROWS = 64, 12


def draw(path):
    """As train.py does: random places of the file, and arrays of inputs and labels."""
    file = np.memmap(path, dtype=np.uint16, mode="r")
    places = torch.randint(len(file) - BLOCK, (ROWS,))
    inputs = np.array([file[place:place + BLOCK] for place in places.tolist()], dtype=np.int64)
    labels = np.array([file[place + 1:place + 1 + BLOCK] for place in places.tolist()], dtype=np.int64)
    return torch.from_numpy(inputs), torch.from_numpy(labels)


def recipes(place):
    texts = [text.replace("data/", f"{place}/") for title, _, text in blocks("frameworks.md") if title == "nanoGPT"]
    for text in texts:
        names = {"block_size": BLOCK, "batch_size": ROWS, "device": "cpu"}
        exec(text, names)
        yield names["get_batch"]


def get_batch_draws_what_train_py_draws(folder):
    each_once, random = recipes(folder)
    for seed, split in enumerate(("train", "val") * 5):
        torch.manual_seed(seed)
        inputs, labels = draw(folder / f"{split}.bin")
        torch.manual_seed(seed)
        got = random(split)
        assert torch.equal(got[0], inputs) and torch.equal(got[1], labels) and got[0].dtype == torch.int64


def each_window_comes_once(folder):
    each_once, random = recipes(folder)
    tokens = np.memmap(folder / "train.bin", dtype=np.uint16, mode="r")
    n_batches = (len(tokens) - 1) // BLOCK // ROWS
    rows = [row for _ in range(n_batches) for row in torch.stack(each_once("train"), 1).tolist()]
    windows = {(tuple(tokens[i:i + BLOCK].tolist()), tuple(tokens[i + 1:i + BLOCK + 1].tolist()))
               for i in range(0, len(tokens) - BLOCK, BLOCK)}
    found = {(tuple(inputs), tuple(labels)) for inputs, labels in rows}
    assert len(found) > 100 and found <= windows and len(found) >= len(rows) - 5  # some texts repeat


if __name__ == "__main__":
    sys.exit(run_checks("nanogpt_"))
